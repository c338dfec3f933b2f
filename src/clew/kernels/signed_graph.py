"""Moves between clusters of a signed graph, and a packing of bad triangles.

A *unit* is a set of rows that stay together. The *net weight* of two units is above 0 if they belong together and below
0 if they do not. It is the stored weight minus ``gap * rows[u] * rows[v]``, so that pairs that are not stored have a
weight, too. Cannot-linked units must not share a cluster; the cannot-links are edges and cliques, as in
`clew.solvers.coloring.CliqueGraph`.
"""

import cython

# The price of putting cannot-linked units together.
_INFINITE = cython.declare(cython.double, 1e300)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_blocked(
    unit: cython.longlong,
    cluster: cython.longlong,
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    cluster_of: cython.longlong[::1],
    n_units: cython.longlong[::1],
    head: cython.longlong[::1],
    after: cython.longlong[::1],
    clique_mark: cython.longlong[::1],
) -> cython.bint:
    """Whether a unit of `cluster` shares a clique with `unit`. Searches the smaller of the clique and the cluster."""
    entry: cython.longlong
    place: cython.longlong
    clique: cython.longlong
    other: cython.longlong
    is_large: cython.bint = False
    for entry in range(clique_ptr[unit], clique_ptr[unit + 1]):
        clique = cliques[entry]
        if member_ptr[clique + 1] - member_ptr[clique] > n_units[cluster]:
            is_large = True
            clique_mark[clique] = unit
            continue
        for place in range(member_ptr[clique], member_ptr[clique + 1]):
            if members[place] != unit and cluster_of[members[place]] == cluster:
                return True
    if is_large:
        other = head[cluster]
        while other >= 0:
            if other != unit:
                for entry in range(clique_ptr[other], clique_ptr[other + 1]):
                    if clique_mark[cliques[entry]] == unit:
                        return True
            other = after[other]
    return False


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unlink(
    unit: cython.longlong,
    cluster: cython.longlong,
    head: cython.longlong[::1],
    after: cython.longlong[::1],
    before: cython.longlong[::1],
) -> cython.void:
    if before[unit] >= 0:
        after[before[unit]] = after[unit]
    else:
        head[cluster] = after[unit]
    if after[unit] >= 0:
        before[after[unit]] = before[unit]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _link(
    unit: cython.longlong,
    cluster: cython.longlong,
    head: cython.longlong[::1],
    after: cython.longlong[::1],
    before: cython.longlong[::1],
) -> cython.void:
    before[unit] = -1
    after[unit] = head[cluster]
    if head[cluster] >= 0:
        before[head[cluster]] = unit
    head[cluster] = unit


def move_units(
    ptr: cython.const[cython.longlong][::1],
    others: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    rows: cython.const[cython.double][::1],
    gap: cython.double,
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    order: cython.const[cython.longlong][::1],
    tolerance: cython.double,
    cluster_of: cython.longlong[::1],
    lists: cython.longlong[:, ::1],
    marks: cython.longlong[:, ::1],
    clique_mark: cython.longlong[::1],
    sums: cython.double[:, ::1],
) -> cython.longlong:
    """Move units, one at a time, to the cluster that attracts them most or to a new one; return the number of moves.

    A move must lower the cost by more than `tolerance`. Passes visit the units in `order` until a pass over all of them
    moves none. Passes in between skip units whose neighbours have not changed. Reads the weights of each unit's
    neighbours (`ptr`, `others`, `weights`, without the unit itself), its number of rows and its cannot-links. Writes
    `cluster_of`, which holds numbers below the number of units and satisfies the cannot-links on entry and on return.
    Work space with a column per unit: `lists` (5 rows), `marks` (3 rows) and `sums` (2 rows); `clique_mark` has an
    entry per clique. Ties: a unit stays, or else joins the cluster of the neighbour that is listed first.
    """
    n: cython.Py_ssize_t = order.shape[0]
    step: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    unit: cython.longlong
    cluster: cython.longlong
    own: cython.longlong
    target: cython.longlong
    n_near: cython.longlong
    n_free: cython.longlong = 0
    n_moves: cython.longlong = 0
    n_moved: cython.longlong
    is_full: cython.bint
    best: cython.double
    value: cython.double
    stay: cython.double
    head: cython.longlong[::1] = lists[0]
    after: cython.longlong[::1] = lists[1]
    before: cython.longlong[::1] = lists[2]
    near: cython.longlong[::1] = lists[3]
    free: cython.longlong[::1] = lists[4]
    seen: cython.longlong[::1] = marks[0]
    changed: cython.longlong[::1] = marks[1]
    n_units: cython.longlong[::1] = marks[2]
    attraction: cython.double[::1] = sums[0]
    n_rows: cython.double[::1] = sums[1]
    with cython.nogil:
        for unit in range(n):
            head[unit] = -1
            seen[unit] = -1
            changed[unit] = 1
            n_units[unit] = 0
            n_rows[unit] = 0
        for place in range(clique_mark.shape[0]):
            clique_mark[place] = -1
        for unit in range(n):
            cluster = cluster_of[unit]
            _link(unit, cluster, head, after, before)
            n_units[cluster] += 1
            n_rows[cluster] += rows[unit]
        for unit in range(n - 1, -1, -1):
            if n_units[unit] == 0:
                free[n_free] = unit
                n_free += 1
        is_full = True
        while True:
            n_moved = 0
            for step in range(n):
                unit = order[step]
                if not is_full and not changed[unit]:
                    continue
                own = cluster_of[unit]
                changed[unit] = 0
                n_near = 0
                for entry in range(ptr[unit], ptr[unit + 1]):
                    cluster = cluster_of[others[entry]]
                    if seen[cluster] != unit:
                        seen[cluster] = unit
                        attraction[cluster] = 0
                        near[n_near] = cluster
                        n_near += 1
                    attraction[cluster] += weights[entry]
                stay = -gap * rows[unit] * (n_rows[own] - rows[unit])
                if seen[own] == unit:
                    stay += attraction[own]
                best = stay + tolerance
                target = -1
                if n_units[own] > 1 and best < 0 and n_free > 0:
                    best = 0
                    target = free[n_free - 1]
                for place in range(n_near):
                    cluster = near[place]
                    if cluster == own:
                        continue
                    value = attraction[cluster] - gap * rows[unit] * n_rows[cluster]
                    if value <= best or value <= tolerance:
                        continue
                    for entry in range(edge_ptr[unit], edge_ptr[unit + 1]):
                        if cluster_of[edges[entry]] == cluster:
                            break
                    else:
                        if not _is_blocked(
                            unit, cluster, clique_ptr, cliques, member_ptr, members, cluster_of, n_units, head, after,
                            clique_mark,
                        ):  # fmt: skip
                            best = value
                            target = cluster
                seen[own] = -1
                for place in range(n_near):
                    seen[near[place]] = -1
                if target < 0:
                    continue
                n_moved += 1
                _unlink(unit, own, head, after, before)
                n_units[own] -= 1
                n_rows[own] -= rows[unit]
                if n_units[target] == 0:
                    n_free -= 1
                if n_units[own] == 0:
                    n_rows[own] = 0
                    free[n_free] = own
                    n_free += 1
                _link(unit, target, head, after, before)
                n_units[target] += 1
                n_rows[target] += rows[unit]
                cluster_of[unit] = target
                for entry in range(ptr[unit], ptr[unit + 1]):
                    changed[others[entry]] = 1
                for entry in range(edge_ptr[unit], edge_ptr[unit + 1]):
                    changed[edges[entry]] = 1
            n_moves += n_moved
            if n_moved == 0:
                if is_full:
                    break
                is_full = True
            else:
                is_full = False
    return n_moves


def pack_triangles(
    ptr: cython.const[cython.longlong][::1],
    others: cython.const[cython.longlong][::1],
    net: cython.const[cython.double][::1],
    twin: cython.const[cython.longlong][::1],
    rows: cython.const[cython.double][::1],
    gap: cython.double,
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    work_limit: cython.longlong,
    residual: cython.double[::1],
    capacity: cython.double[::1],
    marks: cython.longlong[:, ::1],
    clique_mark: cython.longlong[::1],
    bound: cython.double[::1],
) -> cython.longlong:
    """Pack bad triangles greedily; return the number of triangles that were looked at.

    A triangle is bad if two of its pairs have a net weight above 0 and the third one below 0, or a cannot-link. Every
    clustering pays at least the smallest of the three weights. Packed triangles share the weight of a pair but
    never use more than all of it. So the sum of their payments is a lower bound on the cost of every clustering.

    Reads the net weight of each stored pair, in both directions, with `twin` the position of the other direction, and
    the cannot-links. Writes `residual` (per stored pair, the net weights above 0 on entry) and adds to `bound` the
    payment of each triangle at the smaller unit of its negative pair. Work space with an entry per unit: `capacity` and
    `marks` (3 rows of -1 on entry); `clique_mark` has an entry per clique (-1 on entry). Stops after `work_limit`
    triangles.
    """
    unit: cython.longlong
    middle: cython.longlong
    end: cython.longlong
    entry: cython.Py_ssize_t
    first: cython.Py_ssize_t
    second: cython.Py_ssize_t
    payment: cython.double
    work: cython.longlong = 0
    stored: cython.longlong[::1] = marks[0]
    apart: cython.longlong[::1] = marks[1]
    reached: cython.longlong[::1] = marks[2]
    with cython.nogil:
        for unit in range(rows.shape[0]):
            if work > work_limit:
                break
            for entry in range(ptr[unit], ptr[unit + 1]):
                stored[others[entry]] = unit
                capacity[others[entry]] = -net[entry] if net[entry] < 0 else 0.0
            for entry in range(edge_ptr[unit], edge_ptr[unit + 1]):
                apart[edges[entry]] = unit
            for entry in range(clique_ptr[unit], clique_ptr[unit + 1]):
                clique_mark[cliques[entry]] = unit
            for first in range(ptr[unit], ptr[unit + 1]):
                middle = others[first]
                for second in range(ptr[middle], ptr[middle + 1]):
                    if residual[first] <= 0:
                        break
                    work += 1
                    end = others[second]
                    if end <= unit or residual[second] <= 0:
                        continue
                    if reached[end] != unit:
                        reached[end] = unit
                        if stored[end] != unit:
                            capacity[end] = gap * rows[unit] * rows[end]
                        for entry in range(clique_ptr[end], clique_ptr[end + 1]):
                            if clique_mark[cliques[entry]] == unit:
                                apart[end] = unit
                        if apart[end] == unit:
                            capacity[end] = _INFINITE
                    payment = min(residual[first], residual[second], capacity[end])
                    if payment > 0:
                        residual[first] -= payment
                        residual[twin[first]] -= payment
                        residual[second] -= payment
                        residual[twin[second]] -= payment
                        capacity[end] -= payment
                        bound[unit] += payment
    return work
