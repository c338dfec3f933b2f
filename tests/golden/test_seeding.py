"""Initial centres against plain loops (Basu 2004, section 3)."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

from clew import Constraints
from clew.partitional._geometry import Problem
from clew.partitional._seeding import cluster_labels, initial_centers, plus_plus
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import kmeans, seeded_kmeans

# Means of whole numbers up to a few hundred: rounding stays in the last digits.
ROUNDING = 1e-9


def start(
    X, constraints, n_clusters, *, init="neighbourhoods", leftover="mean", weights=(), metric="euclidean", seed=0
):
    """Centres in the units of X, and the cluster that each component seeds."""
    problem, closed = Problem.prepare(X, np.array(weights, dtype=float), metric), constraints.closure()
    labels = cluster_labels(closed, n_clusters)
    found = initial_centers(problem, closed, labels, init, leftover, np.random.default_rng(seed))
    return problem.restored(found.centers), found.seeds


@pytest.mark.parametrize("leftover", ["mean", "k-means++"])
def test_seeds_match_reference_on_random_knowledge(leftover, seed):
    rng = np.random.default_rng(seed)
    compared = crowded = 0
    for _ in range(200):
        n, n_clusters = int(rng.integers(4, 15)), int(rng.integers(1, 5))
        X, weights = whole_numbers(rng, n), rng.integers(1, 4, size=n)
        constraints = random_knowledge(rng, n, n_classes=n_clusters)
        try:
            blocks, expected, _ = seeded_kmeans.seeds(constraints, kmeans.exact(X), n_clusters)
        except kmeans.TieError:
            continue
        centers, seeds = start(X, constraints, n_clusters, leftover=leftover)
        assert [None if cluster < 0 else cluster for cluster in seeds.tolist()] == expected
        _, classes = seeded_kmeans.neighbourhoods(constraints, n)
        unnamed = [block for block, label in zip(blocks, classes, strict=True) if len(block) > 1 and label < 0]
        is_crowded = len(unnamed) > n_clusters - len({label for label in classes if label >= 0})
        weighted, _ = start(X, constraints, n_clusters, leftover=leftover, weights=weights)
        for block, cluster in zip(blocks, expected, strict=True):
            if cluster is not None:
                np.testing.assert_allclose(centers[cluster], X[block].mean(axis=0), atol=ROUNDING)
                if not is_crowded:  # else weighted means may lead farthest first to other blocks
                    mean = np.average(X[block], axis=0, weights=weights[block])
                    np.testing.assert_allclose(weighted[cluster], mean, atol=ROUNDING)
        assert np.isfinite(centers).all()
        compared += 1
        crowded += is_crowded
    assert compared > 100
    assert crowded > 5


def test_the_largest_neighbourhoods_start_when_they_are_known_to_differ():
    X = np.arange(9.0)[:, None]
    known = Constraints(must_link=[(0, 1), (2, 3), (3, 4), (5, 6), (6, 7), (7, 8)], cannot_link=[(2, 5)], n_samples=9)
    centers, seeds = start(X, known, 2)
    assert seeds.tolist() == [-1, 1, 0]
    assert centers.ravel() == pytest.approx([6.5, 3.0])


def test_farthest_first_when_the_largest_may_be_one_cluster():
    X = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 100.0, 101.0])[:, None]
    known = Constraints(must_link=[(0, 1), (1, 2), (3, 4), (5, 6)], n_samples=7)
    centers, seeds = start(X, known, 2)
    assert seeds.tolist() == [0, -1, 1]
    assert centers.ravel() == pytest.approx([1.0, 100.5])


def test_a_row_that_differs_from_all_neighbourhoods_starts_the_next_cluster():
    X = np.array([0.0, 1.0, 10.0, 11.0, 50.0, 60.0])[:, None]
    known = Constraints(must_link=[(0, 1), (2, 3)], cannot_link=[(0, 2), (5, 1), (5, 3), (4, 3)], n_samples=6)
    centers, seeds = start(X, known, 3)
    assert seeds.tolist() == [0, 1, -1, 2]  # row 4 differs from one of them only
    assert centers.ravel() == pytest.approx([0.5, 10.5, 60.0])


def test_the_skeleton_that_explore_leaves_starts_every_cluster():
    X = np.array([0.0, 1.0, 10.0, 11.0, 50.0, 60.0])[:, None]
    known = Constraints(cannot_link=[(1, 2), (1, 5), (2, 5), (0, 2)], n_samples=6)
    centers, seeds = start(X, known, 3)
    assert seeds.tolist() == [-1, 1, 0, -1, -1, 2]  # row 2 has the most cannot-links
    assert centers.ravel() == pytest.approx([10.0, 1.0, 60.0])
    known |= Constraints(must_link=[(3, 4)], cannot_link=[(3, 1), (3, 2), (3, 5)], n_samples=6)
    assert start(X, known, 4)[1].tolist() == [-1, 2, 1, 0, 3]  # beside neighbourhoods too


def test_a_pair_that_is_stated_twice_counts_once_in_the_skeleton():
    X = np.arange(6.0)[:, None]
    once = Constraints(cannot_link=[(3, 4), (4, 5), (3, 5)], cannot_groups=[0, 0, 0, -1, -1, -1])
    twice = once | Constraints(cannot_link=[(4, 3), (1, 2)], cannot_groups=[-1, 7, 7, -1, -1, -1])
    assert start(X, twice, 3)[1].tolist() == start(X, once, 3)[1].tolist() == [0, 1, 2, -1, -1, -1]


def test_the_skeleton_starts_the_first_attempt_only():
    X = np.array([0.0, 1.0, 10.0, 11.0, 50.0, 60.0])[:, None]
    closed = Constraints(cannot_link=[(1, 2), (1, 5), (2, 5)], n_samples=6).closure()
    problem, labels = Problem.prepare(X, np.array([]), "euclidean"), np.arange(3)
    for anew in (False, True):
        again = initial_centers(
            problem, closed, labels, "neighbourhoods", "mean", np.random.default_rng(0), again=True, anew=anew
        )
        assert again.drawn and (again.seeds == -1).all()
    assert initial_centers(problem, closed, labels, "neighbourhoods", "mean", np.random.default_rng(0)).drawn


def test_a_stranger_may_be_told_by_groups_and_classes():
    X = np.array([0.0, 1.0, 10.0, 11.0, 50.0])[:, None]
    known = Constraints(labels=[1, 1, 0, 0, -1], cannot_groups=[3, -1, 4, -1, 3])
    assert start(X, known, 3)[1].tolist() == [1, 0, -1]  # apart from class 1 alone
    known |= Constraints(cannot_groups=[-1, -1, 5, -1, 5])
    centers, seeds = start(X, known, 3)
    assert seeds.tolist() == [1, 0, 2]
    assert centers.ravel() == pytest.approx([10.5, 0.5, 50.0])


@pytest.mark.parametrize(
    ("labels", "n_clusters", "expected"),
    [
        ([2, 0, -1], 3, [0, 1, 2]),
        ([7, 9, -1], 2, [7, 9]),
        ([7, 9, -1], 4, [7, 9, 0, 1]),
        ([0, 5, -1], 4, [0, 5, 1, 2]),
        ([-1, -1, -1], 2, [0, 1]),
        ([2**40, 3, -1], 3, [3, 2**40, 0]),
    ],
)
def test_classes_keep_their_numbers_and_the_others_get_the_lowest_free_ones(labels, n_clusters, expected):
    closed = Constraints(labels=labels).closure()
    assert cluster_labels(closed, n_clusters).tolist() == expected
    assert seeded_kmeans.cluster_labels(labels, n_clusters) == expected


def test_leftover_centres_lie_near_the_global_mean(seed):
    X = whole_numbers(np.random.default_rng(seed), 40, 3)
    known = Constraints(must_link=[(0, 1)], n_samples=40)
    centers, _ = start(X, known, 4, seed=seed)
    drawn = np.random.default_rng(seed).standard_normal((3, 3))
    np.testing.assert_allclose(centers[1:], X.mean(axis=0) + 0.1 * X.std(axis=0) * drawn, atol=ROUNDING)
    np.testing.assert_allclose(centers[0], X[:2].mean(axis=0), atol=ROUNDING)


def test_leftover_centres_are_the_same_for_csr(seed):
    X = whole_numbers(np.random.default_rng(seed), 40, 3)
    known = Constraints(must_link=[(0, 1)], n_samples=40)
    for metric in ("euclidean", "cosine"):
        for leftover in ("mean", "k-means++"):
            dense, _ = start(X, known, 4, seed=seed, metric=metric, leftover=leftover)
            from_csr, _ = start(sparse.csr_matrix(X), known, 4, seed=seed, metric=metric, leftover=leftover)
            np.testing.assert_allclose(dense, from_csr, atol=1e-7)


class Drawn:
    """A generator that draws what it is told and keeps the chances it was given."""

    def __init__(self, draws):
        self._draws, self.chances = list(draws), []

    def choice(self, n, size, p):
        self.chances.append((size, p))
        return np.array(self._draws.pop(0))


def test_plus_plus_draws_by_weighted_distance_and_keeps_the_best_of_its_trials(seed):
    rng = np.random.default_rng(seed)
    for _ in range(30):
        X, weights = whole_numbers(rng, 9), rng.integers(0, 4, size=9)
        weights[0] = 1
        known = X[:0] if rng.random() < 0.5 else X[:2] + 1
        n_trials = 2 + int(np.log(len(known) + 3))
        draws = [rng.integers(9, size=1 if turn == 0 and not len(known) else n_trials) for turn in range(3)]
        problem = Problem.prepare(X, weights.astype(float), "euclidean")
        drawn = Drawn(draws)
        found = problem.restored(plus_plus(problem, known - problem.shift, 3, drawn))
        centers = known.tolist()
        for turn, (size, chances) in enumerate(drawn.chances):
            nearest = [min((((row - c) ** 2).sum() for c in np.array(centers)), default=1.0) for row in X]
            potential = weights * np.array(nearest)
            assert size == len(draws[turn])
            np.testing.assert_allclose(chances, potential / potential.sum(), atol=1e-12)
            left = [
                weights @ np.minimum(nearest if centers else np.inf, ((X - X[i]) ** 2).sum(axis=1)) for i in draws[turn]
            ]
            # Equal trials are the same row, or as good.
            chosen = ((X - found[turn]) ** 2).sum(axis=1).argmin()
            assert weights @ np.minimum(nearest if centers else np.inf, ((X - X[chosen]) ** 2).sum(axis=1)) == min(left)
            np.testing.assert_allclose(found[turn], X[chosen], atol=ROUNDING)
            centers.append(X[chosen].tolist())


def test_plus_plus_on_equal_rows_draws_by_weight_alone():
    problem = Problem.prepare(np.ones((4, 2)), np.array([0.0, 1.0, 3.0, 0.0]), "euclidean")
    drawn = Drawn([[1], [2, 2], [2, 1]])
    assert plus_plus(problem, np.empty((0, 2)), 2, drawn).shape == (2, 2)
    for _, chances in drawn.chances:
        np.testing.assert_allclose(chances, [0, 0.25, 0.75, 0])


def test_drawn_centres_go_one_to_one_to_the_classes_nearest_to_them(seed):
    rng = np.random.default_rng(seed)
    for turn in range(20):
        X = whole_numbers(rng, 12)
        labels = np.where(rng.random(12) < 0.5, rng.integers(3, size=12), -1)
        known = Constraints(labels=labels)
        plain, _ = start(X, Constraints(n_samples=12), 4, init="k-means++", seed=turn)
        centers, seeds = start(X, known, 4, init="k-means++", seed=turn)
        classes = sorted(set(labels.tolist()) - {-1})
        np.testing.assert_allclose(sorted(centers.tolist()), sorted(plain.tolist()))
        assert set(seeds.tolist()) - {-1} == set(classes)
        means = [X[labels == label].mean(axis=0) for label in classes]

        def distance(places, means=means, plain=plain):
            return sum(np.linalg.norm(mean - plain[place]) for mean, place in zip(means, places, strict=True))

        best = min(distance(places) for places in permutations(range(4), len(classes)))
        found = sum(np.linalg.norm(mean - centers[label]) for mean, label in zip(means, classes, strict=True))
        assert found == pytest.approx(best)


def test_a_given_array_is_taken_as_it_is_and_only_classes_seed():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [8.0, 1.0], [9.0, 1.0]])
    init = np.array([[5.0, 5.0], [3.0, 4.0]])
    known = Constraints(must_link=[(0, 1)], labels=[-1, -1, 1, -1])
    centers, seeds = start(X, known, 2, init=init)
    assert centers == pytest.approx(init)
    assert seeds.tolist() == [-1, 1, -1]
    turned, _ = start(X, known, 2, init=init, metric="cosine")
    assert turned == pytest.approx(init / np.linalg.norm(init, axis=1, keepdims=True))
