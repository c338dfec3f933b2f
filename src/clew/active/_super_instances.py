"""Split the data into small, pure sets of rows, and ask which of them belong together.

Van Craenendonck, Dumancic, Van Wolputte and Blockeel 2018 (`vancraenendonck2018`): COBRAS.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew._validation import check_parameters, integer
from clew.active._answers import DIFFERENT, UNSURE, Answer, Pair
from clew.active._view import View, mean_row, squared_distances
from clew.partitional import SeededKMeans

IntArray = npt.NDArray[np.int64]

# A larger set is split by the centres of a sample of this size: two centres need no more.
_SAMPLE = 2_000
# Starts of 2-means: a poor split costs questions, but the person waits for it.
_STARTS = 3


class SuperInstances:
    """Split the largest set of rows, then ask which of the pieces belong together.

    A super-instance is a set of rows that is represented by one of them. The largest one is split by 2-means; if the
    representatives of the halves differ, the larger half is halved in turn, and so on until two are the same.
    Pieces and all other super-instances whose relation is open are compared, nearest first. Clusters are the
    super-instances known to be together; the number of clusters is not needed.

    Parameters
    ----------
    random_state : int, default=0
        Of the splits. They do not follow the driver's seed, so that a log that is resumed meets the same splits.

    Notes
    -----
    The clustering that goes with the questions is `labels`; any clusterer can use the answers as constraints instead.
    Time per question is that of 2-means on the super-instance that is split; memory is O(n) for each level of splits.
    Departs from [1]_: a set is cut into the d + 1 pieces that the search for d has made, not into 2^d by k-means; the
    search follows the larger half, not a random one; a piece that contains the representative of the set it came from
    keeps it, with all that is known about it, and one in which other rows were asked about is represented by one of
    these, so that answers count whatever the splits, also after new rows; "unsure" stops the search like "same".

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

    def __init__(self, *, random_state: int = 0) -> None:
        self.random_state = random_state
        check_parameters(self, {"random_state": integer(0)})

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Split and merge until every super-instance is one row, or rows without a difference."""
        steps, answer, n_resolved = None, None, 0
        while True:
            # Splits that stopped at "unsure" go on once that is decided: then as in a run that is resumed.
            if steps is None or n_resolved != _n_resolved(view):
                steps = _split_and_merge(view, self.random_state, _State([_root(view, self.random_state)]))
                answer, n_resolved = None, _n_resolved(view)
            try:
                question = steps.send(answer)
            except StopIteration:
                return
            answer = yield question

    def labels(self, view: View) -> IntArray:
        """The clusters of the super-instances, from what is known so far."""
        return super_instance_labels(view, random_state=self.random_state)


def super_instance_labels(view: View, *, random_state: int = 0) -> IntArray:
    """The clustering that `SuperInstances` has reached with what is known.

    Parameters
    ----------
    view : View
    random_state : int, default=0
        That of the strategy.

    Returns
    -------
    ndarray of shape (n_rows,)
        Clusters, numbered in order of their first row. A piece that is not yet known to belong anywhere is a cluster of
        its own; a row known to be together with a representative follows it.
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
    """Super-instances whose relations are settled, and those of a split that is being merged."""

    settled: list[_SuperInstance]
    new: list[_SuperInstance] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)


def _n_resolved(view: View) -> int:
    """Pairs answered "unsure" that other answers have decided since."""
    return sum(view.knowledge.relation(*pair) is not None for pair in view.unsure)


def _split_and_merge(view: View, seed: int, state: _State) -> Generator[Pair, Any, None]:
    """The strategy; what is known is not asked, so that a fresh start runs through to the first open question."""
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
    """How many times to halve a super-instance: as often as the halves of its larger half differ; 0 if it cannot be."""
    depth, halves = 0, _halves(view, seed, chosen)
    while halves:
        depth += 1
        one, two = (half.representative for half in halves)
        if (yield from _relation(view, one, two, "Are these two still alike?")) is not DIFFERENT:
            return max(depth - 1, 1)
        halves = _halves(view, seed, max(halves, key=_size))
    return depth


def _pieces(view: View, seed: int, chosen: _SuperInstance, depth: int) -> list[_SuperInstance]:
    """The smaller halves on the way of the search, and what is left of the set at its end."""
    pieces = [chosen]
    for _ in range(depth):
        pieces += sorted(_halves(view, seed, pieces.pop()), key=_size)
    return pieces


def _size(one: _SuperInstance) -> tuple[int, str]:
    return len(one.rows), one.path


def _merge(view: View, state: _State) -> Generator[Pair, Any, None]:
    """Compare the new super-instances with all, nearest first.

    Distances do not change and answers only decide more pairs, so one pass over the sorted pairs always meets the
    nearest open one next. Clusters need no list: super-instances are together when their representatives are.
    """
    doubts = _Doubts(view)
    for one, two in _nearest_pairs(view, state):
        if view.knowledge.relation(one, two) is None and not doubts.between(one, two):
            yield from _relation(view, one, two, "Do these two groups belong together?")


def _nearest_pairs(view: View, state: _State) -> list[tuple[int, int]]:
    """Representatives of the new super-instances, each with those of all others, nearest pairs first."""
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
    """Components with an "unsure" or pending question between them: other rows of theirs would not help."""

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
    """The two halves of a super-instance, the same ones each time; none if its rows do not differ."""
    found = []
    halves = view.once(f"super-instances {seed} halves {whole.path}", lambda: _halve(view.X, seed, whole.rows))
    for mark, (rows, by_distance) in zip("01", halves, strict=False):
        keeps = np.isin(whole.representative, rows, assume_unique=True)
        representative = whole.representative if keeps else _representative(view, by_distance)
        found.append(_SuperInstance(whole.path + mark, rows, representative))
    return tuple(found)


def _representative(view: View, by_distance: IntArray) -> int:
    """The row nearest to the mean; one of the largest known group if others were asked about and it never was."""
    named = by_distance[view.named[by_distance]]
    if not len(named) or view.questioned[by_distance[0]]:
        return int(by_distance[0])
    _, group, size = np.unique(view.knowledge.components(named), return_inverse=True, return_counts=True)
    return int(named[size[group].argmax()])


def _halve(X: Any, seed: int, rows: IntArray) -> list[tuple[IntArray, IntArray]]:
    """The rows of both halves, as they are and nearest to their mean first."""
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
    """Rows, nearest to their mean first: the first one's squared distances to all have the least sum."""
    far = squared_distances(X, rows, mean_row(X, rows).reshape(1, -1))[:, 0]
    return rows[np.argsort(far, kind="stable")]


def _distances(view: View, rows: IntArray, to: IntArray) -> npt.NDArray[np.float64]:
    points = view.X[to]
    return squared_distances(view.X, rows, points.toarray() if sparse.issparse(points) else np.asarray(points))


def _clusters(view: View, parts: list[_SuperInstance]) -> IntArray:
    """Rows whose super-instances are together; a row known to be together with a representative follows it."""
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
