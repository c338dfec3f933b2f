"""Agglomerative methods: levels, dead ends, thresholds, and errors for bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import dendrogram
from scipy.spatial.distance import pdist, squareform
from sklearn.neighbors import kneighbors_graph

import clew.hierarchical
from clew import ConstrainedAgglomerative, Constraints
from clew._base import quietly
from clew.exceptions import (
    DataError,
    InfeasibleConstraintsError,
    MoreClustersWarning,
    ParameterError,
    WorkLimitError,
)
from tests.helpers import made

FAMILY = [getattr(clew.hierarchical, name) for name in clew.hierarchical.__all__]
every_class = pytest.mark.parametrize("cls", FAMILY)
LINE = np.array([[0.0], [1.0], [3.0], [6.0], [10.0]])
# Rows 0-1 and 2-3 are close; each of the two clusters is then separated from the other and from the fifth row.
DEAD_END = {"cannot_link": [(0, 2), (1, 4), (3, 4)]}
PAIRS = np.array([[0.0], [1.0], [10.0], [11.0], [30.0]])


@every_class
def test_labels_at_the_first_and_last_level_and_between(cls):
    known = {"must_link": [(0, 4)], "cannot_link": [(0, 3)]}
    model = cls().fit(LINE, constraints=known)
    assert (model.k_max_, model.k_min_) == (4, 2)
    assert len(np.unique(model.labels_)) == 2
    assert model.cut(4).tolist() == [0, 1, 2, 3, 0]
    assert (model.cut(distance_threshold=0.0) == model.cut(4)).all()
    assert (model.cut(distance_threshold=1e9) == model.cut(2)).all()
    assert (cls(3).fit(LINE, constraints=known).labels_ == model.cut(3)).all()


def test_a_threshold_stops_at_merges_of_its_height():
    model = ConstrainedAgglomerative(distance_threshold=2.0, linkage="single").fit(LINE)
    assert model.labels_.tolist() == [0, 0, 1, 2, 3]
    assert model.set_params(distance_threshold=2.1).fit(LINE).labels_.tolist() == [0, 0, 0, 1, 2]
    assert model.linkage_[:, 2].tolist() == [1, 2, 3, 4]


@every_class
def test_a_threshold_that_merges_nothing_says_so(cls):
    model = cls(distance_threshold=0.5)
    sentence = (
        f"{cls.__name__} merged nothing: the closest two clusters are 1 apart, and distance_threshold=0.5. "
        "Raise distance_threshold."
    )
    with pytest.warns(MoreClustersWarning) as said:
        model.fit(LINE)
    assert [str(one.message) for one in said] == [sentence]
    assert model.labels_.tolist() == [0, 1, 2, 3, 4]


@every_class
def test_the_number_of_clusters_and_a_threshold_exclude_each_other(cls):
    sentence = f"n_clusters=2 and distance_threshold=1 in {cls.__name__}: set only one of them, and the other to None."
    with pytest.raises(ParameterError, match=sentence):
        cls(2, distance_threshold=1).fit(LINE)
    with pytest.raises(ParameterError, match=sentence):
        cls().fit(LINE).cut(2, distance_threshold=1)


@every_class
def test_levels_that_the_tree_does_not_have_are_refused(cls):
    model = cls().fit(LINE, constraints={"must_link": [(0, 1)], "cannot_link": [(0, 4)]})
    for n_clusters in (1, 5):
        with pytest.raises(ParameterError, match=f"n_clusters={n_clusters} in cut: the tree has levels of 2 to 4"):
            model.cut(n_clusters)
    with pytest.raises(ParameterError, match=f"{cls.__name__}.cut: give n_clusters or distance_threshold"):
        model.cut()


@every_class
@pytest.mark.parametrize("on_dead_end", ["stop", "color"])
def test_fewer_clusters_than_cannot_links_need_are_refused(cls, on_dead_end):
    known = {"cannot_link": [(0, 1), (1, 2), (0, 2)]}
    with pytest.raises(InfeasibleConstraintsError, match=r"Rows 0, 1 and 2 .* need 3 clusters, but n_clusters=2"):
        cls(2, on_dead_end=on_dead_end).fit(LINE, constraints=known)


@every_class
def test_a_dead_end_is_reported_with_its_reason(cls):
    model = cls(2)
    with pytest.warns(MoreClustersWarning) as said:
        model.fit(PAIRS, constraints=DEAD_END)
    assert [str(one.message) for one in said] == [
        f"{cls.__name__} stopped at 3 clusters, above n_clusters=2: cannot-links separate every two of them, such as "
        'the clusters of rows 0 and 2. 2 clusters are possible with other merges: set on_dead_end="color".'
    ]
    assert model.labels_.tolist() == [0, 0, 1, 1, 2]
    named = Constraints.of({"cannot_link": [("a", "c"), ("b", "e"), ("d", "e")]}, ids=list("abcde"))
    with pytest.warns(MoreClustersWarning, match="such as the clusters of rows a and c"):
        cls(2).fit(PAIRS, constraints=named)


@every_class
def test_after_a_dead_end_a_colouring_leads_on(cls):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cls(2, on_dead_end="color").fit(PAIRS, constraints=DEAD_END)
    labels = model.labels_
    assert (model.k_max_, model.k_min_) == (5, 2)
    assert all(labels[one] != labels[other] for one, other in DEAD_END["cannot_link"])
    assert labels[0] == labels[1]  # the closest two are still merged


def test_without_work_the_first_colouring_decides():
    model = ConstrainedAgglomerative(2, on_dead_end="color", work_limit=0).fit(PAIRS, constraints=DEAD_END)
    assert len(np.unique(model.labels_)) == 2


def test_a_search_that_gives_up_says_so():
    # Mycielski's graph of order 5: no triangle, yet 4 colours; greedy passes and peeling cannot settle it.
    edges = [(i, (i + 1) % 5) for i in range(5)]
    edges += [(5 + i, (i + step) % 5) for i in range(5) for step in (1, 4)] + [(10, 5 + i) for i in range(5)]
    X = np.random.default_rng(0).normal(size=(11, 2))
    model = ConstrainedAgglomerative(3, on_dead_end="color", work_limit=1)
    with pytest.raises(WorkLimitError, match="within work_limit=1"):
        model.fit(X, constraints={"cannot_link": edges})
    with pytest.warns(MoreClustersWarning, match="It is not known whether 3 clusters are possible. Raise work_limit"):
        model.set_params(on_dead_end="stop").fit(X, constraints={"cannot_link": edges})


@every_class
def test_fits_inside_other_methods_do_not_warn(cls):
    with warnings.catch_warnings(), quietly():
        warnings.simplefilter("error")
        assert len(np.unique(cls(2).fit(PAIRS, constraints=DEAD_END).labels_)) == 3


@pytest.mark.parametrize("linkage", ["ward", "centroid"])
def test_linkages_of_means_need_euclidean_distances(linkage):
    with pytest.raises(
        ParameterError, match=f"linkage='{linkage}' in .* needs Euclidean distances, but metric='cosine'"
    ):
        ConstrainedAgglomerative(2, linkage=linkage, metric="cosine").fit(LINE)


@every_class
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "mahalanobis", "cosine"])
def test_distances_of_rows_and_given_distances_agree(cls, metric, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    known = Constraints.sample(rng.integers(3, size=300), 30, random_state=seed)
    names = {"manhattan": "cityblock"}
    options = {"VI": np.linalg.inv(np.cov(X.T))} if metric == "mahalanobis" else {}
    distances = squareform(pdist(X, names.get(metric, metric), **options))
    model = cls(metric=metric).fit(X, constraints=known)
    twin = cls(metric="precomputed").fit(distances, constraints=known)
    np.testing.assert_allclose(model.linkage_, twin.linkage_, rtol=1e-7, atol=1e-12)


@every_class
def test_matrices_that_are_no_distances_are_refused(cls):
    distances = squareform(pdist(LINE))
    for value, sentence in ((np.nan, "NaN"), (-1.0, "between rows 1 and 2 is -1"), (np.inf, "infinity")):
        wrong = distances.copy()
        wrong[1, 2] = wrong[2, 1] = value
        with pytest.raises(DataError, match=sentence):
            cls(metric="precomputed").fit(wrong)


def test_scipy_draws_the_tree():
    axes = pytest.importorskip("matplotlib.figure", reason="needs the extra plot").Figure().subplots()
    model = ConstrainedAgglomerative().fit(LINE, constraints={"must_link": [(0, 4)], "cannot_link": [(0, 3)]})
    dendrogram(model.linkage_, ax=axes)
    assert axes.get_ylim()[1] == pytest.approx(1.05 * model.linkage_[-1, 2])


@every_class
def test_one_row_is_one_cluster(cls):
    model = cls().fit([[1.0]])
    assert model.labels_.tolist() == [0]
    assert model.linkage_.shape == (0, 4)
    assert (model.k_max_, model.k_min_) == (1, 1)


@every_class
def test_the_number_of_clusters_is_needed_only_where_it_is_given(cls):
    assert cls(2).capabilities.needs_n_clusters
    assert not cls().capabilities.needs_n_clusters
    assert made(cls, None, metric="precomputed").capabilities.pairwise == "dissimilarity"


def neighbours(X, n_neighbors):
    return kneighbors_graph(X, n_neighbors, mode="distance")


def test_a_graph_of_all_neighbours_is_the_matrix(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    known = Constraints.sample(rng.integers(3, size=60), 15, random_state=seed)
    for linkage in ("single", "average", "complete"):
        model = ConstrainedAgglomerative(linkage=linkage, metric="precomputed")
        tree = model.fit(neighbours(X, 59), constraints=known).linkage_
        assert tree == pytest.approx(ConstrainedAgglomerative(linkage=linkage).fit(X, constraints=known).linkage_)


def test_a_graph_with_several_components_stops_at_them():
    X = np.concatenate([LINE, LINE + 100, LINE + 200])
    model = ConstrainedAgglomerative(2, metric="precomputed", linkage="single")
    with pytest.warns(MoreClustersWarning) as said:
        model.fit(neighbours(X, 2))
    assert [str(one.message) for one in said] == [
        "ConstrainedAgglomerative stopped at 3 clusters, above n_clusters=2: no edge joins two of them that are not "
        "cannot-linked; the graph of neighbours has 3 connected components. Use more neighbours per row, or raise "
        "n_clusters."
    ]
    assert model.labels_.tolist() == np.repeat([0, 1, 2], 5).tolist()
    assert model.k_min_ == 3
    assert model.set_params(n_clusters=None).fit(neighbours(X, 2)).labels_.max() == 2


def test_graphs_that_make_no_sense_are_refused():
    graph = neighbours(LINE, 2).toarray()
    cases = [
        (np.nan, "NaN at row 0, column 1"),
        (-1.0, "between rows 0 and 1 is -1"),
        (7.0, "between rows 0 and 1 is 7 one way and 1 the other way. Give one distance per pair of neighbours"),
    ]
    for value, sentence in cases:
        wrong = graph.copy()
        wrong[0, 1] = value
        with pytest.raises(DataError, match=sentence):
            ConstrainedAgglomerative(metric="precomputed").fit(sparse.csr_array(wrong))
    with pytest.raises(DataError, match=r"shape \(5, 4\): expected a square matrix"):
        ConstrainedAgglomerative(metric="precomputed").fit(sparse.csr_array(graph[:, :4]))
    for linkage in ("ward", "centroid"):
        with pytest.raises(
            ParameterError, match=f"linkage='{linkage}' .* needs all distances, but X is a sparse matrix"
        ):
            ConstrainedAgglomerative(metric="precomputed", linkage=linkage).fit(sparse.csr_array(graph))


def test_equal_rows_of_a_graph_are_neighbours_at_distance_zero():
    graph = sparse.csr_array(([0.0, 2.0], ([0, 1], [1, 2])), shape=(3, 3))
    model = ConstrainedAgglomerative(metric="precomputed").fit(graph)
    assert model.linkage_[:, 2].tolist() == [0, 2]


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_gamma_ends_the_merges(metric):
    X = LINE if metric == "euclidean" else squareform(pdist(LINE))
    model = ConstrainedAgglomerative(linkage="centroid", gamma=2.5, metric=metric).fit(X)
    assert model.linkage_[: 5 - model.k_min_, 2].tolist() == [1.0, 2.5]
    assert model.labels_.tolist() == [0, 0, 0, 1, 2]
    with pytest.warns(MoreClustersWarning, match=r"above n_clusters=1: .* more than gamma=2.5 apart. Raise gamma."):
        model.set_params(n_clusters=1, on_dead_end="color").fit(X)


def test_gamma_is_for_centroids():
    with pytest.raises(ParameterError, match="gamma=2 bounds the distance between centroids, but linkage='average' in"):
        ConstrainedAgglomerative(gamma=2).fit(LINE)
