"""Truong and Battiti 2013, section 3.2.5: statements about clusterings unlike a given one."""

from __future__ import annotations

import numpy as np
import pytest

from clew import CondEns, CoordinatedConditionalIB, PCKMeans
from clew.evaluation import adjusted_rand_score, variation_of_information


def two_groupings(seed, n_rows=300, n_first=3, n_second=3):
    """Rows with two independent groupings; the first has the larger distances."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(n_first, size=n_rows), rng.integers(n_second, size=n_rows)
    X = np.hstack([9 * np.eye(n_first)[first], 6 * np.eye(n_second)[second]])
    return X + rng.normal(size=X.shape), first, second


def documents(seed, n_rows=200):
    """Counts of words whose frequencies depend on a subject and, independently, on a louder style."""
    rng = np.random.default_rng(seed)
    style, subject = rng.integers(2, size=n_rows), rng.integers(2, size=n_rows)
    rates = np.hstack([[[6, 1] * 10, [1, 6] * 10], [[4, 2] * 10, [2, 4] * 10]])
    return rng.poisson(np.hstack([rates[style, :20], rates[subject, 20:]])), style, subject


@pytest.mark.parametrize("cls", [CondEns, CoordinatedConditionalIB])
def test_the_second_grouping_is_found_if_the_first_is_given(cls, seed):
    """Eq. 46: a good clustering that is information-orthogonal to the given one."""
    X, first, second = two_groupings(seed)
    assert adjusted_rand_score(first, PCKMeans(3, random_state=0).fit(X).labels_) > 0.95  # what k-means finds
    model = cls(3, random_state=0).fit(X, given=first)
    assert adjusted_rand_score(second, model.labels_) > 0.95
    assert model.normalized_mutual_info_ < 0.03
    assert model.variation_of_information_ > 0.98 * (np.log(3) + np.log(3))
    back = cls(3, random_state=0).fit(X, given=model.labels_)
    assert adjusted_rand_score(first, back.labels_) > 0.95


def test_variation_of_information_is_largest_for_independent_clusterings():
    """After Eq. 45: VI is the sum of the entropies if and only if two clusterings are information-orthogonal."""
    given, independent = np.repeat([0, 0, 1, 1], 5), np.repeat([0, 1, 0, 1], 5)
    assert variation_of_information(given, independent) == pytest.approx(2 * np.log(2))
    assert variation_of_information(given, np.repeat([0, 1, 1, 1], 5)) < 2 * np.log(2) - 0.1


def test_the_target_clustering_is_among_the_members_of_the_ensemble(seed):
    """Gondek and Hofmann's theorem: a dominant and information-orthogonal target is handed to the combination."""
    X, first, second = two_groupings(seed)
    model = CondEns(3, random_state=0).fit(X, given=first)
    assert max(adjusted_rand_score(second, member) for member in model.members_.T) > 0.95


@pytest.mark.parametrize("counts", [False, True])
def test_the_information_bottleneck_and_its_conditional_form_are_limits(counts, seed):
    """Eq. 47 keeps what dominates, which is known already; Eq. 53 finds the other grouping."""
    X, given, other = documents(seed) if counts else two_groupings(seed, n_first=2, n_second=2)
    options = {"n_bins": None if counts else 10, "n_init": 4, "random_state": 0}
    plain = CoordinatedConditionalIB(2, coordination=1.0, **options).fit(X, given=given)
    coordinated = CoordinatedConditionalIB(2, **options).fit(X, given=given)
    conditional = CoordinatedConditionalIB(2, coordination=0.0, **options).fit(X, given=given)
    assert adjusted_rand_score(given, plain.labels_) > 0.9
    assert adjusted_rand_score(other, coordinated.labels_) > 0.9
    assert plain.information_ > coordinated.information_
    assert conditional.conditional_information_ >= coordinated.conditional_information_ - 1e-3
    assert plain.conditional_information_ < coordinated.conditional_information_ / 4


def test_a_bound_on_the_information_moves_towards_the_bottleneck(seed):
    """Eq. 55: I(C; Y) >= I_min rules out clusterings that say little about the features."""
    X, given, _ = documents(seed)
    options = {"n_bins": None, "n_init": 4, "random_state": 0}
    plain = CoordinatedConditionalIB(2, coordination=1.0, **options).fit(X, given=given)
    for share in (0.2, 0.95):
        model = CoordinatedConditionalIB(2, min_information=share, **options).fit(X, given=given)
        assert model.information_ >= share * plain.information_ - 1e-6
    assert model.coordination_ > 0.1


def test_both_methods_are_equally_good_on_vectors(seed):
    """Section 3.2.5: the quality of CondEns is competitive; `python -m benchmarks alternatives` compares times."""
    gaps = []
    for draw in range(3):
        X, first, second = two_groupings(100 * seed + draw, n_rows=150, n_first=2, n_second=3)
        scores = [
            adjusted_rand_score(second, model.fit(X, given=first).labels_)
            for model in (CondEns(3, random_state=0), CoordinatedConditionalIB(3, n_init=5, random_state=0))
        ]
        gaps.append(scores[0] - scores[1])
    assert np.mean(gaps) > -0.05
