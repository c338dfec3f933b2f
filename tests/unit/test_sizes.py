"""Size limits: refused limits with the reason, bands, weights, and results of a fit."""

from __future__ import annotations

import numpy as np
import pytest

from clew import BalancedKMeans, Constraints, PCKMeans, SampledBalancedKMeans
from clew.exceptions import InfeasibleConstraintsError, ParameterError, WorkLimitError
from clew.partitional._sampled_balanced_kmeans import draw_sample
from clew.solvers import packing

X = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"size_min": 30, "size_max": 20}, r"size_min=30 is above size_max=20 in BalancedKMeans\. Lower size_min"),
        ({"size_min": [1, 9, 1], "size_max": 8}, r"size_min=9 of cluster 1 is above size_max=8"),
        ({"size_max": [30, 30]}, r"size_max has 2 limits, but n_clusters=3\. Give one number, or one for each"),
        ({"size_min": [1, np.nan, 1]}, r"size_min\[1\]=nan in BalancedKMeans: expected a finite number >= 0"),
        ({"size_max": [30, -1, 30]}, r"size_max\[1\]=-1 in BalancedKMeans: expected a finite number >= 0"),
        ({"size_max": ["many", 1, 2]}, r"size_max in BalancedKMeans: expected numbers, one for each cluster"),
        ({"size_min": -2}, r"size_min=-2 in BalancedKMeans: expected a finite number >= 0 or an array or None"),
        ({"size_max": np.nan}, r"size_max=nan in BalancedKMeans: expected a finite number >= 0"),
        ({"size": 20}, r"size=20 in BalancedKMeans needs a tolerance\. Give tolerance=0.1 for 10 %"),
        ({"size": 20, "tolerance": 0.1, "size_max": 30}, r"size or tolerance, and also size_min or size_max"),
        ({"size_min": 20.2, "size_max": 20.7}, r"No whole number of rows is from 20.2 to 20.7\. Widen the limits"),
        ({"size_unit": "kilos"}, r"size_unit='kilos' in BalancedKMeans: expected 'rows' or 'weight'"),
    ],
)
def test_limits_that_mean_nothing_are_refused(params, message):
    with pytest.raises(ParameterError, match=message):
        BalancedKMeans(3, **params).fit(X)


def test_weights_are_added_up_in_the_refusal():
    with pytest.raises(
        InfeasibleConstraintsError, match=r"3 clusters of at most 30 hold a weight of 90, the rows weigh 120\. "
    ):
        BalancedKMeans(3, size_max=30, size_unit="weight").fit(X, sample_weight=np.full(60, 2.0))


def test_a_row_heavier_than_every_limit_is_named():
    weights = np.ones(60)
    weights[7] = 25
    with pytest.raises(
        InfeasibleConstraintsError, match=r"Row 7 weighs 25, but no cluster may hold more than 22\. Raise size_max"
    ):
        BalancedKMeans(4, size_max=22, size_unit="weight").fit(X, sample_weight=weights)


def test_weights_that_cannot_be_packed_are_refused():
    # Four rows of weight 3 in three clusters of at most 5 leave two of them together.
    with pytest.raises(
        InfeasibleConstraintsError,
        match=r"The weights cannot be packed into 3 clusters with sizes of at most 5 \(weight\)",
    ):
        BalancedKMeans(3, size_max=5, size_unit="weight").fit(X[:4], sample_weight=np.full(4, 3.0))


def test_classes_and_blocks_that_contradict_limits_are_named():
    labels = np.full(60, -1)
    labels[:12] = 1
    with pytest.raises(
        InfeasibleConstraintsError, match=r"have one class and are a block of 12 rows, but their cluster"
    ):
        BalancedKMeans(6, size_max=11).fit(X, constraints=labels)
    blocks = [(place, place + 1) for place in range(0, 60, 3)] + [(place + 1, place + 2) for place in range(0, 60, 3)]
    message = r"The must-linked blocks cannot be packed into 3 clusters with sizes from 20 to 20 \(rows\): every way"
    with pytest.raises(InfeasibleConstraintsError, match=message):
        BalancedKMeans(3, size_min=20, size_max=20).fit(X, constraints={"must_link": blocks})


def test_conflicts_alone_are_explained_as_ever():
    clique = [(1, 2), (1, 3), (2, 3)]
    with pytest.raises(
        InfeasibleConstraintsError, match="Rows 1, 2 and 3 are pairwise cannot-linked and need 3 clusters"
    ):
        BalancedKMeans(2, size_min=5).fit(X, constraints={"cannot_link": clique})


def test_the_work_limit_is_named(monkeypatch):
    def nothing(*args, **kwargs):
        raise packing.PackingError(proven=False)

    monkeypatch.setattr(packing.Packing, "start", nothing)
    with pytest.raises(
        WorkLimitError, match=r"Neither 3 clusters with sizes of at most 30 \(rows\) nor .* work_limit=77"
    ):
        BalancedKMeans(3, size_max=30, work_limit=77).fit(X, constraints={"must_link": [(0, 1)]})


def test_a_tolerance_is_a_band_around_the_size():
    model = BalancedKMeans(3, size=20, tolerance=0.1, random_state=0).fit(X)
    assert ((model.cluster_sizes_ >= 18) & (model.cluster_sizes_ <= 22)).all()
    assert BalancedKMeans(3, tolerance=0, random_state=0).fit(X).cluster_sizes_.tolist() == [20, 20, 20]
    assert sorted(BalancedKMeans(7, tolerance=0, random_state=0).fit(X).cluster_sizes_.tolist()) == [
        8,
        8,
        8,
        9,
        9,
        9,
        9,
    ]
    sizes = BalancedKMeans(3, size=[10, 20, 30], tolerance=0.05, random_state=0).fit(X).cluster_sizes_
    assert (np.abs(sizes - [10, 20, 30]) <= [0.5, 1, 1.5]).all()


def test_sizes_in_weights(seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 3, 60)
    model = BalancedKMeans(4, tolerance=0.05, size_unit="weight", random_state=0).fit(X, sample_weight=weights)
    total = np.bincount(model.labels_, weights=weights)
    np.testing.assert_allclose(total, model.cluster_weights_)
    assert np.abs(total - weights.sum() / 4).max() <= 0.05 * weights.sum() / 4 * (1 + 1e-8)
    assert model.objective_ * 0.98 <= model.lower_bound_ <= model.objective_


def test_decimal_weights_fill_a_limit_exactly():
    model = BalancedKMeans(2, size_min=1.0, size_max=1.0, size_unit="weight", random_state=0)
    model.fit(X[:20], sample_weight=np.full(20, 0.1))
    assert model.cluster_sizes_.tolist() == [10, 10]


def test_the_largest_group_starts_where_most_rows_may_go(seed):
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.normal(size=(50, 2)), rng.normal(size=(10, 2)) + 20])
    for limits in ([12, 60], [60, 12]):
        model = BalancedKMeans(2, size_max=limits, random_state=0, n_init=1).fit(rows)
        assert model.cluster_sizes_.tolist() == [10, 50][:: 1 if limits[0] == 12 else -1]


def test_no_limit_stands_for_none():
    model = BalancedKMeans(3, size_min=[None, 10, None], size_max=[None, np.inf, 25], random_state=0).fit(X)
    assert model.cluster_sizes_[1] >= 10
    assert model.cluster_sizes_[2] <= 25


def test_predict_gives_the_nearest_centre_whatever_the_sizes():
    rows = np.array([[0.0], [0.1], [0.2], [0.3], [9.0]])
    model = BalancedKMeans(2, size_max=3, random_state=0).fit(rows)
    assert sorted(model.cluster_sizes_.tolist()) == [2, 3]
    distances = model.transform(rows)
    assert (model.predict(rows) == model.cluster_labels_[distances.argmin(axis=1)]).all()
    assert (np.bincount(model.predict(np.zeros((50, 1)))) == 50).any()


def test_prices_of_pairs_within_limits(seed):
    rng = np.random.default_rng(seed)
    known = Constraints.sample(np.repeat(range(3), 20), 40, balance=0.5, noise=0.1, random_state=rng)
    limits = {"size_min": 18, "size_max": 22, "random_state": 0}
    soft = PCKMeans(3, **limits).fit(X, constraints=known)
    assert ((soft.cluster_sizes_ >= 18) & (soft.cluster_sizes_ <= 22)).all()
    free = PCKMeans(3, penalty=0, **limits).fit(X, constraints=known)
    assert free.inertia_ <= soft.inertia_
    assert len(soft.violated_must_link_) + len(soft.violated_cannot_link_) < len(free.violated_must_link_) + len(
        free.violated_cannot_link_
    )


def test_a_high_price_is_a_hard_method_within_limits(seed):
    known = Constraints.sample(np.repeat(range(3), 20), 30, balance=0.5, random_state=seed)
    soft = PCKMeans(3, penalty=1e6, size_min=19, size_max=21, random_state=0).fit(X, constraints=known)
    hard = BalancedKMeans(3, size_min=19, size_max=21, random_state=0).fit(X, constraints=known)
    assert len(soft.violated_must_link_) + len(soft.violated_cannot_link_) == 0
    assert soft.objective_ <= 1.1 * hard.objective_


def test_limits_of_prices_are_about_one_fit_and_a_number_of_clusters():
    with pytest.raises(ParameterError, match=r"n_clusters='auto' in PCKMeans with size_min or size_max: limits need"):
        PCKMeans("auto", size_max=30).fit(X)
    with pytest.raises(ParameterError, match=r"partial_fit of PCKMeans with size_min or size_max: limits hold for"):
        PCKMeans(3, size_max=30).partial_fit(X)


def test_a_sample_of_all_rows_is_the_balanced_method(seed):
    known = {"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 3)]}
    limits = {"size_min": 18, "size_max": 22, "random_state": seed}
    sampled = SampledBalancedKMeans(3, sample_size=60, **limits).fit(X, constraints=known)
    whole = BalancedKMeans(3, **limits).fit(X, constraints=known)
    assert (sampled.labels_ == whole.labels_).all()
    assert (SampledBalancedKMeans(3, **limits).fit(X, constraints=known).labels_ == whole.labels_).all()


def test_a_sample_finds_nearly_what_all_rows_find(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(6, 3))[rng.choice(6, 3000, p=np.arange(1, 7) / 21)] * 4 + rng.normal(size=(3000, 3))
    limits = {"size_min": 400, "size_max": 600, "random_state": seed}
    sampled = SampledBalancedKMeans(6, sample_size=600, **limits).fit(rows)
    whole = BalancedKMeans(6, **limits).fit(rows)
    assert sampled.objective_ <= 1.05 * whole.objective_
    assert sampled.n_iter_ <= 10
    populated = SampledBalancedKMeans(6, sample_size=600, max_refine=1, **limits).fit(rows)
    assert populated.n_iter_ == 1
    assert sampled.objective_ <= populated.objective_
    assert ((populated.cluster_sizes_ >= 400) & (populated.cluster_sizes_ <= 600)).all()


def test_the_sample_has_enough_rows_of_every_cluster(seed):
    # Chernoff's bound, survey Algorithm 13: half of the expected thousand rows, except with a probability of 0.01.
    rng = np.random.default_rng(seed)
    planted = np.repeat(range(8), [6_250] + 7 * [13_393])  # the smallest has half of the mean
    rng.shuffle(planted)
    model = SampledBalancedKMeans(8)
    problem = model._prepare(planted[:, None].astype(float), np.empty(0))
    n_sample = model._n_sample(problem, None, 8)
    assert n_sample == 16_000
    rows = draw_sample(problem, Constraints(n_samples=len(planted)).closure(), n_sample, rng)
    assert len(np.unique(rows)) == n_sample
    assert np.bincount(planted[rows]).min() >= 500


def test_rows_in_constraints_are_drawn_first_and_rows_without_weight_last(seed):
    rng = np.random.default_rng(seed)
    weights = np.ones(60)
    weights[50:] = 0
    labels = np.full(60, -1)
    labels[[3, 9]] = [0, 1]
    closed = (Constraints([(20, 21)], [(30, 31)], n_samples=60) | Constraints(labels=labels)).closure()
    problem = BalancedKMeans()._prepare(X, weights)
    assert {3, 9, 20, 21, 30, 31} <= set(draw_sample(problem, closed, 12, rng).tolist())
    assert draw_sample(problem, closed, 50, rng).tolist() == list(range(50))
    few = draw_sample(problem, closed, 6, rng).tolist()
    assert len({3, 9, 20, 21, 30, 31}.intersection(few)) <= 3 + 3
    assert len(few) == 6


def test_a_block_that_no_sample_can_hold_is_kept_all_the_same():
    # Half of the sample are rows in constraints: a block of twenty rows breaks the sample's limits, not those of all.
    block = [(0, row) for row in range(1, 20)]
    model = SampledBalancedKMeans(3, size_min=20, size_max=20, sample_size=12, random_state=0)
    model.fit(X, constraints={"must_link": block})
    assert model.cluster_sizes_.tolist() == [20, 20, 20]
    assert len(set(model.labels_[:20])) == 1


def test_a_sample_of_fewer_rows_than_clusters_is_refused():
    with pytest.raises(ParameterError, match=r"sample_size=2 in SampledBalancedKMeans is below n_clusters=3\. Raise"):
        SampledBalancedKMeans(3, sample_size=2).fit(X)


def test_hundreds_of_rows_with_conflicts_are_solved_to_proof(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(400, 3))
    apart = np.array([rng.choice(400, 2, replace=False) for _ in range(300)])
    model = BalancedKMeans(5, size_min=75, size_max=85, n_init=1, random_state=0)
    model.fit(rows, constraints={"cannot_link": apart})
    assert model.lower_bound_ == model.objective_


def test_must_links_and_cannot_links_hold_within_limits(seed):
    rng = np.random.default_rng(seed)
    known = Constraints.sample(np.repeat(range(4), 15), 60, balance=0.5, random_state=rng)
    model = BalancedKMeans(4, size_min=13, size_max=17, random_state=0).fit(X, constraints=known)
    assert len(model.violated_must_link_) + len(model.violated_cannot_link_) == 0
    assert (np.abs(model.cluster_sizes_ - 15) <= 2).all()
    assert model.lower_bound_ <= model.objective_
