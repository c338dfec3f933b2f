"""Wrong answers: find answers that disagree with the neighbours of their rows, and the likely classes of placed rows.

While no answers contradict each other, every answer is certain. After the first contradiction, violating an answer has
a finite price, so that a row may leave the neighbourhood that a wrong answer has put it into.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.active._answers import DIFFERENT, SAME, Pair
from clew.active._view import View
from clew.constraints import Constraints
from clew.graph._gaussian_process import KernelWeights, LabelledRows, concatenated, fit_weights, leave_one_out
from clew.graph._graph_propagation import mean_field
from clew.graph._kernels import KernelSum

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Prior of the error rate: one wrong of ten answers. The estimate is at most the last value.
_PRIOR_ERRORS, _PRIOR_ANSWERS, _MOST_ERRORS = 1.0, 10.0, 0.25
# Rounds of leave-one-out prediction and mean-field inference.
_ROUNDS = 4
# With more placed rows than this, the search uses fewer starts.
_FEW_PLACED = 250
# Probability that a row is an outlier, whose neighbours say nothing about its class.
_OUTLIER = 0.1
# Confidence of an answer that the placement contradicts.
_SUSPECT_CONFIDENCE = 0.5
# Largest number of placed rows that are used in addition to the representatives of neighbourhoods.
_MOST_PLACED = 400
# With more answers than this, the model is updated only once per fiftieth of them.
_FEW_ANSWERS, _UPDATES = 250, 50
# Lower bound on a labelled row's weight, so that doubtful rows still count a little.
_LEAST_WEIGHT = 0.1
# A placed row whose leave-one-out probability is below this is worth a check question.
_SUSPICIOUS = 0.2


class Placement(NamedTuple):
    """The classes of placed rows, the kernel weights, and the answers that the classes contradict."""

    labelled: LabelledRows
    weights: KernelWeights
    suspects: list[tuple[int, int]]


def error_rate(view: View) -> float:
    """Estimated share of wrong answers; 0 while no answers contradict each other."""
    wrong = view.n_contradictions
    if view.n_clusters is not None:
        wrong += max(len(view.neighbourhoods) - view.n_clusters, 0)
    if not wrong:
        return 0.0
    return min((wrong + _PRIOR_ERRORS) / (view.n_answers + _PRIOR_ANSWERS), _MOST_ERRORS)


def place_rows(view: View, kernels: KernelSum) -> Placement:
    """Placed rows with their neighbourhoods, or with their most likely classes if answers are known to be wrong."""
    labelled = placed_rows(view)
    weights = fit_weights(kernels, labelled)
    rate = error_rate(view)
    if not rate:
        return Placement(labelled, weights, [])
    return _most_likely_placement(view, kernels, labelled, weights, np.log((1 - rate) / rate))


def placed_rows(view: View) -> LabelledRows:
    """Representatives of the neighbourhoods, then a sample of rows named by answers, then a sample of other members.

    With many answers, those after the last update of the model are left out, since they hardly change it.
    """
    groups = [one.rows for one in view.neighbourhoods]
    rows = np.concatenate(groups)
    classes = np.repeat(np.arange(len(groups)), [len(one) for one in groups])
    representative = np.isin(rows, [one.member for one in view.neighbourhoods])
    used = view.named.copy()
    used[[row for said in view.told[_n_used(view) :] for pair, _ in said for row in pair.key]] = False
    named, others = used[rows] & ~representative, ~view.named[rows] & ~representative
    found = [
        LabelledRows(rows[some], classes[some], np.ones(int(some.sum()))) for some in (representative, named, others)
    ]
    sampled = found[1].subsample(_MOST_PLACED)
    return concatenated(concatenated(found[0], sampled), found[2].subsample(_MOST_PLACED - len(sampled.rows)))


def _n_used(view: View) -> int:
    """Number of answers that the model uses: all if they are few, else up to the last update."""
    n = view.n_answers
    return n if n <= _FEW_ANSWERS or error_rate(view) else n - n % (n // _UPDATES)


def _most_likely_placement(
    view: View, kernels: KernelSum, labelled: LabelledRows, weights: KernelWeights, price: float
) -> Placement:
    """Classes of placed rows that maximise the leave-one-out likelihood minus the price of violated answers.

    Mean-field inference starts from the neighbourhoods and from each base partition, because an early wrong answer can
    split a cluster into two neighbourhoods. The start with the highest score wins. With many placed rows only the base
    partition with the largest weight is tried.
    """
    n_labelled, said = len(labelled.rows), view.said
    place_of = np.full(view.n_rows, -1)
    place_of[labelled.rows] = np.arange(n_labelled)
    one, two, sign = place_of[said[:, 0]], place_of[said[:, 1]], said[:, 2]
    used = (one >= 0) & (two >= 0) & (sign != 0)
    one, two, sign = one[used], two[used], sign[used]
    potentials = sparse.csr_array((price * sign, (one, two)), shape=(n_labelled, n_labelled))
    potentials = potentials + potentials.T
    named = np.unique(np.concatenate([one, two]))
    few = len(labelled.rows) <= _FEW_PLACED
    partitions = kernels.partitions if few else kernels.partitions[[weights.partition]]
    starts = [labelled.classes, *(labels[labelled.rows] for labels in partitions)]
    n_classes = 1 + max(int(start.max()) for start in starts)
    gram = kernels.gram(weights.values, labelled.rows)
    potentials = potentials[named][:, named]
    best, best_score = labelled, -np.inf
    for start in starts:
        now = LabelledRows(labelled.rows, start, labelled.noise)
        for _ in range(_ROUNDS):
            unary = np.eye(n_classes)[now.classes]
            around = leave_one_out(gram, now, weights.noise, n_classes)[named]
            unary[named] = (1 - _OUTLIER) * around + _OUTLIER / n_classes
            belief = mean_field(unary, named, potentials)
            now = LabelledRows(now.rows, belief.argmax(axis=1), 1 / np.maximum(belief.max(axis=1), _LEAST_WEIGHT))
        satisfied = (now.classes[one] == now.classes[two]) == (sign > 0)
        score = np.log(unary[named, now.classes[named]]).sum() + price * satisfied.sum()
        if score > best_score:
            best, best_score = now, score
    wrong = (best.classes[one] == best.classes[two]) != (sign > 0)
    rows = best.rows.tolist()
    suspects = [Pair(rows[i], rows[j]).key for i, j in zip(one[wrong].tolist(), two[wrong].tolist(), strict=True)]
    return Placement(best, weights, suspects)


def own_probabilities(kernels: KernelSum, labelled: LabelledRows, weights: KernelWeights) -> FloatArray:
    """Leave-one-out probability of each labelled row's class."""
    gram = kernels.gram(weights.values, labelled.rows)
    probabilities = leave_one_out(gram, labelled, weights.noise, int(labelled.classes.max()) + 1)
    return probabilities[np.arange(len(labelled.rows)), labelled.classes]


def check_question(view: View, labelled: LabelledRows, own: FloatArray) -> Pair | None:
    """The most suspicious placed row with another row of its neighbourhood; None if no row is suspicious."""
    if own.min() >= _SUSPICIOUS:
        return None
    said = view.said
    is_asked = np.zeros(view.n_rows, dtype=bool)
    is_asked[said[:, :2]] = True
    is_asked[said[said[:, 3] == 1, :2]] = False  # checked already
    for place in np.argsort(own, kind="stable").tolist():
        row = int(labelled.rows[place])
        if own[place] >= _SUSPICIOUS:
            return None
        if not is_asked[row]:
            continue
        others = np.flatnonzero((labelled.classes == labelled.classes[place]) & (labelled.rows != row))
        for other in labelled.rows[others[np.argsort(-own[others], kind="stable")]].tolist():
            if Pair(row, other).key not in view.asked and view.knowledge.relation(row, other) in (SAME, DIFFERENT):
                return Pair(row, int(other), why="Is this right?", check=True)
    return None


def with_suspects_priced(known: Constraints, placed: Placement) -> Constraints:
    """The constraints, with a low confidence for pairs that the placement contradicts."""
    if not placed.suspects:
        return known
    class_of = np.full(known.n_rows, -1)
    class_of[placed.labelled.rows] = placed.labelled.classes
    confidence = []
    for pairs, stated, breaks in (
        (known.must_link, known.must_link_confidence, np.not_equal),
        (known.cannot_link, known.cannot_link_confidence, np.equal),
    ):
        one, two = class_of[pairs].T
        confidence.append(np.where((one >= 0) & (two >= 0) & breaks(one, two), _SUSPECT_CONFIDENCE, stated))
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
