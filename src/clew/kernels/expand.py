"""Breadth-first growth of clusters over a neighbour graph, in which some components may not share a cluster."""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_blocked(
    component: cython.longlong,
    cluster: cython.longlong,
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    barred_from: cython.longlong[::1],
    clique_in: cython.longlong[::1],
) -> cython.bint:
    place: cython.longlong
    if barred_from[component] == cluster:
        return True
    for place in range(clique_ptr[component], clique_ptr[component + 1]):
        if clique_in[cliques[place]] == cluster:
            return True
    return False


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _join(
    component: cython.longlong,
    cluster: cython.longlong,
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    cluster_of: cython.longlong[::1],
    barred_from: cython.longlong[::1],
    clique_in: cython.longlong[::1],
    queue: cython.longlong[::1],
    tail: cython.longlong,
) -> cython.longlong:
    place: cython.longlong
    cluster_of[component] = cluster
    for place in range(edge_ptr[component], edge_ptr[component + 1]):
        barred_from[edges[place]] = cluster
    for place in range(clique_ptr[component], clique_ptr[component + 1]):
        clique_in[cliques[place]] = cluster
    for place in range(member_ptr[component], member_ptr[component + 1]):
        queue[tail] = members[place]
        tail += 1
    return tail


def expand_clusters(
    neighbour_ptr: cython.const[cython.longlong][::1],
    neighbours: cython.const[cython.longlong][::1],
    is_core: cython.const[cython.char][::1],
    component_of: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    cluster_of: cython.longlong[::1],
    barred_from: cython.longlong[::1],
    clique_in: cython.longlong[::1],
    queue: cython.longlong[::1],
) -> cython.longlong:
    """Grow one cluster after the other from the core rows; return the number of clusters.

    The next cluster starts at the first core row without a cluster. A core row in the cluster adds the components of
    its neighbours that have no cluster, unless a cannot-link separates them from a component of the cluster. A
    component joins with all its rows. Reads the neighbours of each row, the rows of each component (`member_ptr`,
    `members`), and the cannot-links of each component (`edges` to components, `cliques` that it is in). Writes
    `cluster_of` per component (all -1 on entry), `barred_from` per component and `clique_in` per clique (all -1 on
    entry: the last cluster that a cannot-link partner joined) and `queue` (one place per row). Ties: rows join in the
    order in which they were added, and neighbours in the order in which they are listed.
    """
    row: cython.longlong
    start: cython.longlong
    place: cython.longlong
    component: cython.longlong
    head: cython.longlong = 0
    tail: cython.longlong = 0
    n_clusters: cython.longlong = 0
    with cython.nogil:
        for start in range(is_core.shape[0]):
            if not is_core[start] or cluster_of[component_of[start]] >= 0:
                continue
            tail = _join(
                component_of[start], n_clusters, member_ptr, members, edge_ptr, edges, clique_ptr, cliques,
                cluster_of, barred_from, clique_in, queue, tail,
            )  # fmt: skip
            while head < tail:
                row = queue[head]
                head += 1
                if not is_core[row]:
                    continue
                for place in range(neighbour_ptr[row], neighbour_ptr[row + 1]):
                    component = component_of[neighbours[place]]
                    if cluster_of[component] < 0 and not _is_blocked(
                        component, n_clusters, clique_ptr, cliques, barred_from, clique_in
                    ):
                        tail = _join(
                            component, n_clusters, member_ptr, members, edge_ptr, edges, clique_ptr, cliques,
                            cluster_of, barred_from, clique_in, queue, tail,
                        )  # fmt: skip
            n_clusters += 1
    return n_clusters
