"""Move blocks of rows between the clusters of kernel k-means, each by its exact gain."""

import cython

floating = cython.fused_type(cython.float, cython.double)


def move_blocks(
    block_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    own: cython.const[cython.double][::1],
    similarity: cython.const[floating][:, ::1],
    shift: cython.double,
    tolerance: cython.double,
    labels: cython.longlong[::1],
    sums: cython.double[:, ::1],
    sizes: cython.longlong[::1],
    within: cython.double[::1],
) -> cython.longlong:
    """Visit blocks in order and move each to the cluster with the largest gain; return the number of moves.

    The gain is the increase of the sum of `within[c] / sizes[c]` over clusters, plus `shift` per non-empty cluster.
    Reads `similarity`, a symmetric matrix, and the blocks: block b has the rows
    `members[block_ptr[b]:block_ptr[b + 1]]` and the sum `own[b]` of the similarities between them. Writes `labels`, and
    updates `sums[c, i]` (similarity of row i to all rows of cluster c, itself included), `sizes` and `within`
    (sum of the similarities within each cluster). A move gains more than `tolerance`. A block stays if its rows are in
    several clusters, or if it is the whole of its cluster. Ties go to the lowest cluster.
    """
    block: cython.Py_ssize_t
    place: cython.Py_ssize_t
    row: cython.Py_ssize_t
    other: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    home: cython.Py_ssize_t
    best: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    end: cython.Py_ssize_t
    weight: cython.longlong
    is_whole: cython.bint
    leaving: cython.double
    gain: cython.double
    near: cython.double
    home_near: cython.double
    best_near: cython.double
    most: cython.double
    n_moves: cython.longlong = 0
    with cython.nogil:
        for block in range(own.shape[0]):
            begin = block_ptr[block]
            end = block_ptr[block + 1]
            weight = end - begin
            home = labels[members[begin]]
            if sizes[home] <= weight:
                continue
            is_whole = True
            home_near = 0
            for place in range(begin, end):
                row = members[place]
                is_whole = is_whole and labels[row] == home
                home_near += sums[home, row]
            if not is_whole:
                continue
            leaving = (within[home] - 2 * home_near + own[block]) / (sizes[home] - weight) - within[home] / sizes[home]
            best = -1
            best_near = 0
            most = tolerance
            for cluster in range(sizes.shape[0]):
                if cluster == home:
                    continue
                near = 0
                for place in range(begin, end):
                    near += sums[cluster, members[place]]
                gain = leaving + (within[cluster] + 2 * near + own[block]) / (sizes[cluster] + weight)
                if sizes[cluster] > 0:
                    gain -= within[cluster] / sizes[cluster]
                else:
                    gain += shift
                if gain > most:
                    most = gain
                    best = cluster
                    best_near = near
            if best < 0:
                continue
            within[home] += own[block] - 2 * home_near
            within[best] += own[block] + 2 * best_near
            sizes[home] -= weight
            sizes[best] += weight
            for place in range(begin, end):
                row = members[place]
                labels[row] = best
                for other in range(similarity.shape[0]):
                    sums[home, other] -= similarity[row, other]
                    sums[best, other] += similarity[row, other]
            n_moves += 1
    return n_moves
