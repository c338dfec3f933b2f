"""Ask where a whole region is in doubt, and let every answer spread: clew's own strategy, and the default."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._validation import check_parameters, integer
from clew.active._answers import Pair
from clew.active._doubt import Seats, check_question, doubted, error_rate, own_chances, placed, seats
from clew.active._explore_consolidate import half_placed
from clew.active._view import View
from clew.exceptions import InfeasibleConstraintsError
from clew.graph._graph_propagation import graph_propagation, unseen
from clew.graph._landscape import Ground, Landscape, ground, guess_n_clusters, survey
from clew.graph._spreading import Sources, Trust, initial_trust, joined, spread
from clew.partitional._seeding import cluster_labels

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Doubt is shared with the neighbours of neighbours; a row counts by the doubt around it times its own plus this.
_STEPS, _OWN = 2, 0.3
# While clusters are missing, every third row that is placed comes from a base cluster nobody has looked at.
_EXPLORE_EVERY = 3
# What a broken doubtful answer costs, in units of log-probability.
_PENALTY = 3.0


class Auto:
    """Ask where a whole region is in doubt, and let every answer spread.

    Groups of rows known to be together are sources, from which `GraphPropagation` gives every row a probability for
    every group. The row asked about is the one with the least clear winner, among neighbours that are in doubt as
    well; it is compared with the groups in order of probability, so that most rows take one question. While clusters
    are missing, every third row is the prototype of a base cluster that no answer has touched.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of a row in the graph.
    random_state : int, default=0
        Of the base partitions. They do not follow the driver's seed, so that a log that is resumed meets the same.

    References
    ----------
    .. [1] S. Xiong, J. Azimi, X. Z. Fern (2014). "Active learning of constraints for semi-supervised clustering." IEEE
       Transactions on Knowledge and Data Engineering 26(1).

    Examples
    --------
    >>> from clew.active import Auto, Oracle, Questions
    >>> questions = Questions([[0.0], [0.1], [5.0], [5.1]], Auto(), n_clusters=2)
    >>> oracle = Oracle([0, 0, 1, 1])
    >>> while (pair := questions.ask()) is not None:
    ...     _ = questions.tell(pair, oracle(pair))
    >>> questions.labels()
    array([0, 0, 1, 1])
    """

    def __init__(self, *, n_neighbors: int = 10, random_state: int = 0) -> None:
        self.n_neighbors, self.random_state = n_neighbors, random_state
        check_parameters(self, {"n_neighbors": integer(1), "random_state": integer(0)})

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """One question at a time, each from what is known, so that a fresh start asks the same."""
        while True:
            beliefs = self._beliefs(view)
            check = check_question(view, beliefs.sources, beliefs.own_chances)
            if check is not None:
                yield check  # the driver lets few of them pass
                if check.key in view.asked:
                    continue
            question = _next_question(view, beliefs)
            if question is None:
                return
            yield question

    def labels(self, view: View, keep: IntArray | None = None) -> IntArray:
        """What `GraphPropagation` makes of what is known; `keep` are clusters to stay near to."""
        landscape = self._landscape(view)
        if keep is not None:
            landscape = landscape.keeping(keep)
        known = view.constraints()
        if view.neighbourhoods:
            placed = seats(view, landscape)
            if placed.suspects and not view.prior:
                return self._seated(view, landscape, placed)
            known = doubted(known, placed) | view.prior  # what was known before any answer is not doubted
        certain = known.at_least(1.0).closure()
        n_clusters = max(self._n_clusters(view), len(view.neighbourhoods))
        while True:
            try:
                clusters = cluster_labels(certain, n_clusters)
                return clusters[graph_propagation(landscape, known, clusters, penalty=_PENALTY).labels]
            except InfeasibleConstraintsError:  # what is known needs more clusters than were told
                n_clusters += 1

    def _seated(self, view: View, landscape: Landscape, placed: Seats) -> IntArray:
        """Where people err: placed rows where they are thought to belong, the others where they draw them.

        What follows from answers that are wrong would put many rows wrong; where rows were thought to belong after all
        is surer than any of it.
        """
        waiting = unseen(landscape, placed.sources, placed.trust.partition, self._n_clusters(view))
        n_classes = max(int(placed.sources.classes.max()) + 1, self._n_clusters(view))
        labels = spread(landscape, joined(placed.sources, waiting), placed.trust, n_classes).argmax(axis=1)
        labels[placed.sources.rows] = placed.sources.classes
        return labels

    def _n_clusters(self, view: View) -> int:
        """As many as were told; else as many as were found, and not fewer than the graph has slow directions."""
        if view.n_clusters is not None:
            return view.n_clusters
        return min(max(guess_n_clusters(self._ground(view)), len(view.neighbourhoods)), view.n_rows)

    def _ground(self, view: View) -> Ground:
        key = f"auto {self.n_neighbors} {self.random_state}"
        return view.once(key, lambda: ground(view.X, self.n_neighbors, self.random_state))

    def _landscape(self, view: View) -> Landscape:
        """It does not follow the groups found: nobody waits for other base partitions, and clusters stay put."""
        n_clusters = view.n_clusters or guess_n_clusters(self._ground(view))
        key = f"auto {self.n_neighbors} {self.random_state} {n_clusters}"
        return view.once(key, lambda: survey(self._ground(view), n_clusters, self.random_state))

    def _beliefs(self, view: View) -> _Beliefs:
        """What groups say about all rows; as before while they are as they were."""
        n_clusters = self._n_clusters(view)
        landscape = self._landscape(view)
        sources = placed(view) if view.neighbourhoods else None
        n_said = view.n_answers if error_rate(view) else 0  # where somebody errs, every answer counts
        known = (
            b"" if sources is None else sources.rows.tobytes() + sources.classes.tobytes(),
            n_said,
            len(view.unsure) if sources is None else 0,
        )
        last: _Beliefs | None = view.latest.get("auto")
        if last is not None and last.landscape is landscape and last.known == known:
            return last
        view.latest["auto"] = beliefs = self._fresh_beliefs(view, landscape, known, n_clusters)
        return beliefs

    def _fresh_beliefs(
        self, view: View, landscape: Landscape, known: tuple[bytes, int, int], n_clusters: int
    ) -> _Beliefs:
        if view.neighbourhoods:
            sources, trust, _ = seats(view, landscape)
        else:
            sources = Sources(_start(view, landscape), np.zeros(1, dtype=np.int64), np.ones(1))
            trust = initial_trust(landscape)
        waiting = unseen(landscape, sources, trust.partition, n_clusters)
        n_classes = max(int(sources.classes.max()) + 1, n_clusters)
        chances = spread(landscape, joined(sources, waiting), trust, n_classes)
        return _Beliefs(known, landscape, sources, trust, waiting.rows, chances)


@dataclass(frozen=True)
class _Beliefs:
    """Where rows belong: probabilities for the groups found, then for base clusters that wait to be looked at."""

    known: tuple[bytes, int, int]
    landscape: Landscape
    sources: Sources
    trust: Trust
    waiting: IntArray
    chances: FloatArray

    @cached_property
    def class_of(self) -> dict[int, int]:
        """The class of each source."""
        return dict(zip(self.sources.rows.tolist(), self.sources.classes.tolist(), strict=True))

    @cached_property
    def own_chances(self) -> FloatArray:
        """What the others say of each source."""
        return own_chances(self.landscape, self.sources, self.trust)

    @cached_property
    def doubt(self) -> FloatArray:
        """How unclear the winner is for each row and around it."""
        return region_doubt(self.landscape, self.chances)


def _start(view: View, landscape: Landscape) -> IntArray:
    """The row that stands for the first group: the prototype of the largest base cluster with fewest "unsure"."""
    partition = initial_trust(landscape).partition
    prototypes = landscape.prototypes(partition)
    doubts = np.array([sum(row in pair for pair in view.unsure) for row in prototypes.tolist()])
    sizes = np.bincount(landscape.partitions[partition])
    return prototypes[np.lexsort((-sizes, doubts))[:1]]


def _next_question(view: View, beliefs: _Beliefs) -> Pair | None:
    """The best row that can be asked about, against the likeliest group that it may belong to."""
    rows = _candidates(view)
    doubt = beliefs.doubt[rows]
    ranked = rows[np.argsort(-doubt, kind="stable")]
    why = "Where does this row belong?"
    waiting = beliefs.waiting[np.isin(beliefs.waiting, rows)]
    if waiting.size and int(view.placed.sum()) % _EXPLORE_EVERY == 1:
        ranked, why = np.concatenate([waiting[:1], ranked]), "Is this a new group?"
    for row in ranked.tolist():
        member = _likeliest(view, beliefs, row)
        if member is not None:
            return Pair(row, member, why=why)
    return None


def _candidates(view: View) -> IntArray:
    """Rows to ask about: one that a question has begun with, else all that nobody was unsure about, else all."""
    rows = view.unplaced()
    doubtful = np.array(sorted({row for pair in view.unsure for row in pair}), dtype=np.int64)
    sure = rows[~np.isin(rows, doubtful)]
    begun = half_placed(view, sure)
    begun = begun[[bool(view.open_neighbourhoods(row)) for row in begun.tolist()]]
    return begun if begun.size else sure if sure.size else rows


def region_doubt(landscape: Landscape, chances: FloatArray) -> FloatArray:
    """How unclear the winner is around each row, times how unclear it is for the row itself."""
    if chances.shape[1] == 1:
        return np.ones(len(chances))
    best = np.partition(chances, -2, axis=1)[:, -2:]
    own = 1 - (best[:, 1] - best[:, 0])
    around = own
    for _ in range(_STEPS):
        around = landscape.walk @ around
    return around * (own + _OWN)


def _likeliest(view: View, beliefs: _Beliefs, row: int) -> int | None:
    """The row that stands for the likeliest group among those that a row may belong to."""
    if not view.neighbourhoods:
        start = int(beliefs.sources.rows[0])
        return start if view.is_open(row, start) else None
    members = [one.member for one in view.open_neighbourhoods(row)]
    chances = [beliefs.chances[row, beliefs.class_of[member]] for member in members]
    return members[int(np.argmax(chances))] if members else None
