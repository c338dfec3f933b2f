"""Assign tied units to the cheapest cluster, one at a time or in blocks, and price their ties."""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _add_set(
    prices: cython.double[::1],
    price: cython.double,
    group: cython.longlong,
    unit: cython.longlong,
    table_of: cython.const[cython.int][::1],
    tables: cython.const[cython.longlong][:, ::1],
    member_ptr: cython.const[cython.int][::1],
    members: cython.const[cython.int][::1],
    labels: cython.const[cython.int][::1],
) -> cython.void:
    """Add `price` for each unit of `group` in each cluster, except for `unit` itself."""
    place: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    table: cython.longlong = table_of[group]
    if table >= 0:
        for cluster in range(tables.shape[1]):
            if tables[table, cluster]:
                prices[cluster] += price * tables[table, cluster]
    else:
        for place in range(member_ptr[group], member_ptr[group + 1]):
            if members[place] != unit and labels[members[place]] >= 0:
                prices[labels[members[place]]] += price


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _count(
    change: cython.int,
    unit: cython.longlong,
    cluster: cython.Py_ssize_t,
    group_ptr: cython.const[cython.int][::1],
    groups: cython.const[cython.int][::1],
    table_of: cython.const[cython.int][::1],
    tables: cython.longlong[:, ::1],
) -> cython.void:
    """Update the tables after `unit` joined (+1) or left (-1) `cluster`."""
    entry: cython.Py_ssize_t
    if tables.shape[0] == 0:  # spares the reads below, which are spread over memory
        return
    for entry in range(group_ptr[unit], group_ptr[unit + 1]):
        if table_of[groups[entry]] >= 0:
            tables[table_of[groups[entry]], cluster] += change


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _push(
    unit: cython.longlong,
    old: cython.Py_ssize_t,
    new: cython.Py_ssize_t,
    group_ptr: cython.const[cython.int][::1],
    groups: cython.const[cython.int][::1],
    push_ptr: cython.const[cython.int][::1],
    push_to: cython.const[cython.int][::1],
    push_price: cython.const[cython.double][::1],
    sums: cython.double[:, ::1],
) -> cython.void:
    """Update the running sums of the sets of `unit` after it moved from `old` to `new` (-1: none)."""
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    if sums.shape[0] == 0:
        return
    for entry in range(group_ptr[unit], group_ptr[unit + 1]):
        for place in range(push_ptr[groups[entry]], push_ptr[groups[entry] + 1]):
            if old >= 0:
                sums[push_to[place], old] -= push_price[place]
            if new >= 0:
                sums[push_to[place], new] += push_price[place]


def assign_tied(
    order: cython.const[cython.longlong][::1],
    costs: cython.const[cython.double][:, ::1],
    pinned: cython.const[cython.int][::1],
    profile_of: cython.const[cython.int][::1],
    profile_ptr: cython.const[cython.int][::1],
    profile_set: cython.const[cython.int][::1],
    profile_price: cython.const[cython.double][::1],
    partner_ptr: cython.const[cython.int][::1],
    partners: cython.const[cython.int][::1],
    partner_price: cython.const[cython.double][::1],
    member_ptr: cython.const[cython.int][::1],
    members: cython.const[cython.int][::1],
    group_ptr: cython.const[cython.int][::1],
    groups: cython.const[cython.int][::1],
    table_of: cython.const[cython.int][::1],
    sum_of: cython.const[cython.int][::1],
    push_ptr: cython.const[cython.int][::1],
    push_to: cython.const[cython.int][::1],
    push_price: cython.const[cython.double][::1],
    unit_price: cython.double,
    tables: cython.longlong[:, ::1],
    sums: cython.double[:, ::1],
    labels: cython.int[::1],
    prices: cython.double[::1],
) -> cython.double:
    """Visit units in `order` and move each to the cluster with the lowest sum of its cost and the prices of its ties.

    Row t of `costs` belongs to unit `order[t]`. A tie has a price for each unit of a set (`profile_*`, shared by the
    units of one profile, -1 for none; a negative price attracts) or for a single partner (`partner_*`) in the same
    cluster.
    Unassigned units (label -1) do not count. An infinite price forbids. `tables` counts units per cluster for the sets
    that have a table (`table_of` >= 0); smaller sets are read through `members`. `group_ptr`, `groups` list the sets of
    each unit. If `sum_of` of a profile is >= 0, a part of its prices, in units of `unit_price`, is stored in that row
    of `sums`. A unit that moves adds `push_price` to the rows `push_to[push_ptr[s]:push_ptr[s + 1]]` for each of its
    sets s. Writes `tables`, `sums` and `labels`; `prices` is work space, one per cluster; reads all others. Units with
    `pinned` >= 0 keep that label. Ties in cost: the present cluster, then the lowest. Returns the sum of `costs` of the
    units in their clusters. If every cluster is forbidden for a unit, it returns infinity, and this unit and all later
    ones are not changed.
    """
    turn: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    best: cython.Py_ssize_t
    n_clusters: cython.Py_ssize_t = prices.shape[0]
    unit: cython.longlong
    profile: cython.longlong
    old: cython.int
    lowest: cython.double
    infinity: cython.double = float("inf")
    total: cython.double = 0.0
    with cython.nogil:
        for turn in range(order.shape[0]):
            unit = order[turn]
            old = labels[unit]
            if pinned[unit] >= 0:
                if old != pinned[unit]:
                    if old >= 0:
                        _count(-1, unit, old, group_ptr, groups, table_of, tables)
                    labels[unit] = pinned[unit]
                    _count(1, unit, pinned[unit], group_ptr, groups, table_of, tables)
                    _push(unit, old, pinned[unit], group_ptr, groups, push_ptr, push_to, push_price, sums)
                total += costs[turn, pinned[unit]]
                continue
            if old >= 0:
                _count(-1, unit, old, group_ptr, groups, table_of, tables)
            for cluster in range(n_clusters):
                prices[cluster] = costs[turn, cluster]
            profile = profile_of[unit]
            if profile >= 0:
                if sum_of[profile] >= 0:
                    for cluster in range(n_clusters):
                        prices[cluster] += unit_price * sums[sum_of[profile], cluster]
                for entry in range(profile_ptr[profile], profile_ptr[profile + 1]):
                    _add_set(
                        prices, profile_price[entry], profile_set[entry], unit,
                        table_of, tables, member_ptr, members, labels,
                    )  # fmt: skip
            for entry in range(partner_ptr[unit], partner_ptr[unit + 1]):
                if labels[partners[entry]] >= 0:
                    prices[labels[partners[entry]]] += partner_price[entry]
            best = 0 if old < 0 else old
            lowest = prices[best]
            for cluster in range(n_clusters):
                if prices[cluster] < lowest:
                    lowest = prices[cluster]
                    best = cluster
            if lowest == infinity:
                if old >= 0:
                    _count(1, unit, old, group_ptr, groups, table_of, tables)
                total = infinity
                break
            labels[unit] = best
            total += costs[turn, best]
            _count(1, unit, best, group_ptr, groups, table_of, tables)
            if best != old:
                _push(unit, old, best, group_ptr, groups, push_ptr, push_to, push_price, sums)
    return total


def move_blocks(
    order: cython.const[cython.longlong][::1],
    costs: cython.const[cython.double][:, ::1],
    block_ptr: cython.const[cython.longlong][::1],
    block_units: cython.const[cython.longlong][::1],
    profile_of: cython.const[cython.int][::1],
    profile_ptr: cython.const[cython.int][::1],
    profile_set: cython.const[cython.int][::1],
    profile_price: cython.const[cython.double][::1],
    partner_ptr: cython.const[cython.int][::1],
    partners: cython.const[cython.int][::1],
    partner_price: cython.const[cython.double][::1],
    member_ptr: cython.const[cython.int][::1],
    members: cython.const[cython.int][::1],
    group_ptr: cython.const[cython.int][::1],
    groups: cython.const[cython.int][::1],
    table_of: cython.const[cython.int][::1],
    sum_of: cython.const[cython.int][::1],
    push_ptr: cython.const[cython.int][::1],
    push_to: cython.const[cython.int][::1],
    push_price: cython.const[cython.double][::1],
    unit_price: cython.double,
    tables: cython.longlong[:, ::1],
    sums: cython.double[:, ::1],
    labels: cython.int[::1],
    prices: cython.double[::1],
) -> cython.double:
    """Visit blocks of units in `order` and move each as a whole to the cluster with the lowest cost plus prices.

    Row t of `costs` is the cost of all units of block `order[t]`, listed in `block_units`. The other arguments are as
    in `assign_tied`. While a block is visited its units count as unassigned, because prices between them are the same
    in every cluster. A block whose units are in several clusters stays. Ties in cost: the present cluster, then the
    lowest. Returns the change of the cost of the moved blocks.
    """
    turn: cython.Py_ssize_t
    place: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    best: cython.Py_ssize_t
    n_clusters: cython.Py_ssize_t = prices.shape[0]
    block: cython.longlong
    unit: cython.longlong
    profile: cython.longlong
    old: cython.int
    together: cython.bint
    mixed: cython.bint
    lowest: cython.double
    change: cython.double = 0.0
    with cython.nogil:
        for turn in range(order.shape[0]):
            block = order[turn]
            old = labels[block_units[block_ptr[block]]]
            together = True
            mixed = False
            profile = profile_of[block_units[block_ptr[block]]]
            for place in range(block_ptr[block], block_ptr[block + 1]):
                if labels[block_units[place]] != old:
                    together = False
                if profile_of[block_units[place]] != profile:
                    mixed = True
            if not together:
                continue
            for place in range(block_ptr[block], block_ptr[block + 1]):
                unit = block_units[place]
                labels[unit] = -1
                _count(-1, unit, old, group_ptr, groups, table_of, tables)
                if mixed:  # units of one profile are never in each other's sums
                    _push(unit, old, -1, group_ptr, groups, push_ptr, push_to, push_price, sums)
            for cluster in range(n_clusters):
                prices[cluster] = costs[turn, cluster]
            for place in range(block_ptr[block], block_ptr[block + 1]):
                unit = block_units[place]
                profile = profile_of[unit]
                if profile >= 0:
                    if sum_of[profile] >= 0:
                        for cluster in range(n_clusters):
                            prices[cluster] += unit_price * sums[sum_of[profile], cluster]
                    for entry in range(profile_ptr[profile], profile_ptr[profile + 1]):
                        _add_set(
                            prices, profile_price[entry], profile_set[entry], unit,
                            table_of, tables, member_ptr, members, labels,
                        )  # fmt: skip
                for entry in range(partner_ptr[unit], partner_ptr[unit + 1]):
                    if labels[partners[entry]] >= 0:
                        prices[labels[partners[entry]]] += partner_price[entry]
            best = old
            lowest = prices[old]
            for cluster in range(n_clusters):
                if prices[cluster] < lowest:
                    lowest = prices[cluster]
                    best = cluster
            change += costs[turn, best] - costs[turn, old]
            for place in range(block_ptr[block], block_ptr[block + 1]):
                unit = block_units[place]
                labels[unit] = best
                _count(1, unit, best, group_ptr, groups, table_of, tables)
                if mixed:
                    _push(unit, -1, best, group_ptr, groups, push_ptr, push_to, push_price, sums)
                elif best != old:
                    _push(unit, old, best, group_ptr, groups, push_ptr, push_to, push_price, sums)
    return change


def price_ties(
    profile_of: cython.const[cython.int][::1],
    profile_ptr: cython.const[cython.int][::1],
    profile_set: cython.const[cython.int][::1],
    profile_price: cython.const[cython.double][::1],
    partner_ptr: cython.const[cython.int][::1],
    partners: cython.const[cython.int][::1],
    partner_price: cython.const[cython.double][::1],
    member_ptr: cython.const[cython.int][::1],
    members: cython.const[cython.int][::1],
    group_ptr: cython.const[cython.int][::1],
    groups: cython.const[cython.int][::1],
    table_of: cython.const[cython.int][::1],
    sum_of: cython.const[cython.int][::1],
    push_ptr: cython.const[cython.int][::1],
    push_to: cython.const[cython.int][::1],
    push_price: cython.const[cython.double][::1],
    unit_price: cython.double,
    tables: cython.longlong[:, ::1],
    sums: cython.double[:, ::1],
    labels: cython.const[cython.int][::1],
    prices: cython.double[::1],
) -> cython.double:
    """Sum of the prices that all units pay in their clusters. Each tie counts twice, once from either end.

    The arguments are as in `assign_tied`, and every unit is assigned. Reads all but `prices` (work space); `tables` are
    restored.
    """
    unit: cython.longlong
    entry: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    profile: cython.longlong
    total: cython.double = 0.0
    with cython.nogil:
        for unit in range(labels.shape[0]):
            cluster = labels[unit]
            profile = profile_of[unit]
            prices[cluster] = 0.0
            if profile >= 0:
                if sum_of[profile] >= 0:
                    prices[cluster] = unit_price * sums[sum_of[profile], cluster]
                _count(-1, unit, cluster, group_ptr, groups, table_of, tables)
                for entry in range(profile_ptr[profile], profile_ptr[profile + 1]):
                    _add_set(
                        prices, profile_price[entry], profile_set[entry], unit,
                        table_of, tables, member_ptr, members, labels,
                    )  # fmt: skip
                _count(1, unit, cluster, group_ptr, groups, table_of, tables)
            for entry in range(partner_ptr[unit], partner_ptr[unit + 1]):
                if labels[partners[entry]] == cluster:
                    prices[cluster] += partner_price[entry]
            total += prices[cluster]
    return total
