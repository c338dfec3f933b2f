"""Agglomeration without a matrix of all distances: over the edges of a graph, or between centroids within a bound.

Clusters are named by one of their components. Which clusters must not be merged is read from the cannot-links of
components: edges and cliques, as in `clew.solvers.coloring.CliqueGraph`.
"""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _root(parent: cython.longlong[::1], component: cython.longlong) -> cython.longlong:
    while parent[component] != component:
        parent[component] = parent[parent[component]]
        component = parent[component]
    return component


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mark_cannot_linked(
    cluster: cython.longlong,
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    parent: cython.longlong[::1],
    following: cython.const[cython.longlong][::1],
    marks: cython.longlong[::1],
    mark: cython.longlong,
) -> cython.void:
    """Write `mark` for each cluster that is cannot-linked with one of the components of `cluster`."""
    component: cython.longlong = cluster
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    while component >= 0:
        for entry in range(edge_ptr[component], edge_ptr[component + 1]):
            marks[_root(parent, edges[entry])] = mark
        for entry in range(clique_ptr[component], clique_ptr[component + 1]):
            for place in range(member_ptr[cliques[entry]], member_ptr[cliques[entry] + 1]):
                if members[place] != component:
                    marks[_root(parent, members[place])] = mark
        component = following[component]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unite(
    kept: cython.longlong,
    gone: cython.longlong,
    parent: cython.longlong[::1],
    following: cython.longlong[::1],
    last: cython.longlong[::1],
) -> cython.void:
    """Append the components of the cluster `gone` to those of `kept`."""
    parent[gone] = kept
    following[last[kept]] = gone
    last[kept] = last[gone]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _sift_up(heap: cython.longlong[::1], keys: cython.double[::1], place: cython.Py_ssize_t) -> cython.void:
    """Restore the order of a heap of (key, edge) after the entry at `place` was written."""
    entry: cython.longlong = heap[place]
    key: cython.double = keys[place]
    above: cython.Py_ssize_t
    while place > 0:
        above = (place - 1) // 2
        if keys[above] < key or (keys[above] == key and heap[above] <= entry):
            break
        heap[place] = heap[above]
        keys[place] = keys[above]
        place = above
    heap[place] = entry
    keys[place] = key


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _sift_down(
    heap: cython.longlong[::1], keys: cython.double[::1], size: cython.Py_ssize_t, place: cython.Py_ssize_t
) -> cython.void:
    entry: cython.longlong = heap[place]
    key: cython.double = keys[place]
    below: cython.Py_ssize_t = 2 * place + 1
    while below < size:
        if below + 1 < size and (
            keys[below + 1] < keys[below] or (keys[below + 1] == keys[below] and heap[below + 1] < heap[below])
        ):
            below += 1
        if key < keys[below] or (key == keys[below] and entry <= heap[below]):
            break
        heap[place] = heap[below]
        keys[place] = keys[below]
        place = below
        below = 2 * place + 1
    heap[place] = entry
    keys[place] = key


def merge_edges(
    ends: cython.longlong[:, ::1],
    values: cython.double[::1],
    counts: cython.double[::1],
    linkage: cython.int,
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    parent: cython.longlong[::1],
    following: cython.longlong[::1],
    last: cython.longlong[::1],
    marks: cython.longlong[::1],
    head: cython.longlong[::1],
    tail: cython.longlong[::1],
    next_half: cython.longlong[::1],
    degree: cython.longlong[::1],
    slot: cython.longlong[::1],
    heap: cython.longlong[::1],
    keys: cython.double[::1],
    pairs: cython.longlong[:, ::1],
    heights: cython.double[::1],
) -> cython.Py_ssize_t:
    """Merge the two ends of the shortest edge until no edge is left that may be merged; return the number of merges.

    Edge e joins the components `ends[e]` (two different ones, each pair once) at the distance `values[e]`, the lowest
    (0), highest (1) or mean (2) distance of `counts[e]` pairs of rows. The next six arrays are the cannot-links. On
    entry `parent` and `last` are 0, 1, …; `following`, `marks`, `head`, `tail` and `slot` are -1; `degree` is 0, all
    with one entry per component. `next_half`, `heap` and `keys` have two entries per edge. All but the cannot-links
    are overwritten. Writes `pairs` and `heights`. Ties: the edge listed first.

    The two halves of edge e are 2 e and 2 e + 1; a cluster keeps a linked list of halves. An edge whose value is
    negative is gone.
    """
    n_edges: cython.Py_ssize_t = ends.shape[0]
    n_merges: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = 0
    edge: cython.Py_ssize_t
    other_edge: cython.Py_ssize_t
    half: cython.longlong
    after: cython.longlong
    kept: cython.longlong
    gone: cython.longlong
    far: cython.longlong
    key: cython.double
    side: cython.Py_ssize_t
    before: cython.longlong
    turn: cython.longlong = 0
    with cython.nogil:
        for edge in range(n_edges):
            for side in range(2):
                half = 2 * edge + side
                kept = ends[edge, side]
                next_half[half] = -1
                if head[kept] < 0:
                    head[kept] = half
                else:
                    next_half[tail[kept]] = half
                tail[kept] = half
                degree[kept] += 1
            heap[size] = edge
            keys[size] = values[edge]
            _sift_up(heap, keys, size)
            size += 1
        while size > 0:
            edge = heap[0]
            key = keys[0]
            size -= 1
            if size > 0:
                heap[0] = heap[size]
                keys[0] = keys[size]
                _sift_down(heap, keys, size, 0)
            if values[edge] != key:  # the edge is gone, or its value changed and was added again
                continue
            kept = _root(parent, ends[edge, 0])
            gone = _root(parent, ends[edge, 1])
            if degree[kept] < degree[gone]:
                kept, gone = gone, kept
            values[edge] = -1.0
            turn += 1
            _mark_cannot_linked(
                gone, edge_ptr, edges, clique_ptr, cliques, member_ptr, members, parent, following, marks, turn
            )
            if marks[kept] == turn:
                continue
            pairs[n_merges, 0] = kept
            pairs[n_merges, 1] = gone
            heights[n_merges] = key
            n_merges += 1
            before = -1  # edges that are gone are removed from the list
            half = head[kept]
            head[kept] = -1
            while half >= 0:
                if values[half // 2] >= 0.0:
                    slot[_root(parent, ends[half // 2, 1 - half % 2])] = half // 2
                    if before < 0:
                        head[kept] = half
                    else:
                        next_half[before] = half
                    before = half
                half = next_half[half]
            if before >= 0:
                next_half[before] = -1
            tail[kept] = before
            degree[kept] = 0
            half = head[gone]
            while half >= 0:
                after = next_half[half]
                edge = half // 2
                if values[edge] >= 0.0:
                    far = _root(parent, ends[edge, 1 - half % 2])
                    other_edge = slot[far]
                    if other_edge < 0:
                        if tail[kept] < 0:
                            head[kept] = half
                        else:
                            next_half[tail[kept]] = half
                        tail[kept] = half
                        next_half[half] = -1
                    else:
                        key = values[other_edge]
                        if linkage == 0:
                            key = min(key, values[edge])
                        elif linkage == 1:
                            key = max(key, values[edge])
                        else:
                            key = counts[other_edge] * key + counts[edge] * values[edge]
                            counts[other_edge] += counts[edge]
                            key = key / counts[other_edge]
                        values[edge] = -1.0
                        if key != values[other_edge]:
                            values[other_edge] = key
                            heap[size] = other_edge
                            keys[size] = key
                            _sift_up(heap, keys, size)
                            size += 1
                half = after
            half = head[kept]
            while half >= 0:
                slot[_root(parent, ends[half // 2, 1 - half % 2])] = -1
                degree[kept] += 1
                half = next_half[half]
            _unite(kept, gone, parent, following, last)
    return n_merges


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _squared_distance(
    centers: cython.double[:, ::1],
    one: cython.Py_ssize_t,
    others: cython.double[:, ::1],
    other: cython.Py_ssize_t,
) -> cython.double:
    column: cython.Py_ssize_t
    total: cython.double = 0.0
    for column in range(centers.shape[1]):
        total += (centers[one, column] - others[other, column]) * (centers[one, column] - others[other, column])
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_beyond(
    to_pivots: cython.double[:, ::1], one: cython.Py_ssize_t, other: cython.Py_ssize_t, bound: cython.double
) -> cython.bint:
    """Whether the triangle inequality over a pivot shows that the squared distance of two centres is above `bound`."""
    pivot: cython.Py_ssize_t
    gap: cython.double
    for pivot in range(to_pivots.shape[1]):
        gap = to_pivots[one, pivot] - to_pivots[other, pivot]
        if gap * gap > bound:
            return True
    return False


def merge_centroids(
    centers: cython.double[:, ::1],
    sizes: cython.double[::1],
    pivots: cython.double[:, ::1],
    to_pivots: cython.double[:, ::1],
    gamma: cython.double,
    slack: cython.double,
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    parent: cython.longlong[::1],
    following: cython.longlong[::1],
    last: cython.longlong[::1],
    marks: cython.longlong[::1],
    alive: cython.longlong[::1],
    nearest: cython.longlong[::1],
    bounds: cython.double[::1],
    n_computed: cython.longlong[::1],
    pairs: cython.longlong[:, ::1],
    heights: cython.double[::1],
) -> cython.Py_ssize_t:
    """Merge the two clusters with the closest centroids while these are at most `gamma` apart; return how often.

    `gamma`, `slack`, `bounds` and `heights` are squared distances. A distance is computed only if no pivot shows, by
    the triangle inequality, that it is too large to matter; `slack` allows for rounding. `to_pivots` are the distances
    of the centres to the `pivots`. The next six arrays are the cannot-links. On entry `parent`, `last` and `alive` are
    0, 1, …; `following` and `marks` are -1, all with one entry per component. `nearest` and `bounds` are work space:
    the nearest later cluster, and a lower bound on its distance, which is checked when its turn comes. All but the
    pivots and the cannot-links are overwritten. Adds the number of distances computed to `n_computed`. Writes `pairs`
    (the first of a pair keeps its name) and `heights`. Ties: the lowest component.
    """
    n_alive: cython.Py_ssize_t = alive.shape[0]
    n_merges: cython.Py_ssize_t = 0
    n_found: cython.longlong = 0
    turn: cython.longlong = 0
    position: cython.Py_ssize_t
    later: cython.Py_ssize_t
    chosen: cython.Py_ssize_t
    left: cython.Py_ssize_t
    column: cython.Py_ssize_t
    kept: cython.longlong
    gone: cython.longlong
    cluster: cython.longlong
    best: cython.double
    distance: cython.double
    is_new: cython.bint = True
    with cython.nogil:
        chosen = 0
        while n_alive > 1:
            # Search the nearest cluster after the chosen one: at first of each, then of those whose turn has come.
            kept = alive[chosen]
            turn += 1
            _mark_cannot_linked(
                kept, edge_ptr, edges, clique_ptr, cliques, member_ptr, members, parent, following, marks, turn
            )
            nearest[kept] = -1
            bounds[kept] = 1e308
            best = gamma
            for later in range(chosen + 1, n_alive):
                cluster = alive[later]
                if marks[cluster] != turn and not _is_beyond(to_pivots, kept, cluster, best + slack):
                    distance = _squared_distance(centers, kept, centers, cluster)
                    n_found += 1
                    if distance < best or (distance == best and nearest[kept] < 0):
                        best = distance
                        bounds[kept] = distance
                        nearest[kept] = cluster
            if is_new and chosen + 1 < n_alive:
                chosen += 1
                continue
            is_new = False
            while n_alive > 1:
                chosen = 0
                best = bounds[alive[0]]
                for position in range(1, n_alive):
                    if bounds[alive[position]] < best:
                        best = bounds[alive[position]]
                        chosen = position
                if best >= 1e308:
                    n_alive = 0
                    break
                kept = alive[chosen]
                gone = nearest[kept]
                if gone < 0:
                    break
                turn += 1
                _mark_cannot_linked(
                    gone, edge_ptr, edges, clique_ptr, cliques, member_ptr, members, parent, following, marks, turn
                )
                if marks[kept] == turn or _squared_distance(centers, kept, centers, gone) != best:
                    break
                pairs[n_merges, 0] = kept
                pairs[n_merges, 1] = gone
                heights[n_merges] = best
                n_merges += 1
                _unite(kept, gone, parent, following, last)
                for column in range(centers.shape[1]):
                    centers[kept, column] = (
                        sizes[kept] * centers[kept, column] + sizes[gone] * centers[gone, column]
                    ) / (sizes[kept] + sizes[gone])
                sizes[kept] += sizes[gone]
                for column in range(pivots.shape[0]):
                    to_pivots[kept, column] = _squared_distance(centers, kept, pivots, column) ** 0.5
                turn += 1
                _mark_cannot_linked(
                    kept, edge_ptr, edges, clique_ptr, cliques, member_ptr, members, parent, following, marks, turn
                )
                left = 0
                for position in range(n_alive):
                    cluster = alive[position]
                    if cluster == gone:
                        continue
                    alive[left] = cluster
                    left += 1
                    if cluster == kept:
                        nearest[kept] = -1
                        bounds[kept] = 0.0  # to be searched next
                    elif cluster > kept:
                        if nearest[cluster] == gone:
                            nearest[cluster] = -1
                    else:
                        if nearest[cluster] == gone:
                            nearest[cluster] = kept
                        best = min(bounds[cluster], gamma)
                        if marks[cluster] != turn and not _is_beyond(to_pivots, kept, cluster, best + slack):
                            distance = _squared_distance(centers, kept, centers, cluster)
                            n_found += 1
                            if distance < bounds[cluster] and distance <= gamma:
                                bounds[cluster] = distance
                                nearest[cluster] = kept
                n_alive -= 1
    n_computed[0] += n_found
    return n_merges
