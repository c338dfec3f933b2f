"""Assign free rows to the nearest cluster, and add rows up by cluster."""

import cython

floating = cython.fused_type(cython.float, cython.double)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _add_row(
    weight: cython.double,
    X: cython.const[floating][:, ::1],
    row: cython.Py_ssize_t,
    cluster: cython.Py_ssize_t,
    sums: cython.double[:, ::1],
    errors: cython.double[:, ::1],
) -> cython.void:
    """Add `weight` times a row to the sums of a cluster, and the rounding errors (Knuth's two-sum) to `errors`."""
    column: cython.Py_ssize_t
    before: cython.double
    term: cython.double
    after: cython.double
    rounded: cython.double
    for column in range(X.shape[1]):
        before = sums[cluster, column]
        term = weight * X[row, column]
        after = before + term
        rounded = after - before
        sums[cluster, column] = after
        errors[cluster, column] += (before - (after - rounded)) + (term - rounded)


def assign_nearest(
    X: cython.const[floating][:, ::1],
    scores: cython.const[floating][:, ::1],
    offsets: cython.const[floating][::1],
    weights: cython.const[cython.double][::1],
    free: cython.const[cython.uchar][::1],
    fresh: cython.bint,
    labels: cython.int[::1],
    sums: cython.double[:, ::1],
    errors: cython.double[:, ::1],
    masses: cython.double[::1],
    totals: cython.double[::1],
):
    """Assign every free row of a block to the cluster with the lowest `scores + offsets`, and add it to the sums.

    Reads `X` (with no columns, sums are left to the caller), `scores`, `offsets`, `weights` (empty: all 1) and
    `free`; writes `labels` of free rows; adds to `sums` with their rounding `errors`, `masses` (weight per cluster) and
    `totals` (0: weighted score, 1: labels changed, of rows that weigh something). A row that keeps its label is added
    only if `fresh`; a row that changes it is also taken from the sums of its old cluster unless `fresh`. Ties go to the
    lowest cluster.
    """
    row: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    best: cython.Py_ssize_t
    old: cython.Py_ssize_t
    upper_best: cython.Py_ssize_t
    n_clusters: cython.Py_ssize_t = scores.shape[1]
    half: cython.Py_ssize_t = n_clusters // 2
    summed: cython.bint = X.shape[1] > 0
    weighted: cython.bint = weights.shape[0] > 0
    weight: cython.double = 1.0
    cost: cython.double = 0.0
    changed: cython.double = 0.0
    lowest: floating
    upper_lowest: floating
    score: floating
    with cython.nogil:
        for row in range(scores.shape[0]):
            if not free[row]:
                continue
            # Two halves, one after the other: a comparison waits for the one before it, but not for the other half.
            lowest = scores[row, 0] + offsets[0]
            best = 0
            for cluster in range(1, half):
                score = scores[row, cluster] + offsets[cluster]
                if score < lowest:
                    lowest = score
                    best = cluster
            upper_lowest = scores[row, half] + offsets[half]
            upper_best = half
            for cluster in range(half + 1, n_clusters):
                score = scores[row, cluster] + offsets[cluster]
                if score < upper_lowest:
                    upper_lowest = score
                    upper_best = cluster
            if upper_lowest < lowest:
                lowest = upper_lowest
                best = upper_best
            if weighted:
                weight = weights[row]
            cost += weight * lowest
            old = labels[row]
            if old != best:
                labels[row] = cython.cast(cython.int, best)
                if weight > 0:
                    changed += 1.0
            elif not fresh:
                continue
            if old >= 0 and not fresh:
                masses[old] -= weight
                if summed:
                    _add_row(-weight, X, row, old, sums, errors)
            masses[best] += weight
            if summed:
                _add_row(weight, X, row, best, sums, errors)
        totals[0] += cost
        totals[1] += changed


def add_rows(
    X: cython.const[floating][:, ::1],
    weights: cython.const[cython.double][::1],
    labels: cython.const[cython.int][::1],
    sums: cython.double[:, ::1],
    masses: cython.double[::1],
):
    """Add rows, times their weights, to the `sums` and `masses` of their clusters. Reads the other three arrays."""
    row: cython.Py_ssize_t
    column: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    with cython.nogil:
        for row in range(X.shape[0]):
            cluster = labels[row]
            masses[cluster] += weights[row]
            for column in range(X.shape[1]):
                sums[cluster, column] += weights[row] * X[row, column]
