"""Agglomeration on a condensed matrix of distances, in place: merge the closest clusters, and update their distances.

The matrix is SciPy's condensed form: the distance of rows i < j is at place ``i * (2 n - i - 1) / 2 + j - i - 1``. A
cluster is named by its first row. A distance of 1e308 or more (infinity) blocks a merge, and so does every distance
that follows from it. Linkages: 0 single, 1 complete, 2 average, 3 Ward, 4 centroid; the last two work on squared
distances.
"""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _place(n_rows: cython.Py_ssize_t, one: cython.Py_ssize_t, other: cython.Py_ssize_t) -> cython.Py_ssize_t:
    if one > other:
        one, other = other, one
    return one * (2 * n_rows - one - 1) // 2 + other - one - 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _updated(
    linkage: cython.int,
    one: cython.double,
    other: cython.double,
    between: cython.double,
    one_size: cython.double,
    other_size: cython.double,
    size: cython.double,
) -> cython.double:
    """Lance and Williams: the distance of a cluster of `size` rows to the union of two clusters, `between` apart."""
    total: cython.double = one_size + other_size
    if one >= 1e308 or other >= 1e308:  # without this, single linkage would remove the block
        return one if one > other else other
    if linkage == 0:
        return one if one < other else other
    if linkage == 1:
        return one if one > other else other
    if linkage == 2:
        return (one_size * one + other_size * other) / total
    if linkage == 3:
        one = ((one_size + size) * one + (other_size + size) * other - size * between) / (total + size)
    else:
        one = (one_size * one + other_size * other) / total - one_size * other_size * between / (total * total)
    return one if one > 0.0 else 0.0  # below 0 by rounding, or because distances are not Euclidean


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _join(
    distances: cython.double[::1],
    n_rows: cython.Py_ssize_t,
    linkage: cython.int,
    sizes: cython.double[::1],
    alive: cython.longlong[::1],
    n_alive: cython.Py_ssize_t,
    kept: cython.Py_ssize_t,
    gone: cython.Py_ssize_t,
) -> cython.void:
    """Add the cluster `gone` to the cluster `kept`: distances, sizes, and the sorted list of clusters."""
    position: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    place: cython.Py_ssize_t
    left: cython.Py_ssize_t = 0
    between: cython.double = distances[_place(n_rows, kept, gone)]
    for position in range(n_alive):
        cluster = alive[position]
        if cluster != gone:
            alive[left] = cluster
            left += 1
            if cluster != kept:
                place = _place(n_rows, cluster, kept)
                distances[place] = _updated(
                    linkage,
                    distances[place],
                    distances[_place(n_rows, cluster, gone)],
                    between,
                    sizes[kept],
                    sizes[gone],
                    sizes[cluster],
                )
    sizes[kept] += sizes[gone]


def block_pairs(
    distances: cython.double[::1],
    n_rows: cython.Py_ssize_t,
    first_row: cython.const[cython.longlong][::1],
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    blocked: cython.double,
):
    """Set the distance of every edge and every pair in a clique to `blocked`. Vertex v is cluster `first_row[v]`."""
    vertex: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    other: cython.Py_ssize_t
    with cython.nogil:
        for vertex in range(edge_ptr.shape[0] - 1):
            for entry in range(edge_ptr[vertex], edge_ptr[vertex + 1]):
                if edges[entry] > vertex:
                    distances[_place(n_rows, first_row[vertex], first_row[edges[entry]])] = blocked
        for vertex in range(member_ptr.shape[0] - 1):
            for entry in range(member_ptr[vertex], member_ptr[vertex + 1]):
                for other in range(entry + 1, member_ptr[vertex + 1]):
                    distances[_place(n_rows, first_row[members[entry]], first_row[members[other]])] = blocked


def join_pairs(
    distances: cython.double[::1],
    n_rows: cython.Py_ssize_t,
    linkage: cython.int,
    pairs: cython.const[cython.longlong][:, ::1],
    sizes: cython.double[::1],
    alive: cython.longlong[::1],
):
    """Merge given pairs of clusters in their order, whatever their distance.

    The merged cluster has the name of the first one. Updates `distances`, `sizes` and the sorted list `alive`, which
    becomes shorter by one for each pair.
    """
    pair: cython.Py_ssize_t
    n_alive: cython.Py_ssize_t = alive.shape[0]
    with cython.nogil:
        for pair in range(pairs.shape[0]):
            _join(distances, n_rows, linkage, sizes, alive, n_alive, pairs[pair, 0], pairs[pair, 1])
            n_alive -= 1


def merge_chain(
    distances: cython.double[::1],
    n_rows: cython.Py_ssize_t,
    linkage: cython.int,
    sizes: cython.double[::1],
    alive: cython.longlong[::1],
    chain: cython.longlong[::1],
    tops: cython.double[::1],
    pairs: cython.longlong[:, ::1],
    heights: cython.double[::1],
) -> cython.Py_ssize_t:
    """Merge until every merge is blocked, along chains of nearest neighbours; return the number of merges.

    For linkages 0 to 3 only. `alive` lists the clusters in increasing order. `distances`, `sizes` and `alive` are
    overwritten; `chain` and `tops` (all 0) have an entry per row. Writes `pairs` (a merged cluster has the name of the
    first one) and `heights`, children before parents but not sorted. A parent is never lower than its children. Ties:
    the previous cluster in the chain, then the lowest row.
    """
    n_alive: cython.Py_ssize_t = alive.shape[0]
    length: cython.Py_ssize_t = 0
    n_merges: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t
    tip: cython.Py_ssize_t
    nearest: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    place: cython.Py_ssize_t
    best: cython.double
    with cython.nogil:
        while n_alive > 1:
            if length == 0:
                chain[0] = alive[0]
                length = 1
            tip = chain[length - 1]
            best = 1e308
            nearest = -1
            if length > 1:
                nearest = chain[length - 2]
                best = distances[_place(n_rows, tip, nearest)]
            position = 0
            while position < n_alive and alive[position] < tip:
                cluster = alive[position]
                place = cluster * (2 * n_rows - cluster - 1) // 2 + tip - cluster - 1
                if distances[place] < best:
                    best = distances[place]
                    nearest = cluster
                position += 1
            place = tip * (2 * n_rows - tip - 1) // 2 - tip - 1
            while position < n_alive:
                cluster = alive[position]
                if cluster != tip and distances[place + cluster] < best:
                    best = distances[place + cluster]
                    nearest = cluster
                position += 1
            if nearest < 0:  # blocked forever: distances to other clusters stay infinite after any merge
                for position in range(1, n_alive):
                    alive[position - 1] = alive[position]
                n_alive -= 1
                length = 0
            elif length > 1 and nearest == chain[length - 2]:
                if nearest > tip:
                    tip, nearest = nearest, tip
                _join(distances, n_rows, linkage, sizes, alive, n_alive, nearest, tip)
                n_alive -= 1
                length -= 2
                best = max(best, max(tops[nearest], tops[tip]))
                tops[nearest] = best
                pairs[n_merges, 0] = nearest
                pairs[n_merges, 1] = tip
                heights[n_merges] = best
                n_merges += 1
            else:
                chain[length] = nearest
                length += 1
    return n_merges


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _find_nearest(
    distances: cython.double[::1],
    n_rows: cython.Py_ssize_t,
    alive: cython.longlong[::1],
    n_alive: cython.Py_ssize_t,
    position: cython.Py_ssize_t,
    nearest: cython.longlong[::1],
    bounds: cython.double[::1],
) -> cython.void:
    """The nearest cluster after the one at `position` of the sorted list."""
    cluster: cython.Py_ssize_t = alive[position]
    start: cython.Py_ssize_t = cluster * (2 * n_rows - cluster - 1) // 2 - cluster - 1
    later: cython.Py_ssize_t
    bounds[cluster] = 1e308
    nearest[cluster] = -1
    for later in range(position + 1, n_alive):
        if distances[start + alive[later]] < bounds[cluster]:
            bounds[cluster] = distances[start + alive[later]]
            nearest[cluster] = alive[later]


def merge_closest(
    distances: cython.double[::1],
    n_rows: cython.Py_ssize_t,
    linkage: cython.int,
    limit: cython.double,
    sizes: cython.double[::1],
    alive: cython.longlong[::1],
    nearest: cython.longlong[::1],
    bounds: cython.double[::1],
    pairs: cython.longlong[:, ::1],
    heights: cython.double[::1],
) -> cython.Py_ssize_t:
    """Merge the closest two clusters until they are farther apart than `limit`, or blocked; return how often.

    For every linkage. `alive` lists the clusters in increasing order. `distances`, `sizes` and `alive` are overwritten;
    `nearest` and `bounds` (an entry per row) are work space: the nearest later cluster, and a lower bound on its
    distance, which is checked when its turn comes. Writes `pairs` (the first of a pair keeps its name) and `heights`,
    in the order of the merges. Ties: the lowest row, then its lowest neighbour.
    """
    n_alive: cython.Py_ssize_t = alive.shape[0]
    n_merges: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t
    chosen: cython.Py_ssize_t
    kept: cython.Py_ssize_t
    gone: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    best: cython.double
    distance: cython.double
    with cython.nogil:
        for position in range(n_alive):
            _find_nearest(distances, n_rows, alive, n_alive, position, nearest, bounds)
        while n_alive > 1:
            chosen = 0
            best = bounds[alive[0]]
            for position in range(1, n_alive):
                if bounds[alive[position]] < best:
                    best = bounds[alive[position]]
                    chosen = position
            kept = alive[chosen]
            if best >= 1e308 or best > limit:
                break
            gone = nearest[kept]
            if gone < 0 or distances[_place(n_rows, kept, gone)] != best:
                _find_nearest(distances, n_rows, alive, n_alive, chosen, nearest, bounds)
                continue
            _join(distances, n_rows, linkage, sizes, alive, n_alive, kept, gone)
            n_alive -= 1
            pairs[n_merges, 0] = kept
            pairs[n_merges, 1] = gone
            heights[n_merges] = best
            n_merges += 1
            for position in range(n_alive):
                cluster = alive[position]
                if cluster == kept:
                    _find_nearest(distances, n_rows, alive, n_alive, position, nearest, bounds)
                elif cluster < kept:
                    distance = distances[_place(n_rows, cluster, kept)]
                    if distance < bounds[cluster]:
                        bounds[cluster] = distance
                        nearest[cluster] = kept
                    elif nearest[cluster] == gone:
                        nearest[cluster] = kept
                elif nearest[cluster] == gone:
                    nearest[cluster] = -1
    return n_merges


def relax_paths(
    distances: cython.double[::1],
    n_rows: cython.Py_ssize_t,
    alive: cython.const[cython.longlong][::1],
    through: cython.const[cython.longlong][::1],
):
    """Shorten the distances between the clusters `alive` by paths through some of them (Floyd and Warshall).

    Reads `alive` and `through`; updates `distances`.
    """
    stop: cython.Py_ssize_t
    one: cython.Py_ssize_t
    other: cython.Py_ssize_t
    start: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    to_middle: cython.double
    path: cython.double
    with cython.nogil:
        for stop in range(through.shape[0]):
            middle = through[stop]
            for one in range(alive.shape[0]):
                if alive[one] == middle:
                    continue
                to_middle = distances[_place(n_rows, alive[one], middle)]
                start = alive[one] * (2 * n_rows - alive[one] - 1) // 2 - alive[one] - 1
                for other in range(one + 1, alive.shape[0]):
                    if alive[other] != middle:
                        path = to_middle + distances[_place(n_rows, alive[other], middle)]
                        if path < distances[start + alive[other]]:
                            distances[start + alive[other]] = path


def number_merges(
    pairs: cython.const[cython.longlong][:, ::1],
    parent: cython.longlong[::1],
    node: cython.longlong[::1],
    count: cython.longlong[::1],
    tree: cython.double[:, ::1],
):
    """Columns 0, 1 and 3 of SciPy's linkage matrix for merges of clusters that are named by any of their rows.

    On entry `parent` and `node` are 0, 1, …, n - 1, and `count` is 1 for each row; all three are overwritten. Writes
    `tree`.
    """
    merge: cython.Py_ssize_t
    one: cython.longlong
    other: cython.longlong
    with cython.nogil:
        for merge in range(pairs.shape[0]):
            one = pairs[merge, 0]
            while parent[one] != one:
                parent[one] = parent[parent[one]]
                one = parent[one]
            other = pairs[merge, 1]
            while parent[other] != other:
                parent[other] = parent[parent[other]]
                other = parent[other]
            tree[merge, 0] = min(node[one], node[other])
            tree[merge, 1] = max(node[one], node[other])
            count[one] += count[other]
            tree[merge, 3] = count[one]
            parent[other] = one
            node[one] = parent.shape[0] + merge
