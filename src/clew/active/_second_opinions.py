"""Questions and labels if answers may be wrong: new rows, second opinions, and whether two groups are one.

A row is asked about again while the posterior leaves its group in doubt, each time against another member of the most
probable group, so that one unusual row does not decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from clew.active._annotators import CERTAIN, AnnotatorErrors, AnswerArrays, count_errors, log_evidence
from clew.active._answers import DIFFERENT, SAME, Pair
from clew.active._knowledge import Knowledge
from clew.active._posterior import Chain, Posterior, State, fit_posterior, last_search, without_errors
from clew.active._view import View
from clew.constraints import Constraints
from clew.exceptions import InfeasibleConstraintsError
from clew.graph._graph_propagation import class_clusters, hard_assignment, known_pairs
from clew.graph._kernels import KernelSum
from clew.partitional._seeding import cluster_labels
from clew.solvers.coloring import WORK_LIMIT

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Number of steps of the random walk that averages the doubt of neighbours, and a constant that is added to the doubt of
# rows without answers.
_STEPS, _NEW_ROW = 2, 0.1
# A named row with a smaller doubt than this is not asked about again.
_SETTLED = 0.02
# While groups have no named rows, every third question is about a prototype. Every fourth asks whether two groups are
# one, as long as the answers between two similar groups add up to less than these log-odds.
_EXPLORE_EVERY, _COMPARE_EVERY, _KNOWN_APART = 3, 4, 1.0
# Beliefs of group members are rounded to multiples of this, so that all confident members take turns.
_BELIEF_STEP = 0.1
# An implied pair is doubtful if its probability is below this.
_DOUBTFUL = 0.5
# Largest number of pairs of certain constraints in the posterior.
_MOST_CERTAIN = 400


class Suspicion(NamedTuple):
    """Some answers look wrong, although none contradicts another.

    Attributes
    ----------
    doubtful : ndarray of shape (n_pairs, 2)
        Implied pairs that are probably wrong, the least probable first.
    """

    doubtful: IntArray

    def check(self, view: View) -> Pair | None:
        """The check question about the least probable pair that is neither answered nor pending; None if all are."""
        found = (Pair(row, other, why="Is this right?", check=True) for row, other in self.doubtful.tolist())
        done = view.asked | view.pending
        return next((pair for pair in found if pair.key not in done), None)


def posterior_of(view: View, kernels: KernelSum, key: str, *, searched: bool = False) -> Posterior:
    """The posterior given all answers and prior constraints of a view, computed once per answer.

    If `searched`, only the answers up to the last search are used, so that the posterior is computed once per search.
    """
    answers = _all_answers(view)
    if searched:
        answers = answers.until(last_search(len(answers.first)))
    state = _chain(view, kernels, key).state(kernels, answers, view.n_clusters, view.error_rate)
    place = "posterior at the last search" if searched else "posterior"
    last: tuple[object, KernelSum, Posterior] | None = view.latest.get(place)
    if last is not None and last[0] is state and last[1] is kernels:
        return last[2]
    found = fit_posterior(kernels, answers, state)
    view.latest[place] = (state, kernels, found)
    return found


def suspicion(view: View, kernels: KernelSum, key: str, least: float) -> Suspicion | None:
    """The suspicion that answers are wrong although none contradicts another; None if the evidence is below `least`.

    The evidence is the logarithm of how many times more probable the answers are with errors than without.
    """
    answers = _all_answers(view)
    groups = np.full(view.n_rows, -1)
    for place, one in enumerate(view.neighbourhoods):
        groups[one.rows] = place
    n_groups = max(view.n_clusters or 1 + int(kernels.partitions.max()), len(view.neighbourhoods))
    certain = without_errors(kernels, answers, groups, n_groups)
    if certain.most < least:  # most often, so that there is no search
        return None
    state = _chain(view, kernels, key).state(kernels, answers, view.n_clusters, view.error_rate)
    if state.score + log_evidence(answers, state.rates) - certain.score < least:
        return None
    return Suspicion(_doubtful_pairs(state, groups))


def _doubtful_pairs(state: State, groups: IntArray) -> IntArray:
    """The implied pairs that the beliefs about named rows contradict, the least probable first."""
    placed = np.flatnonzero(groups[state.rows] >= 0)
    beliefs, mine = state.beliefs[placed], groups[state.rows[placed]]
    together = beliefs @ beliefs.T
    right = np.where(mine[:, None] == mine, together, 1 - together)
    one, two = np.nonzero(np.triu(right < _DOUBTFUL, 1))
    order = np.argsort(right[one, two], kind="stable")
    return state.rows[placed[np.column_stack([one, two])[order]]]


def _chain(view: View, kernels: KernelSum, key: str) -> Chain:
    """The states along the log."""
    return view.once(f"chain {key} {kernels.partitions.max()}", Chain)


def _all_answers(view: View) -> AnswerArrays:
    """Certain prior constraints, then the answers."""
    answers = view.answer_arrays
    pairs, together, confidence = known_pairs(view.prior)
    if not len(pairs):
        return answers
    kept = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), _MOST_CERTAIN)).astype(np.int64))
    signs = np.where(together[kept], 1, -1)
    prior = np.column_stack([pairs[kept], signs, np.full(len(kept), CERTAIN)])
    columns = np.column_stack([answers.first, answers.second, answers.sign, answers.annotator])
    return AnswerArrays.of(np.concatenate([prior, columns]), np.concatenate([confidence[kept], answers.confidence]))


def next_opinion(view: View, kernels: KernelSum, posterior: Posterior) -> Pair | None:
    """The question expected to improve the posterior most; None if no row is in doubt.

    Rows of pending questions, and of answers that the posterior does not use yet, have to wait.
    """
    answers, n_used = _all_answers(view), posterior.state.n_answers
    late = np.column_stack([answers.first[n_used:], answers.second[n_used:]])
    busy = np.concatenate([np.array([*view.pending], dtype=np.int64).reshape(-1, 2), late])
    if view.n_answers % _COMPARE_EVERY == 1 and (pair := _same_group(view, posterior, busy)) is not None:
        return pair
    rows = _ranked(view, kernels, posterior, busy)
    why = "Where does this row belong?"
    prototypes = posterior.prototypes[~np.isin(posterior.prototypes, busy)]
    if len(prototypes) and view.n_answers % _EXPLORE_EVERY == 0:
        rows = np.concatenate([prototypes[:1], rows])
        why = "Is this a new group?"
    for row in rows.tolist():
        for group in np.argsort(-posterior.probabilities[row], kind="stable").tolist():
            member = _member(view, posterior, group, row)
            if member is not None:
                is_again = np.isin(row, posterior.state.rows)
                return Pair(row, member, why="A second opinion" if is_again else why, check=True)
    return None


def _ranked(view: View, kernels: KernelSum, posterior: Posterior, busy: IntArray) -> IntArray:
    """Rows worth a question, best first: rows in doubt whose neighbours are in doubt too."""
    probabilities = posterior.probabilities
    if probabilities.shape[1] == 1:
        return np.empty(0, dtype=np.int64)
    best = np.partition(probabilities, -2, axis=1)[:, -2:]
    doubt = 1 - (best[:, 1] - best[:, 0])
    around = doubt
    for _ in range(_STEPS):
        around = kernels.walk @ around
    named = np.zeros(view.n_rows, dtype=bool)
    named[posterior.state.rows] = True
    scores = around * np.where(named, doubt, doubt + _NEW_ROW)
    unsure = np.zeros(view.n_rows, dtype=bool)
    unsure[[row for pair in view.unsure for row in pair]] = True
    open_rows = ~named | (doubt > _SETTLED)
    open_rows[busy] = False
    rows = np.flatnonzero(open_rows)
    return rows[np.lexsort((-scores[rows], unsure[rows]))]


def _member(view: View, posterior: Posterior, group: int, row: int) -> int | None:
    """A confident member of a group that was not compared with the row; members take turns."""
    places = np.flatnonzero(posterior.groups == group)
    members = posterior.state.rows[places]
    beliefs = np.round(posterior.state.beliefs[places, group] / _BELIEF_STEP)
    order = np.lexsort((_n_compared(view)[members], -beliefs))
    for member in members[order].tolist():
        key = Pair(row, member).key
        if member != row and key not in view.asked and key not in view.pending:
            return int(member)
    return None


def _n_compared(view: View) -> IntArray:
    """Number of questions in which each row was the second row."""
    return np.bincount(view.said[:, 1], minlength=view.n_rows)


def _same_group(view: View, posterior: Posterior, busy: IntArray) -> Pair | None:
    """A question about two groups that are similar and that few answers separate; None if there are none."""
    probabilities, found = posterior.probabilities, np.unique(posterior.groups)
    n_groups = probabilities.shape[1]
    group_of = probabilities.argmax(axis=1)
    shared = np.zeros((n_groups, n_groups))
    np.add.at(shared, group_of, probabilities)
    shared /= np.maximum(np.bincount(group_of, minlength=n_groups), 1)[:, None]
    is_found = np.isin(np.arange(n_groups), found)
    is_open = is_found[:, None] & is_found & (posterior.between > -_KNOWN_APART) & ~np.eye(n_groups, dtype=bool)
    if not is_open.any():
        return None
    one, two = np.unravel_index(np.where(is_open, np.maximum(shared, shared.T), -1).argmax(), shared.shape)
    places = np.flatnonzero(posterior.groups == one)
    waiting = set(busy.ravel().tolist())
    for row in posterior.state.rows[places[np.argsort(-posterior.state.beliefs[places, one], kind="stable")]].tolist():
        member = None if row in waiting else _member(view, posterior, int(two), row)
        if member is not None:
            return Pair(row, member, why="Are these two groups the same?", check=True)
    return None


def annotator_errors(view: View, posterior: Posterior) -> dict[str, AnnotatorErrors]:
    """Errors of every annotator, by `name_key`."""
    answers = view.answer_arrays
    n_prior = len(posterior.agreement) - len(answers.first)
    return count_errors(answers, posterior.agreement[n_prior:], view.annotators)


def answer_doubts(view: View, posterior: Posterior) -> dict[tuple[int, int], float]:
    """Probability that the answers about each pair are wrong; of several answers, the highest one."""
    answers = view.answer_arrays
    doubts = 1 - posterior.agreement[len(posterior.agreement) - len(answers.first) :]
    pairs = np.sort(np.column_stack([answers.first, answers.second]), axis=1)
    order = np.argsort(np.nan_to_num(doubts), kind="stable")
    return dict(zip(map(tuple, pairs[order].tolist()), doubts[order].tolist(), strict=True))


def pair_beliefs(view: View, posterior: Posterior) -> dict[tuple[int, int], float]:
    """Probability that the two rows of each answered pair are in one group; NaN if it is unknown."""
    answers = view.answer_arrays
    right = posterior.agreement[len(posterior.agreement) - len(answers.first) :]
    together = np.where(answers.sign > 0, right, 1 - right)
    pairs = np.sort(np.column_stack([answers.first, answers.second]), axis=1)
    return dict(zip(map(tuple, pairs.tolist()), together.tolist(), strict=True))


def likely_labels(view: View, posterior: Posterior) -> tuple[IntArray, IntArray]:
    """The most probable group of each row that satisfies all prior constraints and corrections.

    The second array has the label of each group.
    """
    certain = certain_constraints(view)
    closed = certain.closure()
    n_clusters = posterior.probabilities.shape[1]
    while True:
        try:
            clusters = cluster_labels(closed, n_clusters)
            known = class_clusters(closed, clusters)
            blocks = np.flatnonzero((closed.sizes > 1) | closed.tied | (known >= 0))
            probabilities, group_of = _columns_of_known(posterior.probabilities, closed.component_of, known, n_clusters)
            found = hard_assignment(certain, closed, blocks, known[blocks].astype(np.int32), probabilities, WORK_LIMIT)
            break
        except InfeasibleConstraintsError:  # the constraints need more clusters than there are groups
            n_clusters += 1
    labels = probabilities.argmax(axis=1)
    of_component = np.full(closed.n_components, -1)
    of_component[blocks] = found
    decided = of_component[closed.component_of]
    label_of = np.empty_like(clusters)
    label_of[group_of] = clusters
    return clusters[np.where(decided >= 0, decided, labels)], label_of


def certain_constraints(view: View) -> Constraints:
    """Prior constraints without doubt, and corrections and facts. They hold even if answers are wrong."""
    return view.prior.at_least(1.0) | _volunteered(view)


def _columns_of_known(
    probabilities: FloatArray, component_of: IntArray, known: IntArray, n_clusters: int
) -> tuple[FloatArray, IntArray]:
    """Reorder the columns of the probabilities so that each known class has the column with most of its probability.

    The second array has the former place of each column.
    """
    padded = np.full((len(probabilities), n_clusters), np.finfo(np.float64).tiny)
    padded[:, : probabilities.shape[1]] = probabilities
    cluster_of_row = known[component_of]
    rows = np.flatnonzero(cluster_of_row >= 0)
    mass = np.zeros((n_clusters, n_clusters))
    np.add.at(mass, cluster_of_row[rows], padded[rows])
    _, column = linear_sum_assignment(mass, maximize=True)
    return padded[:, column], column


def _volunteered(view: View) -> Constraints:
    """Corrections and facts, as constraints, without those that contradict earlier ones."""
    answers = view.answer_arrays
    mine = answers.annotator == CERTAIN
    pairs, same = np.column_stack([answers.first[mine], answers.second[mine]]), answers.sign[mine] > 0
    together = Knowledge(view.prior.at_least(1.0).closure())
    said = zip(pairs.tolist(), same.tolist(), strict=True)
    used = np.array(
        [together.add(one, two, SAME if joins else DIFFERENT) for (one, two), joins in said], dtype=np.bool_
    )
    return Constraints(pairs[used & same], pairs[used & ~same], n_samples=view.n_rows)
