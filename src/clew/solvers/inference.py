"""Marginals of discrete variables in a factor graph: exact on small parts, by belief propagation on others.

Each connected part of the factor graph is solved separately. On a part without loops, belief propagation is exact. A
small part with loops becomes a forest by a *loop cutset*: variables that are clamped to every combination of their
states in turn (`pearl1988`). On other parts belief propagation runs until the messages converge, which is an
approximation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from clew.kernels.propagate import propagate
from clew.solvers.coloring import compress

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Logarithm of an impossible event; as in the kernel, it is finite.
IMPOSSIBLE = -1e10
# Largest number of message updates on one part, over all combinations of a cutset's states, for exact inference.
EXACT_LIMIT = 100_000
# Loopy propagation: largest number of sweeps, change of a message at convergence, and share of the old message.
_MOST_SWEEPS, _SETTLED, _DAMPING = 100, 1e-6, 0.3


class Factors(NamedTuple):
    """Factors over variables that have the same number of states.

    Factor f joins the variables `variables[ptr[f]:ptr[f + 1]]`. A Potts factor (`is_mixture` 0) joins two and
    multiplies by ``exp(weights[f])`` if they are equal. A mixture factor has its own label, which copies variable e
    with the probability ``exp(log_strengths[e])`` and is drawn freely otherwise. With `is_mixture` 2, this label is the
    last of its variables.

    Example: variables 0, 1 and 2; 0 and 1 differ; one row copies 1 with probability 0.7 and 2 with 0.2::

        ptr = [0, 2, 4]   variables = [0, 1, 1, 2]   is_mixture = [0, 1]
        weights = [-inf, 0]   log_strengths = log([1, 1, 0.7, 0.2])
    """

    ptr: IntArray
    variables: IntArray
    is_mixture: npt.NDArray[np.int8]
    weights: FloatArray
    log_strengths: FloatArray

    @classmethod
    def potts(cls, pairs: IntArray, weights: FloatArray) -> Factors:
        """One factor for each pair of variables."""
        return cls(
            np.arange(0, 2 * len(pairs) + 1, 2),
            np.ascontiguousarray(pairs.ravel()),
            np.zeros(len(pairs), dtype=np.int8),
            np.ascontiguousarray(weights, dtype=np.float64),
            np.zeros(2 * len(pairs)),
        )

    @classmethod
    def mixtures(
        cls, ptr: IntArray, variables: IntArray, strengths: FloatArray, child: npt.NDArray[np.bool_] | None = None
    ) -> Factors:
        """One factor for each row of a sparse matrix of strengths. If `child` is set, the last entry is the label."""
        kinds = np.ones(len(ptr) - 1, dtype=np.int8)
        if child is not None:
            kinds[child] = 2
        return cls(ptr, variables, kinds, np.zeros(len(ptr) - 1), np.log(strengths))


class Posterior(NamedTuple):
    """Result of `Inference.run`; the kernel `propagate` explains the arrays."""

    log_partition: float
    marginals: FloatArray
    joint: FloatArray
    drawn: FloatArray
    choices: FloatArray


class Inference:
    """A factor graph, prepared once for many runs with different potentials.

    Attributes
    ----------
    n_exact, n_loopy : int
        Number of connected parts with a factor whose marginals are exact, and approximate.
    """

    def __init__(self, n_variables: int, n_states: int, factors: Factors, exact_limit: int = EXACT_LIMIT) -> None:
        self.factors, self.n_states = factors, n_states
        n_factors = len(factors.ptr) - 1
        degrees = np.diff(factors.ptr)
        factor_of = np.repeat(np.arange(n_factors), degrees)
        nodes = n_variables + n_factors
        ties = sparse.csr_array(
            (np.ones(len(factor_of), dtype=np.int8), (factors.variables, n_variables + factor_of)), shape=(nodes, nodes)
        )
        n_parts, part_of = connected_components(ties, directed=False)
        sizes = np.bincount(part_of, minlength=n_parts)
        n_ties = np.bincount(part_of[n_variables + factor_of], minlength=n_parts)
        looped = np.flatnonzero(n_ties - sizes + 1 > 0)
        factors_of_part = compress(part_of[n_variables:], np.arange(n_factors), n_parts)
        cutsets: list[IntArray] = [np.empty(0, dtype=np.int64)] * n_parts
        self._is_loopy = np.zeros(n_parts, dtype=np.int8)
        for part in looped.tolist():
            its_factors = factors_of_part[1][factors_of_part[0][part] : factors_of_part[0][part + 1]]
            most = np.log(max(exact_limit, 1) / max(int(n_ties[part]), 1)) / np.log(max(n_states, 2))
            found = _loop_cutset(factors, its_factors, int(most))
            if found is None:
                self._is_loopy[part] = 1
            else:
                cutsets[part] = found
        self._cutset = np.concatenate([np.empty(0, dtype=np.int64), *cutsets])
        self._cutset_ptr = np.append(0, np.cumsum([len(one) for one in cutsets])).astype(np.int64)
        self._member_ptr, self._members = compress(part_of[:n_variables], np.arange(n_variables), n_parts)
        order = _parents_first(ties, n_variables, self._cutset)
        self._part_ptr, self._order = compress(part_of[n_variables:][order], order, n_parts)
        self.n_loopy = int(self._is_loopy.sum())
        self.n_exact = int(np.count_nonzero(np.diff(self._part_ptr))) - self.n_loopy
        self._most_degree = int(degrees.max(initial=2))

    def run(self, unary: FloatArray, scores: FloatArray | None = None, free: FloatArray | None = None) -> Posterior:
        """Marginals for log-potentials of the variables, shape (n_variables, n_states).

        Mixture factors also need the log-scores of their own labels (`scores`), unless these are variables, and the
        log-probability of a free draw of each label (`free`), both of shape (n_factors, n_states).
        """
        n_factors, n_states = len(self.factors.ptr) - 1, self.n_states
        unary = np.maximum(unary, IMPOSSIBLE)
        empty = np.zeros((n_factors, n_states))
        n_entries = len(self.factors.variables)
        found = Posterior(0.0, np.zeros(unary.shape), empty.copy(), empty.copy(), np.zeros(n_entries))
        log_partition = propagate(
            *self.factors,
            empty if scores is None else np.maximum(scores, IMPOSSIBLE),
            empty if free is None else np.maximum(free, IMPOSSIBLE),
            unary, self._part_ptr, self._order, self._member_ptr, self._members, self._cutset_ptr, self._cutset,
            self._is_loopy, _MOST_SWEEPS, _SETTLED, _DAMPING,
            np.full(len(unary), -1, dtype=np.int64), np.empty(unary.shape), np.empty((n_entries, n_states)),
            np.empty((self._most_degree + 2, n_states)), np.empty(self._most_degree + 1),
            *found[1:],
        )  # fmt: skip
        return found._replace(log_partition=log_partition)


def _loop_cutset(factors: Factors, its_factors: IntArray, most: int) -> IntArray | None:
    """At most `most` variables without which a part has no loops; None if the greedy search needs more.

    The variable with most factors on loops is chosen first; ties go to the lowest number.
    """
    scope = {int(f): set(factors.variables[factors.ptr[f] : factors.ptr[f + 1]].tolist()) for f in its_factors}
    at: dict[int, set[int]] = {}
    for factor, variables in scope.items():
        for variable in variables:
            at.setdefault(variable, set()).add(factor)
    chosen: list[int] = []
    bare = [variable for variable, its in at.items() if len(its) <= 1]
    thin = [factor for factor, its in scope.items() if len(its) <= 1]
    while True:
        while bare or thin:  # leaves are on no loop
            if bare:
                variable = bare.pop()
                for factor in at.pop(variable, ()):
                    scope[factor].discard(variable)
                    if len(scope[factor]) == 1:
                        thin.append(factor)
            else:
                factor = thin.pop()
                for variable in scope.pop(factor, ()):
                    at[variable].discard(factor)
                    if len(at[variable]) == 1:
                        bare.append(variable)
                    elif not at[variable]:
                        del at[variable]
        if not at:
            return np.array(chosen, dtype=np.int64)
        if len(chosen) >= most:
            return None
        best = min(at, key=lambda variable: (-len(at[variable]), variable))
        chosen.append(best)
        for factor in at.pop(best):
            scope[factor].discard(best)
            if len(scope[factor]) <= 1:
                thin.append(factor)


def _parents_first(ties: sparse.csr_array, n_variables: int, cutset: IntArray) -> IntArray:
    """All factors in breadth-first order, from one root of each tree that remains without the cutset."""
    n_nodes = ties.shape[0]
    kept = np.ones(n_nodes)
    kept[cutset] = 0
    forest = sparse.csr_array(sparse.diags_array(kept) @ ties)
    forest.eliminate_zeros()
    roots = np.unique(connected_components(forest, directed=False)[1], return_index=True)[1]
    start = sparse.csr_array((np.ones(len(roots)), (np.zeros(len(roots), dtype=np.int64), roots)), shape=(1, n_nodes))
    whole = sparse.block_array([[forest, None], [start, sparse.csr_array((1, 1))]], format="csr")
    order = breadth_first_order(whole, n_nodes, directed=False, return_predecessors=False)
    order = order[(order >= n_variables) & (order < n_nodes)] - n_variables
    return np.asarray(order, dtype=np.int64)
