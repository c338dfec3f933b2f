"""Measures of constraint sets, naive scores and advice: input, errors and messages."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from clew import Constraints
from clew.audit import (
    advise_metric,
    advise_n_clusters,
    coherence,
    difficulty,
    informativeness,
    metric_fitness,
    optimistic,
    pessimistic,
    propagation,
    rank_constraint_sets,
)
from clew.exceptions import ConstraintError, ContradictoryConstraintsError, DataError, ParameterError
from tests.reference import kmedoids as reference

Y = np.repeat(np.arange(3), 15)


@pytest.fixture
def blobs():
    return np.random.default_rng(0).normal(size=(45, 2)) + 12.0 * np.array([[0, 0], [1, 0], [0, 1]])[Y]


@pytest.fixture
def known():
    return Constraints.sample(Y, 60, random_state=0)


WRONG = {"must_link": [(0, 1), (0, 20)], "cannot_link": [(2, 3), (2, 40)]}


def test_informativeness_counts_what_a_clustering_breaks(blobs):
    assert informativeness(blobs, WRONG, 3) == 0.5
    assert informativeness(blobs, WRONG, labels=np.zeros(45)) == 0.5
    assert informativeness(sparse.csr_matrix(blobs), WRONG, 3) == 0.5
    with pytest.raises(ParameterError, match="needs n_clusters"):
        informativeness(blobs, WRONG)
    with pytest.raises(ParameterError, match=r"labels has shape \(3,\)"):
        informativeness(blobs, WRONG, labels=[0, 1, 2])
    with pytest.raises(ConstraintError, match="hold none"):
        informativeness(blobs, None, 3)


def test_coherence_needs_both_kinds_and_reads_sparse_rows(blobs, known):
    assert coherence(sparse.csr_matrix(blobs), known) == coherence(blobs, known)
    with pytest.raises(ConstraintError, match="some of both"):
        coherence(blobs, {"must_link": [(0, 1)]})


def test_difficulty_of_groups_contradictions_and_limits():
    assert difficulty({"cannot_groups": [0, 0, 0, 0, 1, 1]}).lower == 4
    assert difficulty(Constraints(n_samples=3)).upper == 1
    contradictory = difficulty({"must_link": [(0, 1)], "cannot_link": [(0, 1)]})
    assert contradictory.lower == np.inf and "contradict" in str(contradictory)
    rng = np.random.default_rng(0)
    edges = [(a, b) for b in range(40) for a in range(b) if rng.random() < 0.5]
    limited = difficulty({"cannot_link": edges}, work_limit=10)
    assert limited.lower < limited.upper and not limited.exact and "between" in limited.message
    better = difficulty({"cannot_link": edges}, work_limit=20_000)
    with pytest.raises(ParameterError, match="work_limit=-1 in difficulty"):
        difficulty({"cannot_link": edges}, work_limit=-1)
    assert limited.lower <= better.lower <= better.upper <= limited.upper


@pytest.mark.parametrize("model", ["kmeans", "kmedoids"])
@pytest.mark.parametrize("score", [optimistic, pessimistic])
def test_naive_scores_find_single_wrong_pairs(blobs, score, model):
    found = score(blobs, WRONG, 3, model)
    assert found.must_link_suspect.tolist() == [False, True]
    assert found.cannot_link_suspect.tolist() == [True, False]
    assert found.must_link_score[0] == 0 and (found.cannot_link_score <= 0).all()


def test_only_the_optimistic_score_needs_constraints_that_can_hold(blobs):
    both = {"must_link": [(0, 20)], "cannot_link": [(0, 20)]}
    with pytest.raises(ContradictoryConstraintsError):
        optimistic(blobs, both, 3)
    assert pessimistic(blobs, both, 3).must_link_suspect.tolist() == [True]


def test_advice_on_the_number_of_clusters(blobs, known):
    advice = advise_n_clusters(blobs, known, range(2, 6))
    assert advice.best == 3 and advice.sure and advice.plausible == (3,)
    assert [row["n_clusters"] for row in advice.table()] == [2, 3, 4, 5]
    assert_allclose(advice.probabilities.sum(), 1)
    assert advice.agreement[1] == pytest.approx(1)
    assert str(advice).startswith("The answers suggest 3 clusters: ")
    square = np.abs(blobs[:, None] - blobs[None]).sum(axis=2)
    assert advise_n_clusters(None, known, range(2, 6), metric=square).best == 3
    with pytest.raises(ParameterError, match="candidates is empty"):
        advise_n_clusters(blobs, known, [])
    with pytest.raises(DataError, match="n_clusters=99"):
        advise_n_clusters(blobs, known, [99])
    with pytest.raises(ParameterError, match="candidates=3: expected several"):
        advise_n_clusters(blobs, known, 3)


def test_advice_on_the_metric(blobs, known):
    square = np.abs(blobs[:, None] - blobs[None]).sum(axis=2)
    choices = {"own": square, "manhattan": "manhattan", "function": lambda a, b: abs(a - b).sum()}
    advice = advise_metric(blobs, known, 3, choices, n_bags=2)
    assert (advice.fitness == advice.fitness[0]).all() and advice.best == "own"
    assert {row["metric"] for row in advice.table()} == set(choices)
    assert not advice.sure and advice.message.startswith("The answers cannot tell which fits best. own leads")
    assert len(advise_metric(blobs, known, 3, n_bags=1).metrics) == 5
    assert_allclose([row["wins"] for row in advice.table()], 1 / 3)
    for options, message in (
        ({"metrics": []}, "metrics is empty"),
        ({"metrics": "cosine"}, "metrics='cosine': expected several names"),
        ({"metrics": [square]}, "Pass functions and matrices in a dict"),
        ({"n_bags": 0}, "n_bags=0"),
    ):
        with pytest.raises(ParameterError, match=message):
            advise_metric(blobs, known, 3, **options)
    with pytest.raises(DataError, match="Metric 'small' has 9 rows, but 'own' has 45"):
        advise_metric(blobs, known, 3, {"own": square, "small": square[:9, :9]})


def test_segments_add_up(blobs):
    wide = np.tile(blobs, (1, 3))
    known = {"must_link": [(0, 1), (0, 20)]}
    assert metric_fitness(wide, known, 3, segments=3) == metric_fitness(blobs, known, 3) == 0.5
    with pytest.raises(ParameterError, match="segments=7"):
        metric_fitness(wide, known, 3, segments=7)
    with pytest.raises(ParameterError, match="segments=3 with a matrix as metric: only columns"):
        metric_fitness(wide, known, 3, np.zeros((45, 45)), segments=3)


def test_plots_of_advice(blobs, known):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    assert len(advise_n_clusters(blobs, known, [2, 3]).plot().axes[0].lines) == 1
    assert len(advise_metric(blobs, known, 3, ["euclidean"], n_bags=1).plot().axes[0].patches) == 1


def test_sets_are_ranked_by_their_sum(blobs):
    sets = [{"must_link": [(0, 1)]}, {"must_link": [(0, 20)]}, {"must_link": [(0, 20), (1, 40)]}]
    ranked = rank_constraint_sets(blobs, sets, 3)
    assert ranked.order.tolist() == [2, 1, 0]
    assert rank_constraint_sets(blobs, sets, 3, correct=False).order.tolist() == [0, 1, 2]
    assert ranked.table()[0] == {"rank": 1, "index": 2, "score": ranked.scores[2]}
    for one in (sets[0], None, 3, pd.DataFrame({"id_1": [0], "id_2": [1], "answer": ["same"]})):
        with pytest.raises(ParameterError, match="give a list of sets"):
            rank_constraint_sets(blobs, one, 3)
    with pytest.raises(ParameterError, match="correct='no' in rank_constraint_sets: expected True or False"):
        rank_constraint_sets(blobs, sets, 3, correct="no")
    with pytest.raises(ParameterError, match="random_state='seven': expected an integer"):
        rank_constraint_sets(blobs, sets, 3, random_state="seven")


def test_propagation_says_when_there_is_too_little_to_tell(blobs, known):
    assert propagation(blobs, known) and propagation(blobs, known, metric="manhattan")
    assert propagation(blobs, WRONG).verdict == "unknown" and "Too few" in str(propagation(blobs, WRONG))
    noise = np.random.default_rng(1).normal(size=(45, 2))
    assert propagation(noise, known).verdict == "no"
    square = np.abs(blobs[:, None] - blobs[None]).sum(axis=2)
    for matrix in (square, square.tolist(), pd.DataFrame(square)):
        assert propagation(None, known, metric=matrix) == propagation(blobs, known, metric="manhattan")
    with pytest.raises(DataError, match="Expected 2D array"):
        propagation(None, known)
    with pytest.raises(DataError, match="metric function gives 'far'"):
        propagation(blobs, known, metric=lambda a, b: "far")
    with pytest.raises(ParameterError, match="metric='edit'"):
        propagation(blobs, known, metric="edit")
    with pytest.raises(DataError, match="NaN at row 0"):  # also where there is too little to tell
        propagation(np.full((45, 2), np.nan), WRONG)


def test_sentences_count_one_as_one(blobs, known):
    assert "at least 1 cluster is needed." in str(difficulty({"must_link": [(0, 1)]}))
    assert "at least 2 clusters are needed." in str(difficulty({"cannot_link": [(0, 1)]}))
    assert str(advise_n_clusters(blobs, known, [1])).startswith("Only 1 cluster was tried")


def test_sequences_may_be_a_column_of_a_frame():
    words, known = ["abc", "abd", "xyz", "xyw"], {"must_link": [(0, 1), (0, 3)]}
    assert metric_fitness(pd.Series(words), known, 2, "edit") == metric_fitness(words, known, 2, "edit") == 0.5


def test_the_optimistic_score_is_the_saving_of_the_best_clusterings():
    rng = np.random.default_rng(0)
    every = [np.array(labels) for labels in product(range(2), repeat=7) if len(set(labels)) == 2]
    for _ in range(8):
        X = rng.normal(size=(7, 2)) + 3.0 * (np.arange(7) > 3)[:, None]
        first, second = rng.permutation(list(combinations(range(7), 2)))[:2].tolist()
        costs = [sum(((X[z == c] - X[z == c].mean(axis=0)) ** 2).sum() for c in range(2)) for z in every]

        def lowest(*pairs, costs=costs):
            return min(cost for z, cost in zip(every, costs, strict=True) if all(z[a] == z[b] for a, b in pairs))

        found = optimistic(X, {"must_link": [first, second]}, 2)
        expected = [lowest(other) - lowest(first, second) for other in (second, first)]
        assert_allclose(found.must_link_score, expected, atol=1e-9)


def test_naive_scores_of_medoids_are_differences_of_optima(seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        D = rng.integers(0, 20, size=(6, 6)).astype(float)
        pairs = rng.permutation(list(combinations(range(6), 2)))[:2].tolist()
        none, both = (reference.lowest_cost(D, 2, given) for given in ([], pairs))
        alone = np.array([reference.lowest_cost(D, 2, [pair]) for pair in pairs])
        options = {"model": "kmedoids", "metric": "precomputed"}
        left, only = (score(D, {"must_link": pairs}, 2, **options) for score in (optimistic, pessimistic))
        assert (left.base_cost, only.base_cost) == (both, none)
        assert left.must_link_score.tolist() == (alone[::-1] - both).tolist()
        assert only.must_link_score.tolist() == (none - alone).tolist()


@pytest.mark.parametrize("score", [optimistic, pessimistic])
def test_models_and_metrics_that_do_not_fit_are_refused(score):
    with pytest.raises(ParameterError, match="model='kmode': expected 'kmeans' or 'kmedoids'"):
        score([[0.0], [1.0]], {}, 1, "kmode")
    with pytest.raises(ParameterError, match="metric='cosine' with model='kmeans'"):
        score([[0.0], [1.0]], {}, 1, metric="cosine")
