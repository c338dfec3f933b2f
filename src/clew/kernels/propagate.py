"""Sum-product message passing on factor graphs: marginals and the log partition function, part by part.

All messages are logarithms with a largest entry of 0. There are two kinds of factors. A *Potts* factor joins two
variables and multiplies by exp(weight) where they are equal. A *mixture* factor joins any number of variables: its own
label copies that of variable l with the probability given by `log_strengths`, or is drawn from `free_scores`. The label
of a mixture factor may itself be a variable, the last one of the factor (`is_mixture` 2).
"""

import cython

if cython.compiled:
    from cython.cimports.libc.math import exp, fabs, log
else:
    from math import exp, fabs, log

# Logarithm of an impossible event. It is finite, so that messages can be taken back out of a sum.
IMPOSSIBLE = cython.declare(cython.double, -1e10)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _log_sum(values: cython.double[:, ::1], row: cython.Py_ssize_t) -> cython.double:
    """Logarithm of the sum of the exponentials of a row."""
    state: cython.Py_ssize_t
    largest: cython.double = values[row, 0]
    total: cython.double = 0.0
    for state in range(1, values.shape[1]):
        largest = max(largest, values[row, state])
    for state in range(values.shape[1]):
        total += exp(values[row, state] - largest)
    return largest + log(total)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _log_add(first: cython.double, second: cython.double) -> cython.double:
    """Logarithm of the sum of two exponentials."""
    if first < second:
        return second + log(1.0 + exp(first - second))
    return first + log(1.0 + exp(second - first))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _receive(
    variable: cython.longlong,
    entry: cython.Py_ssize_t,
    place: cython.Py_ssize_t,
    clamped: cython.longlong[::1],
    beliefs: cython.double[:, ::1],
    messages: cython.double[:, ::1],
    incoming: cython.double[:, ::1],
) -> cython.double:
    """Write the normalised message from a variable to a factor into `incoming[place]`; return the log-normaliser."""
    state: cython.Py_ssize_t
    scale: cython.double
    if clamped[variable] >= 0:
        for state in range(incoming.shape[1]):
            incoming[place, state] = IMPOSSIBLE
        incoming[place, clamped[variable]] = 0.0
        return 0.0
    for state in range(incoming.shape[1]):
        incoming[place, state] = beliefs[variable, state] - messages[entry, state]
    scale = _log_sum(incoming, place)
    for state in range(incoming.shape[1]):
        incoming[place, state] = max(incoming[place, state] - scale, IMPOSSIBLE)
    return scale


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _pass_potts(
    weight: cython.double, incoming: cython.double[:, ::1], source: cython.Py_ssize_t, target: cython.Py_ssize_t
) -> cython.void:
    """Write the message of a Potts factor to one variable, given the message `source` of the other, into `target`.

    The state with the largest message is summed separately, so that the sum over the other states is never a difference
    of nearly equal numbers.
    """
    state: cython.Py_ssize_t
    top: cython.Py_ssize_t = 0
    n_states: cython.Py_ssize_t = incoming.shape[1]
    total: cython.double = 0.0
    second: cython.double = IMPOSSIBLE
    others: cython.double = 0.0
    rest: cython.double
    for state in range(1, n_states):
        if incoming[source, state] > incoming[source, top]:
            top = state
    for state in range(n_states):
        total += exp(incoming[source, state] - incoming[source, top])
        if state != top:
            second = max(second, incoming[source, state])
    for state in range(n_states):
        if state != top:
            others += exp(incoming[source, state] - second)
    for state in range(n_states):
        if state != top:
            rest = incoming[source, top] + log(max(total - exp(incoming[source, state] - incoming[source, top]), 1.0))
        elif n_states > 1:
            rest = second + log(others)
        else:
            rest = IMPOSSIBLE
        incoming[target, state] = max(_log_add(weight + incoming[source, state], rest), IMPOSSIBLE)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _send(
    variable: cython.longlong,
    entry: cython.Py_ssize_t,
    place: cython.Py_ssize_t,
    kept: cython.double,
    clamped: cython.longlong[::1],
    beliefs: cython.double[:, ::1],
    messages: cython.double[:, ::1],
    incoming: cython.double[:, ::1],
) -> cython.double:
    """Replace a message by `incoming[place]`, mixed with a share `kept` of the old one; return the largest change."""
    state: cython.Py_ssize_t
    largest: cython.double = incoming[place, 0]
    new: cython.double
    change: cython.double = 0.0
    if clamped[variable] >= 0:
        return 0.0
    for state in range(1, incoming.shape[1]):
        largest = max(largest, incoming[place, state])
    for state in range(incoming.shape[1]):
        new = max(incoming[place, state] - largest, IMPOSSIBLE)
        new = kept * messages[entry, state] + (1.0 - kept) * new
        if kept > 0.0:
            change = max(change, fabs(exp(new) - exp(messages[entry, state])))
        beliefs[variable, state] += new - messages[entry, state]
        messages[entry, state] = new
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _update(
    factor: cython.longlong,
    kept: cython.double,
    factor_ptr: cython.const[cython.longlong][::1],
    variables: cython.const[cython.longlong][::1],
    is_mixture: cython.const[cython.schar][::1],
    weights: cython.const[cython.double][::1],
    log_strengths: cython.const[cython.double][::1],
    scores: cython.const[cython.double][:, ::1],
    free_scores: cython.const[cython.double][:, ::1],
    clamped: cython.longlong[::1],
    beliefs: cython.double[:, ::1],
    messages: cython.double[:, ::1],
    incoming: cython.double[:, ::1],
    shares: cython.double[::1],
) -> cython.double:
    """Recompute all messages of one factor; return the largest change."""
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    other: cython.Py_ssize_t
    state: cython.Py_ssize_t
    start: cython.Py_ssize_t = factor_ptr[factor]
    degree: cython.Py_ssize_t = factor_ptr[factor + 1] - start
    scratch: cython.Py_ssize_t = incoming.shape[0] - 1
    scored: cython.Py_ssize_t = incoming.shape[0] - 2
    change: cython.double = 0.0
    base: cython.double
    if not is_mixture[factor]:
        for place in range(2):
            _receive(variables[start + 1 - place], start + 1 - place, 0, clamped, beliefs, messages, incoming)
            _pass_potts(weights[factor], incoming, 0, 1)
            change = max(
                change,
                _send(variables[start + place], start + place, 1, kept, clamped, beliefs, messages, incoming),
            )
        return change
    _weigh_choices(
        factor, factor_ptr, variables, is_mixture, log_strengths, scores, free_scores, clamped, beliefs, messages,
        incoming, shares)  # fmt: skip
    if is_mixture[factor] == 2:
        degree -= 1
        for state in range(incoming.shape[1]):
            base = free_scores[factor, state]
            for place in range(degree):
                base = _log_add(base, log_strengths[start + place] + incoming[place, state])
            incoming[scratch, state] = base
        entry = start + degree
        change = _send(variables[entry], entry, scratch, kept, clamped, beliefs, messages, incoming)
    for place in range(degree):
        entry = start + place
        base = shares[degree]
        for other in range(degree):
            if other != place:
                base = _log_add(base, shares[other])
        for state in range(incoming.shape[1]):
            incoming[scratch, state] = _log_add(base, log_strengths[entry] + incoming[scored, state])
        change = max(change, _send(variables[entry], entry, scratch, kept, clamped, beliefs, messages, incoming))
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _weigh_choices(
    factor: cython.longlong,
    factor_ptr: cython.const[cython.longlong][::1],
    variables: cython.const[cython.longlong][::1],
    is_mixture: cython.const[cython.schar][::1],
    log_strengths: cython.const[cython.double][::1],
    scores: cython.const[cython.double][:, ::1],
    free_scores: cython.const[cython.double][:, ::1],
    clamped: cython.longlong[::1],
    beliefs: cython.double[:, ::1],
    messages: cython.double[:, ::1],
    incoming: cython.double[:, ::1],
    shares: cython.double[::1],
) -> cython.double:
    """Compute the log-probability of each choice of a mixture factor, the free draw last; return the log-normalisers.

    Writes `shares`, the log-probabilities, and `incoming`: the messages of the variables and, in the last row but one,
    the log-score of each label of the factor. Reads all other arrays.
    """
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    state: cython.Py_ssize_t
    start: cython.Py_ssize_t = factor_ptr[factor]
    n_sources: cython.Py_ssize_t = factor_ptr[factor + 1] - start
    scratch: cython.Py_ssize_t = incoming.shape[0] - 1
    scored: cython.Py_ssize_t = incoming.shape[0] - 2
    scale: cython.double = 0.0
    if is_mixture[factor] == 2:
        n_sources -= 1
        entry = start + n_sources
        scale += _receive(variables[entry], entry, scored, clamped, beliefs, messages, incoming)
    else:
        for state in range(incoming.shape[1]):
            incoming[scored, state] = scores[factor, state]
    for place in range(n_sources):
        entry = start + place
        scale += _receive(variables[entry], entry, place, clamped, beliefs, messages, incoming)
        for state in range(incoming.shape[1]):
            incoming[scratch, state] = incoming[place, state] + incoming[scored, state]
        shares[place] = log_strengths[entry] + _log_sum(incoming, scratch)
    for state in range(incoming.shape[1]):
        incoming[scratch, state] = free_scores[factor, state] + incoming[scored, state]
    shares[n_sources] = _log_sum(incoming, scratch)
    return scale


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _collect(
    factor: cython.longlong,
    share: cython.double,
    factor_ptr: cython.const[cython.longlong][::1],
    variables: cython.const[cython.longlong][::1],
    is_mixture: cython.const[cython.schar][::1],
    weights: cython.const[cython.double][::1],
    log_strengths: cython.const[cython.double][::1],
    scores: cython.const[cython.double][:, ::1],
    free_scores: cython.const[cython.double][:, ::1],
    clamped: cython.longlong[::1],
    beliefs: cython.double[:, ::1],
    messages: cython.double[:, ::1],
    incoming: cython.double[:, ::1],
    shares: cython.double[::1],
    joint: cython.double[:, ::1],
    drawn: cython.double[:, ::1],
    choices: cython.double[::1],
) -> cython.double:
    """Log-partition term of one factor; with `share` > 0 also add that share of its posteriors to the outputs."""
    place: cython.Py_ssize_t
    state: cython.Py_ssize_t
    start: cython.Py_ssize_t = factor_ptr[factor]
    degree: cython.Py_ssize_t = factor_ptr[factor + 1] - start
    scored: cython.Py_ssize_t = incoming.shape[0] - 2
    scale: cython.double
    norm: cython.double
    value: cython.double
    if not is_mixture[factor]:
        scale = _receive(variables[start], start, 0, clamped, beliefs, messages, incoming)
        scale += _receive(variables[start + 1], start + 1, 1, clamped, beliefs, messages, incoming)
        _pass_potts(weights[factor], incoming, 1, 2)
        for state in range(incoming.shape[1]):
            incoming[2, state] += incoming[0, state]
        norm = _log_sum(incoming, 2)
        if share > 0.0:
            for state in range(incoming.shape[1]):
                value = incoming[0, state] + incoming[1, state] + weights[factor] - norm
                joint[factor, state] += share * exp(value)
        return scale + norm
    scale = _weigh_choices(
        factor, factor_ptr, variables, is_mixture, log_strengths, scores, free_scores, clamped, beliefs, messages,
        incoming, shares)  # fmt: skip
    degree -= is_mixture[factor] == 2
    norm = shares[degree]
    for place in range(degree):
        norm = _log_add(norm, shares[place])
    if share > 0.0:
        for state in range(incoming.shape[1]):
            value = share * exp(free_scores[factor, state] + incoming[scored, state] - norm)
            drawn[factor, state] += value
            joint[factor, state] += value
        for place in range(degree):
            choices[start + place] += share * exp(shares[place] - norm)
            for state in range(incoming.shape[1]):
                value = log_strengths[start + place] + incoming[place, state] + incoming[scored, state] - norm
                joint[factor, state] += share * exp(value)
    return scale + norm


def propagate(
    factor_ptr: cython.const[cython.longlong][::1],
    variables: cython.const[cython.longlong][::1],
    is_mixture: cython.const[cython.schar][::1],
    weights: cython.const[cython.double][::1],
    log_strengths: cython.const[cython.double][::1],
    scores: cython.const[cython.double][:, ::1],
    free_scores: cython.const[cython.double][:, ::1],
    unary: cython.const[cython.double][:, ::1],
    part_ptr: cython.const[cython.longlong][::1],
    order: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    cutset_ptr: cython.const[cython.longlong][::1],
    cutset: cython.const[cython.longlong][::1],
    is_loopy: cython.const[cython.schar][::1],
    max_sweeps: cython.longlong,
    tol: cython.double,
    damping: cython.double,
    clamped: cython.longlong[::1],
    beliefs: cython.double[:, ::1],
    messages: cython.double[:, ::1],
    incoming: cython.double[:, ::1],
    shares: cython.double[::1],
    marginals: cython.double[:, ::1],
    joint: cython.double[:, ::1],
    drawn: cython.double[:, ::1],
    choices: cython.double[::1],
) -> cython.double:
    """Marginals of all variables and factors; returns the log partition function.

    Reads the arrays up to `is_loopy`. Factor f joins the variables `variables[factor_ptr[f]:factor_ptr[f + 1]]`. Part p
    has the factors `order[part_ptr[p]:part_ptr[p + 1]]`, parents before children, and the variables
    `members[member_ptr[p]:member_ptr[p + 1]]`. Its cutset variables are clamped to every combination of states, one
    after the other. Without them the part is a forest, on which one sweep in each direction is exact. A loopy part has
    no cutset and is swept until no message changes by more than `tol`.

    Writes all other arrays. `clamped` holds -1 before and after. `marginals[v, j]` is P(v = j). For a Potts factor,
    `joint[f, j]` is the probability that both variables are j. For a mixture factor, `joint[f, j]` is the probability
    of its own label j, `drawn[f, j]` the part of this probability from free draws, and `choices[e]` the probability
    that entry e was copied.
    """
    part: cython.Py_ssize_t
    place: cython.Py_ssize_t
    state: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    factor: cython.Py_ssize_t
    variable: cython.Py_ssize_t
    _turn: cython.longlong
    n_states: cython.Py_ssize_t = unary.shape[1]
    finished: cython.bint
    change: cython.double
    kept: cython.double
    norm: cython.double
    best: cython.double
    mass: cython.double
    share: cython.double
    shrink: cython.double
    total: cython.double = 0.0
    with cython.nogil:
        for part in range(part_ptr.shape[0] - 1):
            best = 2.0 * IMPOSSIBLE * (1 + member_ptr[part + 1] - member_ptr[part])
            mass = 0.0
            for place in range(cutset_ptr[part], cutset_ptr[part + 1]):
                clamped[cutset[place]] = 0
            finished = False
            while not finished:
                for place in range(member_ptr[part], member_ptr[part + 1]):
                    for state in range(n_states):
                        beliefs[members[place], state] = unary[members[place], state]
                for place in range(part_ptr[part], part_ptr[part + 1]):
                    for entry in range(factor_ptr[order[place]], factor_ptr[order[place] + 1]):
                        for state in range(n_states):
                            messages[entry, state] = 0.0
                kept = damping if is_loopy[part] else 0.0
                for _turn in range(max_sweeps):
                    change = 0.0
                    for place in range(part_ptr[part + 1] - 1, part_ptr[part] - 1, -1):
                        change = max(change, _update(
                            order[place], kept, factor_ptr, variables, is_mixture, weights, log_strengths, scores,
                            free_scores, clamped, beliefs, messages, incoming, shares))  # fmt: skip
                    for place in range(part_ptr[part], part_ptr[part + 1]):
                        change = max(change, _update(
                            order[place], kept, factor_ptr, variables, is_mixture, weights, log_strengths, scores,
                            free_scores, clamped, beliefs, messages, incoming, shares))  # fmt: skip
                    if change <= tol:
                        break
                # The Bethe formula, exact on forests. Messages are normalised, so every log-normaliser is added again.
                norm = 0.0
                for place in range(part_ptr[part], part_ptr[part + 1]):
                    factor = order[place]
                    norm += _collect(
                        factor, 0.0, factor_ptr, variables, is_mixture, weights, log_strengths, scores, free_scores,
                        clamped, beliefs, messages, incoming, shares, joint, drawn, choices)  # fmt: skip
                    for entry in range(factor_ptr[factor], factor_ptr[factor + 1]):
                        if clamped[variables[entry]] < 0:
                            norm -= _log_sum(beliefs, variables[entry])
                for place in range(member_ptr[part], member_ptr[part + 1]):
                    variable = members[place]
                    if clamped[variable] < 0:
                        norm += _log_sum(beliefs, variable)
                    else:
                        norm += unary[variable, clamped[variable]]
                # Running weighted means over the combinations of the cutset's states.
                if norm > best:
                    shrink = exp(best - norm)
                    mass *= shrink
                    best = norm
                    for place in range(member_ptr[part], member_ptr[part + 1]):
                        for state in range(n_states):
                            marginals[members[place], state] *= shrink
                    for place in range(part_ptr[part], part_ptr[part + 1]):
                        factor = order[place]
                        for state in range(n_states):
                            joint[factor, state] *= shrink
                            drawn[factor, state] *= shrink
                        for entry in range(factor_ptr[factor], factor_ptr[factor + 1]):
                            choices[entry] *= shrink
                share = exp(norm - best)
                mass += share
                for place in range(part_ptr[part], part_ptr[part + 1]):
                    _collect(
                        order[place], share, factor_ptr, variables, is_mixture, weights, log_strengths, scores,
                        free_scores, clamped, beliefs, messages, incoming, shares, joint, drawn, choices)  # fmt: skip
                for place in range(member_ptr[part], member_ptr[part + 1]):
                    variable = members[place]
                    if clamped[variable] < 0:
                        norm = _log_sum(beliefs, variable)
                        for state in range(n_states):
                            marginals[variable, state] += share * exp(beliefs[variable, state] - norm)
                    else:
                        marginals[variable, clamped[variable]] += share
                finished = True
                for place in range(cutset_ptr[part], cutset_ptr[part + 1]):
                    variable = cutset[place]
                    if clamped[variable] + 1 < n_states:
                        clamped[variable] += 1
                        finished = False
                        break
                    clamped[variable] = 0
            for place in range(cutset_ptr[part], cutset_ptr[part + 1]):
                clamped[cutset[place]] = -1
            total += best + log(mass)
            for place in range(member_ptr[part], member_ptr[part + 1]):
                for state in range(n_states):
                    marginals[members[place], state] /= mass
            for place in range(part_ptr[part], part_ptr[part + 1]):
                factor = order[place]
                for state in range(n_states):
                    joint[factor, state] /= mass
                    drawn[factor, state] /= mass
                for entry in range(factor_ptr[factor], factor_ptr[factor + 1]):
                    choices[entry] /= mass
    return total
