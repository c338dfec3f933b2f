"""Clusters from what is known: a plan that can run anywhere, and the promise that certain knowledge holds.

Unless a method was chosen: the clusters of the strategy where it makes some (`Auto` does, `SuperInstances` where k is
unknown), else `COPKMeans`, or `PCKMeans` where some answers are less than certain. Rows that then break something
certain are put where it holds, so that every answer and every correction of confidence 1 does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from clew._registry import by_method_name
from clew.active._view import mean_row, squared_distances
from clew.constraints import Closure, Constraints
from clew.exceptions import InfeasibleConstraintsError, ParameterError
from clew.partitional import COPKMeans, PCKMeans

IntArray = npt.NDArray[np.int64]

# A fresh start must be better than where the clusters are by this share to move them.
_STAY = 0.01
# Clusters assumed while nobody said how many there are and fewer groups are known.
_LEAST_CLUSTERS = 2


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
        What people should know, such as a number of clusters that was raised.
    """

    version: int
    rows: IntArray
    labels: IntArray
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FitPlan:
    """All a fit needs, taken from a session at one moment; `run` touches neither the session nor its database.

    `corrected` says that people have made these clusters theirs by correcting them.
    """

    version: int
    X: Any
    rows: IntArray
    constraints: Constraints
    current: IntArray
    n_clusters: int | None
    n_groups: int
    method: str | None
    metric: str
    random_state: int
    own_labels: Callable[[IntArray | None], npt.NDArray[Any]] | None = None
    corrected: bool = False

    def run(self) -> FitResult:
        """Cluster."""
        labels, notes = self._labels()
        return FitResult(self.version, self.rows, labels, tuple(notes))

    def _labels(self) -> tuple[IntArray, list[str]]:
        if self.method is not None:
            return self._by_method(self.method)
        certain = self.constraints.at_least(1.0)
        if self.own_labels is not None:
            labels = self._grown(np.asarray(self.own_labels(self._kept()), dtype=np.int64))
            if labels is not None:
                return self._counted(upheld(self.X, labels, certain.closure()), certain)
        k = self._k()
        if len(certain.must_link) + len(certain.cannot_link) < len(self.constraints.must_link) + len(
            self.constraints.cannot_link
        ):
            model = PCKMeans(k, metric=self.metric, random_state=self.random_state)
            labels = self._best(model, self.constraints)
            if not any(map(len, certain.violations(labels))):
                return labels, []
        return self._hard(k, certain)

    def _counted(self, labels: IntArray, certain: Constraints) -> tuple[IntArray, list[str]]:
        """Labels with a note where what is known needs more clusters than were asked for; no more where it does not."""
        found, asked = len(np.unique(labels)), self.n_clusters
        if asked is None or found <= asked:
            return labels, []
        possible = certain.check(found - 1)
        if possible.status == "feasible":  # doubts about answers that hold all the same have opened a cluster
            return self._by_method("graph-propagation")
        return labels, [f"{found} clusters instead of {asked}: {_fact(possible.message)}"]

    def _grown(self, labels: IntArray) -> IntArray | None:
        """The strategy's own clusters; where they show less than is known, the current ones.

        New rows or corrections can change how the strategy splits the data; what was found before must not be lost.
        """
        least = max(self.n_groups, _LEAST_CLUSTERS)
        if len(np.unique(labels)) >= least:
            return labels
        return self._extended() if len(np.unique(self.current[self.current >= 0])) >= least else None

    def _kept(self) -> IntArray | None:
        """The current clusters where people have made them theirs, and want as many as there are."""
        n_clusters = len(np.unique(self.current[self.current >= 0]))
        return self._extended() if self.corrected and n_clusters == (self.n_clusters or n_clusters) > 0 else None

    def _extended(self) -> IntArray:
        """The current clusters; rows that are in none go to the nearest."""
        clusters = np.unique(self.current[self.current >= 0])
        centers = np.array([mean_row(self.X, np.flatnonzero(self.current == one)) for one in clusters])
        nearest = clusters[squared_distances(self.X, None, centers).argmin(axis=1)]
        return np.where(self.current >= 0, self.current, nearest)

    def _k(self) -> int:
        k = max(self.n_groups, _LEAST_CLUSTERS) if self.n_clusters is None else self.n_clusters
        return min(max(k, 1), self.X.shape[0])

    def _hard(self, k: int, certain: Constraints) -> tuple[IntArray, list[str]]:
        """`COPKMeans` with as many clusters as were asked for, or more where what is known needs more."""
        asked, reason = k, ""
        while True:
            try:
                labels = self._best(COPKMeans(k, metric=self.metric, random_state=self.random_state), certain)
            except InfeasibleConstraintsError as error:
                reason = str(error)
                k += 1
                continue
            notes = [f"{k} clusters instead of {asked}: {_fact(reason)}"] if k > asked else []
            return labels, notes

    def _by_method(self, name: str) -> tuple[IntArray, list[str]]:
        model = by_method_name()[name]()
        parameters = model.get_params(deep=False)
        wanted: dict[str, Any] = {"n_clusters": self._k(), "metric": self.metric, "random_state": self.random_state}
        wanted["min_confidence"] = 1.0  # less than certain is never hard in a session
        model.set_params(**{key: value for key, value in wanted.items() if key in parameters})
        notes = []
        while True:
            try:
                model.fit(self.X, constraints=self.constraints)
            except InfeasibleConstraintsError as error:
                more = int(model.get_params()["n_clusters"]) + 1
                notes = [f"{more} clusters instead of {self._k()}: {_fact(str(error))}"]
                model.set_params(n_clusters=more)
                continue
            return np.asarray(model.labels_, dtype=np.int64), notes

    def _best(self, model: Any, constraints: Constraints) -> IntArray:
        """A fit from the current clusters, or a fresh one if it is clearly better and nobody has corrected them."""
        centers = self._warm_centers(model.n_clusters)
        if centers is None:
            return np.asarray(model.fit(self.X, constraints=constraints).labels_, dtype=np.int64)
        warm = clone(model).set_params(init=centers, n_init=1).fit(self.X, constraints=constraints)
        if not self.corrected:
            fresh = model.fit(self.X, constraints=constraints)
            if fresh.objective_ * (1 + _STAY) < warm.objective_:
                return np.asarray(fresh.labels_, dtype=np.int64)
        return np.asarray(warm.labels_, dtype=np.int64)

    def _warm_centers(self, k: int) -> npt.NDArray[np.float64] | None:
        """The centres of the current clusters where there are exactly k of them."""
        clusters = np.unique(self.current[self.current >= 0])
        if len(clusters) != k:
            return None
        return np.array([mean_row(self.X, np.flatnonzero(self.current == one)) for one in clusters])


def check_method(method: str | None) -> None:
    """Refuse a name that is no method."""
    known = by_method_name()
    if method is not None and method not in known:
        raise ParameterError(f"method={method!r}: expected None or one of {', '.join(known)}.")


def _fact(sentence: str) -> str:
    """What an error says about the rows, without the advice."""
    return sentence.removesuffix(" Raise n_clusters.").partition(", but n_clusters=")[0].removesuffix(".") + "."


def upheld(X: Any, labels: IntArray, closed: Closure) -> IntArray:
    """Labels changed as little as needed for everything certain to hold; clusters are opened where they are needed.

    Each component goes where most of its rows are. Of two that must differ and are in one cluster, the larger stays.
    The other goes where most of its other rows are and nobody it must differ from is; else it becomes a cluster of its
    own if it is more than a row, and goes to the nearest cluster that is open to it if it is one.
    """
    wishes = _wishes(labels, closed)
    chosen = np.array([wish[0] for wish in wishes], dtype=np.int64)
    clashing = _clashing(chosen, closed)
    if not len(clashing):
        return chosen[closed.component_of]
    centers = {int(one): mean_row(X, np.flatnonzero(labels == one)) for one in np.unique(labels)}
    next_label, waiting = int(labels.max()) + 1, set(clashing.tolist())
    for component in clashing[np.lexsort((clashing, -closed.sizes[clashing]))].tolist():
        waiting.discard(component)
        neighbours = closed.graph.neighbours(component).tolist()
        taken = {int(chosen[other]) for other in neighbours if other not in waiting}
        wished = next((label for label in wishes[component] if label not in taken), None)
        open_ones = [label for label in centers if label not in taken]
        if wished is not None:
            chosen[component] = wished
        elif closed.sizes[component] > 1 or not open_ones:
            chosen[component], next_label = next_label, next_label + 1
        else:
            row = closed.first_row[[component]]
            far = squared_distances(X, row, np.array([centers[label] for label in open_ones]))[0]
            chosen[component] = open_ones[int(far.argmin())]
    return chosen[closed.component_of]


def _wishes(labels: IntArray, closed: Closure) -> list[list[int]]:
    """For each component the labels of its rows, the commonest first, the lowest of several equally common ones."""
    values, place = np.unique(labels, return_inverse=True)
    keys, counts = np.unique(closed.component_of * len(values) + place, return_counts=True)
    components, found = keys // len(values), values[keys % len(values)]
    order = np.lexsort((found, -counts, components))
    starts = np.flatnonzero(np.diff(components[order])) + 1
    return [some.tolist() for some in np.split(found[order], starts)]


def _clashing(chosen: IntArray, closed: Closure) -> IntArray:
    """Components that share a label with one they must differ from."""
    graph = closed.graph
    ends = np.repeat(np.arange(closed.n_components), np.diff(graph.edge_ptr))
    same = chosen[ends] == chosen[graph.edges]
    found = [ends[same]]
    member_of = np.repeat(np.arange(len(graph.member_ptr) - 1), np.diff(graph.member_ptr))
    keys = member_of * (int(chosen.max(initial=0)) + 1) + chosen[graph.members]
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    found.append(graph.members[counts[place] > 1])
    return np.unique(np.concatenate(found))
