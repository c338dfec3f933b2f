"""Swaps of medoids under cannot-links: the two nearest medoids of every unit, and swaps that lower the cost.

`costs[j, i]` is the cost of unit i with candidate j as its medoid. A solution has one candidate per slot, `medoids`.
Units without cannot-links go to their nearest medoid. *Tied* units have cannot-links. They are listed part by part:
part p has the positions `part_ptr[p]` to `part_ptr[p + 1]` of `tied`, and no cannot-link leaves a part.
"""

import cython

floating = cython.fused_type(cython.float, cython.double)


def nearest_two(
    costs: cython.const[floating][:, ::1],
    medoids: cython.const[cython.longlong][::1],
    near: cython.int[::1],
    second: cython.int[::1],
    near_cost: floating[::1],
    second_cost: floating[::1],
    removal: cython.double[::1],
) -> cython.double:
    """Find the nearest and second-nearest slot of every unit; return the sum of the nearest costs.

    Reads `costs` and `medoids` (two or more); writes all other arrays. `removal` is the cost of removing each slot: the
    sum of `second_cost - near_cost` over its units. Ties go to the lowest slot.
    """
    unit: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    cost: floating
    total: cython.double = 0.0
    with cython.nogil:
        for unit in range(near.shape[0]):
            near[unit] = 0
            near_cost[unit] = costs[medoids[0], unit]
            second[unit] = -1
        for slot in range(1, medoids.shape[0]):
            for unit in range(near.shape[0]):
                cost = costs[medoids[slot], unit]
                if cost < near_cost[unit]:
                    second[unit] = near[unit]
                    second_cost[unit] = near_cost[unit]
                    near[unit] = cython.cast(cython.int, slot)
                    near_cost[unit] = cost
                elif second[unit] < 0 or cost < second_cost[unit]:
                    second[unit] = cython.cast(cython.int, slot)
                    second_cost[unit] = cost
        for slot in range(medoids.shape[0]):
            removal[slot] = 0.0
        for unit in range(near.shape[0]):
            total += near_cost[unit]
            removal[near[unit]] += cython.cast(cython.double, second_cost[unit]) - near_cost[unit]
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _swap(
    costs: cython.const[floating][:, ::1],
    medoids: cython.longlong[::1],
    slot: cython.Py_ssize_t,
    candidate: cython.Py_ssize_t,
    near: cython.int[::1],
    second: cython.int[::1],
    near_cost: floating[::1],
    second_cost: floating[::1],
    removal: cython.double[::1],
) -> cython.double:
    """Put `candidate` into `slot` and update the arrays of `nearest_two`; return the sum of the nearest costs."""
    unit: cython.Py_ssize_t
    other: cython.Py_ssize_t
    cost: floating
    total: cython.double = 0.0
    medoids[slot] = candidate
    for other in range(medoids.shape[0]):
        removal[other] = 0.0
    for unit in range(near.shape[0]):
        cost = costs[candidate, unit]
        if near[unit] == slot and cost <= second_cost[unit]:
            near_cost[unit] = cost
        elif near[unit] != slot and cost < near_cost[unit]:
            second[unit] = near[unit]
            second_cost[unit] = near_cost[unit]
            near[unit] = cython.cast(cython.int, slot)
            near_cost[unit] = cost
        elif near[unit] == slot or second[unit] == slot:
            if near[unit] == slot:
                near[unit] = second[unit]
                near_cost[unit] = second_cost[unit]
            second[unit] = -1
            for other in range(medoids.shape[0]):
                if other != near[unit] and (second[unit] < 0 or costs[medoids[other], unit] < second_cost[unit]):
                    second[unit] = cython.cast(cython.int, other)
                    second_cost[unit] = costs[medoids[other], unit]
        elif cost < second_cost[unit]:
            second[unit] = cython.cast(cython.int, slot)
            second_cost[unit] = cost
        total += near_cost[unit]
        removal[near[unit]] += cython.cast(cython.double, second_cost[unit]) - near_cost[unit]
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_blocked(
    place: cython.Py_ssize_t,
    cluster: cython.Py_ssize_t,
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    labels: cython.int[::1],
    below: cython.Py_ssize_t,
) -> cython.bint:
    """Whether a cannot-linked unit at a position lower than `below` is in this cluster."""
    entry: cython.Py_ssize_t
    for entry in range(edge_ptr[place], edge_ptr[place + 1]):
        if edges[entry] < below and labels[edges[entry]] == cluster:
            return True
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sweep(
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    costs: cython.double[:, ::1],
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    n_sweeps: cython.Py_ssize_t,
    labels: cython.int[::1],
) -> cython.bint:
    """Move units of a part to their cheapest cluster without a cannot-linked unit; return whether all are apart."""
    place: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    best: cython.Py_ssize_t
    _turn: cython.Py_ssize_t
    changed: cython.bint
    apart: cython.bint = False
    for _turn in range(n_sweeps):
        changed = False
        apart = True
        for place in range(first, last):
            best = -1
            for cluster in range(costs.shape[1]):
                if (best < 0 or costs[place, cluster] < costs[place, best]) and not _is_blocked(
                    place, cluster, edge_ptr, edges, labels, last
                ):
                    best = cluster
            if best < 0:
                apart = False
            elif best != labels[place]:
                labels[place] = cython.cast(cython.int, best)
                changed = True
        if not changed:
            break
    if apart and changed:  # the last sweep moved something: look again
        for place in range(first, last):
            if _is_blocked(place, labels[place], edge_ptr, edges, labels, last):
                apart = False
    return apart


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _cheapest_apart(
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    costs: cython.double[:, ::1],
    rest: cython.double[::1],
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    n_nodes: cython.longlong,
    spent: cython.double[::1],
    trail: cython.int[::1],
    labels: cython.int[::1],
) -> cython.double:
    """Lower the cost of a part whose `labels` are apart, by branch and bound over at most `n_nodes` nodes.

    `rest[p]` is the sum of the lowest costs of position p and later ones of the part. Returns the cost.
    """
    place: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    best: cython.Py_ssize_t
    cost: cython.double
    lowest: cython.double = 0.0
    visited: cython.longlong = 0
    for place in range(first, last):
        lowest += costs[place, labels[place]]
    place = first
    trail[first] = -1
    spent[first] = 0.0
    while place >= first and visited < n_nodes:
        visited += 1
        best = -1
        for cluster in range(costs.shape[1]):
            cost = costs[place, cluster]
            if trail[place] >= 0 and (
                cost < costs[place, trail[place]] or (cost == costs[place, trail[place]] and cluster <= trail[place])
            ):
                continue
            if (best < 0 or cost < costs[place, best]) and not _is_blocked(
                place, cluster, edge_ptr, edges, trail, place
            ):
                best = cluster
        if best < 0 or spent[place] + costs[place, best] + rest[place + 1] >= lowest:
            place -= 1  # more expensive clusters of this unit cannot help either
            continue
        trail[place] = cython.cast(cython.int, best)
        if place + 1 == last:
            lowest = spent[place] + costs[place, best]
            for cluster in range(first, last):
                labels[cluster] = trail[cluster]
            continue
        spent[place + 1] = spent[place] + costs[place, best]
        place += 1
        trail[place] = -1
    return lowest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _penalty(
    costs: cython.double[:, ::1],
    part_ptr: cython.const[cython.longlong][::1],
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    witness: cython.const[cython.int][::1],
    n_sweeps: cython.Py_ssize_t,
    n_nodes: cython.longlong,
    rest: cython.double[::1],
    spent: cython.double[::1],
    trail: cython.int[::1],
    labels: cython.int[::1],
) -> cython.double:
    """Label the tied units so that no cannot-link is violated; return the cost beyond their nearest medoids."""
    part: cython.Py_ssize_t
    place: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    first: cython.Py_ssize_t
    last: cython.Py_ssize_t
    apart: cython.bint
    total: cython.double = 0.0
    for part in range(part_ptr.shape[0] - 1):
        first = part_ptr[part]
        last = part_ptr[part + 1]
        apart = True
        for place in range(first, last):
            labels[place] = 0
            for cluster in range(1, costs.shape[1]):
                if costs[place, cluster] < costs[place, labels[place]]:
                    labels[place] = cython.cast(cython.int, cluster)
            if _is_blocked(place, labels[place], edge_ptr, edges, labels, place):
                apart = False
        if apart:
            continue
        # Position p of this part has its bound at p + part, so that every part has a closing 0.
        rest[last + part] = 0.0
        for place in range(last - 1, first - 1, -1):
            rest[place + part] = rest[place + part + 1] + costs[place, labels[place]]
        total -= rest[first + part]
        if not _sweep(first, last, costs, edge_ptr, edges, n_sweeps, labels):
            for place in range(first, last):
                labels[place] = witness[place]
            _sweep(first, last, costs, edge_ptr, edges, n_sweeps, labels)
        total += _cheapest_apart(first, last, costs, rest[part:], edge_ptr, edges, n_nodes, spent, trail, labels)
    return total


def separate(
    costs: cython.double[:, ::1],
    part_ptr: cython.const[cython.longlong][::1],
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    witness: cython.const[cython.int][::1],
    n_sweeps: cython.Py_ssize_t,
    n_nodes: cython.longlong,
    rest: cython.double[::1],
    spent: cython.double[::1],
    trail: cython.int[::1],
    labels: cython.int[::1],
) -> cython.double:
    """Label tied units at a low cost so that no cannot-link is violated; return the cost beyond their nearest medoids.

    Reads `costs` (positions x slots), the parts, the cannot-links `edges[edge_ptr[p]:edge_ptr[p + 1]]` of position p,
    and `witness`, labels that violate nothing. Writes `labels` and the buffers `rest` (positions plus parts), `spent`
    and `trail`. In a part where nearest medoids conflict, units move to their cheapest free cluster in `n_sweeps`
    sweeps (thesis Algorithm 3). If a conflict stays, the sweeps start from the witness. Branch and bound over at most
    `n_nodes` nodes then finds the cheapest labels of the part. Ties go to the lowest slot.
    """
    total: cython.double
    with cython.nogil:
        total = _penalty(costs, part_ptr, edge_ptr, edges, witness, n_sweeps, n_nodes, rest, spent, trail, labels)
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _change(
    row: cython.const[floating][::1],
    near: cython.int[::1],
    near_cost: floating[::1],
    second_cost: floating[::1],
    change: cython.double[::1],
) -> cython.double:
    """Add to `change` the change of cost for each slot that a candidate may replace; return the common part."""
    unit: cython.Py_ssize_t
    cost: floating
    common: cython.double = 0.0
    for unit in range(row.shape[0]):
        cost = row[unit]
        if cost < second_cost[unit]:
            if cost < near_cost[unit]:
                common += cython.cast(cython.double, cost) - near_cost[unit]
                change[near[unit]] += cython.cast(cython.double, near_cost[unit]) - second_cost[unit]
            else:
                change[near[unit]] += cython.cast(cython.double, cost) - second_cost[unit]
    return common


def swap_eagerly(
    costs: cython.const[floating][:, ::1],
    order: cython.const[cython.longlong][::1],
    medoids: cython.longlong[::1],
    is_medoid: cython.uchar[::1],
    near: cython.int[::1],
    second: cython.int[::1],
    near_cost: floating[::1],
    second_cost: floating[::1],
    removal: cython.double[::1],
    change: cython.double[::1],
    tied: cython.const[cython.longlong][::1],
    tied_costs: cython.double[:, ::1],
    part_ptr: cython.const[cython.longlong][::1],
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    witness: cython.const[cython.int][::1],
    n_sweeps: cython.Py_ssize_t,
    n_nodes: cython.longlong,
    rest: cython.double[::1],
    spent: cython.double[::1],
    trail: cython.int[::1],
    trial: cython.int[::1],
    saved: cython.double[::1],
    labels: cython.int[::1],
    rounding: cython.double,
    totals: cython.double[::1],
) -> cython.longlong:
    """Swap medoids for candidates while that lowers the cost; return the number of candidates that were tried.

    Candidates take turns in `order`, and the first swap that pays is made (FasterPAM). `totals` holds the cost of all
    units with their nearest medoids, and the cost of the cannot-links beyond it (see `separate`). The first alone is a
    lower bound on the cost after a swap, so the second is computed only for swaps whose bound is low enough. A swap
    pays if it saves more than `rounding` times the sum of all second-nearest costs, which covers rounding errors.

    Reads `costs`, `order`, `tied`, the cannot-links from `part_ptr` to `witness`, and the limits. Updates `medoids`,
    `is_medoid`, the arrays of `nearest_two`, `tied_costs`, `labels` (of tied units) and `totals`. Writes the buffers
    `change`, `rest`, `spent`, `trail`, `trial` and `saved`. Of equal slots the lowest is replaced.
    """
    n_candidates: cython.Py_ssize_t = costs.shape[0]
    n_slots: cython.Py_ssize_t = medoids.shape[0]
    candidate: cython.Py_ssize_t
    turn: cython.Py_ssize_t = 0
    since: cython.Py_ssize_t = 0
    slot: cython.Py_ssize_t
    best: cython.Py_ssize_t
    place: cython.Py_ssize_t
    tried: cython.longlong = 0
    common: cython.double
    lowest: cython.double
    penalty: cython.double = 0.0
    least: cython.double = 0.0
    infinite: cython.double = float("inf")
    with cython.nogil:
        while since < n_candidates:
            candidate = order[turn]
            turn = (turn + 1) % n_candidates
            since += 1
            if is_medoid[candidate]:
                continue
            tried += 1
            least = totals[0] + totals[1]
            for slot in range(n_slots):
                change[slot] = removal[slot]
                least += removal[slot]
            least *= rounding
            common = _change(costs[candidate], near, near_cost, second_cost, change)
            while True:
                best = 0
                lowest = change[0]
                for slot in range(1, n_slots):
                    if change[slot] < lowest:
                        lowest = change[slot]
                        best = slot
                if common + lowest >= totals[1] - least:
                    break
                for place in range(tied.shape[0]):
                    saved[place] = tied_costs[place, best]
                    tied_costs[place, best] = costs[candidate, tied[place]]
                if tied.shape[0]:
                    penalty = _penalty(
                        tied_costs, part_ptr, edge_ptr, edges, witness, n_sweeps, n_nodes, rest, spent, trail, trial
                    )
                if common + lowest + penalty < totals[1] - least:
                    is_medoid[medoids[best]] = 0
                    is_medoid[candidate] = 1
                    totals[0] = _swap(costs, medoids, best, candidate, near, second, near_cost, second_cost, removal)
                    totals[1] = penalty
                    for place in range(tied.shape[0]):
                        labels[place] = trial[place]
                    since = 0
                    break
                for place in range(tied.shape[0]):
                    tied_costs[place, best] = saved[place]
                change[best] = infinite
    return tried


def swap_changes(
    costs: cython.const[floating][:, ::1],
    near: cython.int[::1],
    near_cost: floating[::1],
    second_cost: floating[::1],
    removal: cython.const[cython.double][::1],
    changes: cython.double[:, ::1],
):
    """Change of the sum of nearest costs for each swap of a candidate (row) into a slot (column). Writes `changes`.

    Reads the arrays that `nearest_two` wrote.
    """
    candidate: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    common: cython.double
    with cython.nogil:
        for candidate in range(costs.shape[0]):
            for slot in range(removal.shape[0]):
                changes[candidate, slot] = removal[slot]
            common = _change(costs[candidate], near, near_cost, second_cost, changes[candidate])
            for slot in range(removal.shape[0]):
                changes[candidate, slot] += common
