"""Which methods suit a table: facts about it, held against capabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons

from clew import Constraints
from clew._base import Capabilities
from clew._registry import by_method_name
from clew.audit import advise_methods
from clew.audit._methods import TableFacts, suitability
from clew.exceptions import ConstraintError, DataError

MOONS, MOON_OF = make_moons(200, noise=0.04, random_state=0)
BLOBS, BLOB_OF = make_blobs(200, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)


class Toy:
    """An estimator that only says what it can do."""

    _measures_angles = False
    installed = True

    @classmethod
    def _is_installed(cls):
        return cls.installed

    def __init__(self, **abilities):
        self.capabilities = Capabilities(**{"labels": "soft", "must_link": "soft", "cannot_link": "soft"} | abilities)


def facts(**known):
    usual = {
        "n_rows": 100,
        "n_columns": 2,
        "sparse": False,
        "counts": False,
        "n_regions": 3,
        "noise": 0.0,
        "misplaced": 0.0,
    }
    return TableFacts(**{**usual, "given": (), "doubtful": False, "contradictory": False, **known})


def suits(advice):
    return {one.method: one.suits for one in advice.methods}


def test_every_clusterer_is_judged_once_the_suitable_first():
    advice = advise_methods(MOONS)
    assert sorted(suits(advice)) == sorted(by_method_name("clusterer"))
    order = [("yes", "with care", "no").index(one.suits) for one in advice.methods]
    assert order == sorted(order)
    assert all(one.reasons for one in advice.methods)
    assert advice.table()[0].keys() == {"method", "suits", "reasons"}


def test_moons_are_not_round_and_blobs_are():
    moons, blobs = advise_methods(MOONS), advise_methods(BLOBS)
    assert (moons.facts.shape, moons.facts.n_regions) == ("any", 2)
    assert blobs.facts.shape == "round"
    assert suits(moons)["pck-means"] == "with care"
    assert suits(moons)["constrained-dbscan"] == "yes"
    assert suits(blobs)["pck-means"] == "yes"
    assert "Clusters are not round" in str(moons)
    assert "Clusters look round" in str(blobs.facts)


def test_kinds_of_knowledge_are_held_against_what_a_method_does_with_them():
    pairs = advise_methods(BLOBS, Constraints.sample(BLOB_OF, 20, random_state=0))
    assert pairs.facts.given == ("must_link", "cannot_link")
    reasons = {one.method: " ".join(one.reasons) for one in pairs.methods}
    assert "It keeps all must-links and cannot-links." in reasons["cop-kmeans"]
    assert "It uses cannot-links only to initialise the clusters." in reasons["constrained-kmeans"]
    assert "It prices violated must-links and cannot-links." in reasons["pck-means"]
    some = np.where(np.arange(200) < 20, BLOB_OF, -1)
    assert advise_methods(BLOBS, some).facts.given == ("labels",)


def test_contradictions_and_doubts_rule_hard_methods_out_or_ask_for_care():
    clash = Constraints([(0, 1)], [(0, 1)], n_samples=200)
    found = suits(advise_methods(BLOBS, clash))
    assert found["cop-kmeans"] == found["constrained-dbscan"] == "no"
    assert found["pck-means"] == "yes"
    doubtful = Constraints([(0, 1)], must_link_confidence=0.5, n_samples=200)
    advice = advise_methods(BLOBS, doubtful)
    assert suits(advice)["cop-kmeans"] == "with care"
    assert "confidence below 1" in str(advice.facts)


@pytest.mark.parametrize(
    ("abilities", "known", "verdict", "reason"),
    [
        ({}, {"sparse": True}, "no", "It does not take sparse rows."),
        ({"sparse": True}, {"sparse": True}, "yes", "round clusters, as these are"),
        ({"quadratic": True}, {"n_rows": 20_001}, "no", "beyond 20,000 rows"),
        ({"quadratic": True}, {"n_rows": 20_000}, "yes", "round"),
        ({"pairwise": "signed graph"}, {}, "no", "It takes a square matrix, not a table."),
        ({}, {"given": ("triplets",)}, "with care", "It ignores triplets."),
        ({"labels": "ignored"}, {"given": ("labels", "must_link")}, "with care", "It ignores labels."),
        ({}, {"misplaced": 0.2}, "with care", "It looks for round clusters."),
        ({"any_shape": True}, {"misplaced": 0.2}, "yes", "It finds clusters of any shape."),
        ({"counts": True}, {}, "no", "It takes counts"),
        ({"counts": True}, {"counts": True}, "yes", "No reason against it was found."),
        ({"tables": True}, {"noise": 0.1}, "with care", "very many small groups"),
        ({"any_shape": True}, {"n_regions": 1}, "yes", "No reason against it was found."),
        ({"must_link": "hard", "prices_doubt": True}, {"contradictory": True}, "with care", "among certain pairs"),
    ],
)
def test_a_capability_decides(abilities, known, verdict, reason):
    found = suitability("toy", Toy(**abilities), facts(**known))
    assert found.suits == verdict
    assert reason in " ".join(found.reasons)


def test_directions_suit_texts():
    toy = Toy(sparse=True)
    toy._measures_angles = True
    assert suitability("toy", toy, facts()).suits == "with care"
    assert suitability("toy", toy, facts(sparse=True)).suits == "yes"


def test_odd_tables():
    assert advise_methods([[1.0]]).facts.shape == "unknown"
    assert advise_methods(np.ones((8, 2))).facts.n_regions == 1
    assert advise_methods(sparse.csr_array(np.eye(9))).facts.sparse
    large = np.random.default_rng(0).normal(size=(3000, 2))
    assert advise_methods(large) == advise_methods(large)
    with pytest.raises(DataError, match="NaN"):
        advise_methods([[np.nan], [1.0]])
    with pytest.raises(ConstraintError, match="names row 9"):
        advise_methods([[0.0], [1.0]], {"must_link": [(0, 9)]})


def test_networks_suit_many_rows_of_many_columns():
    network = Toy(embeds=True, extra="deep")
    assert suitability("toy", network, facts()).suits == "with care"
    large = suitability("toy", network, facts(n_rows=5000, n_columns=784))
    assert (large.suits, large.reasons[-1]) == ("yes", "It learns an embedding, which suits images and long texts.")


def test_a_method_whose_extra_is_missing_does_not_suit(monkeypatch):
    monkeypatch.setattr(Toy, "installed", False)
    found = suitability("toy", Toy(extra="deep"), facts())
    assert (found.suits, found.reasons) == ("no", ("It needs an extra that is missing: pip install 'clew[deep]'.",))
