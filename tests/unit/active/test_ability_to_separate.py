from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clew.active import DIFFERENT, SAME, UNSURE, Oracle, Questions
from clew.active._ability_to_separate import AbilityToSeparate, neighbour_graph, utility
from clew.active._questions import run
from clew.exceptions import ParameterError
from tests.helpers import examples
from tests.reference import ability_to_separate as reference

SCORES = ["sum", "product", "omega", "lds"]


@examples(40)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 14), k=st.integers(1, 6), data=st.data())
def test_graph_matches_the_definitions(seed, n, k, data):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    k = min(k, n - 1)
    theta = data.draw(st.integers(1, k))
    graph = neighbour_graph(X, k, theta)
    near = reference.neighbour_sets(X, k)
    parts = [reference.part(near, theta, [], row) for row in range(n)]
    assert graph.strong.tolist() == [min(part) for part in parts]
    assert graph.lds.tolist() == [reference.local_density(near, k, row) for row in range(n)]
    light = [pair for pair in reference.edges(near) if reference.omega(near, *pair) < theta]
    expected = [(u, v) for u, v in light if v not in parts[u]]
    assert [tuple(pair) for pair in graph.candidates.tolist()] == expected
    assert graph.omega.tolist() == [reference.omega(near, *pair) for pair in expected]
    for score in SCORES:
        assert utility(graph, score).tolist() == [reference.utility(near, k, *pair, score) for pair in expected]


@examples(40)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 14),
    k=st.integers(1, 5),
    theta=st.integers(1, 5),
    score=st.sampled_from(SCORES),
    unsure=st.sampled_from([0.0, 0.3]),
)
def test_questions_and_guesses_match_algorithm_1(seed, n, k, theta, score, unsure):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.integers(3, size=n)
    is_unsure = rng.random((n, n)) < unsure
    k = min(k, n - 1)
    theta = min(theta, k)

    def same(u, v):
        return None if is_unsure[u, v] else bool(y[u] == y[v])

    asked, guesses = reference.active_selection(X, k, theta, score, same)
    questions = Questions(X, AbilityToSeparate(n_neighbors=k, theta=theta, score=score), random_state=0)
    found = []
    while (pair := questions.ask()) is not None:
        found.append(pair.key)
        questions.tell(pair, {True: SAME, False: DIFFERENT, None: UNSURE}[same(*pair.key)])
    assert found == asked
    known = questions.view.knowledge.relation
    imputed = {key: answer is SAME for key, (answer, _) in questions.view.imputed.items() if known(*key) is None}
    # A pair that was asked has left the candidates, also when the answer was "don't know".
    assert imputed == {key: answer for key, answer in guesses.items() if known(*key) is None and key not in asked}


def test_one_answer_speaks_for_all_candidates_between_two_parts():
    # Two squares with a dense inside each, and two thin bridges between them.
    left = [(0.0, 0.0), (0.0, 1.1), (1.0, 0.0), (1.05, 1.0), (0.5, 0.52)]
    X = np.array(left + [(x + 3.0, y + 0.01 * x) for x, y in left])
    questions = Questions(X, AbilityToSeparate(n_neighbors=6, theta=3, confidence=0.7), random_state=0)
    graph = neighbour_graph(X, 6, 3)
    assert set(graph.strong.tolist()) == {0, 5} and len(graph.candidates) > 1
    pair = questions.ask()
    questions.tell(pair, DIFFERENT)
    assert questions.ask() is None
    others = {tuple(key) for key in graph.candidates.tolist()} - {pair.key}
    assert questions.view.imputed == dict.fromkeys(others, (DIFFERENT, 0.7))
    questions.undo()
    assert questions.ask().key == pair.key
    assert questions.view.imputed == {}


def test_what_is_known_beforehand_propagates_too():
    X = np.concatenate([np.linspace(0, 1, 8) ** 1.1, np.linspace(1.6, 2.6, 8) ** 1.1])[:, None]
    plain = Questions(X, AbilityToSeparate(n_neighbors=5, theta=4), random_state=0)
    first = plain.ask().key
    for kind, answer in (("must_link", SAME), ("cannot_link", DIFFERENT)):
        told = Questions(X, AbilityToSeparate(n_neighbors=5, theta=4), random_state=0)
        told.tell(told.ask(), answer)
        given_before = Questions(X, AbilityToSeparate(n_neighbors=5, theta=4), constraints={kind: [first]})
        assert given_before.ask() == told.ask()
        assert given_before.view.imputed == told.view.imputed


def test_a_batch_asks_once_between_two_parts():
    rng = np.random.default_rng(0)
    questions = Questions(rng.normal(size=(80, 2)), AbilityToSeparate(), random_state=0)
    batch = questions.ask(6)
    strong = neighbour_graph(questions.X, 10, 7).strong
    between = {frozenset(strong[list(pair.key)].tolist()) for pair in batch}
    assert len(between) == len(batch) > 1


def test_random_choice_stays_within_the_candidates_and_depends_on_the_seed():
    X = np.random.default_rng(1).normal(size=(60, 2))
    candidates = {tuple(pair) for pair in neighbour_graph(X, 10, 7).candidates.tolist()}
    asked = [Questions(X, AbilityToSeparate(score="random"), random_state=seed).ask().key for seed in range(8)]
    assert set(asked) <= candidates
    assert len(set(asked)) > 1


def test_default_theta_is_within_two_of_half_of_k():
    for n_rows in (2, 3, 7, 30, 1000):
        k, theta = AbilityToSeparate()._settings(n_rows)
        assert 1 <= theta <= k < n_rows
        assert k / 2 - 2 <= theta <= k / 2 + 2
    assert AbilityToSeparate(n_neighbors=20, theta=15)._settings(11) == (10, 10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_neighbors": 0},
        {"n_neighbors": 2.5},
        {"theta": 0},
        {"theta": 11},
        {"n_neighbors": 4, "theta": 5},
        {"score": "asc"},
        {"confidence": 0},
        {"confidence": 1.5},
    ],
)
def test_bad_parameters_are_named(wrong):
    name, value = list(wrong.items())[-1]
    with pytest.raises(ParameterError, match=f"{name}={value!r} in AbilityToSeparate"):
        AbilityToSeparate(**wrong)


def test_sparse_rows_give_the_same_questions():
    X = np.random.default_rng(2).normal(size=(50, 3))
    X[::2, 0] = 0
    y = np.arange(50) % 2
    asked = []
    for rows in (X, sparse.csr_array(X)):
        questions = Questions(rows, AbilityToSeparate(n_neighbors=6), random_state=0)
        run(questions, Oracle(y), 20)
        asked.append([entry.question.key for entry in questions.answers])
    assert asked[0] == asked[1]
    assert len(asked[0]) == 20
