"""Join vertices pair by pair, unless a conflict keeps two groups apart."""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _are_apart(
    group: cython.longlong,
    other: cython.longlong,
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    group_of: cython.longlong[::1],
    following: cython.longlong[::1],
) -> cython.bint:
    place: cython.longlong
    member: cython.longlong
    vertex: cython.longlong = group
    while vertex >= 0:
        for place in range(edge_ptr[vertex], edge_ptr[vertex + 1]):
            if group_of[edges[place]] == other:
                return True
        for place in range(clique_ptr[vertex], clique_ptr[vertex + 1]):
            for member in range(member_ptr[cliques[place]], member_ptr[cliques[place] + 1]):
                if group_of[members[member]] == other:
                    return True
        vertex = following[vertex]
    return False


def join_pairs(
    pairs: cython.const[cython.longlong][:, ::1],
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    group_of: cython.longlong[::1],
    following: cython.longlong[::1],
    last: cython.longlong[::1],
    sizes: cython.longlong[::1],
):
    """Join the groups of each pair, in the order of the pairs, unless two of their vertices are in conflict.

    Conflicts are `edges` between vertices and shared cliques (`cliques` of a vertex, `members` of a clique). Writes
    `group_of` (each vertex its own on entry; then the vertex that the list of its group starts with), `following` (the
    next vertex of the group, all -1 on entry), `last` (each vertex its own on entry) and `sizes` (all 1 on entry). The
    smaller group is appended to the larger one, so that n vertices move O(n log n) times. Ties: the second group.
    """
    pair: cython.Py_ssize_t
    large: cython.longlong
    small: cython.longlong
    vertex: cython.longlong
    with cython.nogil:
        for pair in range(pairs.shape[0]):
            large = group_of[pairs[pair, 0]]
            small = group_of[pairs[pair, 1]]
            if large == small:
                continue
            if sizes[large] < sizes[small]:
                large, small = small, large
            if _are_apart(small, large, edge_ptr, edges, clique_ptr, cliques, member_ptr, members, group_of, following):
                continue
            vertex = small
            while vertex >= 0:
                group_of[vertex] = large
                vertex = following[vertex]
            following[last[large]] = small
            last[large] = last[small]
            sizes[large] += sizes[small]
