"""The driver: asking, answering, undoing, errors, progress."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clew import Constraints, COPKMeans
from clew.active import DIFFERENT, SAME, UNSURE, Answered, Oracle, Pair, Questions, Which
from clew.active._feedback import Feedback
from clew.active._min_max import MinMax
from clew.active._random_pairs import RandomPairs
from clew.exceptions import (
    ClewError,
    ContradictoryConstraintsError,
    InfeasibleConstraintsError,
    ParameterError,
    StrategyError,
)

LINE = np.arange(6, dtype=float)[:, None]
BLOBS = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
TRUTH = [0, 0, 0, 1, 1, 1]


class Asks:
    """Asks what it is given, in order, and remembers what it hears."""

    def __init__(self, *questions):
        self.questions, self.heard = questions, []

    def __call__(self, view, rng):
        for question in self.questions:
            answer = yield question
            self.heard.append(answer)


def run(questions, oracle, budget=10_000):
    for _ in range(budget):
        if (question := questions.ask()) is None:
            return
        questions.tell(question, oracle(question))
    raise AssertionError(f"still asking after {budget} questions")


def test_implied_pairs_are_answered_for_free():
    strategy = Asks(Pair(0, 1), Pair(1, 2), Pair(0, 2), Pair(2, 3), Pair(0, 3), Pair(0, 0))
    questions = Questions(LINE, strategy)
    for answer in (SAME, SAME, DIFFERENT):
        questions.tell(questions.ask(), answer)
    assert questions.ask() is None
    assert strategy.heard == [SAME, SAME, SAME, DIFFERENT, DIFFERENT, SAME]


def test_prior_knowledge_is_not_asked():
    prior = Constraints([(0, 1)], labels=[-1, -1, 0, 1, -1, -1], cannot_groups=[-1, -1, -1, -1, 0, 0])
    strategy = Asks(Pair(0, 1), Pair(2, 3), Pair(4, 5))
    assert Questions(LINE, strategy, constraints=prior).ask() is None
    assert strategy.heard == [SAME, DIFFERENT, DIFFERENT]


def test_contradictory_prior_knowledge_is_refused():
    with pytest.raises(ContradictoryConstraintsError):
        Questions(LINE, RandomPairs(), constraints=Constraints([(0, 1)], [(0, 1)], n_samples=6))


def test_answers_come_in_any_order_and_any_word():
    questions = Questions(LINE, Asks(Pair(0, 1), Pair(2, 3), Pair(4, 5)))
    batch = questions.ask(9)
    assert [one.key for one in batch] == [(0, 1), (2, 3), (4, 5)]
    for question, word in zip(batch[::-1], ["Yes", "cannot", "unsure"], strict=True):
        assert questions.tell(question, word)
    assert [entry.answer for entry in questions.answers] == [SAME, DIFFERENT, UNSURE]
    assert questions.pending == []
    assert_array_equal(questions.constraints.must_link, [[4, 5]])
    assert_array_equal(questions.constraints.cannot_link, [[2, 3]])


def test_a_batch_stops_where_questions_do():
    starts = []

    class Counts(Asks):
        def __call__(self, view, rng):
            starts.append(1)
            return super().__call__(view, rng)

    assert len(Questions(LINE, Counts(Pair(0, 1), Pair(2, 3))).ask(1000)) == 2
    assert len(starts) == 3


def test_a_pair_of_rows_names_its_question():
    questions = Questions(LINE, Asks(Pair(3, 1)))
    questions.ask()
    assert questions.tell((1, 3), "same", confidence=0.5)
    assert questions.constraints.must_link_confidence.tolist() == [0.5]


def test_a_contradiction_is_kept_out_of_use_and_explained():
    questions = Questions(LINE, Feedback())
    questions.tell((0, 1), SAME)
    questions.tell((1, 2), SAME)
    before = questions.constraints
    assert not questions.tell((0, 2), DIFFERENT)
    assert_array_equal(questions.constraints.must_link, before.must_link)
    assert len(questions.constraints.cannot_link) == 0
    (conflict,) = questions.conflicts
    assert conflict.chain == (0, 1, 2)
    assert questions.progress().conflicts == 1
    assert questions.revise((1, 2), DIFFERENT)
    assert questions.conflicts == [] and not questions.answers[-1].conflict
    assert_array_equal(questions.constraints.cannot_link, [[1, 2], [0, 2]])


def test_which_compiles_to_pairs():
    questions = Questions(LINE, Asks(Which(0, (1, 2, 3)), Which(4, (1, 2)), Which(5, (1, 2))))
    questions.tell(questions.ask(), 2)
    questions.tell(questions.ask(), "none")
    questions.tell(questions.ask(), UNSURE)
    assert_array_equal(questions.constraints.must_link, [[0, 2]])
    assert_array_equal(questions.constraints.cannot_link, [[0, 1], [0, 3], [1, 4], [2, 4]])
    assert questions.view.unsure == {(1, 5), (2, 5)}
    assert len(questions.answers) == 3


def test_which_is_taken_whole_or_not_at_all():
    questions = Questions(LINE, Asks(Which(0, (1, 2, 3))), constraints=Constraints([(2, 3)], n_samples=6))
    assert not questions.tell(questions.ask(), 2)
    assert questions.view.known(0, 1) is None and questions.view.known(0, 2) is None
    assert len(questions.conflicts) == 1


def test_which_is_not_repeated_when_unsure():
    strategy = Asks(Which(0, (1, 2)), Which(0, (1, 2)), Which(0, (2,)))
    questions = Questions(LINE, strategy)
    questions.tell(questions.ask(), UNSURE)
    assert questions.ask() is None
    assert strategy.heard == [UNSURE, UNSURE, UNSURE]


def test_none_of_all_known_clusters_is_believed():
    """With three clusters found, "none of them" is a fourth, not a contradiction."""
    questions = Questions(LINE, Asks(Which(3, (0, 1, 2))), n_clusters=3, constraints=[0, 1, 2, -1, -1, -1])
    assert questions.tell(questions.ask(), "none")
    assert len(questions.view.neighbourhoods) == 4 and questions.view.deduced == []


def test_checks_are_rare_and_marked():
    pairs = [Pair(0, row) for row in range(1, 60)] + [Pair(i, j, check=True) for i in range(1, 9) for j in range(9, 19)]
    questions = Questions(np.zeros((60, 1)), Asks(*pairs))
    run(questions, lambda pair: SAME)
    checks = [entry.question for entry in questions.answers if entry.question.check]
    assert len(checks) == 3 == int(0.05 * len(questions.answers))
    assert all(question.key not in {pair.key for pair in pairs[:59]} for question in checks)


def test_a_batch_holds_no_more_checks_than_allowed():
    pairs = [Pair(0, row) for row in range(1, 20)] + [Pair(i, j, check=True) for i in range(1, 9) for j in range(9, 19)]
    questions = Questions(np.zeros((20, 1)), Asks(*pairs))
    for _ in range(19):
        questions.tell(questions.ask(), SAME)
    assert [one.check for one in questions.ask(10)] == [True]


def test_without_a_share_of_checks_there_are_none():
    pairs = [Pair(0, row) for row in range(1, 20)] + [Pair(1, row, check=True) for row in range(2, 20)]
    questions = Questions(np.zeros((20, 1)), Asks(*pairs), check_share=0)
    for _ in range(19):
        questions.tell(questions.ask(), SAME)
    assert questions.ask() is None


def test_an_open_pair_is_no_check():
    assert not Questions(LINE, Asks(Pair(0, 1, check=True))).ask().check


def test_a_strategy_that_goes_on_draws_what_a_fresh_one_draws():
    class Draws:
        def __call__(self, view, rng):
            while True:
                yield Pair(*rng.choice(view.n_rows, 2, replace=False).tolist())

    questions = Questions(np.zeros((40, 1)), Draws(), random_state=1)
    for _ in range(10):
        resumed = Questions(np.zeros((40, 1)), Draws(), random_state=1)
        resumed.replay(questions.answers)
        question = questions.ask()
        assert resumed.ask() == question
        questions.tell(question, UNSURE)


def test_generators_seed_and_advance():
    def first(random_state):
        return Questions(np.zeros((1000, 1)), RandomPairs(), random_state=random_state).ask().key

    assert first(np.random.default_rng(5)) == first(np.random.default_rng(5)) != first(np.random.default_rng(6))
    assert first(np.random.RandomState(5)) == first(np.random.RandomState(5))
    rng = np.random.default_rng(5)
    assert first(rng) != first(rng)


@pytest.mark.parametrize(
    "question, answer, message",
    [
        ((0, 1), "same", "Nobody asked about rows 0 and 1"),
        ((2, 6), "same", "Row 6 is out of range: X has 6 rows"),
        ((-1, 2), "same", "Row -1 is out of range"),
        ((2, 2), "same", "names row 2 twice"),
        ((2, 3), "perhaps", "'perhaps'"),
        (("a", 3), "same", "'a' is not a row position"),
        ((1.5, 3), "same", "1.5 is not a row position"),
        ("23", "same", "is not a question"),
        (Which(2, (3,)), 3, "Nobody asked about row 2"),
    ],
)
def test_a_bad_answer_changes_nothing(question, answer, message):
    questions = Questions(LINE, Asks(Pair(2, 3)))
    asked = questions.ask()
    with pytest.raises(ParameterError, match=message):
        questions.tell(question, answer)
    assert questions.answers == [] and questions.pending == [asked] and questions.view.n_answers == 0


@pytest.mark.parametrize("confidence", [0, 1.1, float("nan"), "sure", None])
def test_a_bad_confidence_changes_nothing(confidence):
    questions = Questions(LINE, Asks(Pair(2, 3)))
    with pytest.raises(ParameterError, match="confidence="):
        questions.tell(questions.ask(), "same", confidence=confidence)
    assert questions.answers == [] and len(questions.pending) == 1


@pytest.mark.parametrize("answer, message", [(5, "not among"), ("same", "Say which row"), ("perhaps", "perhaps")])
def test_a_bad_answer_to_which_changes_nothing(answer, message):
    questions = Questions(LINE, Asks(Which(0, (1, 2))))
    with pytest.raises(ParameterError, match=message):
        questions.tell(questions.ask(), answer)
    assert questions.answers == [] and len(questions.pending) == 1


@pytest.mark.parametrize(
    "entry",
    [
        ((0, 9), "same"),
        ((0, 0), "same"),
        ((0, 1), "perhaps"),
        Answered(Pair(0, 9), SAME),
        (Which(0, (1, 9)), "none"),
        (Which(0, ()), "none"),
        ((0, 1),),
        "no entry",
    ],
)
def test_a_bad_log_changes_nothing(entry):
    questions = Questions(LINE, Feedback())
    questions.tell((0, 1), SAME)
    before = questions.answers
    with pytest.raises(ParameterError):
        questions.replay([((2, 3), "same"), entry])
    assert questions.answers == before and questions.view.known(2, 3) is None


def test_what_a_strategy_lacks_is_told_again_when_asked_again():
    def needs_more(view, rng):
        raise ParameterError("needs more")
        yield

    questions = Questions(LINE, needs_more)
    for _ in range(2):
        with pytest.raises(ParameterError, match="needs more"):
            questions.ask()
    assert questions.answers == [] and questions.pending == []


@pytest.mark.parametrize(
    "strategy, message",
    [
        (MinMax, r"strategy=MinMax is a class\. Pass an instance: MinMax\(\)\."),
        ("min-max", r"strategy='min-max': expected a query strategy such as Auto\(\), not its name\."),
    ],
)
def test_a_class_or_a_name_is_no_strategy(strategy, message):
    with pytest.raises(ParameterError, match=message):
        Questions(LINE, strategy)


def asks_the_same_again(view, rng):
    while True:
        yield Pair(2, 2)


def looks_without_end(view, rng):
    while view.unplaced().size:
        pass
    yield


def clusters_without_end(view, rng):
    while view.labels().size:
        pass
    yield


def fails(view, rng):
    yield [Pair(0, 1)][view.n_rows]


@pytest.mark.parametrize(
    "strategy, reason",
    [
        (asks_the_same_again, "asked 10,000 times in a row about pairs that are decided"),
        (looks_without_end, "looked 10,000 times for something to ask and asked nothing"),
        (clusters_without_end, "looked 10,000 times for something to ask and asked nothing"),
        (fails, "failed with IndexError: list index out of range"),
    ],
)
def test_a_faulty_strategy_is_stopped_and_all_else_goes_on(strategy, reason):
    questions = Questions(LINE, strategy, n_clusters=2, random_state=0)
    questions.add(Answered(Pair(0, 1), SAME))
    for _ in range(2):
        with pytest.raises(StrategyError, match=rf"^The strategy {strategy.__name__} {reason}\. .* Choose another one"):
            questions.ask()
    progress = questions.progress()
    assert not progress.can_stop and reason in progress.reason
    assert questions.labels()[0] == questions.labels()[1]
    questions.use(RandomPairs())
    assert questions.ask() is not None


@pytest.mark.parametrize(
    "arguments",
    [
        {"X": [[0.0], [np.nan]]},
        {"X": [[0.0], [np.inf]]},
        {"strategy": "random"},
        {"check_share": 0.5},
        {"check_share": float("nan")},
        {"n_clusters": 0},
        {"n_clusters": 2.0},
        {"n_clusters": 3},
        {"random_state": "x"},
        {"random_state": -1},
        {"constraints": Constraints([(0, 1)], n_samples=5)},
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ClewError):
        Questions(**{"X": [[0.0], [1.0]], "strategy": RandomPairs(), **arguments})


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_a_bad_batch_size_is_refused(n):
    with pytest.raises(ParameterError, match="n="):
        Questions(LINE, RandomPairs()).ask(n)


def test_undo_asks_again():
    questions = Questions(LINE, MinMax(), n_clusters=2, random_state=0)
    first = questions.ask()
    questions.tell(first, DIFFERENT)
    second = questions.ask()
    questions.tell(second, SAME)
    assert questions.undo().question == second
    assert questions.ask() == second
    assert questions.undo().question == first and questions.undo() is None


def test_revise_needs_an_answer():
    with pytest.raises(ParameterError, match="no answer to revise"):
        Questions(LINE, RandomPairs()).revise((0, 1), SAME)


def test_labels_use_answers_and_guesses():
    questions = Questions(BLOBS, RandomPairs(), n_clusters=2, clusterer=COPKMeans(random_state=0), random_state=0)
    questions.view.impute(Pair(0, 3), DIFFERENT, 0.9)
    run(questions, Oracle(TRUTH))
    assert_array_equal(np.equal.outer(*[questions.labels()] * 2), np.equal.outer(TRUTH, TRUTH))


def test_guesses_that_answers_decided_are_dropped():
    questions = Questions(BLOBS, Feedback(), n_clusters=2, clusterer=COPKMeans(random_state=0))
    questions.view.impute(Pair(0, 3), SAME, 0.9)
    questions.tell((0, 1), SAME)
    questions.tell((1, 3), DIFFERENT)  # decides the guess without naming it; a hard method would refuse both
    labels = questions.labels()
    assert labels[0] == labels[1] != labels[3]


def test_guesses_that_contradict_surer_ones_are_dropped():
    questions = Questions(BLOBS, Feedback(), n_clusters=2)
    questions.tell((0, 1), SAME)
    for pair, answer, sure in [(Pair(1, 3), SAME, 0.6), (Pair(0, 3), DIFFERENT, 0.9), (Pair(3, 4), SAME, 0.5)]:
        questions.view.impute(pair, answer, sure)
    assert questions.guesses.cannot_link.tolist() == [[0, 3]]
    assert questions.guesses.must_link.tolist() == [[3, 4]]


def test_guesses_that_no_clusters_fit_do_not_stop_labels():
    questions = Questions(BLOBS, Feedback(), n_clusters=2, clusterer=COPKMeans(random_state=0))
    questions.tell((0, 1), DIFFERENT)
    for pair in (Pair(0, 3), Pair(1, 3)):
        questions.view.impute(pair, DIFFERENT, 0.9)
    labels = questions.labels()
    assert labels[0] != labels[1]
    known = {"cannot_link": [(0, 1), (0, 3), (1, 3)]}
    with pytest.raises(InfeasibleConstraintsError):
        Questions(BLOBS, Feedback(), n_clusters=2, clusterer=COPKMeans(random_state=0), constraints=known).labels()


def test_questions_of_a_batch_share_a_fit():
    fits = []

    class Counted(COPKMeans):
        def fit(self, X, y=None, **rest):
            fits.append(1)
            return super().fit(X, y, **rest)

    questions = Questions(BLOBS, Feedback(), n_clusters=2, clusterer=Counted(random_state=0))
    first = questions.view.labels()
    first[:] = -5
    assert set(questions.view.labels().tolist()) == {0, 1} and len(fits) == 1
    questions.tell((0, 1), SAME)
    questions.view.labels()
    assert len(fits) == 2


def test_progress_counts():
    questions = Questions(LINE, Asks(Pair(0, 1), Pair(1, 2), Pair(3, 0), Pair(4, 5)))
    for answer in (SAME, SAME, DIFFERENT):
        questions.tell(questions.ask(), answer)
    found = questions.progress()
    assert (found.asked, found.unsure, found.conflicts, found.neighbourhoods) == (3, 0, 0, 2)
    assert found.implied == 3  # 0-2, and 3 with 1 and 2
    assert not found.can_stop and found.reason.startswith("Go on")
    questions.tell(questions.ask(), UNSURE)
    found = questions.progress()
    assert found.unsure == 1
    assert found.can_stop and found.reason.startswith("Nothing is left")


def test_progress_says_stop_when_answers_are_foreseen():
    X = np.repeat([[0.0], [9.0]], 40, axis=0)
    questions = Questions(X, RandomPairs(), n_clusters=2, random_state=0)
    questions.labels()
    oracle = Oracle(np.repeat([0, 1], 40))
    for _ in range(20):
        question = questions.ask()
        questions.tell(question, oracle(question))
    found = questions.progress()
    assert found.expected_gain == 1 / 22 and found.can_stop and "20 of the last 20" in found.reason
    assert not questions.progress(cost=0.01).can_stop


def test_answers_that_are_probably_wrong_are_no_surprises():
    y = np.arange(90) % 3
    X = np.random.default_rng(0).normal(0, 1, (90, 2)) + 9 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    questions = Questions(X, n_clusters=3, random_state=0, error_rate=0.2)
    questions.labels()
    for number in range(60):
        question = questions.ask()
        is_same = y[question.first] == y[question.second]
        questions.tell(question, SAME if is_same != (number % 5 == 0) else DIFFERENT)
    unforeseen = [one for one in questions.answers[-20:] if one.expected is not one.answer]
    found = questions.progress()
    assert len(unforeseen) >= 3 and found.expected_gain < 2 / 22
    assert found.can_stop and "others are probably wrong. So the next one" in found.reason


def test_progress_does_not_disturb_the_next_question():
    first, second = (Questions(np.zeros((30, 1)), RandomPairs(), random_state=2) for _ in range(2))
    for _ in range(5):
        question = first.ask()
        first.tell(question, UNSURE)
        second.tell(second.ask(), UNSURE)
        second.progress()
        assert [entry.question for entry in first.answers] == [entry.question for entry in second.answers]


@pytest.mark.parametrize("n", [1, 2])
def test_tiny_data(n):
    questions = Questions(LINE[:n], RandomPairs())
    run(questions, lambda question: SAME)
    assert len(questions.answers) == n - 1
    assert questions.progress().can_stop
    assert len(questions.labels()) == n


def calls_made_by(action):
    """Function calls, Python and C, that an action makes: a clock that does not depend on the machine."""
    calls = Counter()
    sys.setprofile(lambda frame, event, argument: calls.update([event]))
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls["call"] + calls["c_call"]


def long_log(n_answers, n_clusters, kind):
    """A log of the shape that placing rows one by one gives."""
    starts = [((i, j), "different") for i in range(n_clusters) for j in range(i)]
    rest = range(n_clusters, n_clusters + n_answers - len(starts))
    if kind == "placed":
        return starts + [((row, row % n_clusters), "same") for row in rest]
    return starts + [((row, 0), "unsure") for row in rest]


@pytest.mark.parametrize("kind", ["placed", "unsure"])
def test_resume_and_undo_cost_the_length_of_the_log(kind):
    n_clusters = 10
    X = np.zeros((1700, 1))
    cost = {}
    for n_answers in (400, 1600):
        questions = Questions(X, Feedback(), n_clusters=n_clusters)
        log = long_log(n_answers, n_clusters, kind)
        cost[n_answers] = calls_made_by(lambda q=questions, some=log: q.replay(some)), calls_made_by(questions.undo)
        assert len(questions.answers) == n_answers - 1
    assert all(large <= 4.4 * small for small, large in zip(cost[400], cost[1600], strict=True))
    assert max(cost[1600]) < 1600 * 400


def test_rows_of_a_growing_neighbourhood_are_not_gone_through_again(monkeypatch):
    """Calls do not show work inside numpy: rows handed out in all are at most a few per answer."""
    questions = Questions(np.zeros((2000, 1)), Feedback(), n_clusters=1)
    handed_out = []
    rows_of = type(questions.view.knowledge).rows

    def counted(self, row):
        rows = rows_of(self, row)
        handed_out.append(len(rows))
        return rows

    monkeypatch.setattr(type(questions.view.knowledge), "rows", counted)
    questions.replay([((row, 0), "same") for row in range(1, 2000)])
    assert questions.view.placed.all() and sum(handed_out) <= 4 * 2000
