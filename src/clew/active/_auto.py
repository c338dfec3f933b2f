"""Ask about rows in uncertain regions and propagate every answer: clew's own strategy, and the default."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew._validation import check_parameters, integer, words
from clew.active._annotators import AnnotatorErrors
from clew.active._answer_errors import SUSPICIOUS, check_question, is_crowd, n_used, own_probabilities, placed_rows
from clew.active._answers import Pair
from clew.active._explore_consolidate import half_placed
from clew.active._group_sizes import Comparison, data_show_small_groups, groups_keep_appearing, may_be_many
from clew.active._group_tree import LargeGroups, TreeQuestions
from clew.active._group_tree import groups_keep_appearing as vector_groups_keep_appearing
from clew.active._posterior import Posterior
from clew.active._representatives import LabelsAt, MicroClusters, n_micro_clusters, point_view
from clew.active._second_opinions import (
    Suspicion,
    annotator_errors,
    answer_doubts,
    certain_constraints,
    likely_labels,
    next_opinion,
    pair_beliefs,
    posterior_of,
    suspicion,
)
from clew.active._strategy import PairOpinions, Strategy
from clew.active._uncertain_matches import UncertainMatches
from clew.active._view import View
from clew.constraints import Constraints
from clew.exceptions import InfeasibleConstraintsError
from clew.graph._gaussian_process import (
    KernelWeights,
    LabelledRows,
    class_probabilities,
    concatenated,
    fit_weights,
    prior_weights,
)
from clew.graph._graph_propagation import graph_propagation, many_groups_labels, unlabelled_medoids
from clew.graph._kernels import (
    MANY_GROUPS,
    KernelSum,
    NeighborGraph,
    build_kernels,
    graph_of_columns,
    guess_n_clusters,
    standard,
)
from clew.graph._many_groups import best_two, sparse_probabilities
from clew.partitional._seeding import cluster_labels

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Steps of the random walk that average the uncertainty of neighbours. A row scores the average times its own
# uncertainty plus the second value.
_STEPS, _OWN = 2, 0.3
# While clusters are missing, every third row comes from a base cluster without answers.
_EXPLORE_EVERY = 3
# Price of a violated soft pair, in units of log-probability.
_PENALTY = 3.0
# Errors are suspected among so many answers if they are more probable than none by this factor, as a logarithm.
_SUSPECTED_ANSWERS, _SUSPICION = (3, 40), float(np.log(10))


class Auto(Strategy):
    """Ask about rows in uncertain regions and propagate every answer to all rows.

    Neighbourhoods, the sets of rows known to be together, are the labelled rows from which `GraphPropagation` computes
    class probabilities. The next row is one with a small margin between its two most probable neighbourhoods, in a
    region where the neighbours have small margins too. The row is compared with neighbourhoods in order of probability,
    so that most rows take one question. While clusters are missing, every third row is the medoid of a base cluster
    without answers. If answers may be wrong, their probabilities are computed together, and the strategy asks for
    second opinions about doubtful rows.

    Parameters
    ----------
    groups : {"auto", "large", "small"}, default="auto"
        "small" is for very many groups of few rows, such as duplicate records: `UncertainMatches` then asks and makes
        the labels, with the same parameters. The number of groups need not be known. "auto" finds out: groups are large
        if their number is given, else the data or the first answers decide (`docs/duplicates.md` says how). If there
        are many groups that are not small, questions are about a tree of clusters.
    n_neighbors : int, default=10
        Number of neighbours of a row in the graph. For small groups: number of nearest rows that are candidates.
    random_state : int, default=0
        Seed of the base partitions. It is separate from the seed of `Questions`, so that a resumed log meets the same
        partitions.

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

    has_labels = True

    def __init__(self, *, groups: str = "auto", n_neighbors: int = 10, random_state: int = 0) -> None:
        self.groups, self.n_neighbors, self.random_state = groups, n_neighbors, random_state
        allowed = {"groups": words("auto", "large", "small"), "n_neighbors": integer(1), "random_state": integer(0)}
        check_parameters(self, allowed)
        self.keeps_n_clusters = groups != "small"

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Yield one question at a time, each computed from the view alone, so that a fresh start asks the same."""
        while True:
            if (test := self.comparison_pair(view)) is not None:
                yield test
                continue
            if (asker := self._other_asker(view)) is not None:
                question = asker.next_question(view)
                if question is None:
                    return
                yield question
                continue
            model = self._model(view)
            if self._knows_of_errors(view):
                beliefs = self._beliefs(model, searched=is_crowd(model.view))
                question = next_opinion(model.view, model.kernels, beliefs)
                if question is None:
                    return
                yield model.in_rows(question)
                continue
            posterior = self._posterior(model)
            suspected = self._suspicion(model) if self._may_suspect(view) else None
            if suspected is None:
                check = check_question(model.view, posterior.labelled, posterior.own_probabilities)
            else:
                check = suspected.check(model.view)
            if check is None and view.may_check(urgent=suspected is not None):
                check = _presumption(model.view, posterior)
            if check is not None:
                check = model.in_rows(check)
                yield check  # the driver forwards only a small share of check questions
                if check.key in view.asked:
                    continue
            question = _next_question(model.view, posterior)
            if question is None:
                return
            yield model.in_rows(question)

    def labels(self, view: View) -> IntArray:
        """Labels by `GraphPropagation` from all constraints, by a tree for many groups, or by `MatchClustering`."""
        if (asker := self._other_asker(view)) is not None:
            return asker.labels(view)
        model = self._model(view)
        return model.labels_of_rows(*self._labels(model, doubtful=self._knows_of_errors(view)))

    def _labels(self, model: _Model, *, doubtful: bool) -> tuple[IntArray, LabelsAt | None]:
        """Labels of the rows of a model, and a function that predicts labels of further rows, if there is one."""
        if doubtful:
            posterior = self._beliefs(model)
            labels, label_of = likely_labels(model.view, posterior)
            return labels, lambda rows: label_of[posterior.model.probabilities(rows).argmax(axis=1)]
        known = model.view.constraints()
        certain = known.at_least(1.0).closure()
        n_clusters = max(model.n_clusters, len(model.view.neighbourhoods))
        while True:
            try:
                clusters = cluster_labels(certain, n_clusters)
                if n_clusters > MANY_GROUPS:
                    return clusters[many_groups_labels(model.kernels, known, clusters, penalty=_PENALTY)], None
                found = graph_propagation(model.kernels, known, clusters, penalty=_PENALTY, is_averaged=True)
                break
            except InfeasibleConstraintsError:  # the constraints need more clusters than n_clusters
                n_clusters += 1
        labels_at = found.labels_at
        assert labels_at is not None
        return clusters[found.labels], lambda rows: clusters[labels_at(rows)]

    def probabilities(self, view: View, labels: IntArray) -> FloatArray | None:
        """Probability that each row belongs to its group, if groups are small."""
        return self._matches().probabilities(view, labels) if self.has_small_groups(view) else None

    def certain_constraints(self, view: View) -> Constraints | None:
        """Prior constraints and corrections if answers may be wrong; None while answers are facts."""
        if self.has_small_groups(view):
            return self._matches().certain_constraints(view)
        doubts = self._knows_of_errors(view) or (view.expects_errors and self.has_many_groups(view))
        return certain_constraints(view) if doubts else None

    def opinions(self, view: View, pairs: IntArray) -> PairOpinions | None:
        """What the pair model says about answered pairs, if groups are small."""
        return self._matches().opinions(view, pairs) if self.has_small_groups(view) else None

    def repeats_questions(self, view: View) -> bool:
        """Whether second opinions may be about the same pairs: if groups are small or many, and answers look wrong."""
        if self.has_small_groups(view):
            return self._matches().repeats_questions(view)
        return view.expects_errors and self.has_many_groups(view)

    def has_small_groups(self, view: View) -> bool:
        """Whether groups are treated as small, because of the user's choice, the data, or the first answers."""
        if self.groups != "auto" or view.n_clusters is not None:
            return self.groups == "small"
        if data_show_small_groups(view):
            return True
        if view.records is None or not groups_keep_appearing(view):
            return False
        compared = self._comparison(view)
        return compared.next_pair(view) is None and compared.small_is_better(view)

    def has_many_groups(self, view: View) -> bool:
        """Whether the answers show more groups than large groups of an unknown number can be."""
        return self._may_be_many(view) and self._tree().has_many_groups(view, self._large_groups(view))

    def comparison_pair(self, view: View) -> Pair | None:
        """The next question that tells whether groups are large, many, or small, if that is in doubt."""
        if self.groups != "auto" or view.n_clusters is not None or data_show_small_groups(view):
            return None
        if view.records is not None and groups_keep_appearing(view):
            pair = self._comparison(view).next_pair(view)
            if pair is not None:
                return pair
        return self._tree().comparison_pair(view, self._large_groups(view)) if self._may_be_many(view) else None

    def _may_be_many(self, view: View) -> bool:
        """Whether groups of an unknown number are not small, and new ones keep appearing."""
        if self.groups != "auto" or view.n_clusters is not None or data_show_small_groups(view):
            return False
        if view.records is None:
            self._tree().prepare(view)
            return vector_groups_keep_appearing(view)
        if not groups_keep_appearing(view):
            return False
        compared = self._comparison(view)
        if compared.next_pair(view) is not None or compared.small_is_better(view):
            return False
        return may_be_many(view, compared.keys)

    def _comparison(self, view: View) -> Comparison:
        def compare() -> Comparison:
            large, small = self._large_labels(view), self._matches().unanswered_labels(view)
            return Comparison.of(large, small, np.random.default_rng(0))

        return view.once(f"auto comparison {self.n_neighbors} {self.random_state}", compare)

    def _large_groups(self, view: View) -> LargeGroups:
        """The large groups with which the tree of many groups is compared."""
        key = f"{self._key} large groups"
        return view.once(key, lambda: LargeGroups.of(self._large_labels(view), self._guess(view)))

    def _large_labels(self, view: View) -> IntArray:
        """A base partition of all rows into large groups."""
        kernels, micro = self._kernels(view), self._micro_clusters(view)
        large = kernels.partitions[prior_weights(kernels).partition]
        return large if micro is None else large[micro.of_row]

    def annotator_errors(self, view: View) -> dict[str, AnnotatorErrors]:
        """Estimated errors of every annotator; empty while answers are facts, or if groups are small."""
        model = self._model_of_evidence(view)
        return {} if model is None else annotator_errors(model.view, self._beliefs(model))

    def answer_doubts(self, view: View) -> dict[tuple[int, int], float] | None:
        """Probability that the answers about each pair are wrong; None while answers are facts, or for small groups."""
        model = self._model_of_evidence(view)
        return None if model is None else model.values_of_rows(answer_doubts(model.view, self._beliefs(model)))

    def pair_beliefs(self, view: View) -> dict[tuple[int, int], float] | None:
        """Probability that the rows of each answered pair are together; None while answers are facts."""
        model = self._model_of_evidence(view)
        return None if model is None else model.values_of_rows(pair_beliefs(model.view, self._beliefs(model)))

    def _model_of_evidence(self, view: View) -> _Model | None:
        """The model if answers may be wrong; None while answers are facts, or if groups are small."""
        if self.has_small_groups(view) or not self._knows_of_errors(view):
            return None
        return self._model(view)

    def _other_asker(self, view: View) -> UncertainMatches | TreeQuestions | None:
        """What asks and makes the labels instead, if groups are small or many; None if they are few and large."""
        if self.has_small_groups(view):
            return self._matches()
        return self._tree() if self.has_many_groups(view) else None

    def _tree(self) -> TreeQuestions:
        return TreeQuestions(self.random_state)

    def _matches(self) -> UncertainMatches:
        return UncertainMatches(n_neighbors=self.n_neighbors, random_state=self.random_state)

    def _beliefs(self, model: _Model, *, searched: bool = False) -> Posterior:
        """The posterior given all answers, or the answers up to the last search, if they may be wrong."""
        key = f"{self.n_neighbors} {self.random_state}"
        return posterior_of(model.view, model.kernels, key, searched=searched)

    def _model(self, view: View) -> _Model:
        """What questions and labels are computed from: all rows, or representatives if there are many rows."""
        kernels, micro = self._kernels(view), self._micro_clusters(view)
        if micro is None:
            return _Model(view, kernels, self._n_clusters(view), _same, _labels_of_model, _same)
        of_points = point_view(view, micro)
        points, inner = of_points.points, of_points.view
        between = inner.once(f"{self._key} {kernels.partitions.max()}", lambda: points.kernels(kernels))

        def labels_of_rows(labels: IntArray, labels_at: LabelsAt | None) -> IntArray:
            if labels_at is None:
                return of_points.nearest_labels(labels)
            return of_points.labels(labels, labels_at, between, self._partitions(view, micro, kernels))

        return _Model(
            inner, between, self._n_clusters(view), of_points.in_rows, labels_of_rows, of_points.values_of_rows
        )

    @property
    def _key(self) -> str:
        return f"auto {self.n_neighbors} {self.random_state}"

    def _micro_clusters(self, view: View) -> MicroClusters | None:
        """Micro-clusters of the rows; None if there are few rows, which then stand for themselves."""
        n_micro = n_micro_clusters(view.n_rows, view.n_clusters)
        if n_micro is None:
            return None
        key = f"micro-clusters {n_micro} {self.random_state}"
        return view.once(key, lambda: MicroClusters.of(view.X, n_micro, self.random_state))

    def _n_clusters(self, view: View) -> int:
        """The given number of clusters; else the number of neighbourhoods, and at least the guess from the spectrum."""
        if view.n_clusters is not None:
            return view.n_clusters
        return min(max(self._guess(view), len(view.neighbourhoods)), view.n_rows)

    def _guess(self, view: View) -> int:
        """The number of clusters that the spectrum suggests."""
        return guess_n_clusters(self._neighbor_graph(view))

    def _neighbor_graph(self, view: View) -> NeighborGraph:
        """The graph of rows or micro-clusters."""

        def build() -> NeighborGraph:
            micro = self._micro_clusters(view)
            columns = standard(view.X) if micro is None else micro.centers
            return graph_of_columns(columns, self.n_neighbors, self.random_state)

        return view.once(f"{self._key} {n_micro_clusters(view.n_rows, view.n_clusters)}", build)

    def _kernels(self, view: View) -> KernelSum:
        """Kernels between rows or micro-clusters for the given or guessed number of clusters.

        Neighbourhoods found later do not change them.
        """
        n_clusters = view.n_clusters or self._guess(view)
        key = f"{self._key} kernels {n_clusters}"
        return view.once(key, lambda: build_kernels(self._neighbor_graph(view), n_clusters, self.random_state))

    def _partitions(self, view: View, micro: MicroClusters, kernels: KernelSum) -> npt.NDArray[np.int32]:
        """The base partitions of all rows."""
        return view.once(f"{self._key} partitions {kernels.partitions.max()}", lambda: micro.partitions(kernels))

    def kernel_sum(self, view: View) -> KernelSum:
        """Kernels between all rows."""
        kernels, micro = self._kernels(view), self._micro_clusters(view)
        return kernels if micro is None else micro.kernels_of_rows(kernels)

    def suspects_errors(self, view: View) -> bool:
        """Whether some answers are much more probable to be wrong than all to be right, while none contradicts others.

        A check question decides, so errors are suspected only while there is room for one more.
        """
        return self._may_suspect(view) and self._suspicion(self._model(view)) is not None

    def _may_suspect(self, view: View) -> bool:
        """Whether it is worthwhile to look for errors among few answers without contradictions."""
        low, high = _SUSPECTED_ANSWERS
        if not low <= view.n_answers <= high or view.expects_errors or not view.has_urgent_check:
            return False
        return self._other_asker(view) is None and self._weighs_answers(view)

    def _suspicion(self, model: _Model) -> Suspicion | None:
        """What `suspects_errors` finds, computed once per answer."""
        view, kernels = model.view, model.kernels
        last: tuple[int, KernelSum, Suspicion | None] | None = view.latest.get("suspicion")
        if last is None or last[0] != view.n_answers or last[1] is not kernels:
            key = f"{self.n_neighbors} {self.random_state}"
            last = view.n_answers, kernels, suspicion(view, kernels, key, _SUSPICION)
            view.latest["suspicion"] = last
        return last[2]

    def _knows_of_errors(self, view: View) -> bool:
        """Whether answers may be wrong because of a given error rate or a contradiction."""
        return view.expects_errors and self._weighs_answers(view)

    def _weighs_answers(self, view: View) -> bool:
        """Whether answers are evidence if some may be wrong.

        With very many groups, the posterior over all of them would take minutes, so answers are facts.
        """
        if not len(view.answer_arrays.first) or (view.n_clusters or 1) > MANY_GROUPS:
            return False
        return not self.has_many_groups(view)

    def _posterior(self, model: _Model) -> _ClassProbabilities:
        """Class probabilities of all rows, recomputed only if the rows that the model uses have changed."""
        view, kernels, at = model.view, model.kernels, (model.view.n_answers, n_used(model.view))
        last: _ClassProbabilities | None
        last_at, last = view.latest.get("auto", (None, None))
        if last is not None and last.kernels is kernels and last_at == at:
            return last
        labelled = placed_rows(view) if view.neighbourhoods else None
        known = (
            b"" if labelled is None else labelled.rows.tobytes() + labelled.classes.tobytes(),
            len(view.unsure) if labelled is None else 0,
        )
        if last is None or last.kernels is not kernels or last.known != known:
            last = self._new_posterior(view, kernels, known, model.n_clusters)
        view.latest["auto"] = at, last
        return last

    def _new_posterior(
        self, view: View, kernels: KernelSum, known: tuple[bytes, int], n_clusters: int
    ) -> _ClassProbabilities:
        start = np.zeros(1, dtype=np.int64), np.ones(1)
        labelled = placed_rows(view) if view.neighbourhoods else LabelledRows(_start(view, kernels), *start)
        n_classes = max(int(labelled.classes.max()) + 1, n_clusters)
        probabilities: FloatArray | sparse.csr_array
        if n_classes > MANY_GROUPS:
            medoids = unlabelled_medoids(kernels, labelled, kernels.unconstrained, n_clusters)
            probabilities = sparse_probabilities(kernels, labelled, n_classes)
            return _ClassProbabilities(known, kernels, labelled, prior_weights(kernels), medoids.rows, probabilities)
        weights = fit_weights(kernels, labelled) if view.neighbourhoods else prior_weights(kernels)
        medoids = unlabelled_medoids(kernels, labelled, weights.partition, n_clusters)
        probabilities = class_probabilities(kernels, concatenated(labelled, medoids), weights, n_classes)
        return _ClassProbabilities(known, kernels, labelled, weights, medoids.rows, probabilities)


class _Model(NamedTuple):
    """What questions and labels are computed from. Its rows are the rows of the data, or points that represent them."""

    view: View
    kernels: KernelSum
    n_clusters: int
    in_rows: Callable[[Pair], Pair]
    labels_of_rows: Callable[[IntArray, LabelsAt | None], IntArray]
    values_of_rows: Callable[[dict[tuple[int, int], float]], dict[tuple[int, int], float]]


def _same(found: Any) -> Any:
    """What is about rows already."""
    return found


def _labels_of_model(labels: IntArray, labels_at: LabelsAt | None) -> IntArray:
    """Labels of a model whose rows are all rows."""
    return labels


@dataclass(frozen=True)
class _ClassProbabilities:
    """Class probabilities: first of the neighbourhoods, then of base clusters without labelled rows.

    With more than `MANY_GROUPS` classes, their matrix is sparse.
    """

    known: tuple[bytes, int]
    kernels: KernelSum
    labelled: LabelledRows
    weights: KernelWeights
    medoids: IntArray
    probabilities: FloatArray | sparse.csr_array

    @cached_property
    def class_of(self) -> dict[int, int]:
        """The class of each labelled row."""
        return dict(zip(self.labelled.rows.tolist(), self.labelled.classes.tolist(), strict=True))

    @cached_property
    def own_probabilities(self) -> FloatArray:
        """Leave-one-out probability of each labelled row's class; 1 with very many classes, which are not checked."""
        if self.is_sparse:
            return np.ones(len(self.labelled.rows))
        return own_probabilities(self.kernels, self.labelled, self.weights)

    @cached_property
    def ranking(self) -> IntArray:
        """All rows, those in the most uncertain regions first. Questions until the next update share this ranking."""
        return np.argsort(-region_uncertainty(self.kernels, self.probabilities), kind="stable")

    @property
    def is_sparse(self) -> bool:
        """Whether there are very many classes."""
        return sparse.issparse(self.probabilities)

    def of_row(self, row: int) -> FloatArray:
        """Probability of each class for a row."""
        found = self.probabilities[[row]]
        return np.asarray(found.toarray() if sparse.issparse(found) else found)[0]  # type: ignore[union-attr]


def _start(view: View, kernels: KernelSum) -> IntArray:
    """The row of the first neighbourhood: the medoid of the largest base cluster with the fewest "unsure" answers."""
    partition = prior_weights(kernels).partition
    prototypes = kernels.prototypes(partition)
    doubts = np.array([sum(row in pair for pair in view.unsure) for row in prototypes.tolist()])
    sizes = np.bincount(kernels.partitions[partition])
    return prototypes[np.lexsort((-sizes, doubts))[:1]]


def _next_question(view: View, posterior: _ClassProbabilities) -> Pair | None:
    """The best row that can be asked about, paired with its most probable open neighbourhood."""
    is_candidate = np.zeros(view.n_rows, dtype=bool)
    is_candidate[_candidates(view)] = True
    ranked = posterior.ranking[is_candidate[posterior.ranking]]
    why = "Where does this row belong?"
    medoids = posterior.medoids[is_candidate[posterior.medoids]]
    if medoids.size and int(view.placed.sum()) % _EXPLORE_EVERY == 1:
        ranked, why = np.concatenate([medoids[:1], ranked]), "Is this a new group?"
    for row in map(int, ranked):  # nearly always the first one: not all rows become Python integers
        member = _most_probable(view, posterior, row)
        if member is not None:
            return Pair(row, member, why=why)
    return None


def _presumption(view: View, posterior: _ClassProbabilities) -> Pair | None:
    """The least plausible row in the only group that is left for it, with a member of that group; None if plausible."""
    found, least = None, SUSPICIOUS
    for row in np.flatnonzero(view.presumed & view.named).tolist():
        for group in view.open_neighbourhoods(row):
            probability = posterior.of_row(row)[posterior.class_of[group.member]]
            if probability < least:
                found, least = Pair(row, group.member, why="Is this right?", check=True), probability
    return found


def _candidates(view: View) -> IntArray:
    """Rows to ask about: rows whose questions have begun, else rows without an "unsure" answer, else all."""
    rows = view.unplaced()
    is_doubtful = np.zeros(view.n_rows, dtype=bool)
    is_doubtful[[row for pair in view.unsure for row in pair]] = True
    sure = rows[~is_doubtful[rows]]
    first = half_placed(view, sure) if view.records is None else sure[begun(view)[sure]]
    return first if first.size and view.neighbourhoods else sure if sure.size else rows


def begun(view: View) -> npt.NDArray[np.bool_]:
    """Rows of a table that were compared with a row of a neighbourhood.

    Questions that compare partitions are about random pairs. Their rows are not begun: to finish all of them would take
    a question for each row and each neighbourhood.
    """
    answers, is_begun = view.answer_arrays, np.zeros(view.n_rows, dtype=bool)
    for one, other in ((answers.first, answers.second), (answers.second, answers.first)):
        is_begun[one[view.placed[other]]] = True
    return is_begun


def region_uncertainty(kernels: KernelSum, probabilities: FloatArray | sparse.csr_array) -> FloatArray:
    """Uncertainty (one minus the margin of the best two classes) of each row, times the mean of its neighbours."""
    if probabilities.shape[1] == 1:
        return np.ones(len(probabilities))
    if sparse.issparse(probabilities):
        _, first, second = best_two(probabilities)
        own = 1 - (first - second)
    else:
        best = np.partition(probabilities, -2, axis=1)[:, -2:]
        own = 1 - (best[:, 1] - best[:, 0])
    around = own
    for _ in range(_STEPS):
        around = kernels.walk @ around
    return around * (own + _OWN)


def _most_probable(view: View, posterior: _ClassProbabilities, row: int) -> int | None:
    """The representative of the most probable neighbourhood that a row may still belong to."""
    if not view.neighbourhoods:
        start = int(posterior.labelled.rows[0])
        return start if view.is_open(row, start) else None
    members = [one.member for one in view.open_neighbourhoods(row)]
    of_row = posterior.of_row(row)
    probabilities = [of_row[posterior.class_of[member]] for member in members]
    return members[int(np.argmax(probabilities))] if members else None
