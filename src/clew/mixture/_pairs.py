"""Pairs as a prior over the components of a mixture. Certain pairs join or separate rows, others change probabilities.

Rows that certainly belong together form a *unit* with one hidden label. Pairs between units are Potts factors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.constraints import Closure
from clew.mixture._em import Expectation, FloatArray, IntArray, log_sum, normalise_rows
from clew.solvers.inference import IMPOSSIBLE, Factors, Inference

# Largest number of ascent steps in the M-step of the weights, and of halvings of a step that does not help.
_WEIGHT_STEPS, _HALVINGS = 3, 6
# Lower bound on a log-weight. With approximate normalisers, a weight that tends to 0 would fall without end.
_LEAST_LOG_WEIGHT = np.log(1e-12)
# The M-step of the weights ends when the relative difference between expected and prior counts is below this.
_SETTLED = 1e-10


class MixtureUnits:
    """Components of rows that share one hidden label. Most rows are free: they are in no unit.

    Example of five rows, where 1 and 3 are must-linked and 4 is cannot-linked to 1: `rows` = [1, 3, 4],
    `unit_of` = [0, 0, 1], `free` = [0, 2].

    Attributes
    ----------
    units : ndarray
        The component of the closure that each unit represents.
    rows, unit_of : ndarray
        The rows that are in units, and the unit of each of them.
    sizes : ndarray
        Number of rows in each unit.
    fixed : ndarray
        Position of the known class of each unit, -1 if it has none.
    free : ndarray
        All other rows.
    """

    def __init__(self, closed: Closure, clusters: IntArray, also: IntArray) -> None:
        """Build the units. `also` lists components to include although they are single rows without a cannot-link."""
        chosen = (closed.sizes > 1) | closed.tied | (closed.labels >= 0)
        chosen[also] = True
        self.units = np.flatnonzero(chosen)
        self.place = np.full(closed.n_components, -1)
        self.place[self.units] = np.arange(len(self.units))
        of_row = self.place[closed.component_of]
        self.rows, self.free = np.flatnonzero(of_row >= 0), np.flatnonzero(of_row < 0)
        self.unit_of = of_row[self.rows]
        self.sizes = closed.sizes[self.units]
        places = np.argsort(clusters, kind="stable")
        known = closed.labels[self.units]
        self.fixed = np.where(known >= 0, places[np.searchsorted(clusters, known, sorter=places) % len(places)], -1)
        self._sum = sparse.csr_array(
            (np.ones(len(self.rows)), (self.unit_of, np.arange(len(self.rows)))),
            shape=(len(self.units), len(self.rows)),
        )

    def log_densities(self, of_rows: FloatArray) -> FloatArray:
        """Sum of the log-densities of each unit's rows; -inf for all classes but the known one, if there is one."""
        return self.clamp(np.asarray(self._sum @ of_rows[self.rows]))

    def clamp(self, scores: FloatArray) -> FloatArray:
        """Set the scores of units with a known class to -inf, except for that class."""
        known = np.flatnonzero(self.fixed >= 0)
        kept = scores[known, self.fixed[known]]
        scores[known] = IMPOSSIBLE
        scores[known, self.fixed[known]] = kept
        return scores


class PairKnowledge:
    r"""Pairs as factors of the prior :math:`P(Z) \propto \prod_u \pi_{z_u}^{s_u} \prod_{uv} e^{w_{uv} [z_u = z_v]}`.

    The normaliser depends on the weights :math:`\pi`, so their M-step is a separate concave problem.

    Parameters
    ----------
    units : MixtureUnits
    pairs, pair_weights : ndarray
        Pairs of units and their weights w, which are -inf if the units must differ.
    draws : ndarray
        How often the label of each unit is drawn: once, or once for each row.
    """

    def __init__(
        self,
        units: MixtureUnits,
        pairs: IntArray,
        pair_weights: FloatArray,
        draws: npt.NDArray[np.int64],
        n_states: int,
        exact_limit: int,
    ) -> None:
        self.units, self._draws = units, draws
        self._graph = Inference(len(units.units), n_states, Factors.potts(pairs, pair_weights), exact_limit)
        self.n_exact, self.n_loopy = self._graph.n_exact, self._graph.n_loopy
        self._known = np.bincount(units.fixed[units.fixed >= 0], weights=draws[units.fixed >= 0], minlength=n_states)
        self._independent = len(units.free) + float(self._known.sum())
        self._in_closed_form = len(pairs) == 0 and bool((draws[units.fixed < 0] == 1).all())
        self.n_draws = len(units.free) + int(draws.sum())
        self._pairs = pairs
        self._pair_posteriors = np.zeros(len(pairs))
        self._posteriors = np.zeros((0, n_states))

    def expect(self, log_densities: FloatArray, log_weights: FloatArray) -> Expectation:
        """The E-step: in closed form for free rows, and by inference on the graph of units for all other rows."""
        units = self.units
        if not len(units.rows):
            total = normalise_rows(log_densities, log_weights)
            return Expectation(log_densities, total, log_densities.sum(axis=0), log_densities)
        scores = units.log_densities(log_densities) + self._draws[:, None] * log_weights
        found = self._graph.run(scores)
        total = found.log_partition - self._log_prior(log_weights)[0]
        log_densities[units.rows] = 0
        total += normalise_rows(log_densities, log_weights)
        total -= len(units.rows) * log_sum(log_weights)
        log_densities[units.rows] = found.marginals[units.unit_of]
        counts = log_densities.sum(axis=0)
        counts += (self._draws - units.sizes) @ found.marginals
        self._posteriors, self._pair_posteriors = found.marginals, found.joint.sum(axis=1)
        return Expectation(log_densities, total, counts, log_densities)

    def _log_prior(self, log_weights: FloatArray) -> tuple[float, FloatArray]:
        """Log-normaliser of the prior, and the expected draws of each component under the prior."""
        if self._in_closed_form:
            norm = log_sum(log_weights)
            return norm * self.n_draws, np.exp(log_weights - norm) * self.n_draws
        units = self.units
        scores = self._draws[:, None] * log_weights
        scores[units.fixed >= 0] = 0  # a known class is observed, so its draw is counted with the free rows
        found = self._graph.run(units.clamp(scores))
        norm = log_sum(log_weights)
        drawn = np.where(units.fixed < 0, self._draws, 0) @ found.marginals
        return (
            found.log_partition + norm * self._independent,
            drawn + np.exp(log_weights - norm) * self._independent,
        )

    def log_weights(self, counts: FloatArray, before: FloatArray) -> FloatArray:
        """Maximise the expected log-prior, which is concave in the log-weights, by a few ascent steps."""
        counts = np.maximum(counts, np.finfo(np.float64).tiny)
        if self._in_closed_form:
            return np.asarray(np.log(counts / counts.sum()))
        now = before
        norm, drawn = self._log_prior(now)
        value = float(counts @ now) - norm
        for _ in range(_WEIGHT_STEPS):
            direction = np.log(counts / np.maximum(drawn, np.finfo(np.float64).tiny))
            if np.abs(direction).max() < _SETTLED:
                break
            step = 1.0
            for _ in range(_HALVINGS):
                tried = now + step * direction
                norm, its_drawn = self._log_prior(tried)
                if float(counts @ tried) - norm >= value:
                    now, drawn, value = tried, its_drawn, float(counts @ tried) - norm
                    break
                step /= 2
            else:
                break
        return np.asarray(np.maximum(now - log_sum(now), _LEAST_LOG_WEIGHT))

    def together(self, pairs: IntArray) -> FloatArray:
        """Posterior probability, after the last E-step, that the two components of each pair are together."""
        places = np.sort(self.units.place[pairs], axis=1)
        found = np.ones(len(pairs))
        apart = np.flatnonzero(places[:, 0] != places[:, 1])
        found[apart] = (self._posteriors[places[apart, 0]] * self._posteriors[places[apart, 1]]).sum(axis=1)
        n_units = len(self.units.units)
        keys, wanted = self._pairs @ [n_units, 1], places[apart] @ [n_units, 1]
        order = np.argsort(keys, kind="stable")
        at = np.searchsorted(keys, wanted, sorter=order) % max(len(keys), 1)
        if len(keys):
            stated = keys[order[at]] == wanted
            found[apart[stated]] = self._pair_posteriors[order[at[stated]]]
        return found
