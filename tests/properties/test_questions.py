"""Laws of the driver: any interleaving of asking, answering, undoing and replaying, against a brute-force closure."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew import Constraints
from clew.active import DIFFERENT, SAME, UNSURE, Pair, Questions, RandomPairs, Which
from clew.exceptions import ContradictoryConstraintsError
from tests.conformance.strategies import EXAMPLES, needs_k, said
from tests.helpers import examples
from tests.reference import constraints as reference

ANSWERS = (SAME, DIFFERENT, UNSURE)


class Anything:
    """Yields all there is, sensible or not: decided pairs, rows against themselves, checks, several candidates."""

    def __call__(self, view, rng):
        for _ in range(60):
            rows = rng.integers(view.n_rows, size=4).tolist()
            if rng.random() < 0.3 and len(set(rows)) == 4:
                yield Which(rows[0], tuple(rows[1:]))
            else:
                yield Pair(rows[0], rows[1], check=bool(rng.random() < 0.3))


STRATEGIES = (Anything(), *EXAMPLES)


@st.composite
def set_ups(draw):
    """Arguments of `Questions`: few rows with ties, k or none, consistent prior knowledge of any kind."""
    n = draw(st.integers(1, 7))
    X = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    row = st.integers(0, n - 1)
    pairs = st.lists(st.tuples(row, row).filter(lambda pair: pair[0] != pair[1]), max_size=2) if n > 1 else st.just([])
    groups = st.none() | st.lists(st.integers(-1, 1), min_size=n, max_size=n)
    prior = Constraints(
        draw(pairs), draw(pairs), labels=draw(groups), must_groups=draw(groups), cannot_groups=draw(groups), n_samples=n
    )
    try:
        prior.require_consistent()
    except ContradictoryConstraintsError:
        prior = Constraints(n_samples=n)
    strategy, n_clusters = draw(st.sampled_from(STRATEGIES)), draw(st.none() | st.integers(1, n))
    if n_clusters is None and needs_k(strategy):
        n_clusters = 1
    if n_clusters is not None and prior.labels is not None:  # clusterers refuse fewer clusters than known classes
        n_clusters = max(n_clusters, len(np.unique(prior.labels[prior.labels >= 0])))
    return {
        "X": np.array(X, dtype=float)[:, None],
        "strategy": strategy,
        "n_clusters": n_clusters,
        "constraints": prior,
        "random_state": draw(st.integers(0, 3)),
    }


ACTIONS = st.lists(
    st.sampled_from(["ask", "ask", "tell", "tell", "tell", "batch", "undo", "replay", "revise"]), max_size=25
)


def relations(questions):
    """What the driver knows about every pair."""
    n = questions.view.n_rows
    return {pair: questions.view.knowledge.relation(*pair) for pair in combinations(range(n), 2)}


def closure(constraints):
    """What constraints entail about every pair, by brute force."""
    together, apart = reference.entailed(constraints)
    assert not together & apart
    return {
        pair: SAME if pair in together else DIFFERENT if pair in apart else None
        for pair in combinations(range(constraints.n_rows), 2)
    }


def state(questions):
    view = questions.view
    return (
        relations(questions),
        view.placed.tolist(),
        [(one.member, sorted(one.rows.tolist())) for one in view.neighbourhoods],
        set(view.asked),
        set(view.unsure),
        list(view.deduced),
        questions.answers,
    )


def check_asked(question, questions, known, asked, pending):
    """A question is about two rows, undecided, never answered and not waiting for an answer."""
    if isinstance(question, Which):
        pairs = [Pair(question.row, one).key for one in question.candidates]
        assert not any(known[pair] is SAME for pair in pairs)
        assert any(known[pair] is None and pair not in asked | pending for pair in pairs)
        return
    assert question.first != question.second
    assert question.key not in asked | pending
    assert (known[question.key] is not None) == question.check
    if question.check:
        so_far = [*(entry.question for entry in questions.answers), *questions.pending]
        assert sum(isinstance(one, Pair) and one.check for one in so_far) <= 0.05 * (len(questions.answers) + 1)


def check_constraints(questions, prior):
    """Constraints are what was given, what was told and not contradicted, and what the number of clusters adds."""
    used = [(pair.key, answer) for entry in questions.answers if not entry.conflict for pair, answer in said(entry)]
    found = questions.constraints
    told = [pair for pair, answer in used if answer is SAME] + questions.view.deduced
    assert sorted(map(tuple, found.must_link.tolist())) == sorted([*map(tuple, prior.must_link.tolist()), *told])
    told = [pair for pair, answer in used if answer is DIFFERENT]
    assert sorted(map(tuple, found.cannot_link.tolist())) == sorted([*map(tuple, prior.cannot_link.tolist()), *told])
    assert relations(questions) == closure(found)


def check_conflicts(questions):
    """Every contradiction comes with rows that are joined link by link, and kept apart."""
    entries = [entry for entry in questions.answers if entry.conflict]
    conflicts = questions.conflicts
    assert len(conflicts) == len(entries)
    for conflict, entry in zip(conflicts, entries, strict=True):
        with_it = questions.constraints | Constraints(
            [pair.key for pair, answer in said(entry) if answer is SAME],
            [pair.key for pair, answer in said(entry) if answer is DIFFERENT],
            n_samples=questions.view.n_rows,
        )
        links = {pair for pair, _ in reference.stated_must_link(with_it)}
        assert all((a, b) in links or (b, a) in links for a, b in zip(conflict.chain, conflict.chain[1:], strict=False))
        assert {conflict.chain[0], conflict.chain[-1]} == set(conflict.rows)
        separated = {frozenset(pair) for pair, _ in reference.stated_cannot_link(with_it)}
        assert frozenset(conflict.rows) in separated


@examples(60)
@given(set_ups(), ACTIONS, st.data())
def test_any_history_agrees_with_brute_force(arguments, actions, data):
    questions, prior = Questions(**arguments), arguments["constraints"]
    for action in actions:
        known, asked, pending = relations(questions), set(questions.view.asked), set(questions.view.pending)
        before = state(questions)
        if action == "ask":
            question = questions.ask()
            if question is not None:
                check_asked(question, questions, known, asked, pending)
            assert state(questions) == before
        elif action == "batch":
            batch = questions.ask(3)
            keys = [one.key if isinstance(one, Pair) else (one.row, one.candidates) for one in batch]
            assert len(set(keys)) == len(keys) and len(batch) <= 3
        elif action == "tell" and questions.pending:
            question = data.draw(st.sampled_from(questions.pending))
            choices = ANSWERS if isinstance(question, Pair) else (DIFFERENT, UNSURE, *question.candidates)
            answer = data.draw(st.sampled_from(choices))
            agreed = questions.tell(question, answer)
            assert questions.answers[-1].answer == answer and questions.answers[-1].conflict == (not agreed)
            if not agreed:
                assert relations(questions) == known
            else:
                for pair, stated in said(questions.answers[-1]):
                    assert stated is UNSURE or questions.view.knowledge.relation(*pair.key) is stated
        elif action == "undo":
            log = questions.answers
            assert questions.undo() == (log[-1] if log else None)
            assert questions.answers == log[:-1]
        elif action == "revise" and questions.answers:
            entry = data.draw(st.sampled_from(questions.answers))
            questions.revise(entry.question, UNSURE)
        elif action == "replay":
            fresh = Questions(**arguments)
            fresh.replay(questions.answers)
            assert state(fresh) == before
        check_constraints(questions, prior)
        check_conflicts(questions)


@examples(60)
@given(set_ups(), st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=12))
def test_undo_restores_everything(arguments, answers):
    questions = Questions(**arguments)
    states = [state(questions)]
    for answer in answers:
        question = questions.ask()
        if question is None:
            break
        questions.tell(question, question.candidates[0] if isinstance(question, Which) and answer is SAME else answer)
        states.append(state(questions))
    for expected in reversed(states[:-1]):
        questions.undo()
        assert state(questions) == expected
    assert questions.undo() is None


@examples(60)
@given(set_ups(), st.data())
def test_same_data_log_and_seed_same_question(arguments, data):
    """A live run asks what a resumed one asks."""
    arguments["strategy"] = data.draw(st.sampled_from(EXAMPLES))
    if needs_k(arguments["strategy"]) and arguments["n_clusters"] is None:
        arguments["n_clusters"] = 1
    questions = Questions(**arguments)
    for _ in range(12):
        resumed = Questions(**arguments)
        resumed.replay(questions.answers)
        question = questions.ask()
        assert resumed.ask() == question
        if question is None:
            break
        choices = ANSWERS if isinstance(question, Pair) else (DIFFERENT, UNSURE, *question.candidates)
        questions.tell(question, data.draw(st.sampled_from(choices)))


@examples(60)
@given(set_ups(), st.data())
def test_random_pairs_end_exactly_when_every_pair_is_decided(arguments, data):
    questions = Questions(**{**arguments, "strategy": RandomPairs()})
    while (question := questions.ask()) is not None:
        questions.tell(question, data.draw(st.sampled_from(ANSWERS)))
    known = relations(questions)
    assert all(known[pair] is not None or pair in questions.view.unsure for pair in known)


@examples(60)
@given(set_ups(), st.integers(1, 7), st.integers(0, 99))
def test_open_rows_are_those_with_no_relation(arguments, n_answers, seed):
    questions = Questions(**{**arguments, "strategy": RandomPairs()})
    rng = np.random.default_rng(seed)
    for _ in range(n_answers):
        if (question := questions.ask()) is not None:
            questions.tell(question, ANSWERS[rng.integers(2)])
    knowledge = questions.view.knowledge
    for row in range(questions.view.n_rows):
        expected = [one for one in range(questions.view.n_rows) if knowledge.relation(row, one) is None]
        assert knowledge.open_rows(row).tolist() == expected
