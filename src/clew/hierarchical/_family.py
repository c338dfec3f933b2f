"""Code shared by the agglomerative methods: parameters, levels of the tree, dead ends."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from clew._base import Capabilities, ConstrainedClusterer, is_quiet, warn_caller
from clew._distances import VECTOR_METRICS, condensed_distances
from clew._persistence import Learned, State
from clew._validation import NONE, Allowed, integer, number, words
from clew.constraints import Closure, Constraints, Feasibility
from clew.exceptions import FileError, InfeasibleConstraintsError, MoreClustersWarning, ParameterError, WorkLimitError
from clew.hierarchical._agglomeration import (
    FloatArray,
    IntArray,
    Level,
    Merges,
    clusters_after,
    linkage_matrix,
    merged_by_coloring,
)
from clew.partitional._seeding import cluster_labels, labels_of_clusters

COMMON_PARAMETERS: dict[str, Allowed] = {
    "n_clusters": integer(1) | NONE,
    "metric": words(*VECTOR_METRICS, "precomputed"),
    "distance_threshold": number(0) | NONE,
    "on_dead_end": words("stop", "color"),
    "min_confidence": number(0, 1),
    "work_limit": integer(0),
}


class AgglomerativeFamily(ConstrainedClusterer):
    """Base class of the agglomerative methods. Subclasses implement `_level` and a constructor."""

    _parameters: ClassVar[dict[str, Allowed]] = COMMON_PARAMETERS
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **ConstrainedClusterer._learned_attributes,
        "linkage_": Learned("real", ((None, 4),), low=0),
        "k_max_": Learned("integer", low=1),
        "k_min_": Learned("integer", low=1),
    }
    n_clusters: int | None  # type: ignore[assignment]
    metric: str
    distance_threshold: float | None
    on_dead_end: str
    work_limit: int
    linkage_: FloatArray

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of this instance, which may differ from those of the class because of its parameters."""
        is_matrix = self.metric == "precomputed"
        return replace(super().capabilities, pairwise="dissimilarity" if is_matrix else None, sparse=not is_matrix)

    @classmethod
    def _from_state(cls, path: str | os.PathLike[str], state: State) -> Self:
        model = super()._from_state(path, state)
        if state.learned and not _is_tree(model.linkage_, len(model.labels_), model.k_min_, model.k_max_):
            raise FileError(f"{path} cannot be used: linkage_ is not a tree of its rows. Save the estimator again.")
        return model

    def cut(self, n_clusters: int | None = None, *, distance_threshold: float | None = None) -> IntArray:
        """Return the clusters of another level of the tree, numbered from 0 in the order of their first rows.

        Parameters
        ----------
        n_clusters : int, optional
            From `k_min_` to `k_max_`.
        distance_threshold : float, optional
            Merges below this height are made. Give exactly one of the two parameters.
        """
        _require_one_at_most(self, n_clusters, distance_threshold)
        if n_clusters is None and distance_threshold is None:
            raise ParameterError(f"{type(self).__name__}.cut: give n_clusters or distance_threshold.")
        if n_clusters is not None and not self.k_min_ <= n_clusters <= self.k_max_:
            raise ParameterError(
                f"n_clusters={n_clusters!r} in cut: the tree has levels of {self.k_min_} to {self.k_max_} clusters."
            )
        return clusters_after(self.linkage_, len(self.linkage_) + 1 - self._n_at(n_clusters, distance_threshold))

    def _level(self, X: Any, closed: Closure) -> Level:
        """Build the level of the components with the distances between them."""
        raise NotImplementedError  # pragma: no cover

    def _merges(self, X: Any, closed: Closure) -> Merges:
        """All merges that the constraints allow."""
        return self._level(X, closed).merged()

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        _require_one_at_most(self, self.n_clusters, self.distance_threshold)
        closed = constraints.closure()
        if self.n_clusters is not None:
            cluster_labels(closed, self.n_clusters)  # refuses more classes than clusters
        merges = self._merges(X, closed)
        if self.n_clusters is not None and closed.n_components - len(merges.pairs) > self.n_clusters:
            merges = self._after_dead_end(X, constraints, closed, merges, self.n_clusters)
        self.k_max_ = closed.n_components
        self.k_min_ = self.k_max_ - len(merges.pairs)
        self.linkage_ = linkage_matrix(closed, merges)
        n_found = self._n_at(self.n_clusters, self.distance_threshold)
        return self._named(closed, clusters_after(self.linkage_, X.shape[0] - n_found), n_found)

    def _n_at(self, n_clusters: int | None, distance_threshold: float | None) -> int:
        """Number of clusters at a level of the tree."""
        if n_clusters is not None:
            return min(max(int(n_clusters), self.k_min_), self.k_max_)
        if distance_threshold is None:
            return self.k_min_
        n_rows = len(self.linkage_) + 1
        heights = self.linkage_[n_rows - self.k_max_ : n_rows - self.k_min_, 2]
        above = heights >= distance_threshold
        return self.k_max_ - (int(above.argmax()) if above.any() else len(heights))

    def _named(self, closed: Closure, clusters: IntArray, n_clusters: int) -> IntArray:
        """Labels of the rows; known classes keep their numbers."""
        names = cluster_labels(closed, n_clusters)
        labels = labels_of_clusters(closed, clusters[closed.first_row], n_clusters)[clusters]
        self.cluster_labels_ = names
        self.cluster_sizes_ = np.array([np.count_nonzero(labels == name) for name in names])
        return labels

    def _after_dead_end(
        self, X: Any, constraints: Constraints, closed: Closure, merges: Merges, n_clusters: int
    ) -> Merges:
        """Find other merges that lead to `n_clusters` if `on_dead_end` asks for them; otherwise return `merges`.

        Raises if no partition with so few clusters satisfies the constraints.
        """
        found = constraints.check(n_clusters, work_limit=self.work_limit)
        if found.rows is not None:
            raise InfeasibleConstraintsError(found.message, found.rows, found.fact)
        if self.on_dead_end == "stop" or not self._knows_all_distances(X):
            return merges
        if found.labels is None:
            raise WorkLimitError(found.message)
        colors = found.labels[closed.first_row]
        return merged_by_coloring(lambda: self._level(X, closed), merges, closed, n_clusters, colors, self.work_limit)

    def _knows_all_distances(self, X: Any) -> bool:
        """Whether the distance between any two clusters is known, so that only cannot-links can block a merge."""
        return True

    def _explain_number(self, X: Any, constraints: Constraints, labels: npt.NDArray[Any]) -> None:
        """Warn if there are more clusters than requested, or if nothing was merged, and say why."""
        super()._explain_number(X, constraints, labels)
        n_found = len(self.cluster_labels_)
        if is_quiet():
            return
        if self.n_clusters is not None and n_found > self.n_clusters:
            found = constraints.check(self.n_clusters, work_limit=self.work_limit)
            reason = self._why_more(X, constraints, found)
            warn_caller(
                f"{type(self).__name__} stopped at {n_found} clusters, above n_clusters={self.n_clusters}: {reason}",
                MoreClustersWarning,
            )
        elif self.distance_threshold is not None and n_found == self.k_max_ > self.k_min_:
            lowest = self.linkage_[len(labels) - self.k_max_, 2]
            warn_caller(
                f"{type(self).__name__} merged nothing: the closest two clusters are {lowest:.4g} apart, and "
                f"distance_threshold={self.distance_threshold:g}. Raise distance_threshold.",
                MoreClustersWarning,
            )

    def _why_more(self, X: Any, constraints: Constraints, found: Feasibility) -> str:
        """Explain why no two of the clusters can be merged."""
        one, other = _separated_rows(constraints.closure())
        names = f"{constraints.describe_row(one)} and {constraints.describe_row(other)}"
        advice = (
            f'{self.n_clusters} clusters are possible with other merges: set on_dead_end="color".'
            if found
            else f"It is not known whether {self.n_clusters} clusters are possible. Raise work_limit or n_clusters."
        )
        return f"cannot-links separate every two of them, such as the clusters of rows {names}. {advice}"


def _is_tree(tree: FloatArray, n_rows: int, k_min: int, k_max: int) -> bool:
    """Whether each merge joins two rows or earlier merges, each of them once."""
    nodes = tree[:, :2]
    return (
        len(tree) == n_rows - 1
        and k_min <= k_max <= n_rows
        and bool((nodes < n_rows + np.arange(len(tree))[:, None]).all())
        and len(np.unique(nodes)) == nodes.size
    )


def _separated_rows(closed: Closure) -> tuple[int, int]:
    """The first two cannot-linked rows, in row order."""
    for component in range(closed.n_components):
        others = closed.graph.neighbours(component)
        if len(others):
            return int(closed.first_row[component]), int(closed.first_row[others].min())
    raise AssertionError("nothing is separated")  # pragma: no cover


def _require_one_at_most(owner: Any, n_clusters: int | None, distance_threshold: float | None) -> None:
    if n_clusters is not None and distance_threshold is not None:
        raise ParameterError(
            f"n_clusters={n_clusters} and distance_threshold={distance_threshold:g} in {type(owner).__name__}: "
            "set only one of them, and the other to None."
        )


def component_level(X: Any, metric: str, linkage: str, closed: Closure) -> Level:
    """Build the level of the components, with the distances between them under a linkage."""
    return Level.of_components(condensed_distances(X, metric), linkage, closed)
