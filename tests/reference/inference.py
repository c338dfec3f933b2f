"""Marginals by the sum over all joint states of all variables: slow and obvious."""

from __future__ import annotations

from itertools import product

import numpy as np


def posterior(n_states, factors, unary, scores, free):
    """Log partition function, marginals, joints, free draws and choices, as `Inference.run` gives them."""
    n_variables, n_factors = len(unary), len(factors.ptr) - 1
    total = 0.0
    marginals = np.zeros((n_variables, n_states))
    joint, drawn = np.zeros((n_factors, n_states)), np.zeros((n_factors, n_states))
    choices = np.zeros(len(factors.variables))
    for states in product(range(n_states), repeat=n_variables):
        weight = np.exp(sum(unary[v][state] for v, state in enumerate(states)))
        values, parts = [], []
        for f in range(n_factors):
            entries = range(factors.ptr[f], factors.ptr[f + 1])
            labels = [states[factors.variables[e]] for e in entries]
            if factors.is_mixture[f]:
                score = np.exp(scores[f])
                if factors.is_mixture[f] == 2:  # the last variable is the label itself
                    *labels, own = labels
                    score = np.arange(n_states) == own
                alone = np.exp(free[f]) * score
                copied = [np.exp(factors.log_strengths[e]) * score[z] for e, z in zip(entries, labels, strict=False)]
                parts.append((alone, copied, labels))
                values.append(alone.sum() + sum(copied))
            else:
                parts.append(labels[0] == labels[1])
                values.append(np.exp(factors.weights[f]) if parts[-1] else 1.0)
        weight *= np.prod(values)
        total += weight
        for v, state in enumerate(states):
            marginals[v, state] += weight
        for f in range(n_factors):
            if not factors.is_mixture[f]:
                joint[f, states[factors.variables[factors.ptr[f]]]] += weight * parts[f]
                continue
            alone, copied, labels = parts[f]
            if values[f] == 0:
                continue
            drawn[f] += weight * alone / values[f]
            joint[f] += weight * alone / values[f]
            for place, (value, label) in enumerate(zip(copied, labels, strict=True)):
                choices[factors.ptr[f] + place] += weight * value / values[f]
                joint[f, label] += weight * value / values[f]
    return np.log(total), marginals / total, joint / total, drawn / total, choices / total
