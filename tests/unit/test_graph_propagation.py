"""What `GraphPropagation` adds to the laws."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import adjusted_rand_score

from clew import Constraints, GraphPropagation
from clew.evaluation import same_partition
from clew.exceptions import DataTypeError, InfeasibleConstraintsError
from clew.graph import _eigenvectors, _kernels
from clew.graph._gaussian_process import LabelledRows, fit_weights
from clew.graph._graph_propagation import _least_represented, repaired
from clew.graph._kernels import build_kernels, build_neighbor_graph, graph_of_columns, guess_n_clusters


def test_one_row_of_each_moon_is_enough():
    X, y = make_moons(300, noise=0.05, random_state=0)
    known = np.full(300, -1)
    for one in range(2):
        known[np.flatnonzero(y == one)[:2]] = one
    assert same_partition(GraphPropagation(2, random_state=0).fit(X, constraints=known).labels_, y)


def test_a_few_labels_go_a_long_way():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    known = np.full(len(y), -1)
    some = np.random.default_rng(0).choice(len(y), 80, replace=False)
    known[some] = y[some]
    plain = adjusted_rand_score(y, GraphPropagation(10, random_state=0).fit(X).labels_)
    taught = adjusted_rand_score(y, GraphPropagation(10, random_state=0).fit(X, constraints=known).labels_)
    assert plain > 0.65  # k-means is at 0.67
    assert taught > 0.85


def overlapping_gaussians(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(6), rng.integers(20, 80, size=6))
    return 1.3 * rng.normal(size=(6, 8))[y] + rng.normal(size=(len(y), 8)), y


def test_the_least_represented_row_is_in_a_dense_region_far_from_labelled_rows():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(8, 1, (30, 2)), [[30.0, -30.0]]])
    kernels = build_kernels(graph_of_columns(X, 10, 0), 2, 0)
    (row,) = _least_represented(kernels, np.arange(0, 60, 6))
    assert 60 <= row < 90  # and not the outlier
    assert not len(_least_represented(kernels, np.arange(91)))


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("n_pairs", [10, 100])
def test_right_pairs_do_not_hurt_where_groups_overlap(number, n_pairs):
    """Propagation from a few components alone is far worse here: in one of these tables 0.43 instead of 0.65."""
    X, y = overlapping_gaussians(number)
    plain = adjusted_rand_score(y, GraphPropagation(6, random_state=0).fit(X).labels_)
    known = Constraints.sample(y, n_pairs, random_state=number)
    taught = adjusted_rand_score(y, GraphPropagation(6, random_state=0).fit(X, constraints=known).labels_)
    assert taught >= plain - 0.02


def test_random_pairs_join_stripes_that_no_base_partition_finds():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = np.column_stack([rng.uniform(0, 10, 200), 1.2 * y + rng.normal(0, 0.2, 200)])
    known = Constraints.sample(y, 150, random_state=0)
    assert adjusted_rand_score(y, GraphPropagation(2, random_state=0).fit(X).labels_) < 0.1
    assert adjusted_rand_score(y, GraphPropagation(2, random_state=0).fit(X, constraints=known).labels_) > 0.8


def test_must_linked_groups_without_a_class_find_their_clusters(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], 30)
    X = rng.normal(size=(90, 2)) + 6.0 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    pairs = [tuple(rng.choice(np.flatnonzero(y == one), 2, replace=False)) for one in (0, 0, 1, 1, 2, 2)]
    model = GraphPropagation(3, random_state=seed).fit(X, constraints={"must_link": pairs})
    assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.parametrize(("penalty", "together"), [(0.0, False), (50.0, True)])
def test_doubtful_pairs_have_their_price(penalty, together):
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    known = Constraints([(2, 3)], [(0, 5)], must_link_confidence=0.9)
    model = GraphPropagation(2, penalty=penalty, random_state=0).fit(X, constraints=known)
    assert (model.labels_[2] == model.labels_[3]) == together
    assert len(model.violated_must_link_) == (not together)
    assert model.labels_[0] != model.labels_[5]


def test_probabilities_sum_to_one_and_lead_to_the_labels(seed):
    X = np.random.default_rng(seed).normal(size=(60, 2))
    model = GraphPropagation(3, random_state=seed).fit(X, constraints={"cannot_link": [(0, 1), (1, 2), (0, 2)]})
    np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1)
    assert (model.probabilities_ > 0).all()
    free = np.arange(3, 60)
    assert (model.labels_[free] == model.cluster_labels_[model.probabilities_[free].argmax(axis=1)]).all()


def test_more_that_differ_than_clusters_are_named():
    X = np.arange(8.0)[:, None]
    with pytest.raises(InfeasibleConstraintsError, match="Rows 1, 4 and 7 are pairwise cannot-linked"):
        GraphPropagation(2).fit(X, constraints={"cannot_link": [(1, 4), (4, 7), (1, 7)]})


def test_large_data_are_surveyed_by_samples(monkeypatch, seed):
    monkeypatch.setattr(_kernels, "_SAMPLE", 100)
    monkeypatch.setattr(_eigenvectors, "_DENSE_ROWS", 50)
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=600)
    X = rng.normal(size=(600, 3)) + 8 * np.eye(3)[y]
    kernels = build_kernels(build_neighbor_graph(X, 10, seed), 3, seed)
    assert kernels.partitions.shape == (5, 600)
    assert all(adjusted_rand_score(y, one) > 0.9 for one in kernels.partitions)
    assert [y[row] for row in kernels.prototypes(0)] == [y[kernels.partitions[0] == one][0] for one in range(3)]


def test_the_number_of_clusters_is_guessed(seed):
    rng = np.random.default_rng(seed)
    y = np.resize(np.arange(5), 300)
    assert guess_n_clusters(build_neighbor_graph(rng.normal(size=(300, 5)) + 9 * np.eye(5)[y], 10, 0)) == 5
    assert guess_n_clusters(build_neighbor_graph([[1.0]], 10, 0)) == 1


def test_pairs_by_chance_say_which_base_partition_to_trust():
    """Two long stripes and a round group, which all base partitions but the spectral one cut across."""
    rng = np.random.default_rng(3)
    stripes = [np.column_stack([rng.uniform(2.75, 7.25, 50), rng.normal(height, 0.25, 50)]) for height in (2.0, 3.8)]
    X = np.concatenate([*stripes, rng.normal([5, 7.1], 0.5, size=(40, 2))])
    y = np.repeat([0, 1, 2], [50, 50, 40])
    for number in range(3):
        known = Constraints.sample(y, 30, balance=0.5, random_state=number)
        assert adjusted_rand_score(y, GraphPropagation(3, random_state=0).fit(X, constraints=known).labels_) == 1.0


def test_pairs_of_even_odds_change_no_trust(seed):
    kernels = build_kernels(build_neighbor_graph(np.random.default_rng(seed).normal(size=(60, 2)), 5, seed), 3, seed)
    pairs, together = np.array([[0, 1], [2, 3], [4, 5]]), np.array([True, False, True])
    np.testing.assert_allclose(kernels.with_pair_evidence(pairs, together, np.full(3, 0.5)).prior, kernels.prior)
    judged = kernels.with_pair_evidence(pairs, together, np.ones(3))
    assert judged.prior[3:].sum() == pytest.approx(kernels.prior[3:].sum())


def test_much_evidence_leaves_every_base_partition_a_weight():
    kernels = build_kernels(build_neighbor_graph(np.random.default_rng(0).normal(size=(60, 2)), 5, 0), 3, 0)
    pairs = np.random.default_rng(1).integers(60, size=(20_000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = kernels.partitions[1][pairs[:, 0]] == kernels.partitions[1][pairs[:, 1]]
    judged = kernels.with_pair_evidence(pairs, together, np.ones(len(pairs)))
    assert (judged.prior > 0).all()
    assert judged.prior[3:].argmax() == 1
    labelled = LabelledRows(np.arange(12), kernels.partitions[1][:12], np.ones(12))
    assert np.isfinite(fit_weights(judged, labelled).values).all()


def test_weights_of_rows_are_refused_with_the_methods_that_take_them():
    X = np.arange(8.0)[:, None]
    with pytest.raises(DataTypeError, match=r"^GraphPropagation cannot use weights\. Leave out .*, or use CVQE,"):
        GraphPropagation(2).fit(X, sample_weight=np.ones(8))
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'constrains'"):
        GraphPropagation(2).fit(X, constrains={"must_link": [(0, 1)]})
    GraphPropagation(2, random_state=0).fit(X, sample_weight=None)


def test_equal_rows_that_look_like_distances_are_clustered_without_a_warning():
    assert len(GraphPropagation(2, n_neighbors=2, random_state=0).fit(np.ones((3, 3))).labels_) == 3


def test_a_partition_that_predicts_the_pairs_better_is_kept_and_satisfies_them(seed):
    """Overlapping Gaussians that k-means separates well: a few random right pairs must not destroy them."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(6), 60)
    X = 1.9 * rng.normal(size=(6, 8))[y] + rng.normal(size=(360, 8))
    model = GraphPropagation(6, random_state=0)
    without = adjusted_rand_score(y, model.fit(X).labels_)
    known = Constraints.sample(y, 60, random_state=seed)
    labels = model.fit(X, constraints=known).labels_
    assert adjusted_rand_score(y, labels) >= without - 0.05
    assert (labels[known.must_link[:, 0]] == labels[known.must_link[:, 1]]).all()
    assert (labels[known.cannot_link[:, 0]] != labels[known.cannot_link[:, 1]]).all()


def test_clashes_are_repaired_at_the_lowest_loss():
    """Three components in one cluster, pairwise apart: the two that lose least move, and a fixed one stays."""
    constraints = Constraints(cannot_link=[(0, 1), (1, 2), (0, 2)], n_samples=3)
    graph = constraints.closure().graph.part(np.arange(3))
    scores = np.log(np.array([[0.9, 0.05, 0.05], [0.5, 0.3, 0.2], [0.5, 0.1, 0.4]]))
    together = np.zeros(3, dtype=np.int64)
    free = repaired(graph, together, np.array([-1, -1, -1], dtype=np.int32), scores)
    assert free.tolist() == [0, 1, 2]
    fixed = repaired(graph, together, np.array([-1, -1, 0], dtype=np.int32), scores)
    assert fixed[2] == 0
    assert len(set(fixed.tolist())) == 3


def test_round_gaussians_are_round_and_stretched_or_bent_clusters_are_not(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), [40, 60, 100])
    blobs = rng.normal(size=(200, 5)) + 3 * np.eye(5)[y]
    stretched = blobs * [1, 1, 1, 1, 12]
    slanted = blobs @ (np.eye(5) + 3 * rng.normal(size=(5, 5)))
    found = [build_kernels(build_neighbor_graph(X, 10, seed), 3, seed).is_round for X in (blobs, stretched, slanted)]
    assert found == [True, False, False]
    assert build_kernels(build_neighbor_graph(blobs[:3], 2, seed), 3, seed).is_round  # too few rows to tell
