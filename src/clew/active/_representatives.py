"""Representatives of many rows: a sample of rows that stands for the rows around it in the computations of `Auto`.

Beyond `MOST_ROWS` rows, `Auto` works on a random sample. Each sampled row is the medoid of a micro-cluster: the rows
that are nearer to it than to any other sampled row. The graph, the kernels and the base partitions are built on the
sampled rows, and questions are about them, as in the exact form. A row that is named in answers or prior constraints
and is not a medoid becomes a point of its own, so that no constraint is lost and answers about two rows of one
micro-cluster may differ. Labels of all other rows come from their neighbours among the medoids, or, where these
disagree, from the model that is fitted to the sample. With very many groups, they come from the nearest cluster mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

from clew._neighbours import nearest_neighbours
from clew.active._answers import Answer, Pair, Which
from clew.active._knowledge import Knowledge
from clew.active._pending import PendingQuestions
from clew.active._view import Cache, View, prior_order
from clew.graph._kernels import KernelSum, RowFeatures, standard, unit_rows

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
# Predicts labels of rows from their features.
LabelsAt = Callable[[RowFeatures], IntArray]

# With more rows, `Auto` works on representatives. Below, the exact form takes a few seconds for the first question.
MOST_ROWS = 50_000
# Number of micro-clusters, and of micro-clusters per cluster if that is more. With 20,000, the graph of neighbours is
# finer, and answers spread less far: on three drawn tables, clusters were worse with 50 and 100 answers.
_N_MICRO_CLUSTERS, _PER_CLUSTER = 10_000, 10
# Nearest medoids are searched among all of them if that takes at most so many comparisons, else among so many
# candidates around one of so many cells.
_MOST_COMPARED, _N_CANDIDATES, _N_CELLS = 1_000_000_000, 1_024, 256
# Number of nearest medoids that decide on the label of a row.
_N_VOTERS = 10
# Number of rows at a time, and of probabilities or distances at a time.
_BLOCK, _MOST_PROBABILITIES = 20_000, 4_000_000


def n_micro_clusters(n_rows: int, n_clusters: int | None) -> int | None:
    """Number of micro-clusters, which is larger if many clusters are expected; None if there are few rows."""
    if n_rows <= MOST_ROWS:
        return None
    return min(max(_N_MICRO_CLUSTERS, _PER_CLUSTER * (n_clusters or 1)), MOST_ROWS)


@dataclass(frozen=True)
class MicroClusters:
    """Micro-clusters of rows: the rows that are nearer to a medoid than to any other medoid.

    Example of five rows in two micro-clusters: ``medoids=[1, 3]``, ``of_row=[0, 0, 1, 1, 1]``.
    """

    columns: FloatArray  # all rows, standardised
    medoids: IntArray  # sampled rows, in row order
    of_row: IntArray  # number of each row's micro-cluster

    @classmethod
    def of(cls, X: Any, n_micro_clusters: int, seed: int) -> MicroClusters:
        """Draw the medoids from all rows with equal probability."""
        n_rows = X.shape[0]
        medoids = np.sort(np.random.default_rng(seed).choice(n_rows, min(n_micro_clusters, n_rows), replace=False))
        return cls.around(standard(X), medoids)

    @classmethod
    def around(cls, columns: FloatArray, medoids: IntArray) -> MicroClusters:
        """Assign rows to medoids, which are given in row order."""
        of_row = _nearest(columns, columns[medoids], 1)[0][:, 0].astype(np.int64)
        of_row[medoids] = np.arange(len(medoids))  # a medoid may be equal to others
        return cls(columns, medoids, of_row)

    @cached_property
    def centers(self) -> FloatArray:
        """The medoids' columns."""
        return self.columns[self.medoids]

    @cached_property
    def sizes(self) -> IntArray:
        """Number of rows in each micro-cluster."""
        return np.bincount(self.of_row, minlength=len(self.medoids))

    @cached_property
    def voters(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """The medoids nearest to each row, nearest first, and their weights, which sum to 1.

        The weights are those of an edge between a row and a medoid in the graph of neighbours.
        """
        n_voters = min(_N_VOTERS, len(self.medoids))
        scale = np.zeros(len(self.medoids))
        if len(scale) > 1:
            scale = nearest_neighbours(self.centers, min(n_voters, len(scale) - 1))[0][:, -1]
        scale += np.finfo(np.float64).tiny ** 0.25
        voters, squares = _nearest(self.columns, self.centers, n_voters)
        own = np.sqrt(squares[:, -1:]) + np.float32(np.finfo(np.float64).tiny ** 0.125)
        # A row far from all medoids has weights near 0.
        weights = np.exp(-squares / (own * scale[voters].astype(np.float32))) + np.finfo(np.float32).tiny
        weights /= weights.sum(axis=1, keepdims=True)
        return voters, weights

    def walk(self, rows: Any, n_points: int) -> sparse.csr_array:
        """The random walk from some rows to the medoids around them, which are the first ones of `n_points` points."""
        voters, weights = (one[rows] for one in self.voters)
        ends = np.arange(len(voters) + 1) * voters.shape[1]
        shape = (len(voters), n_points)
        return sparse.csr_array((weights.ravel().astype(np.float64), voters.ravel(), ends), shape=shape)

    def labels_of_rows(self, labels: IntArray) -> tuple[IntArray, IntArray]:
        """Labels of all rows by the nearest medoid, and the rows whose medoids around them disagree."""
        voters = self.voters[0]
        disputed = np.zeros(len(voters), dtype=bool)
        for begin in range(0, len(voters), _BLOCK):
            block = labels[voters[begin : begin + _BLOCK]]
            disputed[begin : begin + _BLOCK] = (block != block[:, :1]).any(axis=1)
        return labels[voters[:, 0]], np.flatnonzero(disputed)

    def partitions(self, kernels: KernelSum) -> npt.NDArray[np.int32]:
        """The base partitions of all rows."""
        found = np.empty((len(kernels.clusterings), len(self.columns)), dtype=np.int32)
        for begin in range(0, len(self.columns), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            columns, walk, cells = self.columns[block], self.walk(block, kernels.n_rows), self.of_row[block]
            for place, one in enumerate(kernels.clusterings):
                found[place, block] = one.labels_at(columns, walk, one.labels[cells])
        found[:, self.medoids] = kernels.partitions
        return found

    def features(self, rows: IntArray, kernels: KernelSum, partitions: npt.NDArray[np.int32]) -> RowFeatures:
        """Features of some rows. Diffusion features are averages over the random walk."""
        walk = self.walk(rows, kernels.n_rows)
        diffusion = unit_rows(walk @ kernels.diffusion)
        return RowFeatures(self.columns[rows], diffusion, walk, partitions[:, rows].astype(np.int64))

    def kernels_of_rows(self, kernels: KernelSum) -> KernelSum:
        """Extend the kernels between micro-clusters to all rows."""
        return _inherited(kernels, self.columns, self.of_row, self.medoids)


def _nearest(
    columns: FloatArray, points: FloatArray, n_nearest: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """The nearest points of each row and their squared distances, nearest first.

    With very many rows and points, only candidates around the row are compared, which are nearly always the nearest.
    """
    n_rows, n_points = len(columns), len(points)
    if n_rows * n_points <= _MOST_COMPARED or n_points <= _N_CANDIDATES:
        candidates, groups = np.arange(n_points)[None], [np.arange(n_rows)]
    else:
        cells = points[np.sort(np.random.default_rng(0).choice(n_points, _N_CELLS, replace=False))]
        candidates = NearestNeighbors(n_neighbors=_N_CANDIDATES).fit(points).kneighbors(cells, return_distance=False)
        cell_of = pairwise_distances_argmin(columns, cells)
        ends = np.cumsum(np.bincount(cell_of, minlength=_N_CELLS))[:-1]
        groups = np.split(np.argsort(cell_of, kind="stable"), ends)
    found = np.empty((n_rows, n_nearest), dtype=np.int32)
    squares = np.empty((n_rows, n_nearest), dtype=np.float32)
    step = max(_MOST_PROBABILITIES // candidates.shape[1], 1)
    for some, rows in zip(np.sort(candidates, axis=1), groups, strict=True):
        for begin in range(0, len(rows), step):
            block = rows[begin : begin + step]
            apart = _squared_distances(columns[block], points[some])
            if n_nearest == 1:
                nearest = apart.argmin(axis=1)[:, None]
            else:
                nearest = np.sort(np.argpartition(apart, n_nearest - 1, axis=1)[:, :n_nearest], axis=1)
            near = np.take_along_axis(apart, nearest, axis=1)
            order = np.argsort(near, axis=1, kind="stable")
            found[block] = some[np.take_along_axis(nearest, order, axis=1)]
            squares[block] = np.take_along_axis(near, order, axis=1)
    return found, squares


def _squared_distances(rows: FloatArray, points: FloatArray) -> FloatArray:
    products = np.einsum("ij,ij->i", points, points) - 2 * (rows @ points.T)
    return np.maximum(products + np.einsum("ij,ij->i", rows, rows)[:, None], 0.0)


@dataclass(frozen=True)
class Points:
    """The points that `Auto` computes with: all rows, or representatives.

    The first points are the micro-clusters. Each further point is a row that answers or prior constraints name and that
    is not the medoid of its micro-cluster. Rows that prior constraints join with certainty share a point within a
    micro-cluster. For example, with the micro-clusters of `MicroClusters` and an answer about row 4: ``extra=[4]``,
    ``extra_points=[2]`` and ``row_of=[1, 3, 4]``.

    Attributes
    ----------
    micro : MicroClusters
    extra : ndarray of ints
        Named rows that are not medoids, in row order.
    extra_points : ndarray of ints
        The point of each of them.
    row_of : ndarray of ints
        The row that represents each point in questions.
    """

    micro: MicroClusters
    extra: IntArray
    extra_points: IntArray
    row_of: IntArray

    @classmethod
    def of(cls, micro: MicroClusters, extra: IntArray, component_of: IntArray) -> Points:
        """Points for micro-clusters and named rows; `component_of` joins rows by certain prior constraints."""
        n = int(component_of.max()) + 1
        keys = np.concatenate([
            np.arange(len(micro.medoids)) * n + component_of[micro.medoids],
            micro.of_row[extra] * n + component_of[extra],
        ])  # fmt: skip
        _, first, point_of = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)  # micro-clusters come first, then further points in row order
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        rows = np.concatenate([micro.medoids, extra])
        return cls(micro, extra, number[point_of[len(micro.medoids) :]], rows[first[order]])

    def __call__(self, rows: Any) -> IntArray:
        """The point of each row."""
        rows = np.asarray(rows, dtype=np.int64)
        found = self.micro.of_row[rows]
        if len(self.extra):
            places = np.minimum(np.searchsorted(self.extra, rows), len(self.extra) - 1)
            found = np.where(self.extra[places] == rows, self.extra_points[places], found)
        return found

    @cached_property
    def cells(self) -> IntArray:
        """The micro-cluster of each point."""
        return self.micro.of_row[self.row_of]

    @cached_property
    def columns(self) -> FloatArray:
        """Columns of the medoids, then of the other points."""
        return self.micro.columns[self.row_of]

    def kernels(self, base: KernelSum) -> KernelSum:
        """Extend the kernels between micro-clusters to all points. A named row inherits from its micro-cluster.

        The random walk from a named row goes where the walk from its micro-cluster goes.
        """
        if len(self.row_of) == base.n_rows:
            return base
        return _inherited(base, self.columns, self.cells, np.arange(base.n_rows))

    def labels(self, of_points: IntArray, named: IntArray, predict: Callable[[IntArray], IntArray]) -> IntArray:
        """Labels of all rows from the labels of points.

        A named row has the label of its point, and so has a medoid. Any other row has the label of the medoids around
        it, or is predicted if these disagree. If named rows of its micro-cluster have other labels than the medoid, a
        row that is nearer to one of them than to the medoid gets its label instead.
        """
        micro, n_micro = self.micro, len(self.micro.medoids)
        labels, disputed = micro.labels_of_rows(of_points[:n_micro])
        labels[disputed] = predict(disputed)
        differing = n_micro + np.flatnonzero(of_points[n_micro:] != of_points[self.cells[n_micro:]])
        if len(differing):
            rows, nearest = self._nearest(differing)
            is_named = nearest >= n_micro
            labels[rows[is_named]] = of_points[nearest[is_named]]
        kept = np.concatenate([micro.medoids, named])
        labels[kept] = of_points[self(kept)]
        return labels

    def _nearest(self, points: IntArray) -> tuple[IntArray, IntArray]:
        """Rows in the micro-clusters of some further points, and the nearest of them or of the centre for each row."""
        micro, cells = self.micro, np.unique(self.cells[points])
        rows = np.flatnonzero(np.isin(micro.of_row, cells))
        rows = rows[np.argsort(micro.of_row[rows], kind="stable")]
        sizes = micro.sizes[np.concatenate([cells, self.cells[points]])]
        begins = np.searchsorted(micro.of_row[rows], np.concatenate([cells, self.cells[points]]))
        # One candidate for each row and its centre, then one for each row and a further point of its micro-cluster.
        place = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes - begins, sizes)
        point = np.repeat(np.concatenate([cells, points]), sizes)
        away = micro.columns[rows[place]] - self.columns[point]
        order = np.lexsort((np.einsum("ij,ij->i", away, away), place))
        return rows, point[order[np.searchsorted(place[order], np.arange(len(rows)))]]


def _inherited(base: KernelSum, columns: FloatArray, cells: IntArray, places: IntArray) -> KernelSum:
    """Kernels between points, each of which inherits from a point of `base`, which has a place among the points."""
    n_points, steps = len(columns), base.walk[cells].tocoo()
    walk = sparse.csr_array((steps.data, (steps.row, places[steps.col])), shape=(n_points, n_points))
    return replace(
        base, columns=columns, diffusion=base.diffusion[cells], walk=walk, partitions=base.partitions[:, cells]
    )


class PointView:
    """A view whose rows are points. It follows a view of all rows: `follow` takes the answers that came since.

    Attributes
    ----------
    points : Points
    view : View
        The view of the points, with the same answers and pending questions.
    """

    def __init__(self, of: View, points: Points) -> None:
        self.points, self._named, self._told = points, points.extra, of.told
        prior = of.prior[points.row_of]
        self.view = View(
            points.columns,
            of.n_clusters,
            Knowledge(prior.closure()),
            prior,
            points(prior_order(of.prior.closure())),
            Cache(),
            deduces=of.deduces,
            error_rate=of.error_rate,
        )

    def labels(
        self, of_points: IntArray, labels_at: LabelsAt, kernels: KernelSum, partitions: npt.NDArray[np.int32]
    ) -> IntArray:
        """Labels of all rows from the labels of points, the kernels between points and the partitions of all rows."""
        step = max(min(_BLOCK, _MOST_PROBABILITIES // (int(partitions.max()) + 1)), 1)

        def predict(rows: IntArray) -> IntArray:
            blocks = [rows[begin : begin + step] for begin in range(0, len(rows), step)]
            found = [labels_at(self.points.micro.features(one, kernels, partitions)) for one in blocks]
            return np.concatenate([rows[:0], *found])

        return self.points.labels(of_points, self._named, predict)

    def nearest_labels(self, of_points: IntArray) -> IntArray:
        """Labels of all rows from the labels of points, without a model: those of the nearest mean of a cluster.

        With very many small groups, the medoids around a row say less than the means of clusters.
        """
        micro = self.points.micro
        columns, n_clusters = self.points.columns, int(of_points.max()) + 1
        sizes = np.bincount(of_points, minlength=n_clusters)
        member = sparse.csr_array((1 / sizes[of_points], (of_points, np.arange(len(of_points)))))
        present = np.flatnonzero(sizes)
        labels = present[_nearest(micro.columns, (member @ columns)[present], 1)[0][:, 0]]
        kept = np.concatenate([micro.medoids, self._named])
        labels[kept] = of_points[self.points(kept)]
        return labels

    def follow(self, of: View, named: IntArray) -> None:
        """Take the latest answers, the rows that they name, and the pending questions."""
        self._named, self._told = named, of.told
        for said, volunteered, votes, disputed in of.taken[self.view.n_answers :]:
            mapped = None if votes is None else [(name, self._said(pairs), sure) for name, pairs, sure in votes]
            self.view.take(self._said(said), volunteered=volunteered, votes=mapped, disputed=disputed)
        self.view.constraints = lambda: of.constraints()[self.points.row_of]
        self.view.waiting = PendingQuestions()
        for question in of.waiting:
            for pair in [question] if isinstance(question, Pair) else _pairs(question):
                if (one := self._point_pair(pair)) is not None:
                    self.view.waiting.add(one)

    def in_rows(self, question: Pair) -> Pair:
        """The question about points as a question about rows."""
        first, second = self.points.row_of[[question.first, question.second]].tolist()
        return replace(question, first=first, second=second)

    def values_of_rows(self, of_points: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
        """Values of answered pairs of rows, from the values of pairs of points. Two rows of one point have none."""
        found = {}
        for pair, _ in (one for said in self._told for one in said):
            points = self._point_pair(pair)
            if points is not None and points.key in of_points:
                found[pair.key] = of_points[points.key]
        return found

    def _point_pair(self, pair: Pair) -> Pair | None:
        """The pair of points of a pair of rows; None if both rows have one point."""
        first, second = self.points([pair.first, pair.second]).tolist()
        return None if first == second else replace(pair, first=first, second=second, rows=None)

    def _said(self, said: list[tuple[Pair, Answer]]) -> list[tuple[Pair, Answer]]:
        mapped = [(self._point_pair(pair), answer) for pair, answer in said]
        return [(pair, answer) for pair, answer in mapped if pair is not None]


def _pairs(question: Which) -> list[Pair]:
    return [Pair(question.row, one) for one in question.candidates]


def point_view(view: View, micro: MicroClusters) -> PointView:
    """The view of the points of a view. It depends on the view alone, however the answers came."""
    named = _named_rows(view)
    extra = named[micro.medoids[micro.of_row[named]] != named]
    key = f"points {len(micro.medoids)}"
    last: PointView | None = view.latest.get(key)
    if last is None or last.view.n_clusters != view.n_clusters or not np.array_equal(last.points.extra, extra):
        component_of = view.once("certain components", lambda: view.prior.at_least(1.0).closure().component_of)
        view.latest[key] = last = PointView(view, Points.of(micro, extra, component_of))
    last.follow(view, named)
    return last


def _named_rows(view: View) -> IntArray:
    """Rows that are named in answers or prior constraints, in row order."""
    is_named = view.named | view.questioned
    is_named[view.once("prior rows", lambda: view.prior.compact()[1])] = True
    return np.flatnonzero(is_named)
