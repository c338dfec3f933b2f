"""Representatives of many rows: compact micro-clusters that stand for their rows in the computations of `Auto`.

Beyond `MOST_ROWS` rows, rows are grouped into micro-clusters. The graph, the kernels and the base partitions are built
on their centres, and questions are about their medoids, which are rows of the user. A row that is named in answers or
prior constraints and is not the medoid of its micro-cluster becomes a point of its own, so that no constraint is lost
and answers about two rows of one micro-cluster may differ. Labels of points then become labels of all rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from clew._base import quietly
from clew._neighbours import nearest_neighbours
from clew.active._answers import Answer, Pair, Which
from clew.active._knowledge import Knowledge
from clew.active._pending import PendingQuestions
from clew.active._view import Cache, View, prior_order
from clew.graph._kernels import KernelSum, standard
from clew.partitional import SeededKMeans

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# With more rows, `Auto` works on representatives. Below, the exact form takes a few seconds for the first question.
MOST_ROWS = 50_000
# Number of micro-clusters, and of micro-clusters per cluster if that is more. With 20,000, the graph of neighbours is
# finer, and answers spread less far: on three drawn tables, clusters were worse with 50 and 100 answers.
_N_MICRO_CLUSTERS, _PER_CLUSTER = 10_000, 10
# Rounds of k-means, and the number of rows per centre in the sample that the first level is fitted to.
_ROUNDS, _ROWS_PER_CENTER = 5, 50
# Share of the micro-clusters that is distributed by the number of rows. The rest goes where rows are far apart.
_BY_ROWS = 0.5
# Number of micro-clusters that vote on the label of a row: the nearest ones among its own and so many around it.
_N_VOTERS, _N_CANDIDATES = 8, 64
# Number of rows whose votes are counted at a time.
_BLOCK = 20_000


def n_micro_clusters(n_rows: int, n_clusters: int | None) -> int | None:
    """Number of micro-clusters, which is larger if many clusters are expected; None if there are few rows."""
    if n_rows <= MOST_ROWS:
        return None
    return min(max(_N_MICRO_CLUSTERS, _PER_CLUSTER * (n_clusters or 1)), MOST_ROWS)


@dataclass(frozen=True)
class MicroClusters:
    """Micro-clusters of rows. Micro-clusters are numbered in the order of their medoids.

    Example of five rows in two micro-clusters: ``of_row=[0, 0, 1, 1, 1]``, ``medoids=[1, 3]``.
    """

    columns: FloatArray  # all rows, standardised
    of_row: IntArray  # number of each row's micro-cluster
    medoids: IntArray  # the row nearest to the centre of each micro-cluster
    centers: FloatArray
    sizes: IntArray

    @classmethod
    def of(cls, X: Any, n_micro_clusters: int, seed: int) -> MicroClusters:
        """Group rows into about `n_micro_clusters` micro-clusters."""
        columns = standard(X)
        return cls.around(columns, _two_levels(columns, n_micro_clusters, seed))

    @classmethod
    def around(cls, columns: FloatArray, labels: IntArray) -> MicroClusters:
        """Find the medoids of given micro-clusters, and number the micro-clusters by them."""
        labels = np.unique(labels, return_inverse=True)[1]
        sizes = np.bincount(labels)
        centers = np.array([np.bincount(labels, column) / sizes for column in columns.T]).T
        away = columns - centers[labels]
        order = np.lexsort((np.einsum("ij,ij->i", away, away), labels))
        medoids = order[np.concatenate([[0], np.cumsum(sizes)[:-1]])]
        by_medoid = np.argsort(medoids)
        number = np.empty_like(by_medoid)
        number[by_medoid] = np.arange(len(medoids))
        return cls(columns, number[labels], medoids[by_medoid], centers[by_medoid], sizes[by_medoid])

    @cached_property
    def voters(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """The micro-clusters nearest to each row, and their weights, which fall with the distance."""
        n_micro, n_rows = len(self.centers), len(self.columns)
        n_voters, n_candidates = min(_N_VOTERS, n_micro), min(_N_CANDIDATES, n_micro)
        candidates = np.arange(n_micro)[:, None]
        if n_micro > 1:
            candidates = np.column_stack([candidates, nearest_neighbours(self.centers, n_candidates - 1)[1]])
        voters, weights = np.empty((n_rows, n_voters), dtype=np.int32), np.empty((n_rows, n_voters), dtype=np.float32)
        norms = np.einsum("ij,ij->i", self.centers, self.centers)
        by_cell = np.split(np.argsort(self.of_row, kind="stable"), np.cumsum(self.sizes)[:-1])
        for rows, some in zip(by_cell, candidates, strict=True):
            block, around = self.columns[rows], self.centers[some]
            distances = norms[some] - 2 * (block @ around.T) + np.einsum("ij,ij->i", block, block)[:, None]
            nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_voters]
            near = np.maximum(np.take_along_axis(distances, nearest, axis=1), 0.0)
            voters[rows] = some[nearest]
            weights[rows] = np.exp(-near / np.maximum(near[:, -1:], np.finfo(np.float64).tiny))
        return voters, weights

    def labels_of_rows(self, labels: IntArray) -> IntArray:
        """Labels of all rows by a vote of the micro-clusters around each row."""
        voters, weights = self.voters
        found = np.empty(len(self.columns), dtype=labels.dtype)
        for begin in range(0, len(found), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            of_voters = labels[voters[block]]
            doubtful = np.flatnonzero((of_voters != of_voters[:, :1]).any(axis=1))
            found[block] = of_voters[:, 0]
            said = of_voters[doubtful]
            votes = np.einsum("ij,ijk->ik", weights[block][doubtful], said[:, :, None] == said[:, None])
            found[begin + doubtful] = said[np.arange(len(said)), votes.argmax(axis=1)]
        return found

    def kernels_of_rows(self, kernels: KernelSum) -> KernelSum:
        """Extend the kernels between micro-clusters to all rows."""
        return _inherited(kernels, self.columns, self.of_row, self.medoids)


@quietly()
def _two_levels(columns: FloatArray, n_clusters: int, seed: int) -> IntArray:
    """K-means into about the square root of the number of clusters, then k-means within each of them."""
    n_rows, n_columns = columns.shape
    n_first = int(np.sqrt(n_clusters))
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.choice(n_rows, min(n_rows, _ROWS_PER_CENTER * n_first), replace=False))
    first = _k_means(columns[sample], n_first, seed).predict(columns)
    order = np.argsort(first, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(first, minlength=n_first))[:-1])
    spread = np.array([len(part) * columns[part].var(axis=0).sum() if len(part) else 0.0 for part in parts])
    # The number of centres that minimises the sum of squares grows with this power of it.
    spread **= n_columns / (n_columns + 2)
    share = _BY_ROWS * np.array([len(part) for part in parts]) / n_rows
    share += (1 - _BY_ROWS) * spread / max(spread.sum(), np.finfo(np.float64).tiny)
    labels, n_found = np.empty(n_rows, dtype=np.int64), 0
    for part, n_wanted in zip(parts, np.maximum((share * n_clusters).astype(np.int64), 1).tolist(), strict=True):
        if len(part):
            n = min(n_wanted, len(part))
            within = np.arange(n) if n == len(part) else _k_means(columns[part], n, seed).labels_
            labels[part] = n_found + within
            n_found += n
    return labels


def _k_means(rows: FloatArray, n_clusters: int, seed: int) -> SeededKMeans:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few rounds are enough
        return SeededKMeans(n_clusters, n_init=1, max_iter=_ROUNDS, random_state=seed).fit(rows)


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
        """Centres of the micro-clusters, then the other points."""
        n_micro = len(self.micro.medoids)
        return np.concatenate([self.micro.centers, self.micro.columns[self.row_of[n_micro:]]])

    def kernels(self, base: KernelSum) -> KernelSum:
        """Extend the kernels between micro-clusters to all points. A named row inherits from its micro-cluster.

        The random walk from a named row goes where the walk from its micro-cluster goes.
        """
        if len(self.row_of) == base.n_rows:
            return base
        return _inherited(base, self.columns, self.cells, np.arange(base.n_rows))

    def labels(self, of_points: IntArray, named: IntArray) -> IntArray:
        """Labels of all rows from the labels of points.

        A named row has the label of its point, and so has a row that is a micro-cluster by itself. For any other row,
        micro-clusters vote. If named rows of its micro-cluster have other labels than the micro-cluster, a row that is
        nearer to one of them than to the centre gets its label instead.
        """
        micro, n_micro = self.micro, len(self.micro.medoids)
        labels = micro.labels_of_rows(of_points[:n_micro])
        differing = n_micro + np.flatnonzero(of_points[n_micro:] != of_points[self.cells[n_micro:]])
        if len(differing):
            rows, nearest = self._nearest(differing)
            is_named = nearest >= n_micro
            labels[rows[is_named]] = of_points[nearest[is_named]]
        kept = np.concatenate([micro.medoids[micro.sizes == 1], named])
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

    def labels(self, of_points: IntArray) -> IntArray:
        """Labels of all rows from the labels of points."""
        return self.points.labels(of_points, self._named)

    def follow(self, of: View, named: IntArray) -> None:
        """Take the latest answers, the rows that they name, and the pending questions."""
        self._named, self._told = named, of.told
        for said, volunteered, votes in of.taken[self.view.n_answers :]:
            mapped = None if votes is None else [(name, self._said(pairs), sure) for name, pairs, sure in votes]
            self.view.take(self._said(said), volunteered=volunteered, votes=mapped)
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

    def doubts(self, of_points: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
        """Doubts about answered pairs of rows, from the doubts about pairs of points. Rows of one point have none."""
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
    last: PointView | None = view.latest.get("points")
    if last is None or last.view.n_clusters != view.n_clusters or not np.array_equal(last.points.extra, extra):
        component_of = view.once("certain components", lambda: view.prior.at_least(1.0).closure().component_of)
        view.latest["points"] = last = PointView(view, Points.of(micro, extra, component_of))
    last.follow(view, named)
    return last


def _named_rows(view: View) -> IntArray:
    """Rows that are named in answers or prior constraints, in row order."""
    is_named = view.named | view.questioned
    is_named[view.once("prior rows", lambda: view.prior.compact()[1])] = True
    return np.flatnonzero(is_named)
