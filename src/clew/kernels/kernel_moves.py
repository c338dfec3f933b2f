"""Moves of single rows between the clusters of kernel k-means, each by its exact gain."""

import cython

floating = cython.fused_type(cython.float, cython.double)


def move_single_rows(
    order: cython.const[cython.longlong][::1],
    similarity: cython.const[floating][:, ::1],
    shift: cython.double,
    tolerance: cython.double,
    labels: cython.longlong[::1],
    sums: cython.double[:, ::1],
    sizes: cython.longlong[::1],
    within: cython.double[::1],
) -> cython.longlong:
    """Visit rows in the given order, move each to the cluster that gains most; return the number of moves.

    The gain is that of the sum over clusters of `within[c] / sizes[c]`, plus `shift` for each cluster that has rows.
    Reads `order` and `similarity`, a symmetric matrix. Writes `labels`, and keeps in step `sums[c, i]` (similarity of
    row i to all rows of cluster c, itself included), `sizes` and `within` (sum of the similarities within each
    cluster). A move gains more than `tolerance`, and no cluster loses its last row. Ties go to the lowest cluster.
    """
    place: cython.Py_ssize_t
    row: cython.Py_ssize_t
    other: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    home: cython.Py_ssize_t
    best: cython.Py_ssize_t
    own: cython.double
    leaving: cython.double
    gain: cython.double
    most: cython.double
    n_moves: cython.longlong = 0
    with cython.nogil:
        for place in range(order.shape[0]):
            row = order[place]
            home = labels[row]
            if sizes[home] == 1:
                continue
            own = similarity[row, row]
            leaving = (within[home] - 2 * sums[home, row] + own) / (sizes[home] - 1) - within[home] / sizes[home]
            best = -1
            most = tolerance
            for cluster in range(sizes.shape[0]):
                if cluster == home:
                    continue
                gain = leaving + (within[cluster] + 2 * sums[cluster, row] + own) / (sizes[cluster] + 1)
                if sizes[cluster] > 0:
                    gain -= within[cluster] / sizes[cluster]
                else:
                    gain += shift
                if gain > most:
                    most = gain
                    best = cluster
            if best < 0:
                continue
            within[home] += own - 2 * sums[home, row]
            within[best] += own + 2 * sums[best, row]
            sizes[home] -= 1
            sizes[best] += 1
            labels[row] = best
            for other in range(similarity.shape[0]):
                sums[home, other] -= similarity[row, other]
                sums[best, other] += similarity[row, other]
            n_moves += 1
    return n_moves
