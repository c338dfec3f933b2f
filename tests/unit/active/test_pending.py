"""Questions without an answer, and the pairs that they are about."""

from __future__ import annotations

from clew.active import Pair, Which
from clew.active._pending import PendingQuestions


def test_a_shared_pair_is_pending_while_one_question_is():
    waiting = PendingQuestions()
    waiting.add(Pair(1, 0))
    waiting.add(Which(0, (1, 2)))
    assert len(waiting) == 2 and set(waiting.pairs) == {(0, 1), (0, 2)}
    waiting.remove(Pair(0, 1))
    assert list(waiting) == [Which(0, (1, 2))] and set(waiting.pairs) == {(0, 1), (0, 2)}
    waiting.remove(Which(0, (1, 2)))
    assert len(waiting) == 0 and not waiting.pairs


def test_a_question_about_the_same_rows_replaces_the_pending_one():
    waiting = PendingQuestions()
    waiting.add(Pair(0, 1))
    waiting.add(Pair(1, 0, why="again"))
    assert waiting.find(Pair(0, 1)).why == "again" and len(waiting) == 1
    waiting.remove(Pair(0, 1))
    assert not waiting.pairs


def test_removing_what_is_not_pending_changes_nothing():
    waiting = PendingQuestions()
    waiting.add(Pair(0, 1))
    waiting.remove(Pair(0, 2))
    assert waiting.find(Pair(0, 2)) is None and set(waiting.pairs) == {(0, 1)}
    waiting.clear()
    assert not waiting.pairs and list(waiting) == []
