"""Ask about the candidate pairs whose answers are expected to change most pairs of records."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from clew._validation import check_parameters, integer
from clew.active._annotators import CERTAIN
from clew.active._answer_errors import error_rate
from clew.active._answers import Pair
from clew.active._distances import distances_to
from clew.active._match_groups import group_answers
from clew.active._match_stakes import clusters_around, expected_changes, judged_by_clusters
from clew.active._strategy import PairOpinions, Strategy
from clew.active._view import View
from clew.constraints import Constraints
from clew.datasets import Table
from clew.matching._explanation import comparison
from clew.matching._fellegi_sunter import MOST_LOG_ODDS
from clew.matching._match_clustering import Matcher, grouped, row_probabilities
from clew.matching._noisy_answers import MANY_ERRORS, NoisyFit, fit_noisy
from clew.matching._pair_model import ANSWER_WEIGHT, Answers, Candidates, PairModel, build_candidates, known_answers
from clew.matching._records import fields_of

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# The defaults of `MatchClustering`.
_PRIOR_STRENGTH, _MISSING_WEIGHT = 40.0, -1.0
# Largest number of candidates, nearest to even odds first, whose uncertainty is computed.
_MOST_SCORED = 3_000
# Largest number of answers about one pair. After the second one, the votes may be even.
_MOST_ASKED = 3
# Below this number of answers, too little is known to doubt any of them.
_FEW_ANSWERS = 10


class UncertainMatches(Strategy):
    """Ask about doubtful pairs of records, for many small groups whose number is unknown.

    The pair model of `MatchClustering` is fitted again after every answer. The next question is about two groups that
    may be one, or about a record that may not belong to its group: the more pairs of records the answer may change, the
    earlier it is asked. Once answers look wrong, doubtful ones are asked again, up to three times. `MatchClustering`
    makes the labels. If `Questions` has a table, its records are compared, else the vectors.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of nearest rows with which each row forms candidate pairs.
    random_state : int, default=0
        Seed of the labels.

    Examples
    --------
    >>> from clew.active import Oracle, Questions, UncertainMatches
    >>> questions = Questions([[0.0], [0.1], [5.0], [5.1]], UncertainMatches())
    >>> oracle = Oracle([0, 0, 1, 1])
    >>> while (pair := questions.ask()) is not None:
    ...     _ = questions.tell(pair, oracle(pair))
    >>> questions.labels()
    array([0, 0, 1, 1])
    """

    has_labels = True

    def __init__(self, *, n_neighbors: int = 10, random_state: int = 0) -> None:
        self.n_neighbors, self.random_state = n_neighbors, random_state
        check_parameters(self, {"n_neighbors": integer(1), "random_state": integer(0)})

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Yield one question at a time, each computed from the view alone, so that a fresh start asks the same."""
        while (question := self.next_question(view)) is not None:
            yield question

    def labels(self, view: View) -> IntArray:
        """Labels by `MatchClustering` from all constraints; answers may be overruled once some look wrong."""
        fitted, pairs = self._fitted(view), self._model(view).candidates.pairs
        rng = np.random.default_rng(self.random_state)
        if fitted.doubts is None:
            return grouped(pairs, fitted.log_odds, view.constraints().closure(), _MISSING_WEIGHT, rng)
        certain, others, right = fitted.doubts
        pairs = np.concatenate([pairs, np.sort(others[:, :2], axis=1)])
        log_odds = np.concatenate([fitted.log_odds, _MISSING_WEIGHT + others[:, 2] * right])
        return grouped(pairs, log_odds, certain.closure(), _MISSING_WEIGHT, rng)

    def unanswered_labels(self, view: View) -> IntArray:
        """Labels without any answer."""
        candidates, nothing = self._model(view).candidates, Constraints(n_samples=view.n_rows)
        rng = np.random.default_rng(self.random_state)
        return grouped(candidates.pairs, candidates.log_odds, nothing.closure(), _MISSING_WEIGHT, rng)

    def probabilities(self, view: View, labels: IntArray) -> FloatArray:
        """Probability that each row belongs to its group, see `MatchClustering.row_probabilities_`."""
        clusters = np.unique(labels, return_inverse=True)[1]
        pairs, fitted = self._model(view).candidates.pairs, self._fitted(view)
        known = view.constraints() if fitted.doubts is None else fitted.doubts.certain
        return row_probabilities(pairs, known_answers(pairs, known.closure()).decide(fitted.log_odds), clusters)

    def candidate_pairs(self, view: View) -> IntArray:
        """The pairs of rows that are compared."""
        return self._model(view).candidates.pairs

    def _model(self, view: View) -> PairModel:
        return self._matching(view).model

    def _matching(self, view: View) -> _Matching:
        def match() -> _Matching:
            matcher = Matcher.of(view.X if view.records is None else view.records, self.n_neighbors)
            candidates = build_candidates(matcher.rows, matcher.fields, matcher.keys, np.random.default_rng(0))
            kinds = {field.name: field.kind for field in matcher.fields}
            return _Matching(PairModel.of(candidates, _PRIOR_STRENGTH), kinds)

        return view.once(f"matches {self.n_neighbors}", match)

    def _fitted(self, view: View) -> _Fitted:
        """The model with the answers so far. It is only fitted again after a new answer."""
        last: _Fitted | None = view.latest.get("matches")
        if last is not None and last.n_answers == view.n_answers:
            return last
        view.latest["matches"] = fitted = self._doubting_fit(view) or self._trusting_fit(view)
        return fitted

    def _trusting_fit(self, view: View) -> _Fitted:
        """Fit the model to all answers and to the pairs that they imply.

        All pairs of a group of vectors look alike, by their distance alone. There, half of the weight of the answers
        is therefore evidence about groups, see `group_answers`. A pair of records may be the only one of its group
        that shows what a column says, so that averages would blur it.
        """
        (model, kinds), known = self._matching(view), view.constraints()
        answers = known_answers(model.candidates.pairs, known.closure())
        features = model.candidates.features[answers.places]
        coefficients, covariance = model.posterior(features, answers.same, answers.weights)
        asked = model.candidates.places_of(votes(view)[:, :2])
        asked = asked[asked >= 0]
        if len(asked) and not kinds:
            log_odds = model.log_odds(coefficients)
            coefficients, covariance = self._fit_with_groups(model, answers, asked, log_odds, known)
        return _Fitted(view.n_answers, model.log_odds(coefficients), covariance)

    def _fit_with_groups(
        self, model: PairModel, answers: Answers, asked: IntArray, log_odds: FloatArray, known: Constraints
    ) -> tuple[FloatArray, FloatArray]:
        """Fit the model half to answers, and half to evidence about the groups of the candidates that were asked about.

        The groups follow from the log-odds of all candidates and from constraints.
        """
        pairs, components = model.candidates.pairs, np.asarray(known.closure().component_of, dtype=np.int64)
        rng = np.random.default_rng(self.random_state)
        inside, clusters = clusters_around(asked, pairs, log_odds, components, known, _MISSING_WEIGHT, rng)
        groups = group_answers(model.candidates, inside, clusters, pairs[asked])
        return model.posterior(
            np.concatenate([model.candidates.features[answers.places], groups.features]),
            np.concatenate([answers.same, groups.same]),
            np.concatenate([answers.weights, groups.weights]) / 2,
        )

    def _doubting_fit(self, view: View) -> _Fitted | None:
        """Fit the model to answers that may be wrong; None while few of them look wrong.

        With vectors, half of the weight is evidence about groups, as in `_trusting_fit`. The groups leave out answers
        that are not believed.
        """
        rate = error_rate(view)
        if view.error_rate == 0 or (view.n_answers < _FEW_ANSWERS and not rate):
            return None
        certain = certain_constraints(view)
        found, asked = self._noisy_fit(view, certain, rate)
        if found.n_wrong < MANY_ERRORS and not rate:
            return None
        (model, kinds), said = self._matching(view), votes(view)
        is_candidate = model.candidates.places_of(said[:, :2]) >= 0
        coefficients, covariance = found.coefficients, found.covariance
        log_odds = model.log_odds(coefficients)
        log_odds[asked] = found.log_odds
        if len(asked) and not kinds:
            given = known_answers(model.candidates.pairs, certain.closure())
            same = np.where(said[is_candidate, 2] > 0, found.right, 1 - found.right)
            believed = Answers(
                np.append(asked, given.places),
                np.append(same, given.same),
                np.append(np.full(len(asked), ANSWER_WEIGHT), given.weights),
            )
            coefficients, covariance = self._fit_with_groups(model, believed, asked, log_odds, certain)
            log_odds = model.log_odds(coefficients)
            log_odds[asked] = found.log_odds
        doubts = _Doubts(certain, said[~is_candidate], np.log((1 - found.rate) / found.rate))
        return _Fitted(view.n_answers, log_odds, covariance, doubts)

    def _noisy_fit(self, view: View, certain: Constraints, rate: float) -> tuple[NoisyFit, IntArray]:
        """The model if answers may be wrong, and the candidate of each answer that it was fitted to."""
        model, said = self._model(view), votes(view)
        places = model.candidates.places_of(said[:, :2])
        known = known_answers(model.candidates.pairs, certain.closure())
        return fit_noisy(model, places[places >= 0], said[places >= 0, 2], known, rate), places[places >= 0]

    def opinions(self, view: View, pairs: IntArray) -> PairOpinions:
        """Probability that two rows are the same, from the model without the answers about them, and how they compare.

        The probability is that of the decision which the answer is about, see `judged_by_clusters`. Answers may be
        wrong here, even while the labels still trust all of them.
        """
        candidates, certain = self._model(view).candidates, certain_constraints(view)
        found, answered = self._noisy_fit(view, certain, error_rate(view))
        left_out = self._model(view).log_odds(found.coefficients)
        log_odds = left_out.copy()
        left_out[answered], log_odds[answered] = found.left_out, found.log_odds
        places = candidates.places_of(pairs)
        there = places[places >= 0]
        rng = np.random.default_rng(self.random_state)
        components = np.asarray(certain.closure().component_of, dtype=np.int64)
        inside, clusters = clusters_around(there, candidates.pairs, log_odds, components, certain, _MISSING_WEIGHT, rng)
        left_out[inside] = judged_by_clusters(
            log_odds[inside], left_out[inside], candidates.pairs[inside], clusters, components
        )
        # A pair that is no candidate has the log-odds that the clusters assume for it.
        said = np.full(len(pairs), _MISSING_WEIGHT)
        said[places >= 0] = np.clip(left_out[there], -MOST_LOG_ODDS, MOST_LOG_ODDS)
        return PairOpinions(expit(said), [self._words(view, place) for place in places.tolist()])

    def _why(self, view: View, place: int) -> str:
        words = self._words(view, place)
        return f"The rows compare as follows: {words}." if words else "The answer is expected to change most pairs."

    def _words(self, view: View, place: int) -> str:
        """How the two rows of a candidate compare; empty for vectors, and for a pair that is no candidate."""
        (model, kinds), records = self._matching(view), view.records
        if records is None or place < 0:
            return ""
        pair, columns = model.candidates.pairs[place], tuple(kinds)
        cells = {name: records.column(name)[pair] for name in columns}
        fields = fields_of(Table(records.source, cells, columns, 2), columns, kinds)
        return comparison(fields, model.candidates.levels[place].tolist(), 0, 1)

    def certain_constraints(self, view: View) -> Constraints | None:
        """Prior constraints and corrections once some answers look wrong; None while answers are facts."""
        doubts = self._fitted(view).doubts
        return None if doubts is None else doubts.certain

    def repeats_questions(self, view: View) -> bool:
        """Whether some answers look wrong, so that second opinions may be asked about the same pairs."""
        return self._fitted(view).doubts is not None

    def next_question(self, view: View) -> Pair | None:
        """The pair whose answer is expected to change most; None if no pair is open.

        If answers may be wrong, this may be a pair that was asked before.
        """
        model, fitted = self._model(view), self._fitted(view)
        pairs, log_odds = model.candidates.pairs, fitted.log_odds
        components = view.knowledge.components()
        n_asked = np.zeros(len(pairs), dtype=np.int64)
        if fitted.doubts is not None and view.may_check(repeated=True):
            n_asked = _times_asked(view, model.candidates)
        open_places = np.flatnonzero((components[pairs[:, 0]] != components[pairs[:, 1]]) | (n_asked > 0))
        scored = open_places[_smallest(np.abs(log_odds[open_places]), _MOST_SCORED)]
        known = view.constraints()
        if fitted.doubts is not None:
            known = fitted.doubts.certain
            components = np.asarray(known.closure().component_of, dtype=np.int64)
        rng = np.random.default_rng(self.random_state)
        inside, clusters = clusters_around(scored, pairs, log_odds, components, known, _MISSING_WEIGHT, rng)
        worth = np.zeros(len(pairs))
        worth[inside] = expected_changes(pairs[inside], log_odds[inside], clusters, components)
        for place in scored[np.argsort(-worth[scored], kind="stable")].tolist():
            one, two = pairs[place].tolist()
            if view.is_open(one, two):
                return Pair(one, two, why=self._why(view, place))
            if 0 < n_asked[place] < _MOST_ASKED and (one, two) not in view.waiting.pairs | view.unsure:
                return Pair(one, two, why="A second opinion: the model contradicts an answer.", check=True)
        if len(open_places) > len(scored):
            rest = open_places[np.argsort(np.abs(log_odds[open_places]), kind="stable")].tolist()
            place = next((place for place in rest if view.is_open(*pairs[place].tolist())), None)
            if place is not None:
                one, two = pairs[place].tolist()
                return Pair(one, two, why=self._why(view, place))
        return any_open_pair(view)


def votes(view: View) -> IntArray:
    """The answers "same" (1) and "different" (-1) of all annotators, without corrections: two rows and the answer."""
    answers = view.answer_arrays
    said = np.column_stack([answers.first, answers.second, answers.sign])
    return said[answers.annotator != CERTAIN].astype(np.int64)


def _times_asked(view: View, candidates: Candidates) -> IntArray:
    """How many answers "same" or "different" there are about each candidate, without corrections."""
    places = candidates.places_of(votes(view)[:, :2])
    return np.bincount(places[places >= 0], minlength=len(candidates.pairs)).astype(np.int64)


class _Matching(NamedTuple):
    """The pair model before the first answer, and the kind of each compared column; vectors have none."""

    model: PairModel
    kinds: dict[str, str]


class _Doubts(NamedTuple):
    """The evidence if answers may be wrong.

    Attributes
    ----------
    certain : Constraints
        Prior constraints and corrections.
    others : ndarray of shape (n_others, 3)
        Answers about pairs that are not candidates: two rows, then 1 for "same" or -1 for "different".
    log_odds : float
        Log-odds that an answer is right.
    """

    certain: Constraints
    others: IntArray
    log_odds: float


class _Fitted(NamedTuple):
    """Log-odds of the candidates after some answers, and the covariance of the coefficients.

    `doubts` is None while all answers are trusted.
    """

    n_answers: int
    log_odds: FloatArray
    covariance: FloatArray
    doubts: _Doubts | None = None


def certain_constraints(view: View) -> Constraints:
    """Prior constraints and corrections, which hold even if answers are wrong."""
    together, apart = ([pair[:2] for pair in sorted(view.stated) if pair[2] == sign] for sign in (1, -1))
    return view.prior | Constraints(together, apart, n_samples=view.n_rows)


def _smallest(values: FloatArray, n: int) -> IntArray:
    """Positions of the n smallest values, smallest first."""
    places = np.arange(len(values)) if len(values) <= n else np.argpartition(values, n)[:n]
    return places[np.lexsort((places, values[places]))]


def any_open_pair(view: View) -> Pair | None:
    """A row and the nearest row that may still belong with it, once every candidate is decided."""
    for row in range(view.n_rows):
        others = view.knowledge.open_rows(row)
        if not len(others):
            continue
        for other in others[np.argsort(distances_to(view.X, row)[others], kind="stable")].tolist():
            if view.is_open(row, other):
                return Pair(row, other, why="Are these the same? No near pair is left to ask about.")
    return None
