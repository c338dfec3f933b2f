"""Placed rows as labelled rows, and check questions about answers that disagree with the neighbours of their rows.

This is for answers without any sign of errors: each of them is certain. If answers may be wrong, see
`clew.active._second_opinions`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from clew.active._answers import DIFFERENT, SAME, Pair
from clew.active._view import View
from clew.graph._gaussian_process import KernelWeights, LabelledRows, concatenated, leave_one_out
from clew.graph._kernels import KernelSum

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Prior of the error rate: one wrong of ten answers. The estimate is at most the last value.
_PRIOR_ERRORS, _PRIOR_ANSWERS, _MOST_ERRORS = 1.0, 10.0, 0.25
# Largest number of placed rows that are used in addition to the representatives of neighbourhoods.
_MOST_PLACED = 400
# With more answers than the first value, the model is updated once per fiftieth of them.
_FEW_ANSWERS, _UPDATES = 250, 50
# With so many pending questions, it is updated once per tenth of the answers, but not within fewer than eight.
_CROWD, _CROWD_UPDATES, _CROWD_STEP = 16, 10, 8
# A placed row whose leave-one-out probability is below this is worth a check question.
SUSPICIOUS = 0.2


def error_rate(view: View) -> float:
    """The given share of wrong answers, or an estimate from contradictions. It is 0 if there are none."""
    if view.error_rate is not None:
        return view.error_rate
    wrong = view.n_contradictions
    if view.n_clusters is not None:
        wrong += max(len(view.neighbourhoods) - view.n_clusters, 0)
    if not wrong:
        return 0.0
    return min((wrong + _PRIOR_ERRORS) / (view.n_answers + _PRIOR_ANSWERS), _MOST_ERRORS)


def placed_rows(view: View) -> LabelledRows:
    """Representatives of the neighbourhoods, then a sample of rows named by answers, then a sample of other members.

    The answers after the last update of the model are left out, because they hardly change it (see `n_used`).
    """
    groups = [one.rows for one in view.neighbourhoods]
    rows = np.concatenate(groups)
    classes = np.repeat(np.arange(len(groups)), [len(one) for one in groups])
    representative = np.isin(rows, [one.member for one in view.neighbourhoods])
    used = view.named.copy()
    # The rows of a check question were in their neighbourhood before.
    late = [pair for said in view.told[n_used(view) :] for pair, _ in said if not pair.check]
    used[[row for pair in late for row in pair.key]] = False
    named, others = used[rows] & ~representative, ~view.named[rows] & ~representative
    found = [
        LabelledRows(rows[some], classes[some], np.ones(int(some.sum()))) for some in (representative, named, others)
    ]
    sampled = found[1].subsample(_MOST_PLACED)
    return concatenated(concatenated(found[0], sampled), found[2].subsample(_MOST_PLACED - len(sampled.rows)))


def n_used(view: View) -> int:
    """Number of answers that the model uses: all of them, or up to the last multiple of a power of two.

    The power of two grows with the number of answers. It is larger if many people answer at once: each question is
    chosen without the answers to the pending questions anyway. For example, the model uses all of 200 answers, 992 of
    1,000 answers, and 192 of 199 answers with 20 pending questions.
    """
    n = view.n_answers
    most = n // _UPDATES if n > _FEW_ANSWERS else 1
    if is_crowd(view):
        most = max(n // _CROWD_UPDATES, _CROWD_STEP)
    return n - n % (1 << (most.bit_length() - 1))


def is_crowd(view: View) -> bool:
    """Whether many people answer at once."""
    return len(view.waiting) >= _CROWD


def own_probabilities(kernels: KernelSum, labelled: LabelledRows, weights: KernelWeights) -> FloatArray:
    """Leave-one-out probability of each labelled row's class."""
    gram = kernels.gram(weights.values, labelled.rows)
    probabilities = leave_one_out(gram, labelled, weights.noise, int(labelled.classes.max()) + 1)
    return probabilities[np.arange(len(labelled.rows)), labelled.classes]


def check_question(view: View, labelled: LabelledRows, own: FloatArray) -> Pair | None:
    """The most suspicious placed row with another row of its neighbourhood; None if no row is suspicious."""
    if own.min() >= SUSPICIOUS:
        return None
    said = view.said
    is_asked = np.zeros(view.n_rows, dtype=bool)
    is_asked[said[:, :2]] = True
    is_asked[said[said[:, 3] == 1, :2]] = False  # checked already
    for place in np.argsort(own, kind="stable").tolist():
        row = int(labelled.rows[place])
        if own[place] >= SUSPICIOUS:
            return None
        if not is_asked[row]:
            continue
        others = np.flatnonzero((labelled.classes == labelled.classes[place]) & (labelled.rows != row))
        for other in labelled.rows[others[np.argsort(-own[others], kind="stable")]].tolist():
            if Pair(row, other).key not in view.asked and view.knowledge.relation(row, other) in (SAME, DIFFERENT):
                return Pair(row, int(other), why="Is this right?", check=True)
    return None
