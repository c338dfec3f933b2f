"""Committee: the formulas against a full association matrix."""

from __future__ import annotations

import numpy as np
import pytest

from clew.active import DIFFERENT, SAME, Oracle, Questions
from clew.active._committee import (
    Committee,
    association,
    choose_representatives,
    committee_votes,
    form_opinion,
    imputed_components,
    mean_association,
    weighted_margins,
)
from clew.active._questions import run
from clew.evaluation import same_partition
from clew.exceptions import ParameterError
from tests.reference import committee as reference


def blobs(rng, n=24, k=3, d=2):
    y = np.resize(np.arange(k), n)
    return rng.uniform(-6, 6, size=(k, d))[y] + rng.normal(size=(n, d)), y


def random_votes(rng):
    n, n_members = int(rng.integers(2, 12)), int(rng.integers(1, 6))
    return rng.integers(int(rng.integers(1, 4)), size=(n, n_members)).astype(np.int32)


def test_matches_reference_on_random_votes(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        votes = random_votes(rng)
        n, matrix = len(votes), reference.association_matrix(votes.tolist())
        np.testing.assert_allclose([association(votes, row) for row in range(n)], matrix)
        kappa = float(rng.uniform(0.3, 1))
        must, _ = reference.imputed(matrix, kappa, 0)
        closure = reference.neighbourhoods(n, must)
        component = [next(place for place, one in enumerate(closure) if row in one) for row in range(n)]
        assert same_partition(imputed_components(votes, kappa), component)
        clusters = [sorted(one) for one in closure]
        found = np.column_stack([mean_association(votes, np.array(rows)) for rows in clusters])
        expected = [[reference.mean_association(matrix, row, rows) for rows in clusters] for row in range(n)]
        np.testing.assert_allclose(found, expected)
        margins = weighted_margins(found, np.array([len(rows) for rows in clusters]))
        np.testing.assert_allclose(margins, [reference.margin(matrix, row, clusters) for row in range(n)], atol=1e-12)


def test_representatives_are_medians_kept_apart_by_the_committee(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        votes = random_votes(rng)
        n, matrix = len(votes), reference.association_matrix(votes.tolist())
        neighbourhood_of = imputed_components(votes, 0.8)
        chosen = choose_representatives(rng.normal(size=(n, 2)), votes, neighbourhood_of, 3, 0.3)
        sizes = [len(rows) for _, rows in chosen]
        assert len(chosen) == min(3, len(set(neighbourhood_of.tolist())))
        assert sizes[0] == np.bincount(neighbourhood_of).max()
        for median, rows in chosen:
            assert median in rows.tolist()
            assert len(set(neighbourhood_of[rows].tolist())) == 1
            within = {row: reference.mean_association(matrix, row, rows.tolist()) for row in rows.tolist()}
            assert within[median] == pytest.approx(max(within.values()))
        others = [row for row, _ in chosen]
        fits = [all(matrix[row][one] <= 0.3 for one in others[:place]) for place, row in enumerate(others)]
        assert fits == sorted(fits, reverse=True)  # stand-ins come last
        assert all(a >= b for a, b, fit in zip(sizes, sizes[1:], fits[1:], strict=False) if fit)


def test_members_see_a_part_and_classify_the_rest(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 50])
    votes = committee_votes(X, 2, 8, 0.3, "euclidean", np.random.default_rng(seed))
    assert votes.shape == (40, 8)
    for member in votes.T:
        assert same_partition(member, np.arange(40) // 20)
    opinion = form_opinion(X, votes, 2, 0.95, 0.05, rng)
    assert sorted(row // 20 for row in opinion.representatives) == [0, 1]
    assert len(opinion.guesses) == 38 + 1


def test_the_row_between_comes_first_and_at_most_k_minus_1_questions_place_it():
    X = np.array([[0.0], [1.0], [2.0], [5.4], [9.0], [10.0], [11.0], [30.0], [31.0]])
    questions = Questions(X, Committee(), n_clusters=3, random_state=0)
    rows = []
    while (pair := questions.ask()) is not None:
        rows.append(pair.first)
        questions.tell(pair, DIFFERENT)
    assert rows[0] == 3
    assert max(rows.count(row) for row in set(rows)) <= 2


def test_guesses_are_shown_used_and_never_certain(seed):
    X, y = blobs(np.random.default_rng(seed))
    questions = Questions(X, Committee(10), n_clusters=3, random_state=0)
    pair = questions.ask()
    imputed = dict(questions.view.imputed)
    assert {answer for answer, _ in imputed.values()} <= {SAME, DIFFERENT}
    assert len(imputed) > 5
    assert all(0 < sure < 1 for _, sure in imputed.values())
    questions.tell(pair, Oracle(y)(pair))
    assert pair.key not in questions.view.imputed
    assert len(questions.answers) == 1


def test_a_group_without_a_representative_gets_one(seed):
    """Equal rows look like one cluster to every member; answers reveal the others."""
    X, y = np.ones((12, 2)), np.arange(12) % 3
    questions = Questions(X, Committee(5), n_clusters=3, random_state=0)
    run(questions, Oracle(y), 1000)
    assert same_partition(questions.constraints.closure().component_of, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_members": 0}, "n_members=0 in Committee"),
        ({"n_members": 2.5}, "n_members=2.5 in Committee"),
        ({"share": 0}, "share=0 in Committee"),
        ({"kappa_must": 1.5}, "kappa_must=1.5 in Committee"),
        ({"kappa_cannot": "low"}, "kappa_cannot='low' in Committee"),
        ({"kappa_must": 0.2, "kappa_cannot": 0.4}, "expected a number below kappa_must=0.2"),
        ({"metric": "manhattan"}, "metric='manhattan' in Committee"),
        ({"random_state": None}, "random_state=None in Committee"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    with pytest.raises(ParameterError, match=message):
        Committee(**params)


def test_many_rows_stay_linear(seed):
    """More different rows of votes than the closure compares with each other."""
    X = np.random.default_rng(seed).normal(size=(25_000, 6))
    questions = Questions(X, Committee(12), n_clusters=8, random_state=0)
    assert questions.ask() is not None
    assert len(questions.view.imputed) <= 2000 + 28
