"""Multipliers of statements about rows: the charge of each row in each cluster, and one subgradient step."""

import cython


def charge_rows(
    pairs: cython.const[cython.longlong][:, ::1],
    pulls: cython.const[cython.double][:, ::1],
    set_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    prices: cython.const[cython.double][:, ::1],
    charges: cython.double[:, ::1],
):
    """Compute the charge of every row in every cluster. Writes `charges`; reads all other arrays.

    A pair that belongs together has a signed pull per cluster, which is added to the charge of its first row and
    subtracted from the charge of its second row. A set whose rows must differ has a price per cluster, which each of
    its rows pays there.
    """
    place: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    n_clusters: cython.Py_ssize_t = charges.shape[1]
    with cython.nogil:
        for place in range(charges.shape[0]):
            for cluster in range(n_clusters):
                charges[place, cluster] = 0.0
        for place in range(pairs.shape[0]):
            for cluster in range(n_clusters):
                charges[pairs[place, 0], cluster] += pulls[place, cluster]
                charges[pairs[place, 1], cluster] -= pulls[place, cluster]
        for place in range(set_ptr.shape[0] - 1):
            for entry in range(set_ptr[place], set_ptr[place + 1]):
                for cluster in range(n_clusters):
                    charges[members[entry], cluster] += prices[place, cluster]


def assign_charged(
    costs: cython.const[cython.double][:, ::1],
    charges: cython.const[cython.double][:, ::1],
    labels: cython.int[::1],
) -> cython.double:
    """Assign every row to the cluster with the lowest cost plus charge; return the sum. Ties go to the lowest cluster.

    Reads `costs` and `charges`, writes `labels`.
    """
    row: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    best: cython.int
    lowest: cython.double
    total: cython.double = 0.0
    with cython.nogil:
        for row in range(costs.shape[0]):
            best = 0
            lowest = costs[row, 0] + charges[row, 0]
            for cluster in range(1, costs.shape[1]):
                if costs[row, cluster] + charges[row, cluster] < lowest:
                    lowest = costs[row, cluster] + charges[row, cluster]
                    best = cluster
            labels[row] = best
            total += lowest
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _shrunk(value: cython.double, by: cython.double, most: cython.double) -> cython.double:
    """Shrink `value` towards 0 by `by`, and clip it to plus or minus `most`."""
    if value > by:
        return min(value - by, most)
    if value < -by:
        return max(value + by, -most)
    return 0.0


def step_multipliers(
    pairs: cython.const[cython.longlong][:, ::1],
    pull_steps: cython.const[cython.double][::1],
    most_pull: cython.const[cython.double][::1],
    set_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    price_steps: cython.const[cython.double][::1],
    most_price: cython.const[cython.double][::1],
    labels: cython.const[cython.int][::1],
    factor: cython.double,
    slack: cython.double,
    pulls: cython.double[:, ::1],
    prices: cython.double[:, ::1],
):
    """Move pulls and prices along the subgradient of the dual at `labels`, by `factor` times the steps; clip them.

    The pulls of a pair in two clusters grow in both clusters; then all pulls shrink towards 0 by `slack`. The price of
    a set with c rows in a cluster changes there by c - 1 - `slack`, but not below 0. Writes `pulls` and `prices`; reads
    all other arrays.
    """
    place: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    n_clusters: cython.Py_ssize_t = pulls.shape[1]
    step: cython.double
    with cython.nogil:
        for place in range(pairs.shape[0]):
            step = factor * pull_steps[place]
            if labels[pairs[place, 0]] != labels[pairs[place, 1]]:
                pulls[place, labels[pairs[place, 0]]] += step
                pulls[place, labels[pairs[place, 1]]] -= step
            for cluster in range(n_clusters):
                pulls[place, cluster] = _shrunk(pulls[place, cluster], step * slack, most_pull[place])
        for place in range(set_ptr.shape[0] - 1):
            step = factor * price_steps[place]
            for entry in range(set_ptr[place], set_ptr[place + 1]):
                prices[place, labels[members[entry]]] += step
            for cluster in range(n_clusters):
                prices[place, cluster] = min(max(prices[place, cluster] - step * (1.0 + slack), 0.0), most_price[place])
