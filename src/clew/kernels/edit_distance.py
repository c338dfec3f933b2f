"""Edit distance between sequences of symbols: insertions, deletions, substitutions and swaps of neighbours."""

import cython


def edit_distances(
    pointers: cython.const[cython.longlong][::1],
    symbols: cython.const[cython.longlong][::1],
    firsts: cython.const[cython.longlong][::1],
    seconds: cython.const[cython.longlong][::1],
    table: cython.longlong[:, ::1],
    last_row: cython.longlong[::1],
    distances: cython.double[::1],
):
    """Damerau-Levenshtein distance of sequences `firsts[p]` and `seconds[p]`, for every p.

    Sequence s is ``symbols[pointers[s]:pointers[s + 1]]``, with symbols from 0 on. Reads the first four arrays; writes
    `distances`. `table` (both sides at least two longer than the longest sequence) and `last_row` (one per symbol) are
    work space.
    """
    pair: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    n: cython.Py_ssize_t
    m: cython.Py_ssize_t
    start: cython.longlong
    other: cython.longlong
    row: cython.longlong
    column: cython.longlong
    best: cython.longlong
    with cython.nogil:
        for pair in range(firsts.shape[0]):
            start = pointers[firsts[pair]]
            other = pointers[seconds[pair]]
            n = pointers[firsts[pair] + 1] - start
            m = pointers[seconds[pair] + 1] - other
            for i in range(n):
                last_row[symbols[start + i]] = 0
            for j in range(m):
                last_row[symbols[other + j]] = 0
            # Row and column 0 mean "no such symbol before"; no path through them is cheaper.
            table[0, 0] = n + m
            for i in range(n + 1):
                table[i + 1, 0] = n + m
                table[i + 1, 1] = i
            for j in range(m + 1):
                table[0, j + 1] = n + m
                table[1, j + 1] = j
            for i in range(1, n + 1):
                column = 0
                for j in range(1, m + 1):
                    row = last_row[symbols[other + j - 1]]
                    best = table[row, column] + (i - row - 1) + 1 + (j - column - 1)
                    if symbols[start + i - 1] == symbols[other + j - 1]:
                        column = j
                        best = min(best, table[i, j])
                    else:
                        best = min(best, table[i, j] + 1)
                    best = min(best, table[i + 1, j] + 1)
                    best = min(best, table[i, j + 1] + 1)
                    table[i + 1, j + 1] = best
                last_row[symbols[start + i - 1]] = i
            distances[pair] = table[n + 1, m + 1]
