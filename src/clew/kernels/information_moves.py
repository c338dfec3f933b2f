"""Moves of single rows between clusters, each by its exact gain in mutual information.

Masses are shares of the joint distribution: `joint[c, z, y]` is the mass of feature y in the rows of cluster c with
side label z, and `marginal[c, y]` is its sum over z. For two rows of features (1/2, 0) and (1/4, 1/4), with side labels
0 and 1, both in cluster 0, `joint[0]` is ``[[1/2, 0], [1/4, 1/4]]`` and `marginal[0]` is ``[3/4, 1/4]``.
"""

import cython

if cython.compiled:
    from cython.cimports.libc.math import log
else:
    from math import log


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _x_log_x(mass: cython.double) -> cython.double:
    """Mass times its logarithm, 0 for no mass or a rounding error below 0."""
    return mass * log(mass) if mass > 0 else 0.0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _growth(mass: cython.double, more: cython.double) -> cython.double:
    """Increase of `_x_log_x` if `more` is added to a mass."""
    return _x_log_x(mass + more) - _x_log_x(mass)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _insertion_gain(
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    features: cython.const[cython.longlong][::1],
    masses: cython.const[cython.double][::1],
    total: cython.double,
    weights: cython.const[cython.double][::1],
    joint: cython.double[::1],
    marginal: cython.double[::1],
) -> cython.double:
    """Increase of the objective if the row with the entries `start` to `stop` joins a cluster."""
    entry: cython.Py_ssize_t
    whole: cython.Py_ssize_t = marginal.shape[0] - 1
    conditional: cython.double = -_growth(joint[whole], total)
    plain: cython.double = -_growth(marginal[whole], total)
    gain: cython.double = weights[2] * _growth(marginal[whole], total)
    if weights[0] > 0:
        for entry in range(start, stop):
            conditional += _growth(joint[features[entry]], masses[entry])
    if weights[1] > 0:
        for entry in range(start, stop):
            plain += _growth(marginal[features[entry]], masses[entry])
    return gain + weights[0] * conditional + weights[1] * plain


def move_rows_by_information(
    order: cython.const[cython.longlong][::1],
    row_ptr: cython.const[cython.longlong][::1],
    features: cython.const[cython.longlong][::1],
    masses: cython.const[cython.double][::1],
    side: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    tolerance: cython.double,
    labels: cython.longlong[::1],
    sizes: cython.longlong[::1],
    joint: cython.double[:, :, ::1],
    marginal: cython.double[:, ::1],
) -> cython.longlong:
    """Visit rows in the given order, move each to the cluster that gains most; return the number of moves.

    The gain is the increase of ``weights[0] * I(C; Y | Z) + weights[1] * I(C; Y) - weights[2] * H(C)``. Row i has the
    masses `masses[row_ptr[i]:row_ptr[i + 1]]` of the features at the same positions of `features`, and the side label
    `side[i]`. The last feature of `joint` and `marginal` holds the sum over all others. Reads the first six arrays.
    Writes `labels`, and updates `sizes` (rows of each cluster), `joint` and `marginal`. A move gains more than
    `tolerance`, and no cluster loses its last row. Ties go to the row's own cluster, then to the lowest cluster.
    """
    place: cython.Py_ssize_t
    row: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    feature: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    home: cython.Py_ssize_t
    best: cython.Py_ssize_t
    given: cython.Py_ssize_t
    whole: cython.Py_ssize_t = marginal.shape[1] - 1
    total: cython.double
    gain: cython.double
    most: cython.double
    n_moves: cython.longlong = 0
    with cython.nogil:
        for place in range(order.shape[0]):
            row = order[place]
            home = labels[row]
            given = side[row]
            if sizes[home] == 1 or row_ptr[row] == row_ptr[row + 1]:
                continue
            total = 0.0
            for entry in range(row_ptr[row], row_ptr[row + 1]):
                feature = features[entry]
                total += masses[entry]
                joint[home, given, feature] -= masses[entry]
                marginal[home, feature] -= masses[entry]
            joint[home, given, whole] -= total
            marginal[home, whole] -= total
            best = home
            most = tolerance + _insertion_gain(
                row_ptr[row], row_ptr[row + 1], features, masses, total, weights, joint[home, given], marginal[home]
            )
            for cluster in range(sizes.shape[0]):
                if cluster == home:
                    continue
                gain = _insertion_gain(
                    row_ptr[row], row_ptr[row + 1], features, masses, total, weights,
                    joint[cluster, given], marginal[cluster],
                )  # fmt: skip
                if gain > most:
                    most = gain
                    best = cluster
            for entry in range(row_ptr[row], row_ptr[row + 1]):
                feature = features[entry]
                joint[best, given, feature] += masses[entry]
                marginal[best, feature] += masses[entry]
            joint[best, given, whole] += total
            marginal[best, whole] += total
            if best != home:
                sizes[home] -= 1
                sizes[best] += 1
                labels[row] = best
                n_moves += 1
    return n_moves
