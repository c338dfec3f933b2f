"""Answers taken back, given anew, tried out or counted with another k: the driver is as if it had read its log once."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew import Constraints
from clew.active import DIFFERENT, SAME, UNSURE, Answered, Feedback, Pair, Questions, Stated, Which
from clew.active._journal import Journal
from tests.helpers import examples

N = 7
X = np.array([[0.0], [1.0], [3.0], [7.0], [15.0], [31.0], [63.0]])

PAIRS = st.sampled_from(list(combinations(range(N), 2)))
ANSWERS = st.sampled_from([SAME, DIFFERENT, DIFFERENT, UNSURE])
VOTES = st.lists(st.tuples(st.sampled_from(["ann", "Ann ", "bob"]), ANSWERS, st.just(0.5)), max_size=2).map(tuple)
ENTRIES = st.one_of(
    st.builds(lambda pair, answer: Answered(Pair(*pair), answer, 0.5), PAIRS, ANSWERS),
    st.builds(
        lambda pair, votes, disputed: Answered(Pair(*pair), UNSURE, votes=votes, disputed=disputed),
        PAIRS,
        VOTES,
        st.booleans(),
    ),
    st.builds(lambda pair, answer: Answered(Pair(*pair, check=True), answer, expected=SAME), PAIRS, ANSWERS),
    st.builds(
        lambda rows, chosen: Answered(Which(rows[0], tuple(rows[1:])), [rows[1], DIFFERENT, UNSURE][chosen]),
        st.lists(st.integers(0, N - 1), min_size=2, max_size=4, unique=True),
        st.integers(0, 2),
    ),
    st.builds(
        lambda said: Answered(Stated(tuple((Pair(*pair), answer) for pair, answer in said.items())), SAME),
        st.dictionaries(PAIRS, st.sampled_from([SAME, DIFFERENT]), min_size=1, max_size=3),
    ),
)
N_CLUSTERS = st.one_of(st.none(), st.integers(1, 4))
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), st.lists(ENTRIES, max_size=4)),
        st.tuples(st.just("add"), ENTRIES),
        st.tuples(st.just("rewind"), st.integers(0, 12)),
        st.tuples(st.just("assume"), N_CLUSTERS),
        st.tuples(st.just("undo"), st.none()),
    ),
    max_size=8,
)

PRIORS = [
    Constraints(n_samples=N),
    Constraints([(0, 1)], [(1, 2)], n_samples=N),
    Constraints(labels=[0, 1, 2, 0, -1, -1, -1]),  # cliques of cannot-links
]


def make(calls, questions):
    """Make calls, as a session does."""
    for name, argument in calls:
        if name == "undo":
            questions.undo()
        elif name == "rewind":
            questions.rewind(min(argument, len(questions.answers)))
        else:
            getattr(questions, name)(argument)
        questions.view.knowledge.n_decided()  # once it was counted, an answer updates it
    return questions


def everything(questions):
    """All that a strategy or a caller can see."""
    view = questions.view
    known = view.knowledge
    return (
        questions.answers,
        questions.constraints,
        [len(conflict.chain) for conflict in questions.conflicts],
        questions.progress(),
        {pair: known.relation(*pair) for pair in combinations(range(N), 2)},
        [(one.member, one.rows.tolist(), one.center.tolist()) for one in view.neighbourhoods],
        {row: (known.apart(row), known.open_rows(row).tolist(), known.rows(row).tolist()) for row in range(N)},
        known.components().tolist(),
        known.related_rows().tolist(),
        (view.placed.tolist(), view.named.tolist(), view.questioned.tolist(), view.to_placed().tolist()),
        (view.told, view.said.tolist(), view.asked, view.unsure, view.decided, view.deduced, view.n_contradictions),
        (view.annotators, [column.tolist() for column in view.answer_arrays], view.n_disputed, view.stated),
        view.unplaced().tolist(),
        [[one.member for one in view.open_neighbourhoods(row)] for row in range(N)],
    )


@examples(60)
@given(prior=st.sampled_from(PRIORS), trusts=st.booleans(), n_clusters=N_CLUSTERS, calls=CALLS, tried=CALLS)
def test_a_driver_is_as_if_it_had_read_its_log_once(prior, trusts, n_clusters, calls, tried):
    questions = Questions(X, Feedback(), n_clusters, None, prior, 0, trust_n_clusters=trusts)
    make(calls, questions)
    once = Questions(X, Feedback(), questions.n_clusters, None, prior, 0, trust_n_clusters=trusts)
    once.replay(questions.answers)
    expected = everything(once)
    assert everything(questions) == expected
    with questions.trial() as trial:
        make(tried, trial)
        with trial.trial() as inner:
            make(calls, inner)
        again = Questions(X, Feedback(), trial.n_clusters, None, prior, 0, trust_n_clusters=trusts)
        again.replay(trial.answers)
        assert everything(trial) == everything(again)
    assert everything(questions) == expected


def test_a_trial_keeps_pending_questions_guesses_and_results():
    questions = Questions(X, Feedback(), 3, random_state=0, trust_n_clusters=False)
    questions.replay([((0, 1), SAME), ((1, 2), DIFFERENT)])
    questions.hold(Pair(3, 4))
    questions.view.impute(Pair(5, 6), SAME, 0.9)
    questions.view.latest["found"] = 1
    with questions.trial() as trial:
        assert not (trial.pending or trial.view.pending or trial.view.imputed or trial.view.latest)
        trial.add(Answered(Pair(3, 4), SAME))
        trial.assume(2)
    assert questions.pending == [Pair(3, 4)] and questions.view.pending == {(3, 4)}
    assert questions.view.imputed == {(5, 6): (SAME, 0.9)} and questions.view.latest == {"found": 1}
    assert questions.n_clusters == questions.view.n_clusters == 3
    assert questions.view.known(3, 4) is None and len(questions.answers) == 2


def test_a_journal_takes_back_the_latest_change_first():
    journal, seen = Journal(), []
    for number in range(4):
        journal.note(seen.append, number)
    journal.rewind(4)
    journal.rewind(1)
    assert seen == [3, 2, 1] and len(journal) == 1
