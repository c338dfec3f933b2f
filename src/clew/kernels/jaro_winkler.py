"""Jaro-Winkler similarity between sequences of symbols: shared symbols at near places, and a common start."""

import cython


def jaro_winkler(
    pointers: cython.const[cython.longlong][::1],
    symbols: cython.const[cython.longlong][::1],
    firsts: cython.const[cython.longlong][::1],
    seconds: cython.const[cython.longlong][::1],
    marks: cython.longlong[:, ::1],
    similarities: cython.double[::1],
):
    """Jaro-Winkler similarity of sequences `firsts[p]` and `seconds[p]`, for every p; 1 for two empty ones.

    Sequence s is ``symbols[pointers[s]:pointers[s + 1]]``. Each symbol of a common prefix, up to four, raises the
    similarity by a tenth of its distance to 1. Reads the first four arrays; writes `similarities`. `marks` (2 rows, an
    entry per symbol of the longest sequence) is work space.
    """
    pair: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    n: cython.Py_ssize_t
    m: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    reach: cython.Py_ssize_t
    start: cython.longlong
    other: cython.longlong
    n_shared: cython.longlong
    n_swapped: cython.longlong
    n_common: cython.longlong
    value: cython.double
    with cython.nogil:
        for pair in range(firsts.shape[0]):
            start = pointers[firsts[pair]]
            other = pointers[seconds[pair]]
            n = pointers[firsts[pair] + 1] - start
            m = pointers[seconds[pair] + 1] - other
            if n == 0 or m == 0:
                similarities[pair] = 1.0 if n == m else 0.0
                continue
            reach = max(n, m) // 2 - 1
            if reach < 0:
                reach = 0
            for i in range(n):
                marks[0, i] = 0
            for j in range(m):
                marks[1, j] = 0
            n_shared = 0
            for i in range(n):
                low = i - reach if i > reach else 0
                high = min(i + reach + 1, m)
                for j in range(low, high):
                    if marks[1, j] == 0 and symbols[start + i] == symbols[other + j]:
                        marks[0, i] = 1
                        marks[1, j] = 1
                        n_shared += 1
                        break
            if n_shared == 0:
                similarities[pair] = 0.0
                continue
            n_swapped = 0
            j = 0
            for i in range(n):
                if marks[0, i]:
                    while marks[1, j] == 0:
                        j += 1
                    if symbols[start + i] != symbols[other + j]:
                        n_swapped += 1
                    j += 1
            value = n_shared
            value = (value / n + value / m + (value - n_swapped / 2.0) / value) / 3
            n_common = 0
            while n_common < min(n, m, 4) and symbols[start + n_common] == symbols[other + n_common]:
                n_common += 1
            similarities[pair] = value + n_common * 0.1 * (1 - value)
