"""What ConstrainedDBSCAN adds to the laws: seeds, blocks, noise, its radius, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph

import clew
from clew import ConstrainedDBSCAN, Constraints
from clew.density._k_distance import automatic_eps, k_distances
from clew.evaluation import adjusted_rand_score
from clew.exceptions import ContradictoryConstraintsError, DataError, ParameterError

LINE = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [20.0], [40.0]])


def fit(known=None, X=LINE, eps=1.0, min_samples=2, **options):
    return ConstrainedDBSCAN(eps, min_samples=min_samples, **options).fit(X, constraints=known)


def test_a_cannot_link_stops_a_cluster_and_the_row_starts_its_own():
    assert fit({"cannot_link": [(0, 3)]}).labels_.tolist() == [0, 0, 0, 1, 1, -1, -1]


def test_a_must_link_seeds_the_cluster_in_another_place():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [12.0]])
    assert fit(X=X).labels_.tolist() == [0, 0, 1, 1, 1]
    assert fit({"must_link": [(1, 3)]}, X=X).labels_.tolist() == [0, 0, 0, 0, 0]


def test_a_neighbour_is_tested_with_everything_that_it_is_must_linked_with():
    known = {"must_link": [(2, 5)], "cannot_link": [(0, 5)]}
    assert fit(known).labels_.tolist() == [0, 0, 1, 1, 1, 1, -1]


def test_must_linked_rows_and_known_classes_are_never_noise():
    assert fit({"must_link": [(5, 6)]}).labels_.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert fit([-1, -1, -1, -1, -1, 7, -1]).labels_.tolist() == [0, 0, 0, 0, 0, 7, -1]
    assert fit([7, -1, -1, -1, -1, 0, -1]).labels_.tolist() == [7, 7, 7, 7, 7, 0, -1]


def test_cannot_linked_rows_may_both_be_noise():
    model = fit({"cannot_link": [(5, 6)]})
    assert model.labels_.tolist() == [0, 0, 0, 0, 0, -1, -1]
    assert model.violated_cannot_link_.shape == (0, 2)


def test_cannot_groups_block_like_pairs():
    photo = Constraints(cannot_groups=[0, -1, 0, -1, 0, -1, -1])
    assert fit(photo).labels_.tolist() == [0, 0, 1, 1, 2, -1, -1]


def test_predict_gives_the_label_of_the_nearest_core_row():
    model = fit({"cannot_link": [(0, 3)]})
    assert model.predict([[-0.5], [2.4], [2.6], [4.9], [5.1], [20.0]]).tolist() == [0, 0, 1, 1, -1, -1]
    known = fit(["a", None, None, None, None, "b", None])
    assert known.predict([[0.4], [9.0]]).tolist() == ["a", "noise"]


def test_predict_takes_distances_to_the_fitted_rows():
    rows = fit()
    model = fit(X=np.abs(LINE - LINE.T), metric="precomputed")
    new = np.array([[-0.5], [4.9], [9.0]])
    distances = np.abs(new - LINE.T)
    assert model.predict(distances).tolist() == rows.predict(new).tolist() == [0, 0, -1]
    near = np.where(distances <= 1, distances, 0)
    assert model.predict(sparse.csr_array(near)).tolist() == [0, 0, -1]


@pytest.mark.parametrize("form", ["rows", "distances", "graph"])
def test_core_rows_get_their_own_label_back(form, seed):
    """Random cannot-links cut through a dense region, so that core rows of two clusters are within `eps`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 2))
    known = {"cannot_link": np.sort(rng.choice(120, (40, 2), replace=False), axis=1)}
    given = X if form == "rows" else cdist(X, X)
    model = fit(known, X=given, eps=0.6, min_samples=4, metric="euclidean" if form == "rows" else "precomputed")
    assert model.n_clusters_ > 1
    new = sparse.csr_array(np.where(given <= 0.6, given + 1e-9, 0)) if form == "graph" else given
    core = model.core_sample_indices_
    assert (model.predict(new)[core] == model.labels_[core]).all()


def test_when_no_row_is_a_core_row_all_is_noise(tmp_path):
    model = fit(eps=0.5)
    assert model.labels_.tolist() == [-1] * 7
    assert (model.n_clusters_, len(model.core_sample_indices_), len(model.cluster_sizes_)) == (0, 0, 0)
    model.save(tmp_path / "noise.clew")
    assert clew.load(tmp_path / "noise.clew").predict(LINE).tolist() == [-1] * 7


def test_one_row_per_core_makes_every_row_a_cluster():
    assert fit(eps=0.5, min_samples=1).labels_.tolist() == list(range(7))


def test_a_graph_in_several_parts_gives_a_cluster_for_each_and_must_links_join_them():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])
    graph = radius_neighbors_graph(X, 1.0, mode="distance")
    assert fit(X=graph, metric="precomputed").labels_.tolist() == [0, 0, 1, 1, 2, 2]
    assert fit({"must_link": [(0, 5)]}, X=graph, metric="precomputed").labels_.tolist() == [0, 0, 1, 1, 0, 0]


def test_a_graph_without_edges_is_noise_but_for_what_is_known():
    graph = sparse.csr_array((4, 4))
    assert fit(X=graph, metric="precomputed").labels_.tolist() == [-1] * 4
    assert fit({"must_link": [(1, 3)]}, X=graph, metric="precomputed").labels_.tolist() == [-1, 0, -1, 0]
    assert fit(X=graph, metric="precomputed", min_samples=1).labels_.tolist() == [0, 1, 2, 3]
    with pytest.raises(DataError, match=r"eps='auto'.*no row of the neighbour graph has min_samples=2 rows within"):
        fit(X=graph, metric="precomputed", eps="auto")


def test_a_stored_zero_is_an_equal_row_and_a_gap_is_out_of_reach():
    graph = sparse.csr_array((np.zeros(2), ([0, 1], [1, 0])), shape=(3, 3))
    assert fit(X=graph, metric="precomputed").labels_.tolist() == [0, 0, -1]


def test_a_graph_of_the_user_is_left_alone():
    graph = sparse.csr_array((np.array([3.0, 1.0, 1.0, 3.0]), ([0, 0, 1, 2], [2, 1, 0, 0])), shape=(3, 3))
    graph.indices[:2], graph.data[:2] = [2, 1], [3.0, 1.0]
    graph.has_sorted_indices = graph.has_canonical_format = False
    before = graph.indices.tolist(), graph.data.tolist()
    assert fit(X=graph, metric="precomputed").labels_.tolist() == [0, 0, -1]
    assert (graph.indices.tolist(), graph.data.tolist()) == before


@pytest.mark.parametrize("eps", [0, 0.0, -1, np.nan, np.inf, "wide", None, True])
def test_a_radius_that_is_none(eps):
    with pytest.raises(
        ParameterError, match=rf"eps={eps!r} in ConstrainedDBSCAN: expected 'auto' or a finite number > 0"
    ):
        fit(eps=eps)


@pytest.mark.parametrize("min_samples", [0, -1, 2.5, None])
def test_a_number_of_rows_that_is_none(min_samples):
    with pytest.raises(ParameterError, match=f"min_samples={min_samples}.*an integer >= 1"):
        fit(min_samples=min_samples)


def test_more_rows_per_core_than_there_are():
    with pytest.raises(DataError, match=r"min_samples=8, but X has n_samples=7 rows.*Lower min_samples"):
        fit(min_samples=8)
    assert fit(min_samples=7, eps=99.0).labels_.tolist() == [0] * 7


@pytest.mark.parametrize(
    "graph, sentence",
    [
        (sparse.csr_array((3, 4)), r"The distances have shape \(3, 4\): expected a square matrix"),
        (sparse.csr_array([[0.0, -2.0], [-2.0, 0.0]]), "between rows 0 and 1 is -2: expected a finite number >= 0"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "between rows 0 and 1 is 1 one way and 2 the other"),
    ],
)
def test_squares_that_hold_no_distances(graph, sentence):
    with pytest.raises(DataError, match=sentence):
        fit(X=graph, metric="precomputed", min_samples=1)


def test_contradictions_are_explained_and_confidence_can_settle_them():
    known = Constraints([(0, 1), (1, 2)], [(0, 2)], cannot_link_confidence=0.4, n_samples=7)
    with pytest.raises(ContradictoryConstraintsError, match=r"separates rows 0 and 2; must_link joins them \(0-1-2\)"):
        fit(known)
    assert fit(known, min_confidence=0.5).labels_.tolist() == [0, 0, 0, 0, 0, -1, -1]


def test_the_automatic_radius_finds_two_moons(seed):
    X, y = make_moons(400, noise=0.05, random_state=seed)
    model = ConstrainedDBSCAN().fit(X)
    assert model.eps_ == automatic_eps(X, 5, "euclidean")
    assert adjusted_rand_score(y, model.labels_) > 0.8


def test_distances_to_the_kth_row_are_the_same_in_every_form(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    expected = np.sort(distances, axis=1)[:, [3, 7]]
    assert k_distances(X, [4, 8], "euclidean") == pytest.approx(expected)
    assert k_distances(distances, [4, 8], "precomputed") == pytest.approx(expected)
    graph = radius_neighbors_graph(X, 1.0, mode="distance")
    assert k_distances(graph, [4, 8], "precomputed") == pytest.approx(np.where(expected <= 1.0, expected, np.inf))


def test_the_automatic_radius_is_where_rows_of_a_third_of_the_density_are_core(seed):
    """Uniform rows: three times the volume of the median neighbourhood, in one, two and three dimensions."""
    rng = np.random.default_rng(seed)
    for n_columns in (1, 2, 3):
        X = rng.random((3000, n_columns))
        radius = np.median(k_distances(X, [20], "euclidean"))
        assert automatic_eps(X, 20, "euclidean") == pytest.approx(radius * 3 ** (1 / n_columns), rel=0.06)


@pytest.mark.parametrize("X", [np.zeros((9, 2)), np.arange(9.0)[:, None], np.zeros((1, 1)), np.arange(2.0)[:, None]])
def test_the_automatic_radius_of_equal_even_and_few_rows(X):
    eps = automatic_eps(X, 1, "euclidean")
    assert eps >= 0
    assert np.isfinite(eps)
    assert ConstrainedDBSCAN(min_samples=1).fit(X).labels_.shape == (len(X),)


def test_the_automatic_radius_of_a_graph_with_few_neighbours():
    X = np.arange(9.0)[:, None]
    graph = kneighbors_graph(X, 2, mode="distance")
    assert automatic_eps(graph, 3, "precomputed") == pytest.approx(np.sqrt(3))
