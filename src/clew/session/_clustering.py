"""Fit clusters to the answers and corrections of a session, by a plan that can run in any process.

If no method was chosen, the clusters come from the strategy: `Auto` always makes clusters, and `SuperInstances` does if
the number of clusters is unknown. With other strategies `COPKMeans` makes them, or `PCKMeans` if some answers are less
than certain. Rows that then violate a certain constraint are moved, so that every answer and every correction of
confidence 1 holds. Clusters that people have corrected are kept, and change only where answers say so
(`clew.session._keeping`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from clew._base import own_probability, quietly
from clew._registry import by_method_name, find_method
from clew._validation import n_distinct_rows
from clew._words import counted
from clew.active._distances import mean_row, squared_distances
from clew.constraints import Constraints
from clew.datasets import Table
from clew.exceptions import InfeasibleConstraintsError
from clew.partitional import COPKMeans, PCKMeans
from clew.session._keeping import Kept, revised, upheld

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# A fresh fit must be better than a fit from the current clusters by this share to replace it.
_STAY = 0.01
# Reasons for fewer or more clusters than requested.
_EMPTY = "the answers and the neighbours of rows leave other clusters empty."
_CORRECTED = "people have corrected these clusters, and answers since ask for no other number."
# Number of clusters if it was not chosen and fewer groups are known.
_LEAST_CLUSTERS = 2


class FitProgress(NamedTuple):
    """Progress of a fit that trains a network."""

    stage: str  # "pre-training", then "clustering"
    n_iter: int
    max_iter: int
    seconds_left: float | None  # an estimate for the rest of the stage, None before its first round


# Gets the progress after each round. If it returns False, the stage ends.
Report = Callable[[FitProgress], bool]


class Made(NamedTuple):
    """Labels of the rows of a plan, messages for people, and the probability of each row's cluster, if there is one."""

    labels: IntArray
    notes: list[str]
    probability: FloatArray | None = None


@dataclass(frozen=True)
class FitResult:
    """Labels of the present rows, before they get their stable ids.

    Attributes
    ----------
    version : int
        The event up to which the log was used.
    rows : ndarray of shape (n_present,)
        The ordinals of the rows.
    labels : ndarray of shape (n_present,)
    notes : tuple of str
        Messages for people, such as that the number of clusters is not the one they chose.
    kept : bool
        Whether these are the clusters that people have corrected, changed where answers say so.
    probability : ndarray of shape (n_present,) or None
        Probability of each row's cluster, NaN for rows that a correction has put into another cluster. None if the
        method has no probabilities.
    """

    version: int
    rows: IntArray
    labels: IntArray
    notes: tuple[str, ...] = ()
    kept: bool = False
    probability: FloatArray | None = None


class PlacedRows(NamedTuple):
    """The present rows of a session at one moment."""

    version: int
    X: Any
    random_state: int
    clusters: IntArray  # -1 for rows without a cluster


@dataclass(frozen=True)
class FitPlan:
    """All inputs of a fit, copied from a session at one moment. `run` uses neither the session nor its database.

    `constraints` come from answers and corrections. `binding` is the part that holds with every method: corrections,
    facts and sources.
    `certain` are the constraints that hold even if answers are wrong, and None while answers are facts.
    `kept` are the clusters that people have corrected. `settled` says that no answer or correction came since the
    clusters were made, and `notes` are the messages of the fit that made them. `probability` belongs to `current`.
    """

    version: int
    X: Any
    records: Table | None
    rows: IntArray
    constraints: Constraints
    binding: Constraints
    current: IntArray
    n_clusters: int | None
    n_groups: int
    method: str | None
    metric: str
    random_state: int
    own_labels: Callable[[], npt.NDArray[Any]] | None = None
    kept: Kept | None = None
    settled: bool = False
    notes: tuple[str, ...] = ()
    probability: FloatArray | None = None
    certain: Constraints | None = None

    @quietly()
    def run(self, report: Report | None = None) -> FitResult:
        """Cluster. Methods that train a network report their progress."""
        kept = self.kept is not None
        if self.settled:
            return FitResult(self.version, self.rows, self.current, self.notes, kept, self.probability)
        found = self._revised(self.kept) if self.kept is not None else self._made(report)
        return FitResult(self.version, self.rows, found.labels, tuple(found.notes), kept, found.probability)

    def _revised(self, kept: Kept) -> Made:
        """The clusters that people have corrected, changed by later answers."""
        base = _extended(self.X, kept.base)
        room = np.inf if self.n_clusters is None else self.n_clusters - len(np.unique(base))
        labels = revised(self.X, replace(kept, base=base), room)
        return Made(labels, self._explained(labels, _CORRECTED))

    def _made(self, report: Report | None) -> Made:
        """Clusters from all answers and corrections. Corrections, facts and sources hold with every method."""
        if self.method is None:
            return self._by_default()
        found = self._by_method(self.method, report)
        labels = upheld(self.X, found.labels, self.binding.closure())
        is_same_number = len(np.unique(labels)) == len(np.unique(found.labels))
        notes = found.notes if is_same_number else self._explained(labels, _EMPTY)
        if found.probability is None:
            return Made(labels, notes)
        return Made(labels, notes, np.where(labels == found.labels, found.probability, np.nan))

    def _by_default(self) -> Made:
        certain = self.constraints.at_least(1.0)
        if self.own_labels is not None:
            own = np.asarray(self.own_labels(), dtype=np.int64)
            if self.certain is not None:  # the strategy decides which answers it believes
                return self._counted(upheld(self.X, own, self.certain.closure()), self.certain)
            labels = self._grown(own)
            if labels is not None:
                return self._counted(upheld(self.X, labels, certain.closure()), certain)
        k = self._k()
        if len(certain.must_link) + len(certain.cannot_link) < len(self.constraints.must_link) + len(
            self.constraints.cannot_link
        ):
            model = PCKMeans(k, metric=self.metric, random_state=self.random_state)
            labels = self._best(model, self.constraints)
            if not any(map(len, certain.violations(labels))):
                return Made(labels, self._explained(labels, _EMPTY))
        return self._hard(k, certain)

    def _counted(self, labels: IntArray, certain: Constraints) -> Made:
        """Labels, with a note if the number of clusters is not the chosen one.

        If there are more clusters than were chosen and than the certain constraints need, cluster again.
        """
        found, asked = len(np.unique(labels)), self.n_clusters
        if asked is not None and found > asked and certain.check(found - 1).status == "feasible":
            return self._by_method("graph-propagation")  # an answer that looked wrong, but holds, opened a cluster
        return Made(labels, self._explained(labels, _EMPTY))

    def _explained(self, labels: IntArray, reason: str) -> list[str]:
        """A note with the number of clusters found and the reason, if it is not the chosen number."""
        found, asked = len(np.unique(labels[labels >= 0])), self.n_clusters
        if asked is None or found == asked:
            return []
        if found > asked:
            needed = self.constraints.at_least(1.0).check(found - 1)
            reason = reason if needed.status == "feasible" else needed.fact
        elif (n_rows := n_distinct_rows(self.X, asked, directions=self.metric == "cosine")) < asked:
            reason = f"the data has {counted(n_rows, 'distinct row')}."
        return [f"{counted(found, 'cluster')} instead of {asked}: {reason}"]

    def _grown(self, labels: IntArray) -> IntArray | None:
        """The strategy's own clusters, or the current ones if the strategy has fewer clusters than known groups.

        New rows can change how the strategy splits the data, and clusters found before must not be lost.
        """
        least = max(self.n_groups, _LEAST_CLUSTERS)
        if len(np.unique(labels)) >= least:
            return labels
        return _extended(self.X, self.current) if len(np.unique(self.current[self.current >= 0])) >= least else None

    def _k(self) -> int:
        k = max(self.n_groups, _LEAST_CLUSTERS) if self.n_clusters is None else self.n_clusters
        return min(max(k, 1), self.X.shape[0])

    def _hard(self, k: int, certain: Constraints) -> Made:
        """`COPKMeans` with the chosen number of clusters, or with more if the constraints need more."""
        asked, reason = k, ""
        while True:
            try:
                labels = self._best(COPKMeans(k, metric=self.metric, random_state=self.random_state), certain)
            except InfeasibleConstraintsError as error:
                reason = error.fact
                k += 1
                continue
            if k > asked:
                return Made(labels, [f"{k} clusters instead of {asked}: {reason}"])
            return Made(labels, self._explained(labels, _EMPTY))

    def _by_method(self, name: str, report: Report | None = None) -> Made:
        model = by_method_name("clusterer")[find_method(name, "clusterer")]()
        parameters = model.get_params(deep=False)
        wanted: dict[str, Any] = {"n_clusters": self._k(), "metric": self.metric, "random_state": self.random_state}
        wanted["min_confidence"] = 1.0  # in a session, only certain constraints are hard
        if report is not None and model.capabilities.embeds:
            wanted["callback"] = lambda now: report(FitProgress(now.stage, now.n_iter, now.max_iter, now.seconds_left))
            report(FitProgress("pre-training", 0, parameters["pretrain_epochs"], None))
        wanted = {
            key: value for key, value in wanted.items() if key in parameters and model._parameters[key].accepts(value)
        }
        # With the cosine metric, rows have length one, so that Euclidean methods use the cosine, too.
        model.set_params(**wanted)
        rows = self.records if model.capabilities.tables and self.records is not None else self.X
        notes = []
        while True:
            try:
                model.fit(rows, constraints=self.constraints)
            except InfeasibleConstraintsError as error:
                more = int(model.get_params()["n_clusters"]) + 1
                notes = [f"{more} clusters instead of {self._k()}: {error.fact}"]
                model.set_params(n_clusters=more)
                continue
            labels = np.asarray(model.labels_, dtype=np.int64)
            own = _EMPTY if "n_clusters" in parameters else f"{name} finds the number of clusters itself."
            return Made(labels, notes or self._explained(labels, own), own_probability(model))

    def _best(self, model: Any, constraints: Constraints) -> IntArray:
        """A fit from the current clusters, or a fresh fit if that is clearly better."""
        centers = self._warm_centers(model.n_clusters)
        if centers is None:
            return np.asarray(model.fit(self.X, constraints=constraints).labels_, dtype=np.int64)
        warm = clone(model).set_params(init=centers, n_init=1).fit(self.X, constraints=constraints)
        fresh = model.fit(self.X, constraints=constraints)
        best = fresh if fresh.objective_ * (1 + _STAY) < warm.objective_ else warm
        return np.asarray(best.labels_, dtype=np.int64)

    def _warm_centers(self, k: int) -> npt.NDArray[np.float64] | None:
        """The centres of the current clusters, if there are exactly k clusters."""
        clusters = np.unique(self.current[self.current >= 0])
        if len(clusters) != k:
            return None
        return np.array([mean_row(self.X, np.flatnonzero(self.current == one)) for one in clusters])


def _extended(X: Any, labels: IntArray) -> IntArray:
    """Assign rows without a cluster to the nearest cluster."""
    lost = np.flatnonzero(labels < 0)
    if not len(lost):
        return labels
    clusters = np.unique(labels[labels >= 0])
    centers = np.array([mean_row(X, np.flatnonzero(labels == one)) for one in clusters])
    found = labels.copy()
    found[lost] = clusters[squared_distances(X, lost, centers).argmin(axis=1)]
    return found
