"""Which answers look wrong: answers as evidence, weighed against what the rows around say.

As long as nothing contradicts, every answer holds. Once a contradiction has shown that somebody errs, answers have a
price, and rows may leave the group that a wrong answer has put them in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.active._answers import DIFFERENT, SAME, UNSURE, Pair
from clew.active._view import View
from clew.constraints import Constraints
from clew.graph._graph_propagation import pulled
from clew.graph._landscape import Landscape
from clew.graph._spreading import Sources, Trust, joined, learned_trust, left_out

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Errors found are counted on top of one in ten answers; no more than one in four is thought to be wrong.
_BEFORE, _ANSWERS_BEFORE, _MOST_ERRORS = 1.0, 10.0, 0.25
# Rounds in which rows and their answers pull at each other.
_ROUNDS = 4
# Beyond so many placed rows the search has fewer starts.
_FEW_SEATED = 250
# Share of rows that are unlike all rows around them, whatever these say.
_ODD = 0.1
# Confidence in an answer that is disbelieved.
_DOUBTED = 0.5
# Placed rows that are looked at beside those that stand for groups: more teach little.
_MOST_SEATED = 400
# Beyond so many answers one in fifty may wait to be taken in.
_FEW_ANSWERS, _LATE = 250, 50
# A source of which so little is certain weighs no less.
_LEAST_SURE = 0.1
# The chance of a row's own group, without the row, below which its answer is worth a check.
_SUSPICIOUS = 0.2


class Seats(NamedTuple):
    """Where placed rows belong, and which answers are disbelieved."""

    sources: Sources
    trust: Trust
    suspects: list[tuple[int, int]]


def error_rate(view: View) -> float:
    """Share of answers that are thought to be wrong: 0 while nothing contradicts."""
    wrong = view.n_contradictions
    if view.n_clusters is not None:
        wrong += max(len(view.neighbourhoods) - view.n_clusters, 0)
    if not wrong:
        return 0.0
    return min((wrong + _BEFORE) / (view.n_answers + _ANSWERS_BEFORE), _MOST_ERRORS)


def seats(view: View, landscape: Landscape) -> Seats:
    """Placed rows with their groups; where errors are known to occur, with second thoughts."""
    sources = placed(view)
    trust = learned_trust(landscape, sources)
    rate = error_rate(view)
    if not rate:
        return Seats(sources, trust, [])
    return _second_thoughts(view, landscape, sources, trust, np.log((1 - rate) / rate))


def placed(view: View) -> Sources:
    """Rows that stand for the groups, then as many as help of those that answers name, then of the others.

    Of many answers the latest fiftieth waits, so that people need not wait for what they hardly change; not where
    somebody errs.
    """
    groups = [one.rows for one in view.neighbourhoods]
    rows = np.concatenate(groups)
    classes = np.repeat(np.arange(len(groups)), [len(one) for one in groups])
    stands = np.isin(rows, [one.member for one in view.neighbourhoods])
    heard = view.named.copy()
    heard[[row for said in view.told[_n_heard(view) :] for pair, _ in said for row in pair.key]] = False
    named, others = heard[rows] & ~stands, ~view.named[rows] & ~stands
    found = [Sources(rows[some], classes[some], np.ones(int(some.sum()))) for some in (stands, named, others)]
    taught = found[1].thinned(_MOST_SEATED)
    return joined(joined(found[0], taught), found[2].thinned(_MOST_SEATED - len(taught.rows)))


def _n_heard(view: View) -> int:
    """Answers that are taken in: all where they are few, else up to a round number."""
    n = view.n_answers
    return n if n <= _FEW_ANSWERS or error_rate(view) else n - n % (n // _LATE)


def _second_thoughts(view: View, landscape: Landscape, sources: Sources, trust: Trust, price: float) -> Seats:
    """Answers pull placed rows together and apart at a price; the rows around each say the rest.

    The search starts from the groups and from each base partition, since a wrong answer early on can give one cluster
    two groups; what explains rows and answers best is kept. Once much is known, only the most trusted one matters.
    """
    place_of = {row: place for place, row in enumerate(sources.rows.tolist())}
    pairs = [
        (place_of[pair.first], place_of[pair.second], 1 if answer is SAME else -1)
        for pair, answer in view.said
        if answer is not UNSURE and pair.first in place_of and pair.second in place_of
    ]
    one, two, sign = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    pull = sparse.csr_array((price * sign, (one, two)), shape=(len(place_of), len(place_of)))
    pull = pull + pull.T
    named = np.unique(np.concatenate([one, two]))
    few = len(sources.rows) <= _FEW_SEATED
    partitions = landscape.partitions if few else landscape.partitions[[trust.partition]]
    starts = [sources.classes, *(labels[sources.rows] for labels in partitions)]
    n_classes = 1 + max(int(start.max()) for start in starts)
    alike = landscape.likeness(trust.weights, sources.rows)
    pull = pull[named][:, named]
    best, best_score = sources, -np.inf
    for start in starts:
        now = Sources(sources.rows, start, sources.doubt)
        for _ in range(_ROUNDS):
            alone = np.eye(n_classes)[now.classes]
            around = left_out(alike, now, trust.noise, n_classes)[named]
            alone[named] = (1 - _ODD) * around + _ODD / n_classes
            belief = pulled(alone, named, pull)
            now = Sources(now.rows, belief.argmax(axis=1), 1 / np.maximum(belief.max(axis=1), _LEAST_SURE))
        kept = (now.classes[one] == now.classes[two]) == (sign > 0)
        score = np.log(alone[named, now.classes[named]]).sum() + price * kept.sum()
        if score > best_score:
            best, best_score = now, score
    wrong = (best.classes[one] == best.classes[two]) != (sign > 0)
    rows = best.rows.tolist()
    suspects = [Pair(rows[i], rows[j]).key for i, j in zip(one[wrong].tolist(), two[wrong].tolist(), strict=True)]
    return Seats(best, trust, suspects)


def own_chances(landscape: Landscape, sources: Sources, trust: Trust) -> FloatArray:
    """The chance of each source's class, by the others alone."""
    alike = landscape.likeness(trust.weights, sources.rows)
    chances = left_out(alike, sources, trust.noise, int(sources.classes.max()) + 1)
    return chances[np.arange(len(sources.rows)), sources.classes]


def check_question(view: View, sources: Sources, own: FloatArray) -> Pair | None:
    """The most suspicious placed row against another row of its group; None where nothing is suspicious."""
    if own.min() >= _SUSPICIOUS:
        return None
    said = view.said
    checked = {row for pair, _ in said if pair.check for row in pair.key}
    named = {row for pair, _ in said for row in pair.key} - checked
    for place in np.argsort(own, kind="stable").tolist():
        row = int(sources.rows[place])
        if own[place] >= _SUSPICIOUS:
            return None
        if row not in named:
            continue
        others = np.flatnonzero((sources.classes == sources.classes[place]) & (sources.rows != row))
        for other in sources.rows[others[np.argsort(-own[others], kind="stable")]].tolist():
            if Pair(row, other).key not in view.asked and view.knowledge.relation(row, other) in (SAME, DIFFERENT):
                return Pair(row, int(other), why="Is this right?", check=True)
    return None


def doubted(known: Constraints, placed: Seats) -> Constraints:
    """What is known, with less confidence in pairs that do not agree with where rows are thought to belong."""
    if not placed.suspects:
        return known
    class_of = np.full(known.n_rows, -1)
    class_of[placed.sources.rows] = placed.sources.classes
    confidence = []
    for pairs, stated, breaks in (
        (known.must_link, known.must_link_confidence, np.not_equal),
        (known.cannot_link, known.cannot_link_confidence, np.equal),
    ):
        one, two = class_of[pairs].T
        confidence.append(np.where((one >= 0) & (two >= 0) & breaks(one, two), _DOUBTED, stated))
    must_link = Constraints(known.must_link, must_link_confidence=confidence[0], n_samples=known.n_rows)
    cannot_link = Constraints(
        cannot_link=known.cannot_link, cannot_link_confidence=confidence[1], n_samples=known.n_rows
    )
    groups = Constraints(
        labels=known.labels,
        must_groups=known.must_groups,
        cannot_groups=known.cannot_groups,
        n_samples=known.n_rows,
        ids=known.ids,
    )
    return must_link | cannot_link | groups
