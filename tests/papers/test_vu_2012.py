"""Vu, Labroche and Bouchon-Meunier (2012): LDS, ASC and propagated constraints."""

from __future__ import annotations

import numpy as np
import pytest

from clew import ConstrainedAgglomerative
from clew.active import SAME, Oracle, Questions
from clew.active._ability_to_separate import AbilityToSeparate, neighbour_graph, utility
from clew.active._questions import run
from clew.evaluation import rand_score
from tests.helpers import benchmark_data


@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_local_density_is_between_0_and_k_minus_1(k, seed):
    # Section 3.2: u and q in NN(u) share at most k - 1 neighbours, since q is not its own neighbour.
    X = np.random.default_rng(seed).normal(size=(80, 3))
    lds = neighbour_graph(X, k, k).lds
    assert (lds >= 0).all() and (lds <= k - 1).all()
    clique = neighbour_graph(X[: k + 1], k, k).lds
    assert clique.tolist() == [k - 1] * (k + 1)


def test_asc_of_a_graph_computed_by_hand():
    # Eq. 1-3 with k = 3. NN: 0 {1,2,3}, 1 {0,2,3}, 2 {0,1,3}, 3 {1,2,4}, 4 {3,5,6}, 5 {3,4,6}, 6 {3,4,5}
    X = np.array([[0.0], [1.1], [2.3], [5.0], [8.0], [9.2], [10.1]])
    graph = neighbour_graph(X, 3, 3)
    omega = {(0, 1): 2, (0, 2): 2, (1, 2): 2, (1, 3): 1, (2, 3): 1, (3, 4): 0, (4, 5): 2, (4, 6): 2, (5, 6): 2}
    assert dict(zip(map(tuple, graph.candidates.tolist()), graph.omega.tolist(), strict=True)) == omega
    lds = np.array([6, 5, 5, 2, 4, 5, 5]) / 3  # sums of omega over NN, mutual or not: row 0 shares {1,2} with row 3
    np.testing.assert_allclose(graph.lds, lds, rtol=1e-15)
    expected = [3 - weight + 1 / (1 + min(lds[u], lds[v])) for (u, v), weight in omega.items()]
    np.testing.assert_allclose(utility(graph, "sum"), expected, rtol=1e-15)
    ranked = [tuple(pair) for pair in graph.candidates[np.argsort(-utility(graph, "sum"), kind="stable")].tolist()]
    assert ranked[:5] == [(3, 4), (1, 3), (2, 3), (4, 5), (4, 6)]
    assert Questions(X, AbilityToSeparate(n_neighbors=3, theta=3)).ask().key == (3, 4)


def test_omega_decides_before_density_in_the_sum(seed):
    # Section 3.2: the density term is at most 1, so it only orders candidates with the same omega.
    graph = neighbour_graph(np.random.default_rng(seed).normal(size=(150, 2)), 8, 6)
    order = np.argsort(-utility(graph, "sum"), kind="stable")
    # A density term of exactly 1 (LDS = 0) ties with one shared neighbour less and none of the density.
    assert (graph.lds > 0).all()
    assert (np.diff(graph.omega[order]) >= 0).all()


@pytest.mark.benchmark_data
@pytest.mark.parametrize("score", ["sum", "random"])
def test_propagation_gives_more_constraints_than_questions_on_iris(score):
    # Fig. 7; asking stops when the candidates are used up.
    X, y = benchmark_data().load("iris")
    right = []
    for seed in range(5):
        questions = Questions(X, AbilityToSeparate(score=score), n_clusters=3, random_state=seed)
        spent = run(questions, Oracle(y), 50)
        imputed = questions.view.imputed
        right += [(answer is SAME) == (y[first] == y[second]) for (first, second), (answer, _) in imputed.items()]
        assert spent > 10
        assert len(imputed) > spent
    # Not in the paper, which does not say how many are right: ours to keep.
    assert np.mean(right) > 0.9


@pytest.mark.benchmark_data
def test_agglomeration_with_answers_on_soybean():
    # Section 4.4: a Rand index of 0.992 after 10 questions and 1.00 after 20, at the best level of the tree. The paper
    # does not name its linkage; single linkage with the default k and theta gives its figures.
    X, y = benchmark_data().load("soybean_small")
    reached = {}
    for n_questions in (10, 20):
        questions = Questions(X, AbilityToSeparate(), random_state=0)
        run(questions, Oracle(y), n_questions)
        tree = ConstrainedAgglomerative(linkage="single").fit(X, constraints=questions.constraints)
        reached[n_questions] = max(rand_score(y, tree.cut(k)) for k in range(tree.k_min_, tree.k_max_ + 1))
    assert reached[10] == pytest.approx(0.992, abs=5e-4)
    assert reached[20] == 1.0
