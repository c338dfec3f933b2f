"""Split the data into super-instances, small pure sets of rows, and ask which of them belong together.

Van Craenendonck, Dumancic, Van Wolputte and Blockeel 2018 (`vancraenendonck2018`): COBRAS.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew._base import quietly
from clew._validation import check_parameters, integer
from clew.active._answers import DIFFERENT, UNSURE, Answer, Pair
from clew.active._distances import mean_row, squared_distances
from clew.active._strategy import Strategy
from clew.active._view import View
from clew.partitional import SeededKMeans

IntArray = npt.NDArray[np.int64]

# Largest number of rows that 2-means is fitted on. A larger set is split by the two centres of a sample.
_SAMPLE = 2_000
# Number of initialisations of 2-means. More give better splits and fewer questions, but the annotator waits longer.
_STARTS = 3


class SuperInstances(Strategy):
    """Split the largest set of rows, then ask which of the pieces belong together.

    A super-instance is a set of rows with one representative. The largest super-instance is split in two by 2-means.
    While the representatives of the two halves differ, the larger half is split again. The pieces are then compared
    with each other and with all other super-instances, nearest first, unless the relation is decided. A cluster
    consists of the super-instances known to be together. The number of clusters is not needed.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the splits. It is separate from the seed of `Questions`, so that a resumed log meets the same splits.

    Notes
    -----
    `labels` computes the clustering from the super-instances. Any clusterer can use the answers as constraints instead.
    A question takes the time of 2-means on the super-instance that is split. Memory is O(n) per level of splits.
    Departs from [1]_: A set is split into the d + 1 pieces that the search for the depth d has made, not into 2^d
    pieces by k-means. The search follows the larger half, not a random one. A piece that contains the representative
    of its parent keeps it. Another piece is represented by one of its rows with answers, if it has any, so that answers
    stay in use after every split and after new rows. "Unsure" stops the search like "same".

    References
    ----------
    .. [1] T. Van Craenendonck, S. Dumancic, E. Van Wolputte, H. Blockeel (2018). "COBRAS: interactive clustering with
       pairwise queries." IDA.

    Examples
    --------
    >>> from clew.active import Oracle, Questions
    >>> from clew.active._super_instances import SuperInstances
    >>> questions = Questions([[0.0], [0.1], [5.0], [5.1]], SuperInstances())
    >>> oracle = Oracle([0, 0, 1, 1])
    >>> while (pair := questions.ask()) is not None:
    ...     _ = questions.tell(pair, oracle(pair))
    >>> SuperInstances().labels(questions.view)
    array([0, 0, 1, 1])
    """

    has_labels = True

    def __init__(self, *, random_state: int = 0) -> None:
        self.random_state = random_state
        check_parameters(self, {"random_state": integer(0)})

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Split and merge until every super-instance is a single row or a set of equal rows."""
        steps, answer, n_resolved = None, None, 0
        while True:
            # Restart if other answers have decided an "unsure" pair, because splits that stopped there can go on.
            if steps is None or n_resolved != _n_resolved(view):
                steps = _split_and_merge(view, self.random_state, _State([_root(view, self.random_state)]))
                answer, n_resolved = None, _n_resolved(view)
            try:
                question = steps.send(answer)
            except StopIteration:
                return
            answer = yield question

    def labels(self, view: View) -> IntArray:
        """Cluster labels from the super-instances and all constraints so far."""
        return super_instance_labels(view, random_state=self.random_state)


def super_instance_labels(view: View, *, random_state: int = 0) -> IntArray:
    """Cluster labels that `SuperInstances` has reached with all constraints so far.

    Parameters
    ----------
    view : View
    random_state : int, default=0
        The `random_state` of the strategy.

    Returns
    -------
    ndarray of shape (n_rows,)
        Cluster labels, numbered in order of their first row. A super-instance with no known relation is its own
        cluster. A row known to be together with a representative gets the label of that representative.
    """
    state = _State([_root(view, random_state)])
    next(_split_and_merge(view, random_state, state), None)  # everything up to the first open question
    return _clusters(view, state.settled + state.new)


@dataclass(frozen=True)
class _SuperInstance:
    path: str
    rows: IntArray
    representative: int


@dataclass
class _State:
    """Super-instances that are merged already, pieces of the current split, and paths that cannot be split."""

    settled: list[_SuperInstance]
    new: list[_SuperInstance] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)


def _n_resolved(view: View) -> int:
    """Number of pairs answered "unsure" that later answers have decided."""
    return sum(view.knowledge.relation(*pair) is not None for pair in view.unsure)


def _split_and_merge(view: View, seed: int, state: _State) -> Generator[Pair, Any, None]:
    """Split, then merge, and yield open pairs only. A restarted strategy thus reaches its first open question."""
    while divisible := [one for one in state.settled if one.path not in state.whole]:
        chosen = max(divisible, key=_size)
        depth = yield from _split_depth(view, seed, chosen)
        if not depth:
            state.whole.add(chosen.path)
            continue
        state.settled = [one for one in state.settled if one is not chosen]
        state.new = _pieces(view, seed, chosen, depth)
        yield from _merge(view, state)
        state.settled, state.new = state.settled + state.new, []


def _split_depth(view: View, seed: int, chosen: _SuperInstance) -> Generator[Pair, Any, int]:
    """Number of splits of a super-instance: as long as the two halves differ. 0 if it cannot be split."""
    depth, halves = 0, _halves(view, seed, chosen)
    while halves:
        depth += 1
        one, two = (half.representative for half in halves)
        if (yield from _relation(view, one, two, "Are these two still alike?")) is not DIFFERENT:
            return max(depth - 1, 1)
        halves = _halves(view, seed, max(halves, key=_size))
    return depth


def _pieces(view: View, seed: int, chosen: _SuperInstance, depth: int) -> list[_SuperInstance]:
    """The smaller half of each split, and the larger half of the last split."""
    pieces = [chosen]
    for _ in range(depth):
        pieces += sorted(_halves(view, seed, pieces.pop()), key=_size)
    return pieces


def _size(one: _SuperInstance) -> tuple[int, str]:
    return len(one.rows), one.path


def _merge(view: View, state: _State) -> Generator[Pair, Any, None]:
    """Compare the new super-instances with all super-instances, nearest first.

    Distances are fixed and answers only decide more pairs, so one pass over the sorted pairs suffices. Clusters are not
    stored: two super-instances are together if their representatives are.
    """
    doubts = _Doubts(view)
    for one, two in _nearest_pairs(view, state):
        if view.knowledge.relation(one, two) is None and not doubts.between(one, two):
            yield from _relation(view, one, two, "Do these two groups belong together?")


def _nearest_pairs(view: View, state: _State) -> list[tuple[int, int]]:
    """Pairs of a new super-instance and any other one, by their representatives, nearest pairs first."""
    new = np.array([one.representative for one in state.new], dtype=np.int64)
    others = np.array([one.representative for one in state.settled], dtype=np.int64)
    everyone = np.concatenate([new, others])
    distances = _distances(view, everyone, new)
    again = np.arange(len(everyone))[:, None] <= np.arange(len(new))  # each pair of new ones once
    distances[again] = np.inf
    places = np.argsort(distances, axis=None, kind="stable")[: distances.size - int(again.sum())]
    return [(int(everyone[place // len(new)]), int(new[place % len(new)])) for place in places.tolist()]


def _relation(view: View, one: int, two: int, why: str) -> Generator[Pair, Any, Answer]:
    answer = view.known(one, two)
    if answer is None:
        answer = yield Pair(one, two, why=why)
    return answer or UNSURE


class _Doubts:
    """Pairs of components with an "unsure" or pending question between them, which are not asked about again."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._at = -1
        self._pairs: set[frozenset[int]] = set()

    def between(self, one: int, two: int) -> bool:
        view, component = self._view, self._view.knowledge.component
        if self._at != view.n_answers:
            self._pairs = {frozenset((component(a), component(b))) for a, b in view.unsure | view.pending}
            self._at = view.n_answers
        return bool(self._pairs) and frozenset((component(one), component(two))) in self._pairs


def _root(view: View, seed: int) -> _SuperInstance:
    rows = np.arange(view.n_rows)
    order = view.once(f"super-instances {seed} root", lambda: _by_distance(view.X, rows))
    return _SuperInstance("", rows, _representative(view, order))


def _halves(view: View, seed: int, whole: _SuperInstance) -> tuple[_SuperInstance, ...]:
    """The two halves of a super-instance, the same in every call. Empty if all its rows are equal."""
    found = []
    halves = view.once(f"super-instances {seed} halves {whole.path}", lambda: _halve(view.X, seed, whole.rows))
    for mark, (rows, by_distance) in zip("01", halves, strict=False):
        keeps = np.isin(whole.representative, rows, assume_unique=True)
        representative = whole.representative if keeps else _representative(view, by_distance)
        found.append(_SuperInstance(whole.path + mark, rows, representative))
    return tuple(found)


def _representative(view: View, by_distance: IntArray) -> int:
    """Choose the row nearest to the mean, or if only other rows have answers, one of their largest component."""
    named = by_distance[view.named[by_distance]]
    if not len(named) or view.questioned[by_distance[0]]:
        return int(by_distance[0])
    _, group, size = np.unique(view.knowledge.components(named), return_inverse=True, return_counts=True)
    return int(named[size[group].argmax()])


@quietly()
def _halve(X: Any, seed: int, rows: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Split by 2-means. For each half: its rows in row order, and its rows sorted by distance to their mean."""
    if len(rows) < 2 or _all_alike(X[rows]):
        return []
    sample = rows
    if len(rows) > _SAMPLE:
        sample = np.sort(np.random.default_rng([seed, len(rows)]).choice(rows, _SAMPLE, replace=False))
        if _all_alike(X[sample]):
            sample = rows
    model = SeededKMeans(2, n_init=_STARTS, random_state=seed).fit(X[sample])
    second = model.labels_ == 1 if sample is rows else model.predict(X[rows]) == 1
    if second.all() or not second.any():
        return []
    return [(part, _by_distance(X, part)) for part in (rows[~second], rows[second])]


def _all_alike(X: Any) -> bool:
    spread = X.max(axis=0) - X.min(axis=0)
    return not (spread.nnz if sparse.issparse(spread) else spread.any())


def _by_distance(X: Any, rows: IntArray) -> IntArray:
    """Sort rows by distance to their mean. The first row is the medoid for squared distances."""
    far = squared_distances(X, rows, mean_row(X, rows).reshape(1, -1))[:, 0]
    return rows[np.argsort(far, kind="stable")]


def _distances(view: View, rows: IntArray, to: IntArray) -> npt.NDArray[np.float64]:
    points = view.X[to]
    return squared_distances(view.X, rows, points.toarray() if sparse.issparse(points) else np.asarray(points))


def _clusters(view: View, parts: list[_SuperInstance]) -> IntArray:
    """Label rows by the component of their super-instance, or of a representative they are known to be with."""
    known = view.knowledge
    component_of = [known.component(one.representative) for one in parts]
    labels = np.empty(view.n_rows, dtype=np.int64)
    for one, component in zip(parts, component_of, strict=True):
        labels[one.rows] = component
    for one, component in zip(parts, component_of, strict=True):
        labels[known.rows(one.representative)] = component
    return _in_order(labels)


def _in_order(labels: IntArray) -> IntArray:
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place].astype(np.int64)
