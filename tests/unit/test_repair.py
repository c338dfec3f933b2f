"""`repair`: prices in every form, messages, large and infeasible parts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from clew import Constraints
from clew.audit import impact
from clew.constraints import read_answers
from clew.exceptions import ContradictoryConstraintsError, InfeasibleConstraintsError, ParameterError

TRIANGLE = Constraints([(0, 1), (1, 2)], [(0, 2)], n_samples=4, ids=["ann", "bob", "cid", "dan"])


def kinds_and_places(found):
    return [(one.kind, one.index) for one in found.dropped]


def test_the_least_confident_statement_goes():
    known = Constraints([(0, 1), (1, 2)], [(0, 2)], must_link_confidence=[0.9, 0.6], ids=["ann", "bob", "cid"])
    found = known.repair(2)
    assert kinds_and_places(found) == [("must_link", 1)]
    assert (found.cost, found.lower_bound, found.exact) == (0.6, 0.6, True)
    assert found.dropped[0].rows == ("bob", "cid")
    assert str(found.dropped[0]) == "bob and cid belong together"
    assert str(found) == "Drop 1 statement at a price of 0.6, and the rest holds in 2 clusters. No repair is cheaper."
    assert found.constraints.must_link.tolist() == [[0, 1]]
    assert found.constraints.must_link_confidence.tolist() == [0.9]
    assert found.table()[0]["sentence"] == "bob and cid belong together"


def test_nothing_is_dropped_from_what_holds():
    known = Constraints([(0, 1)], [(1, 2)])
    found = known.repair(2)
    assert (found.dropped, found.cost, found.exact) == ((), 0.0, True)
    assert found.constraints is known
    assert found.message == "Nothing to drop: everything holds in 2 clusters."


@pytest.mark.parametrize(
    ("price", "dropped"),
    [
        ([5, 5, 1], ("cannot_link", 0)),
        ([5, 1, 5], ("must_link", 1)),
        ({"cannot_link": [0.1]}, ("cannot_link", 0)),
        ({"must_link": [np.inf, np.inf]}, ("cannot_link", 0)),
        ({"must_link": 9, "cannot_link": 2}, ("cannot_link", 0)),
        (lambda one: 1 if one.rows == ("ann", "bob") else 2, ("must_link", 0)),
    ],
)
def test_prices_in_every_form(price, dropped):
    assert kinds_and_places(TRIANGLE.repair(2, price)) == [dropped]


def test_prices_by_annotator(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(
        "id_1,id_2,answer,confidence,annotator\n0,1,same,,ann\n1,3,unsure,,bob\n1,2,same,0.9,bob\n0,2,different,,ann\n"
    )
    answers = read_answers(path)
    known = Constraints.of(answers, n_samples=4)
    assert kinds_and_places(known.repair(2, answers.prices({"bob": 0.5}))) == [("must_link", 1)]
    assert kinds_and_places(known.repair(2, answers.prices({"ann": 0.1}))) == [("must_link", 0)]
    with pytest.raises(ParameterError, match=r"^prices: 'cid' gave no answer in answers\.csv\. Check the name\.$"):
        answers.prices({"cid": 1})


def test_prices_from_impact_scores():
    X = [[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]
    known = Constraints([(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 4)])
    assert kinds_and_places(known.repair(2, impact(X, known, 2))) == [("must_link", 2)]


def test_repeated_pairs_are_dropped_together():
    known = Constraints([(0, 1), (1, 0), (1, 2)], [(0, 2)], must_link_confidence=[0.3, 0.3, 0.5])
    assert kinds_and_places(known.repair(2)) == [("must_link", 2)]
    assert kinds_and_places(known.repair(2, [0.2, 0.2, 0.5, 1])) == [("must_link", 0), ("must_link", 1)]


def test_labels_and_groups_are_statements():
    classes = Constraints([(0, 1)], labels=["red", "blue", "blue"])
    assert str(classes.repair(2, {"must_link": [3], "label": [1, 2, 2]}).dropped[0]) == "0 is of class red"
    together = Constraints(cannot_link=[(0, 1)], must_groups=[[4, -1], [4, 5], [-1, 5]])
    found = together.repair(2, {"cannot_link": 9, "must_group": [[1, 9], [2, 9], [9, 9]]})
    assert [(one.kind, one.index, one.column, one.group) for one in found.dropped] == [("must_group", 0, 0, 4)]
    apart = Constraints([(0, 1)], cannot_groups=[7, 7, 7]).repair(2, {"must_link": 9})
    assert [(one.kind, str(one)) for one in apart.dropped] in (
        [("cannot_group", "0 is in cannot-group 7")],
        [("cannot_group", "1 is in cannot-group 7")],
    )


def test_too_many_classes_and_a_large_group():
    labels = np.repeat(np.arange(6), 5)
    found = Constraints(labels=labels).repair(4)
    assert (len(found.dropped), found.exact) == (10, True)
    assert len(np.unique(found.constraints.labels)) == 5
    grouped = Constraints(cannot_groups=np.zeros(100, dtype=int)).repair(10)
    assert (grouped.cost, grouped.exact) == (90.0, True)


def test_too_many_clusters_are_needed():
    clique = list(combinations(range(5), 2))
    found = Constraints((), clique, cannot_link_confidence=[0.2, *[0.9] * 9]).repair(4)
    assert kinds_and_places(found) == [("cannot_link", 0)]
    assert found.constraints.check(4)


def test_triplets_soft_groups_and_ids_stay():
    known = Constraints([(0, 1)], [(0, 1)], triplets=[(0, 1, 2)], soft_groups=[[0.5], [0.2], [0]], ids=["a", "b", "c"])
    left = known.repair(2).constraints
    assert left.triplets.tolist() == [[0, 1, 2]]
    assert left.ids.tolist() == ["a", "b", "c"]
    assert left.soft_groups is not None


def test_wrong_answers_are_found_among_many(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 100)
    known = Constraints.sample(y, 120, balance=0.5, noise=0.05, random_state=seed)
    found = known.repair(3)
    n_wrong = sum(map(len, known.violations(y)))
    assert found.constraints.check(3)
    assert found.lower_bound <= found.cost <= n_wrong


@pytest.mark.parametrize("n_clusters", [0, -1, 2.0, True, "3", None])
def test_bad_number_of_clusters(n_clusters):
    with pytest.raises(ParameterError, match=rf"^n_clusters={n_clusters!r} in repair: expected an integer >= 1\.$"):
        Constraints().repair(n_clusters)


@pytest.mark.parametrize(
    ("price", "message"),
    [
        (
            [1, -1, 1],
            r"^price\[1\] in repair is -1: a price is a number >= 0\. An infinite price means never to drop it\.$",
        ),
        ([1, np.nan, 1], r"^price\[1\] in repair is nan: a price"),
        ([1, 1], r"^price in repair has shape \(2,\): expected \(3,\), one per must-link and then one per cannot-link"),
        ("high", r"^price in repair is 'high': expected numbers"),
        ({"must_link": [1]}, r"^price\['must_link'\] in repair has shape \(1,\): expected \(2,\), one per pair\.$"),
        ({"must_link": [1, -2]}, r"^price\['must_link'\]\[1\] in repair is -2: a price"),
        ({"must_link": np.nan}, r"^price\['must_link'\] in repair is nan: a price"),
        ({"label": [1]}, r"^price\['label'\] in repair: there is no statement of this kind\. Leave it out\.$"),
        ({"pairs": [1]}, r"^price in repair has the key 'pairs': expected must_link, cannot_link, label, must_group, "),
        (lambda one: -1, r"^price\(ann and bob belong together\) gives -1 in repair: expected a number >= 0\.$"),
        (lambda one: float("nan"), r"gives nan in repair"),
        (lambda one: None, r"gives None in repair"),
    ],
)
def test_bad_prices(price, message):
    with pytest.raises(ParameterError, match=message):
        TRIANGLE.repair(2, price)


def test_an_impact_of_other_constraints_is_refused():
    other = impact([[0.0], [1.0], [5.0], [6.0]], Constraints([(0, 1)], [(0, 2)]), 2)
    with pytest.raises(
        ParameterError, match=r"^must_link_score of the impact in repair has shape \(1,\): expected \(2,\)"
    ):
        TRIANGLE.repair(2, other)


def test_statements_of_infinite_price_that_cannot_hold_are_named():
    with pytest.raises(
        ContradictoryConstraintsError, match=r"^No repair is allowed: cannot_link separates rows ann and "
    ):
        TRIANGLE.repair(2, lambda one: np.inf)
    with pytest.raises(
        InfeasibleConstraintsError, match=r"infinite price\. Rows ann, bob and cid are pairwise cannot-"
    ):
        Constraints((), [(0, 1), (1, 2), (0, 2)], ids=["ann", "bob", "cid"]).repair(2, lambda one: np.inf)
