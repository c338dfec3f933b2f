"""What ConstrainedDensity adds to the laws: clusterers as arguments, joins, splits, files and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import HDBSCAN, OPTICS, KMeans
from sklearn.datasets import make_moons

import clew
from clew import ConstrainedDBSCAN, ConstrainedDensity, Constraints
from clew.evaluation import adjusted_rand_score
from clew.exceptions import ContradictoryConstraintsError, DataError, FileError, ParameterError

LINE = np.array([[0.0], [1.0], [2.0], [3.0], [4.1], [20.0], [21.0], [22.0], [50.0]])


class Fixed:
    """A clusterer for tests that gives the labels it was made with."""

    def __init__(self, labels=None):
        self.labels = labels

    def get_params(self, deep=True):
        return {"labels": self.labels}

    def set_params(self, **params):
        self.labels = params["labels"]
        return self

    def fit_predict(self, X):
        return np.asarray(self.labels)


BASE = [0, 0, 0, 0, 0, 1, 1, 1, -1]


def fit(known, base=BASE, X=LINE, **options):
    return ConstrainedDensity(Fixed(base), n_neighbors=3, **options).fit(X, constraints=known)


def test_a_must_link_joins_two_clusters():
    assert fit({"must_link": [(0, 5)]}).labels_.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, -1]


def test_a_noise_row_joins_the_cluster_of_its_must_link():
    assert fit({"must_link": [(5, 8)]}).labels_.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1]


def test_must_linked_noise_and_known_classes_are_clusters():
    nothing = [-1] * 9
    assert fit({"must_link": [(0, 8)]}, nothing).labels_.tolist() == [0, *[-1] * 7, 0]
    assert fit([4, *[-1] * 8], nothing).labels_.tolist() == [4, *[-1] * 8]
    assert fit(None, nothing).labels_.tolist() == nothing


def test_a_cannot_link_splits_a_cluster_along_the_shortest_paths():
    assert fit({"cannot_link": [(0, 4)]}).labels_.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, -1]


def test_cannot_links_between_clusters_split_nothing():
    assert fit({"cannot_link": [(0, 5), (4, 8)]}).labels_.tolist() == BASE


def test_sources_that_nothing_separates_end_together():
    """Rows 0 and 1 are both separated from 4, and not from each other."""
    assert fit({"cannot_link": [(0, 4), (1, 4)]}).labels_.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, -1]


def test_a_joined_cluster_is_split_again_where_cannot_links_ask_for_it():
    known = {"must_link": [(4, 5)], "cannot_link": [(0, 7)]}
    labels = fit(known).labels_
    assert labels[4] == labels[5]
    assert labels[0] != labels[7]


def test_classes_keep_their_numbers():
    labels = fit([7, -1, -1, -1, 2, -1, -1, -1, -1]).labels_
    assert (labels[0], labels[4]) == (7, 2)
    assert labels[5] not in (7, 2)


def test_cannot_groups_split_like_pairs():
    photo = Constraints(cannot_groups=[0, -1, 0, -1, 0, -1, -1, -1, -1])
    labels = fit(photo).labels_
    assert len({labels[0], labels[2], labels[4]}) == 3


def test_equal_rows_can_be_split():
    X = np.zeros((30, 2))
    labels = ConstrainedDensity(Fixed([0] * 30)).fit(X, constraints={"cannot_link": [(0, 29)]}).labels_
    assert labels[0] != labels[29]
    assert (labels >= 0).all()


def test_a_neighbour_graph_in_parts_is_connected():
    X = np.concatenate([np.zeros(20), np.full(20, 5.0), np.full(20, 9.0)])[:, None]
    known = {"cannot_link": [(0, 59)]}
    labels = ConstrainedDensity(Fixed([0] * 60), n_neighbors=2).fit(X, constraints=known).labels_
    assert len(set(labels[:20].tolist())) == len(set(labels[40:].tolist())) == 1
    assert labels[0] != labels[59]


@pytest.mark.parametrize("clusterer", [HDBSCAN(copy=True), OPTICS(min_samples=5), KMeans(3, random_state=0), "dbscan"])
def test_any_clusterer_keeps_every_constraint(clusterer, seed):
    X, y = make_moons(150, noise=0.12, random_state=seed)
    known = Constraints.sample(y, 60, balance=0.5, random_state=seed)
    model = ConstrainedDensity(clusterer).fit(X, constraints=known)
    assert not any(map(len, known.violations(model.labels_)))
    assert model.violated_must_link_.shape == model.violated_cannot_link_.shape == (0, 2)


def test_touching_moons_are_parted_by_a_few_answers():
    X, y = make_moons(300, noise=0.13, random_state=0)
    one_region = ConstrainedDBSCAN(0.25)
    assert adjusted_rand_score(y, one_region.fit(X).labels_) < 0.1
    known = Constraints.sample(y, 40, balance=0.5, random_state=0)
    assert adjusted_rand_score(y, ConstrainedDensity(one_region).fit(X, constraints=known).labels_) > 0.7


@pytest.mark.parametrize(
    ("name", "clusterer"),
    [("hdbscan", HDBSCAN(copy=True)), ("optics", OPTICS(metric="euclidean")), ("dbscan", ConstrainedDBSCAN())],
)
def test_a_clusterer_given_by_name_has_its_default_parameters(name, clusterer, seed, tmp_path):
    X = make_moons(100, noise=0.1, random_state=seed)[0]
    known = {"cannot_link": [(0, 1)]}
    model = ConstrainedDensity(name).fit(X, constraints=known)
    assert (model.labels_ == ConstrainedDensity(clusterer).fit(X, constraints=known).labels_).all()
    model.save(tmp_path / "model.clew")
    assert clew.load(tmp_path / "model.clew").clusterer == name
    for n_rows in (1, 2, 3):
        assert ConstrainedDensity(name).fit(X[:n_rows]).labels_.shape == (n_rows,)


def test_the_clusterer_is_cloned_and_its_parameters_are_reached():
    inner = OPTICS(min_samples=3)
    model = ConstrainedDensity(inner).set_params(clusterer__min_samples=4).fit(LINE)
    assert clone(model).clusterer.min_samples == 4
    assert not hasattr(model.clusterer, "labels_")


def test_predict_gives_the_label_of_the_nearest_row():
    model = fit({"cannot_link": [(0, 4)]})
    assert model.predict([[-9.0], [3.9], [49.0]]).tolist() == [0, 1, -1]


def test_estimators_of_clew_are_saved_with_it_and_others_refused(tmp_path):
    path = tmp_path / "model.clew"
    model = ConstrainedDensity(ConstrainedDBSCAN(1.5, min_samples=2)).fit(LINE, constraints={"cannot_link": [(0, 4)]})
    model.save(path)
    twin = clew.load(path)
    assert twin.clusterer.eps == 1.5
    assert twin.predict(LINE).tolist() == model.labels_.tolist()
    with pytest.raises(FileError, match=r"clusterer holds OPTICS, which cannot be saved without pickle"):
        ConstrainedDensity(OPTICS(min_samples=3)).fit(LINE).save(tmp_path / "other.clew")
    assert not (tmp_path / "other.clew").exists()


@pytest.mark.parametrize("wrong", ["kmeans", HDBSCAN, 3, None])
def test_something_that_is_no_clusterer(wrong):
    with pytest.raises(
        ParameterError, match=r"clusterer=.* in ConstrainedDensity: expected 'hdbscan' or .* fit_predict"
    ):
        ConstrainedDensity(wrong).fit(LINE)


def test_a_clusterer_that_fails_or_gives_no_labels():
    with pytest.raises(DataError, match="OPTICS cannot cluster X: min_samples"):
        ConstrainedDensity(OPTICS(min_samples=99)).fit(LINE)
    with pytest.raises(DataError, match=r"Fixed returned labels of shape \(2,\) .* but X has 9 rows"):
        fit(None, [0, 1])
    with pytest.raises(DataError, match=r"Fixed returned labels of .* type float64"):
        fit(None, [0.5] * 9)


def test_contradictions_are_explained():
    with pytest.raises(ContradictoryConstraintsError, match=r"separates rows 0 and 2; must_link joins them \(0-1-2\)"):
        fit({"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 2)]})


def test_sparse_rows_and_few_rows():
    assert ConstrainedDensity().fit(sparse.csr_array(np.eye(12))).labels_.shape == (12,)
    for n in (1, 2, 3):
        assert ConstrainedDensity().fit(LINE[:n]).labels_.shape == (n,)
