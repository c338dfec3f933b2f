"""Assign rows to clusters whose sizes have limits, by a minimum-cost flow with one sink for each cluster."""

import cython

INFINITY = cython.declare(cython.double, float("inf"))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _insert(
    source: cython.Py_ssize_t,
    target: cython.Py_ssize_t,
    row: cython.longlong,
    key: cython.double,
    keys: cython.double[:, :, ::1],
    rows: cython.longlong[:, :, ::1],
    counts: cython.longlong[:, ::1],
    bounds: cython.double[:, ::1],
) -> cython.void:
    """Put a row into the list of an arc, cheapest last; a full list drops its most expensive row."""
    place: cython.Py_ssize_t
    count: cython.Py_ssize_t = counts[source, target]
    if key >= bounds[source, target]:
        return
    if count == keys.shape[2]:
        if key >= keys[source, target, 0]:
            bounds[source, target] = key
            return
        bounds[source, target] = keys[source, target, 0]
        # The first entry is dropped: entries before the place of the new one move down.
        place = 1
        while place < count and keys[source, target, place] > key:
            keys[source, target, place - 1] = keys[source, target, place]
            rows[source, target, place - 1] = rows[source, target, place]
            place += 1
        place -= 1
    else:
        place = count
        while place > 0 and keys[source, target, place - 1] < key:
            keys[source, target, place] = keys[source, target, place - 1]
            rows[source, target, place] = rows[source, target, place - 1]
            place -= 1
        counts[source, target] = count + 1
    keys[source, target, place] = key
    rows[source, target, place] = row


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _cheapest(
    source: cython.Py_ssize_t,
    target: cython.Py_ssize_t,
    costs: cython.const[cython.double][:, ::1],
    labels: cython.const[cython.int][::1],
    first: cython.const[cython.longlong][::1],
    after: cython.const[cython.longlong][::1],
    keys: cython.double[:, :, ::1],
    rows: cython.longlong[:, :, ::1],
    counts: cython.longlong[:, ::1],
    bounds: cython.double[:, ::1],
) -> cython.longlong:
    """The row of cluster `source` that is cheapest to move to `target`, or -1 if the cluster is empty."""
    row: cython.longlong
    while True:
        while counts[source, target] > 0:
            row = rows[source, target, counts[source, target] - 1]
            if labels[row] == source:
                return row
            counts[source, target] -= 1  # it has left the cluster
        if bounds[source, target] == INFINITY:
            return -1
        bounds[source, target] = INFINITY
        row = first[source]
        while row >= 0:
            _insert(source, target, row, costs[row, target] - costs[row, source], keys, rows, counts, bounds)
            row = after[row]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _move(
    row: cython.longlong,
    target: cython.Py_ssize_t,
    costs: cython.const[cython.double][:, ::1],
    labels: cython.int[::1],
    first: cython.longlong[::1],
    after: cython.longlong[::1],
    before: cython.longlong[::1],
    keys: cython.double[:, :, ::1],
    rows: cython.longlong[:, :, ::1],
    counts: cython.longlong[:, ::1],
    bounds: cython.double[:, ::1],
) -> cython.void:
    """Move a row from the list of its cluster to the front of another list."""
    other: cython.Py_ssize_t
    source: cython.Py_ssize_t = labels[row]
    if before[row] >= 0:
        after[before[row]] = after[row]
    else:
        first[source] = after[row]
    if after[row] >= 0:
        before[after[row]] = before[row]
    labels[row] = target
    before[row] = -1
    after[row] = first[target]
    if first[target] >= 0:
        before[first[target]] = row
    first[target] = row
    for other in range(costs.shape[1]):
        if other != target:
            _insert(target, other, row, costs[row, other] - costs[row, target], keys, rows, counts, bounds)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _measure(
    source: cython.Py_ssize_t,
    costs: cython.const[cython.double][:, ::1],
    labels: cython.const[cython.int][::1],
    first: cython.const[cython.longlong][::1],
    after: cython.const[cython.longlong][::1],
    keys: cython.double[:, :, ::1],
    rows: cython.longlong[:, :, ::1],
    counts: cython.longlong[:, ::1],
    bounds: cython.double[:, ::1],
    lengths: cython.double[:, ::1],
) -> cython.void:
    """Write the length of each arc that leaves a cluster: the cost of the row that is cheapest to move."""
    row: cython.longlong
    target: cython.Py_ssize_t
    for target in range(costs.shape[1]):
        if target == source:
            continue
        row = _cheapest(source, target, costs, labels, first, after, keys, rows, counts, bounds)
        lengths[source, target] = INFINITY if row < 0 else costs[row, target] - costs[row, source]


def route_excess(
    costs: cython.const[cython.double][:, ::1],
    lower: cython.const[cython.longlong][::1],
    upper: cython.const[cython.longlong][::1],
    labels: cython.int[::1],
    prices: cython.double[::1],
    flows: cython.longlong[::1],
    first: cython.longlong[::1],
    after: cython.longlong[::1],
    before: cython.longlong[::1],
    excess: cython.longlong[::1],
    distances: cython.double[::1],
    previous: cython.longlong[::1],
    settled: cython.uchar[::1],
    keys: cython.double[:, :, ::1],
    rows: cython.longlong[:, :, ::1],
    counts: cython.longlong[:, ::1],
    bounds: cython.double[:, ::1],
    lengths: cython.double[:, ::1],
) -> cython.longlong:
    """Move rows along cheapest paths until every cluster has a size within its limits; return the number of paths.

    The graph has a node for each of the k clusters and, as node k, a reserve that balances the sizes. An arc between
    two clusters moves the row that is cheapest to move. An arc between a cluster and the reserve changes the cluster's
    entry of `flows`, its target size. Prices keep the reduced costs of all arcs at 0 or above (successive shortest
    paths), so the result is the cheapest assignment within the limits.

    Reads `costs` (n, k), `lower` and `upper` (k). Reads and writes `labels` (n; each row in the cluster with the lowest
    ``costs + prices``), `prices` (k + 1) and `flows` (k; within the limits, at the upper limit if the price is above
    the reserve's, at the lower limit if it is below). Writes all other arrays, which the caller only allocates: `first`
    (k), `after` and `before` (n) are linked lists of the rows of each cluster; `excess`, `distances`, `previous`,
    `settled` (k + 1) belong to the path search; `keys`, `rows` (k, k, m), `counts` and `bounds` (k, k) hold the m rows
    that are cheapest to move along each arc, and `lengths` (k, k) the lowest cost of these moves. Returns -1 if the
    limits cannot hold. Ties go to the lowest cluster.
    """
    n_rows: cython.Py_ssize_t = costs.shape[0]
    k: cython.Py_ssize_t = costs.shape[1]
    n_paths: cython.longlong = 0
    row: cython.longlong
    node: cython.Py_ssize_t
    other: cython.Py_ssize_t
    nearest: cython.Py_ssize_t
    reached: cython.Py_ssize_t
    step: cython.Py_ssize_t
    length: cython.double
    with cython.nogil:
        for node in range(k):
            first[node] = -1
            excess[node] = -flows[node]
            for other in range(k):
                counts[node, other] = 0
                bounds[node, other] = -INFINITY  # not read yet
        excess[k] = -n_rows
        for node in range(k):
            excess[k] += flows[node]
        for row in range(n_rows - 1, -1, -1):
            node = labels[row]
            excess[node] += 1
            before[row] = -1
            after[row] = first[node]
            if first[node] >= 0:
                before[first[node]] = row
            first[node] = row
        for node in range(k):
            _measure(node, costs, labels, first, after, keys, rows, counts, bounds, lengths)
        while True:
            for node in range(k + 1):
                distances[node] = 0.0 if excess[node] > 0 else INFINITY
                previous[node] = -1
                settled[node] = False
            reached = -1
            while True:
                nearest = -1
                for node in range(k + 1):
                    if not settled[node] and distances[node] < INFINITY:
                        if nearest < 0 or distances[node] < distances[nearest]:
                            nearest = node
                if nearest < 0:
                    break
                settled[nearest] = True
                if excess[nearest] < 0:
                    reached = nearest
                    break
                for other in range(k + 1):
                    if settled[other]:
                        continue
                    if nearest == k:
                        if flows[other] <= lower[other]:
                            continue
                        length = 0.0
                    elif other == k:
                        if flows[nearest] >= upper[nearest]:
                            continue
                        length = 0.0
                    else:
                        length = lengths[nearest, other]
                    length += prices[other] - prices[nearest]
                    if length < 0.0:  # rounding
                        length = 0.0
                    if distances[nearest] + length < distances[other]:
                        distances[other] = distances[nearest] + length
                        previous[other] = nearest
            if reached < 0:
                break
            n_paths += 1
            for node in range(k + 1):
                if settled[node]:
                    prices[node] += distances[reached] - distances[node]
            excess[reached] += 1
            step = reached
            while previous[step] >= 0:
                node = previous[step]
                if node == k:
                    flows[step] -= 1
                elif step == k:
                    flows[node] += 1
                else:
                    row = _cheapest(node, step, costs, labels, first, after, keys, rows, counts, bounds)
                    _move(row, step, costs, labels, first, after, before, keys, rows, counts, bounds)
                step = node
            excess[step] -= 1
            step = reached
            while step >= 0:
                if step < k:
                    _measure(step, costs, labels, first, after, keys, rows, counts, bounds, lengths)
                step = previous[step]
        for node in range(k + 1):
            if excess[node] != 0:
                n_paths = -1
    return n_paths
