"""Every query strategy that `clew.active` exports, and runs with it that check each question."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import clew.active
from benchmarks.questions import is_strategy
from clew.active import SAME, UNSURE, Pair, Questions, Which
from clew.active._pending import question_key
from clew.active._strategy import Strategy, as_strategy
from clew.exceptions import ParameterError


def _id(example):
    settings = ",".join(f"{name}={value}" for name, value in vars(example).items())
    return f"{type(example).__name__}({settings})"


def _examples():
    """Small instances: those that a class names, or the one that it makes without arguments."""
    for name in clew.active.__all__:
        cls = getattr(clew.active, name)
        if is_strategy(cls):
            yield from cls._examples() if hasattr(cls, "_examples") else [cls()]


EXAMPLES = list(_examples())
each_strategy = pytest.mark.parametrize("strategy", EXAMPLES, ids=_id)


@cache
def needs_k(strategy):
    """Whether a strategy refuses to work without the number of clusters."""
    try:
        Questions([[0.0], [1.0]], strategy).ask()
    except ParameterError:
        return True
    return False


def key(question):
    return question.key if isinstance(question, Pair) else (question.row, question.candidates)


def pairs_of(question):
    return (
        [question.key] if isinstance(question, Pair) else [Pair(question.row, one).key for one in question.candidates]
    )


def said(entry):
    question = entry.question
    return question.pairs(entry.answer) if isinstance(question, Which) else [(question, entry.answer)]


def checks(questions):
    so_far = [*(entry.question for entry in questions.answers), *questions.pending]
    return sum(isinstance(one, Pair) and one.check for one in so_far)


def ask(questions, n=None):
    """`questions.ask`, with what every question must be: two rows, open, not asked before, not waiting; checks rare."""
    view = questions.view
    asked, pending = set(view.asked), set(view.pending)
    repeats = as_strategy(questions.strategy).repeats_questions(view)
    found = questions.ask(n)
    for question in [found] if n is None else found:
        if question is None:
            continue
        assert question.why
        pairs = pairs_of(question)
        known = [view.knowledge.relation(*pair) for pair in pairs]
        assert all(first != second for first, second in pairs)
        assert question in questions.pending
        if isinstance(question, Which):
            assert SAME not in known
            assert any(one is None and pair not in asked | pending for one, pair in zip(known, pairs, strict=True))
        else:
            assert question.key not in pending
            if question.key in asked:  # where answers look wrong, some strategies ask for second opinions on a pair
                assert question.check and repeats
                assert [question_key(entry.question) for entry in questions.answers].count(question.key) < 3
            else:
                assert (known[0] is not None) == question.check
        pending.update(pairs)
    if not view.expects_errors:  # else second opinions are asked where they pay
        # Once, a strategy may ask a check question before its turn, because early answers look wrong.
        is_urgent = type(as_strategy(questions.strategy)).suspects_errors is not Strategy.suspects_errors
        assert checks(questions) <= 0.05 * (len(questions.answers) + 1) + is_urgent
    return found


def run(questions, oracle, budget=1000):
    """Ask and tell until nothing is left or the budget is spent; each question is checked."""
    asked = []
    while len(asked) < budget and (question := ask(questions)) is not None:
        asked.append(question)
        questions.tell(question, oracle(question))
    return asked


def run_out(questions, oracle):
    """As `run` until nothing is left, which stays so."""
    n = questions.view.n_rows
    asked = run(questions, oracle, n * (n - 1) // 2 + 1)
    assert len(asked) <= n * (n - 1) // 2
    assert questions.ask() is None and questions.ask() is None and questions.ask(3) == []
    assert questions.progress().can_stop and questions.progress().reason.startswith("Nothing is left")
    return asked


def never_sure(question):
    return UNSURE


def state(questions):
    """All that history may leave behind, beyond the log."""
    view = questions.view
    return (
        view.knowledge.components().tolist(),
        [view.knowledge.open_rows(row).tolist() for row in range(view.n_rows)],
        view.placed.tolist(),
        [(one.member, sorted(one.rows.tolist())) for one in view.neighbourhoods],
        (view.asked, view.unsure, view.pending, view.deduced),
        [(key(one), str(one.why)) for one in questions.pending],
    )


def guesses(questions):
    found = questions.guesses
    return [
        sorted(zip(map(tuple, pairs.tolist()), sure.tolist(), strict=True))
        for pairs, sure in (
            (found.must_link, found.must_link_confidence),
            (found.cannot_link, found.cannot_link_confidence),
        )
    ]


def assert_alike(one, other, *, ask_too=True):
    """Two drivers that cannot be told apart: state, labels, guesses, and the next question."""
    assert one.answers == other.answers
    assert state(one) == state(other)
    np.testing.assert_array_equal(one.labels(), other.labels())
    assert guesses(one) == guesses(other)
    if ask_too:
        first, second = one.ask(), other.ask()
        assert (first is None) == (second is None)
        if first is not None:
            assert key(first) == key(second) and first.why == second.why
