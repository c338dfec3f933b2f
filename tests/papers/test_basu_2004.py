"""Basu, Banerjee and Mooney 2004: Lemma 1, the role of w (section 5.4), the start (section 3), text and Iris."""

from __future__ import annotations

import numpy as np
import pytest

from clew import ConstrainedKMeans, Constraints, PCKMeans, SeededKMeans
from clew.evaluation import normalized_mutual_info_score, same_partition
from tests.helpers import benchmark_data, random_knowledge
from tests.reference.assign import broken, priced_pairs

# Rounds add up expanded squares: rounding is relative to the sum of squares.
ROUNDING = 1e-9


@pytest.mark.parametrize("entailed", [True, False])
def test_lemma_1_the_objective_never_rises_and_ends_where_no_row_can_move_cheaper(entailed, seed):
    rng = np.random.default_rng(seed)
    for turn in range(60):
        n, n_clusters = int(rng.integers(4, 25)), int(rng.integers(1, 5))
        n_clusters = min(n_clusters, n)
        X = rng.normal(size=(n, 2)) * 3
        consistent, sure = bool(turn % 3), bool(turn % 2)
        known = random_knowledge(rng, n, n_clusters, consistent=consistent, sure=sure)
        penalty = float(rng.choice([0.0, 0.3, 3.0, 300.0]))
        model = PCKMeans(n_clusters, penalty=penalty, entailed=entailed, tol=0, n_init=2, random_state=turn)
        model.fit(X, constraints=known)
        assert (np.diff(model.objective_history_) <= ROUNDING * (1 + abs(model.objective_history_[0]))).all()
        pairs = priced_pairs(known, n, entailed=entailed)
        place = np.array([model.cluster_labels_.tolist().index(label) for label in model.labels_.tolist()])
        distance = ((X[:, None] - model.cluster_centers_[None]) ** 2).sum(axis=2)
        here = distance[np.arange(n), place].sum() + penalty * float(broken(*pairs, place.tolist()))
        assert model.objective_ == pytest.approx(here, abs=1e-8)
        for row in range(n):
            for cluster in range(n_clusters):
                moved = place.copy()
                moved[row] = cluster
                there = distance[np.arange(n), moved].sum() + penalty * float(broken(*pairs, moved.tolist()))
                assert there >= here - 1e-8


def test_lemma_1_a_component_that_is_together_cannot_move_cheaper_either(seed):
    """Beyond the paper: under a high price no row of a component would go first."""
    rng = np.random.default_rng(seed)
    for turn in range(30):
        n = 18
        X = rng.normal(size=(n, 2)) * 3
        known = Constraints(must_groups=rng.integers(0, 6, size=n))
        model = PCKMeans(3, penalty=50.0, tol=0, n_init=1, random_state=turn).fit(X, constraints=known)
        pairs = priced_pairs(known, n, entailed=True)
        distance = ((X[:, None] - model.cluster_centers_[None]) ** 2).sum(axis=2)
        here = distance[np.arange(n), model.labels_].sum() + 50 * float(broken(*pairs, model.labels_.tolist()))
        for group in range(6):
            rows = known.must_groups == group
            if len(np.unique(model.labels_[rows])) > 1:
                continue
            for cluster in range(3):
                moved = np.where(rows, cluster, model.labels_)
                there = distance[np.arange(n), moved].sum() + 50 * float(broken(*pairs, moved.tolist()))
                assert there >= here - 1e-8


def test_lemma_1_holds_when_the_centres_stand_still_and_only_prices_matter(seed):
    rng = np.random.default_rng(seed)
    for turn in range(200):
        y = rng.integers(3, size=8)
        known = Constraints.sample(y, 14, noise=0.3, random_state=rng)
        model = PCKMeans(3, penalty=1.0, entailed=False, init=np.zeros((3, 1)), random_state=turn)
        labels = model.fit(np.zeros((8, 1)), constraints=known).labels_.tolist()
        pairs = priced_pairs(known, 8, entailed=False)
        moves = [[*labels[:row], cluster, *labels[row + 1 :]] for row in range(8) for cluster in range(3)]
        assert min(broken(*pairs, moved) for moved in moves) >= broken(*pairs, labels)


@pytest.mark.parametrize("n_init", [1, 4])
@pytest.mark.parametrize("leftover", ["k-means++", "mean"])
def test_section_5_4_a_weight_of_zero_is_seeded_kmeans(n_init, leftover, seed):
    rng = np.random.default_rng(seed)
    for turn in range(15):
        X = rng.normal(size=(40, 3))
        known = random_knowledge(rng, 40, 3)
        shared = {"leftover": leftover, "n_init": n_init, "random_state": turn}
        free = PCKMeans(3, penalty=0, **shared).fit(X, constraints=known)
        seeded = SeededKMeans(3, **shared).fit(X, constraints=known)
        assert same_partition(free.labels_, seeded.labels_)
        assert free.objective_ == pytest.approx(seeded.objective_)
        np.testing.assert_allclose(sorted(free.cluster_centers_.tolist()), sorted(seeded.cluster_centers_.tolist()))


def test_section_5_4_a_very_high_weight_makes_constraints_hard(seed):
    rng = np.random.default_rng(seed)
    for turn in range(40):
        n, n_clusters = int(rng.integers(6, 40)), int(rng.integers(2, 5))
        X = rng.normal(size=(n, 2))
        known = random_knowledge(rng, n, n_clusters)
        model = PCKMeans(n_clusters, penalty=1e6, random_state=turn).fit(X, constraints=known)
        assert model.violated_must_link_.shape == model.violated_cannot_link_.shape == (0, 2)


def test_section_5_4_a_very_high_weight_keeps_labels_like_constrained_kmeans(seed):
    rng = np.random.default_rng(seed)
    for turn in range(20):
        X = rng.normal(size=(60, 2))
        known = np.full(60, -1)
        known[:9] = np.resize([0, 1, 2], 9)
        hard = ConstrainedKMeans(3, random_state=turn).fit(X, constraints=known)
        priced = PCKMeans(3, penalty=1e6, random_state=turn).fit(X, constraints=known)
        assert (hard.labels_[:9] == known[:9]).all()
        assert (priced.labels_[:9] == known[:9]).all()


def test_section_5_4_in_between_constraints_and_distances_are_traded_off():
    """The higher the price, the less is broken and the more it costs in distance, from SeededKMeans to hard."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), rng.integers(3, size=80)
    known = Constraints.sample(y, 60, random_state=0)
    models = [PCKMeans(3, penalty=p, n_init=10, random_state=0).fit(X, constraints=known) for p in (0, 0.5, 2, 8, 1e4)]
    n_broken = [len(m.violated_must_link_) + len(m.violated_cannot_link_) for m in models]
    assert n_broken == sorted(n_broken, reverse=True)
    assert n_broken[0] > n_broken[2] > n_broken[-1] == 0
    assert models[0].inertia_ < models[2].inertia_ < models[-1].inertia_


def test_eq_2_1_is_half_the_objective_with_the_papers_weight_doubled(seed):
    """The paper halves squared distances: its w = 1 on Iris is penalty = 2 here."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 2)), rng.integers(3, size=30)
    known = Constraints.sample(y, 15, random_state=seed)
    model = PCKMeans(3, penalty=2.0, tol=0, random_state=seed).fit(X, constraints=known)
    must, cannot = priced_pairs(known, 30, entailed=True)
    centers = model.cluster_centers_[model.labels_]
    eq_2_1 = 0.5 * ((X - centers) ** 2).sum() + 1.0 * float(broken(must, cannot, model.labels_.tolist()))
    assert model.objective_ / 2 == pytest.approx(eq_2_1)


@pytest.mark.benchmark_data
def test_section_5_iris_knowledge_helps():
    """Iris is used as it is, with w = 1; more constraints give a higher NMI, on rows that no constraint names too."""
    X, y = benchmark_data().load("iris_uci")

    def mean_nmi(n_pairs):
        """On all rows, and on those that no constraint names."""
        scores = []
        for seed in range(10):
            known = Constraints.sample(y, n_pairs, random_state=seed)
            labels = PCKMeans(3, penalty=2.0, random_state=seed).fit(X, constraints=known).labels_
            free = np.ones(len(y), dtype=bool)
            free[np.concatenate([known.must_link, known.cannot_link]).ravel()] = False
            scores.append([normalized_mutual_info_score(y[rows], labels[rows]) for rows in (slice(None), free)])
        return np.mean(scores, axis=0)

    none, some = mean_nmi(0), mean_nmi(80)
    assert 0.7 < none[0] < 0.8  # plain k-means: 0.758
    assert some[0] > none[0] + 0.05
    assert some[1] > none[1]


@pytest.mark.benchmark_data
def test_section_5_text_knowledge_helps_spherical_kmeans_on_sparse_rows():
    """The classic3 subset as CSR with w = 0.001 (cosine needs no factor of two)."""
    X, y = benchmark_data().load("classic3_csr")
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(y == c), size, replace=False) for c, size in enumerate((100, 200, 100))]
    )
    X, y = X[rows].tocsr(), y[rows]
    spread = {}
    for n_pairs in (0, 600):
        scores = []
        for seed in range(5):
            known = Constraints.sample(y, n_pairs, random_state=seed)
            model = PCKMeans(3, metric="cosine", penalty=0.001, n_init=1, random_state=seed).fit(X, constraints=known)
            assert (np.diff(model.objective_history_) <= 1e-9 * len(y)).all()
            scores.append(normalized_mutual_info_score(y, model.labels_))
        spread[n_pairs] = np.mean(scores)
    assert spread[600] > spread[0] + 0.05
