"""Conflicts: the sentence, in the user's ids, and where they are raised."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints
from clew.exceptions import ContradictoryConstraintsError


def test_cannot_link_against_a_chain():
    constraints = Constraints([(4, 7), (7, 9)], [(0, 1), (4, 9)])
    (conflict,) = constraints.conflicts()
    assert conflict.rows == (4, 9)
    assert (conflict.kind, conflict.position, conflict.source) == ("cannot_link", 1, "cannot_link[1]")
    assert conflict.chain == (4, 7, 9)
    assert str(conflict) == (
        "cannot_link[1] separates rows 4 and 9; must_link joins them (4-7-9). Remove one, or use a soft method."
    )


def test_the_shorter_of_two_chains_is_shown():
    long_way = [(0, 1), (1, 2), (2, 3), (3, 4)]
    short_way = [(0, 5), (5, 4)]
    (conflict,) = Constraints(long_way + short_way, [(4, 0)]).conflicts()
    assert conflict.chain == (4, 5, 0)


def test_a_pair_that_is_both_is_its_own_chain():
    (conflict,) = Constraints([(1, 2)], [(2, 1)]).conflicts()
    assert conflict.chain == (2, 1)


@pytest.mark.parametrize(
    ("knowledge", "sentence"),
    [
        pytest.param({"cannot_link": [(0, 2)]}, "cannot_link[0] separates rows ann and cid; ", id="cannot-link"),
        pytest.param({"cannot_groups": [1, -1, 1, 1]}, "cannot_groups separate rows ann and cid; ", id="cannot-groups"),
        pytest.param({"labels": [0, -1, 5, 5]}, "labels separate rows ann and cid; ", id="labels"),
    ],
)
def test_sentences_are_in_the_users_ids(knowledge, sentence):
    constraints = Constraints([(0, 1), (1, 2)], ids=["ann", "bob", "cid", "dan"], **knowledge)
    (conflict,) = constraints.conflicts()
    assert conflict.rows == (0, 2)
    assert conflict.names == ("ann", "bob", "cid")
    joined_by = "must_link and labels join" if "labels" in knowledge else "must_link joins"
    assert str(conflict).startswith(f"{sentence}{joined_by} them (ann-bob-cid). ")


def test_names_are_plain_numbers_where_ids_are_numbers():
    (conflict,) = Constraints([(0, 1)], [(0, 1)], ids=np.array([100, 200])).conflicts()
    assert conflict.names == (100, 200)
    assert "(100-200)" in str(conflict)


def test_chain_through_groups_and_classes():
    constraints = Constraints(
        [(1, 2)], [(0, 4)], must_groups=[7, 7, -1, -1, -1], labels=[-1, -1, 3, -1, 3], n_samples=5
    )
    (conflict,) = constraints.conflicts()
    assert conflict.chain == (0, 1, 2, 4)


def test_every_contradiction_is_listed_up_to_the_limit():
    constraints = Constraints([(0, 1), (1, 2)], [(0, 1), (5, 6), (0, 2), (2, 1)], n_samples=7)
    assert [conflict.source for conflict in constraints.conflicts()] == [
        "cannot_link[0]", "cannot_link[2]", "cannot_link[3]",
    ]  # fmt: skip
    assert len(constraints.conflicts(limit=2)) == 2
    assert constraints.conflicts(limit=0) == []


def test_searches_do_not_disturb_one_another():
    must_link = [(0, 1), (1, 2), (2, 3), (5, 6)]
    together = Constraints(must_link, [(0, 3), (5, 6), (3, 1)], n_samples=7)
    alone = [Constraints(must_link, [pair], n_samples=7).conflicts()[0].chain for pair in [(0, 3), (5, 6), (3, 1)]]
    assert [conflict.chain for conflict in together.conflicts()] == alone


def test_uncertain_pairs_contradict_too_unless_left_out():
    constraints = Constraints([(0, 1)], [(0, 1)], must_link_confidence=[0.4])
    assert len(constraints.conflicts()) == 1
    assert constraints.at_least(0.5).conflicts() == []


def test_require_consistent_raises_with_the_conflict():
    constraints = Constraints([(0, 1)], [(0, 1)])
    with pytest.raises(ContradictoryConstraintsError, match=r"^cannot_link\[0\] separates rows 0 and 1; ") as caught:
        constraints.require_consistent()
    assert caught.value.conflicts == constraints.conflicts()
    assert Constraints([(0, 1)], [(0, 2)]).require_consistent() is None


def test_chain_of_a_million_rows():
    rows = np.arange(1_000_000)
    constraints = Constraints(np.column_stack([rows[1:], rows[:-1]]), [(0, rows[-1])])
    (conflict,) = constraints.conflicts()
    assert conflict.chain == tuple(range(1_000_000))


def test_a_long_chain_shows_its_ends_and_its_length():
    rows = np.arange(100_000)
    known = Constraints(must_link=np.column_stack([rows[:-1], rows[1:]]), cannot_link=[(0, 99_999)])
    sentence = str(known.conflicts()[0])
    assert "(0-1-2-3-…-99996-99997-99998-99999, a chain of 100,000 rows)" in sentence
    assert repr(known.conflicts()) == f"[<Contradiction: {sentence}>]"
    assert len(sentence) < 300
