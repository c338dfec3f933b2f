"""Union-find: components of rows that pairs join, directly or through other rows."""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _root(parent: cython.longlong[::1], row: cython.longlong) -> cython.longlong:
    # Path halving needs no recursion, so a chain of a million rows is not a problem.
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


def merge_pairs(parent: cython.longlong[::1], pairs: cython.const[cython.longlong][:, ::1]):
    """Join both rows of each pair.

    Reads `pairs`; writes `parent`, where `parent[i] <= i` and a root is its own parent. The smaller root wins.
    """
    pair: cython.Py_ssize_t
    first: cython.longlong
    second: cython.longlong
    with cython.nogil:
        for pair in range(pairs.shape[0]):
            first = _root(parent, pairs[pair, 0])
            second = _root(parent, pairs[pair, 1])
            if first < second:
                parent[second] = first
            elif second < first:
                parent[first] = second


def number_components(parent: cython.longlong[::1], component_of: cython.longlong[::1]) -> cython.longlong:
    """Number the components 0, 1, … in the order of their first rows; return how many there are.

    Reads `parent` (and shortens its paths); writes `component_of`.
    """
    row: cython.Py_ssize_t
    root: cython.longlong
    count: cython.longlong = 0
    with cython.nogil:
        for row in range(parent.shape[0]):
            root = _root(parent, row)
            if root == row:
                component_of[row] = count
                count += 1
            else:  # the root is the smallest row of its component, so it already has a number
                component_of[row] = component_of[root]
    return count
