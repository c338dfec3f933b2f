"""EM for a mixture under hard constraints, by the sum over all assignments of components: slow and obvious."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.stats import multivariate_normal


def assignments(component_of, cannot_link, n_clusters, fixed):
    """Every assignment of components to clusters that separates the pairs and keeps the fixed components."""
    for states in product(range(n_clusters), repeat=max(component_of) + 1):
        apart = all(states[component_of[i]] != states[component_of[j]] for i, j in cannot_link)
        if apart and all(states[component] == state for component, state in fixed.items()):
            yield states


def draws_of(component_of, sampling):
    """How often the label of each component is drawn."""
    return [list(component_of).count(one) if sampling == "rows" else 1 for one in range(max(component_of) + 1)]


def log_normaliser(weights, component_of, cannot_link, fixed, sampling):
    """Logarithm of the prior probability of the constraints, given the known classes."""
    draws = draws_of(component_of, sampling)
    total = 0.0
    for states in assignments(component_of, cannot_link, len(weights), fixed):
        factors = [weights[z] ** draws[u] for u, z in enumerate(states) if u not in fixed]
        total += np.prod(factors)
    return np.log(total)


def expectation(X, weights, means, covariances, component_of, cannot_link, fixed, sampling):
    """Log-likelihood, and the posterior of each row's cluster."""
    n_clusters = len(weights)
    density = [multivariate_normal(means[j], covariances[j]).pdf(X).reshape(-1) for j in range(n_clusters)]
    draws = draws_of(component_of, sampling)
    total, shares = 0.0, np.zeros((len(X), n_clusters))
    for states in assignments(component_of, cannot_link, n_clusters, fixed):
        value = np.prod([weights[z] ** draws[u] for u, z in enumerate(states)])
        for i in range(len(X)):
            value *= density[states[component_of[i]]][i]
        total += value
        for i in range(len(X)):
            shares[i, states[component_of[i]]] += value
    norm = log_normaliser(weights, component_of, cannot_link, fixed, sampling)
    return np.log(total) - norm, shares / total
