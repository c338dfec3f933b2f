"""Distances of rows to the centres of their own clusters."""

import cython

floating = cython.fused_type(cython.float, cython.double)


def own_distances(
    X: cython.const[floating][:, ::1],
    centers: cython.const[cython.double][:, ::1],
    labels: cython.const[cython.int][::1],
    costs: cython.double[::1],
):
    """Write the squared distance of each row to the centre of its cluster to `costs`. Reads the other arrays."""
    row: cython.Py_ssize_t
    column: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    difference: cython.double
    cost: cython.double
    with cython.nogil:
        for row in range(X.shape[0]):
            cluster = labels[row]
            cost = 0.0
            for column in range(X.shape[1]):
                difference = X[row, column] - centers[cluster, column]
                cost += difference * difference
            costs[row] = cost
