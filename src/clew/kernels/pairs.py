"""Assign rows pair by pair: both rows of a pair are assigned together."""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _price(
    by_rows: cython.bint,
    must: cython.bint,
    one: cython.Py_ssize_t,
    other: cython.Py_ssize_t,
    here: cython.Py_ssize_t,
    there: cython.Py_ssize_t,
    distances: cython.const[cython.double][:, ::1],
    nearest: cython.const[cython.int][:, ::1],
    apart: cython.const[cython.double][:, ::1],
) -> cython.double:
    """Cost of a pair with its units `one` and `other` in the clusters `here` and `there`."""
    far: cython.Py_ssize_t
    if must == (here == there):
        return 0.0
    if not by_rows:
        return apart[here, there]
    if must:
        return 0.5 * (distances[one, there] + distances[other, here])
    far = one
    if distances[one, here] < distances[other, here] or (
        distances[one, here] == distances[other, here] and one < other
    ):
        far = other
    return distances[far, nearest[far, 1] if nearest[far, 0] == here else nearest[far, 0]]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _press(
    sign: cython.double,
    by_rows: cython.bint,
    unit: cython.Py_ssize_t,
    ends: cython.const[cython.longlong][:, ::1],
    must: cython.const[cython.uchar][::1],
    confidence: cython.const[cython.double][::1],
    pair_ptr: cython.const[cython.longlong][::1],
    pair_of: cython.const[cython.longlong][::1],
    distances: cython.const[cython.double][:, ::1],
    nearest: cython.const[cython.int][:, ::1],
    apart: cython.const[cython.double][:, ::1],
    labels: cython.const[cython.int][::1],
    pressure: cython.double[:, ::1],
) -> cython.void:
    """Add the prices of the pairs of `unit` in its cluster to the costs of its partners (sign -1: subtract)."""
    entry: cython.Py_ssize_t
    pair: cython.Py_ssize_t
    partner: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    there: cython.Py_ssize_t = labels[unit]
    for entry in range(pair_ptr[unit], pair_ptr[unit + 1]):
        pair = pair_of[entry]
        partner = ends[pair, 0] + ends[pair, 1] - unit
        if must[pair]:
            for cluster in range(pressure.shape[1]):
                pressure[partner, cluster] += (
                    sign
                    * confidence[pair]
                    * _price(by_rows, True, partner, unit, cluster, there, distances, nearest, apart)
                )
        else:
            pressure[partner, there] += (
                sign * confidence[pair] * _price(by_rows, False, partner, unit, there, there, distances, nearest, apart)
            )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _relabel(
    by_rows: cython.bint,
    unit: cython.Py_ssize_t,
    cluster: cython.int,
    ends: cython.const[cython.longlong][:, ::1],
    must: cython.const[cython.uchar][::1],
    confidence: cython.const[cython.double][::1],
    pair_ptr: cython.const[cython.longlong][::1],
    pair_of: cython.const[cython.longlong][::1],
    distances: cython.const[cython.double][:, ::1],
    nearest: cython.const[cython.int][:, ::1],
    apart: cython.const[cython.double][:, ::1],
    labels: cython.int[::1],
    pressure: cython.double[:, ::1],
) -> cython.void:
    """Move `unit` to another cluster (-1: none) and update the costs of its partners."""
    if labels[unit] == cluster:
        return
    if labels[unit] >= 0:
        _press(
            -1.0, by_rows, unit, ends, must, confidence, pair_ptr, pair_of, distances, nearest, apart, labels, pressure
        )  # fmt: skip
    labels[unit] = cluster
    if cluster >= 0:
        _press(
            1.0, by_rows, unit, ends, must, confidence, pair_ptr, pair_of, distances, nearest, apart, labels, pressure
        )  # fmt: skip


def assign_pairs(
    by_rows: cython.bint,
    order: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][:, ::1],
    must: cython.const[cython.uchar][::1],
    confidence: cython.const[cython.double][::1],
    pair_ptr: cython.const[cython.longlong][::1],
    pair_of: cython.const[cython.longlong][::1],
    twins: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    distances: cython.const[cython.double][:, ::1],
    nearest: cython.const[cython.int][:, ::1],
    apart: cython.const[cython.double][:, ::1],
    labels: cython.int[::1],
    pressure: cython.double[:, ::1],
    candidates: cython.int[:, ::1],
):
    """Visit pairs in `order` and move the two units of each to the candidate clusters where all their pairs cost least.

    Pair p joins the units `ends[p]` and is a must-link if `must[p]` is 1. The pairs of unit u are
    `pair_of[pair_ptr[u]:pair_ptr[u + 1]]`. `twins[p]` is the pair of the other kind with the same ends (-1: none). A
    unit costs its weight times `distances[u, cluster]`. A broken pair costs its confidence times this price:

    - Without `by_rows` (CVQE): `apart[i, j]` for a must-link between clusters i and j, and `apart[i, i]` for a
      cannot-link within i. Candidates are all pairs of clusters.
    - With `by_rows` (LCVQE): for a must-link, half the sum of the distances of each unit to the centre of the other;
    for
      a cannot-link, the distance of the farther unit to its nearest other centre. With `nearest[u]` the two nearest
      centres of unit u, the candidates are: each unit at its nearest centre, or both at one of these; if the units of a
      cannot-link have the same nearest centre, the farther unit at its second centre, or both there; and the present
      clusters, if other pairs name one of the units.

    Partners without a cluster (-1) do not count. Writes `labels`; `pressure` (units x clusters) and `candidates`
    (at least 4 x 2) are work space. Ties in cost: the present clusters, if they are a candidate, then the first.
    """
    turn: cython.Py_ssize_t
    pair: cython.Py_ssize_t
    one: cython.Py_ssize_t
    other: cython.Py_ssize_t
    here: cython.Py_ssize_t
    there: cython.Py_ssize_t
    place: cython.Py_ssize_t
    count: cython.Py_ssize_t
    best_here: cython.Py_ssize_t
    best_there: cython.Py_ssize_t
    n_clusters: cython.Py_ssize_t = distances.shape[1]
    old_one: cython.int
    old_other: cython.int
    far_first: cython.bint
    busy_one: cython.bint
    busy_other: cython.bint
    stays: cython.bint
    bound: cython.double
    kept: cython.double
    cost: cython.double
    lowest: cython.double
    with cython.nogil:
        for one in range(pressure.shape[0]):
            for here in range(n_clusters):
                pressure[one, here] = 0.0
        for one in range(pressure.shape[0]):
            if labels[one] >= 0:
                _press(
                    1.0, by_rows, one, ends, must, confidence, pair_ptr, pair_of, distances, nearest, apart, labels,
                    pressure,
                )  # fmt: skip
        for turn in range(order.shape[0]):
            pair = order[turn]
            one = ends[pair, 0]
            other = ends[pair, 1]
            old_one = labels[one]
            old_other = labels[other]
            # Pairs between the two units are priced below: a must-link, and if constraints contradict also a
            # cannot-link.
            bound = confidence[pair] if must[pair] else 0.0
            kept = 0.0 if must[pair] else confidence[pair]
            if twins[pair] >= 0:
                bound += confidence[twins[pair]] if must[twins[pair]] else 0.0
                kept += 0.0 if must[twins[pair]] else confidence[twins[pair]]
            busy_one = pair_ptr[one + 1] - pair_ptr[one] > 1 + (twins[pair] >= 0)
            busy_other = pair_ptr[other + 1] - pair_ptr[other] > 1 + (twins[pair] >= 0)
            count = 0
            if by_rows:
                if old_one >= 0 and old_other >= 0 and (busy_one or busy_other):
                    candidates[0, 0] = old_one
                    candidates[0, 1] = old_other
                    count = 1
                candidates[count, 0] = nearest[one, 0]
                candidates[count, 1] = nearest[other, 0]
                count += 1
                if must[pair]:
                    candidates[count, 0] = nearest[one, 0]
                    candidates[count, 1] = nearest[one, 0]
                    candidates[count + 1, 0] = nearest[other, 0]
                    candidates[count + 1, 1] = nearest[other, 0]
                    count += 2
                elif nearest[one, 0] == nearest[other, 0]:
                    far_first = distances[one, nearest[one, 0]] > distances[other, nearest[one, 0]]
                    candidates[count, 0] = nearest[one, 1] if far_first else nearest[one, 0]
                    candidates[count, 1] = nearest[other, 0] if far_first else nearest[other, 1]
                    count += 1
            else:
                count = n_clusters * n_clusters
            best_here = -1
            best_there = -1
            lowest = 0.0
            for place in range(count):
                if by_rows:
                    here = candidates[place, 0]
                    there = candidates[place, 1]
                else:
                    here = place // n_clusters
                    there = place % n_clusters
                cost = (
                    weights[one] * distances[one, here]
                    + weights[other] * distances[other, there]
                    + bound * _price(by_rows, True, one, other, here, there, distances, nearest, apart)
                    + kept * _price(by_rows, False, one, other, here, there, distances, nearest, apart)
                )
                if busy_one:
                    cost += pressure[one, here]
                    if old_other >= 0:  # the pressure includes the pairs between the two units
                        cost -= bound * _price(by_rows, True, one, other, here, old_other, distances, nearest, apart)
                        cost -= kept * _price(by_rows, False, one, other, here, old_other, distances, nearest, apart)
                if busy_other:
                    cost += pressure[other, there]
                    if old_one >= 0:
                        cost -= bound * _price(by_rows, True, one, other, old_one, there, distances, nearest, apart)
                        cost -= kept * _price(by_rows, False, one, other, old_one, there, distances, nearest, apart)
                stays = here == old_one and there == old_other
                if best_here < 0 or cost < lowest or (stays and cost == lowest):
                    lowest = cost
                    best_here = here
                    best_there = there
            _relabel(
                by_rows, one, best_here, ends, must, confidence, pair_ptr, pair_of, distances, nearest, apart, labels,
                pressure,
            )  # fmt: skip
            _relabel(
                by_rows, other, best_there, ends, must, confidence, pair_ptr, pair_of, distances, nearest, apart,
                labels, pressure,
            )  # fmt: skip


def assign_rows(
    order: cython.const[cython.longlong][::1],
    costs: cython.const[cython.double][:, ::1],
    ends: cython.const[cython.longlong][:, ::1],
    must: cython.const[cython.uchar][::1],
    confidence: cython.const[cython.double][::1],
    pair_ptr: cython.const[cython.longlong][::1],
    pair_of: cython.const[cython.longlong][::1],
    lengths: cython.const[cython.double][:, ::1],
    longest: cython.const[cython.double][::1],
    labels: cython.int[::1],
    prices: cython.double[::1],
) -> cython.double:
    """Visit units in `order` and move each to the cluster with the lowest sum of its cost and the prices of its pairs.

    Row t of `costs` belongs to unit `order[t]`. Pairs are as in `assign_pairs`. `lengths[p, cluster]` is the squared
    distance of the units of pair p in the metric of a cluster. A broken must-link costs its confidence times the mean
    of its lengths in both clusters. A broken cannot-link costs its confidence times `longest` minus its length, or 0 if
    that is negative. Partners without a cluster (-1) do not count. Writes `labels`; `prices` is work space, one per
    cluster. Ties in cost: the present cluster, then the lowest. Returns the sum of `costs` of the units in their
    clusters.
    """
    turn: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    pair: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    best: cython.Py_ssize_t
    there: cython.Py_ssize_t
    n_clusters: cython.Py_ssize_t = prices.shape[0]
    unit: cython.longlong
    old: cython.int
    lowest: cython.double
    total: cython.double = 0.0
    with cython.nogil:
        for turn in range(order.shape[0]):
            unit = order[turn]
            old = labels[unit]
            for cluster in range(n_clusters):
                prices[cluster] = costs[turn, cluster]
            for entry in range(pair_ptr[unit], pair_ptr[unit + 1]):
                pair = pair_of[entry]
                there = labels[ends[pair, 0] + ends[pair, 1] - unit]
                if there < 0:
                    continue
                if must[pair]:
                    for cluster in range(n_clusters):
                        if cluster != there:
                            prices[cluster] += confidence[pair] * 0.5 * (lengths[pair, cluster] + lengths[pair, there])
                elif lengths[pair, there] < longest[there]:
                    prices[there] += confidence[pair] * (longest[there] - lengths[pair, there])
            best = 0 if old < 0 else old
            lowest = prices[best]
            for cluster in range(n_clusters):
                if prices[cluster] < lowest:
                    lowest = prices[cluster]
                    best = cluster
            labels[unit] = best
            total += costs[turn, best]
    return total
