"""Laws of the k-means relatives: centres, distances, prices, weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

import clew.partitional
from clew import Constraints
from clew.evaluation import same_partition
from tests.conformance.scenarios import SCENARIOS, build
from tests.reference.assign import broken, priced_pairs

FAMILY = [getattr(clew.partitional, name) for name in clew.partitional.__all__]
EXAMPLES = [
    pytest.param(example, id=f"{cls.__name__}{number}")
    for cls in FAMILY
    for number, example in enumerate(cls._examples())
]
every_example = pytest.mark.parametrize("example", EXAMPLES)
every_class = pytest.mark.parametrize("cls", FAMILY)
# Angles know no distance from the origin, and k-means of scikit-learn knows no angles.
euclidean_class = pytest.mark.parametrize(
    "cls", [cls for cls in FAMILY if cls()._geometry == "euclidean" and not cls()._learns_metric]
)
plain_example = pytest.mark.parametrize("example", [one for one in EXAMPLES if not one.values[0]._learns_metric])
scenarios = pytest.mark.parametrize("scenario", [pytest.param(one, id="-".join(one)) for one in SCENARIOS])


def every_scenario(test):
    """Every scenario, of which `make test` runs every 34th, and CI every 17th."""
    return pytest.mark.sampled(34, slow=17)(scenarios(test))


# Sums of a few dozen numbers of size ten, computed in two ways.
ROUNDING = 1e-9


def fit(example, case, **params):
    return clone(example).set_params(**{"n_init": 1, **params}).fit(case.X, constraints=case.constraints)


def without_sample(example):
    """The same, on all rows where it would draw a sample of them."""
    return clone(example).set_params(**({"sample_size": 10**6} if "sample_size" in example.get_params() else {}))


def costs(model, X):
    """Squared distance, or one minus cosine, of every row to every centre; in the learned metric, if there is one."""
    if model._learns_metric:
        return learned_costs(model, X)
    if model._geometry == "euclidean":
        return ((X[:, None, :] - model.cluster_centers_[None]) ** 2).sum(axis=2)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return 1 - (X / np.where(norms > 0, norms, 1)) @ model.cluster_centers_.T


def learned_costs(model, X):
    """Costs by the definition, row by row."""
    if model._geometry == "cosine":
        roots = np.sqrt(model.metrics_[0])
        return 1 - normalize(X * roots) @ normalize(model.cluster_centers_ * roots).T
    found = np.empty((len(X), len(model.cluster_centers_)))
    for cluster, center in enumerate(model.cluster_centers_):
        form = model.metrics_[cluster if len(model.metrics_) > 1 else 0]
        form = np.diag(form) if form.ndim == 1 else form
        found[:, cluster] = [(row - center) @ form @ (row - center) for row in X]
    return found


def determinants(model):
    """Log-determinants of the metrics, which a row adds to its cost with a minus; 0 where nothing is learned."""
    if not model._learns_metric:
        return 0.0
    forms = [np.diag(form) if form.ndim == 1 else form for form in model.metrics_]
    return np.array([np.linalg.slogdet(form)[1] for form in forms])


def cluster_of(model):
    """Place of each row's cluster in `cluster_centers_`."""
    return np.array([model.cluster_labels_.tolist().index(label) for label in model.labels_.tolist()])


def spherical_kmeans(X, centers):
    """The plain method for cosines, in four lines."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    labels = np.full(len(X), -1)
    while (labels != (labels := (X @ centers.T).argmax(axis=1))).any():
        sums = np.array([X[labels == cluster].sum(axis=0) for cluster in range(len(centers))])
        centers = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return labels, centers


@plain_example
def test_no_constraints_are_the_plain_method(example, seed):
    rng = np.random.default_rng(seed)
    compared = 0
    for n_clusters in (1, 2, 3, 5):
        X = rng.normal(size=(60, 3)) + 2
        init = X[rng.choice(60, n_clusters, replace=False)]
        model = without_sample(example).set_params(n_clusters=n_clusters, init=init, tol=0)
        if model._geometry == "cosine":
            labels, centers = spherical_kmeans(X, init / np.linalg.norm(init, axis=1, keepdims=True))
            model.fit(X)
        else:
            plain = KMeans(n_clusters, init=init, n_init=1, tol=0, algorithm="lloyd").fit(X)
            labels, centers = plain.labels_, plain.cluster_centers_
            assert model.fit(X).n_iter_ == plain.n_iter_
            assert model.inertia_ == pytest.approx(plain.inertia_)
        assert (model.labels_ == labels).all()
        np.testing.assert_allclose(model.cluster_centers_, centers, atol=ROUNDING)
        compared += 1
    assert compared == 4


@pytest.mark.parametrize("max_iter", [1, 2, 3, 300])
@pytest.mark.parametrize("tol", [0.0, 1e-4, 1e-2])
@euclidean_class
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter:sklearn.exceptions.ConvergenceWarning")
def test_rounds_stop_where_those_of_kmeans_stop(cls, max_iter, tol, seed):
    X = np.random.default_rng(seed).normal(size=(200, 2))
    limits = {"init": X[:4], "max_iter": max_iter, "tol": tol}
    plain = KMeans(4, n_init=1, algorithm="lloyd", **limits).fit(X)
    model = cls(4, **limits).fit(X)
    assert model.n_iter_ == plain.n_iter_
    assert (model.labels_ == plain.labels_).all()
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, atol=ROUNDING)


@every_scenario
@every_example
def test_inertia_is_the_cost_of_the_labels(example, scenario, seed):
    case = build(scenario, example, seed)
    model = fit(example, case)
    own = costs(model, case.X)[np.arange(len(case.X)), cluster_of(model)]
    assert model.inertia_ == pytest.approx(own.sum(), abs=ROUNDING)
    assert model.inertia_ >= 0
    assert 1 <= model.n_iter_ <= len(model.objective_history_)


@every_scenario
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=f"{cls.__name__}{number}")
        for cls in FAMILY
        # Methods with prices of another kind have a reference of their own.
        if cls._capabilities.must_link != "soft" or "entailed" in cls._parameters
        for number, example in enumerate(cls._examples())
    ],
)
def test_the_objective_is_the_inertia_and_the_price_of_what_is_broken(example, scenario, seed):
    case = build(scenario, example, seed)
    model = fit(example, case)
    price = 0.0
    if model.capabilities.must_link == "soft":
        pairs = priced_pairs(case.constraints, len(case.X), entailed=model.entailed)
        price = model.penalty_ * float(broken(*pairs, model.labels_.tolist()))
    # The price comes out of the sums of the rounds, which hold the squares of the rows.
    assert model.objective_ == pytest.approx(model.inertia_ + price, abs=1e-12 * (1 + (case.X**2).sum()))
    assert model.objective_ >= model.inertia_


@every_scenario
@every_example
def test_centres_are_the_means_of_their_rows(example, scenario, seed):
    case = build(scenario, example, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, size=len(case.X))
    model = clone(example).set_params(tol=0, n_init=1)
    model.fit(case.X, constraints=case.constraints, sample_weight=weights)
    if not model.capabilities.monotone and len(model.violated_must_link_) + len(model.violated_cannot_link_):
        return  # broken pairs pull at the centres; their references say how
    X, place = case.X, cluster_of(model)
    if model._geometry == "cosine":
        norms = np.linalg.norm(X * np.sqrt(getattr(model, "metrics_", 1.0)), axis=1, keepdims=True)
        X = X / np.where(norms > 0, norms, 1)
    for cluster in np.unique(place):
        mean = np.average(X[place == cluster], axis=0, weights=weights[place == cluster])
        if model._geometry == "cosine" and np.linalg.norm(mean) > ROUNDING:  # opposite rows have no mean direction
            mean /= np.linalg.norm(mean)
        elif model._geometry == "cosine":
            continue
        np.testing.assert_allclose(model.cluster_centers_[cluster], mean, atol=1e-7)


@every_scenario
@every_example
def test_free_rows_are_nearest_to_their_own_centre(example, scenario, seed):
    case = build(scenario, example, seed)
    model = fit(example, case)
    free = case.free | (model.capabilities.must_link == "seeds")
    every = costs(model, case.X) - determinants(model)
    own = every[np.arange(len(case.X)), cluster_of(model)]
    assert (own[free] <= every[free].min(axis=1) + ROUNDING).all()


@pytest.mark.parametrize(
    ("example", "kind"),
    [
        pytest.param(example, kind, id=f"{cls.__name__}{number}-{kind}")
        for cls in FAMILY
        for number, example in enumerate(cls._examples())
        # Methods that price pairs visit rows one by one, so there the order matters.
        for kind in (["none"] if cls._capabilities.must_link == "soft" else ["none", "must_groups", "labels"])
    ],
)
def test_the_order_of_rows_does_not_matter_where_nothing_is_drawn(example, kind, seed):
    case = build(("blobs", kind), example, seed)
    order = np.random.default_rng(seed).permutation(len(case.X))
    init = case.X[:3]
    model = fit(without_sample(example), case, init=init, tol=0)
    turned = clone(model).fit(case.X[order], constraints=case.constraints[order])
    assert (turned.labels_ == model.labels_[order]).all()
    np.testing.assert_allclose(turned.cluster_centers_, model.cluster_centers_, atol=ROUNDING)


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@every_example
def test_a_weight_is_a_number_of_copies(example, form, seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        X, weights = rng.normal(size=(40, 2)) + 1, rng.integers(0, 4, size=40)
        model = without_sample(example).set_params(init=X[weights > 0][:3], tol=0)
        weighted = clone(model).fit(form(X), sample_weight=weights)
        copied = clone(model).fit(form(np.repeat(X, weights, axis=0)))
        np.testing.assert_allclose(weighted.cluster_centers_, copied.cluster_centers_, atol=ROUNDING)
        assert (np.repeat(weighted.labels_, weights) == copied.labels_).all()
        assert weighted.inertia_ == pytest.approx(copied.inertia_)
        assert (weighted.labels_ == copied.predict(form(X))).all()  # rows of weight 0 go to the nearest centre


@every_example
def test_blocks_of_weight_zero_go_to_the_nearest_centre_too(example, seed):
    rng = np.random.default_rng(seed)
    angles = np.concatenate([rng.normal(0, 0.1, 10), rng.normal(1.5, 0.1, 10)])
    X = np.column_stack([np.cos(angles), np.sin(angles)]) * rng.uniform(1, 1.2, size=(20, 1))
    weights = np.ones(20)
    weights[[3, 4, 13, 14]] = 0
    known = Constraints(must_link=[(3, 4), (13, 14)], n_samples=20)
    model = clone(example).set_params(n_clusters=2, init=X[[0, 10]])
    labels = model.fit(X, constraints=known, sample_weight=weights).labels_
    assert labels.tolist() == [0] * 10 + [1] * 10
    without = clone(model).fit(X[weights > 0])
    np.testing.assert_allclose(model.cluster_centers_, without.cluster_centers_, atol=ROUNDING)


@every_example
def test_one_cluster_holds_everything(example, seed):
    case = build(("blobs", "labels"), clone(example).set_params(n_clusters=1), seed)
    model = fit(example, case, n_clusters=1)
    assert (model.labels_ == 0).all()
    assert model.cluster_sizes_.tolist() == [len(case.X)]
    if model._geometry == "euclidean":
        np.testing.assert_allclose(model.cluster_centers_[0], case.X.mean(axis=0))


@every_example
def test_as_many_clusters_as_rows_cost_nothing(example, seed):
    X = np.random.default_rng(seed).normal(size=(6, 2))
    model = clone(example).set_params(n_clusters=6, leftover="k-means++").fit(X)
    assert sorted(model.labels_.tolist()) == list(range(6))
    assert model.inertia_ == pytest.approx(0, abs=1e-15)
    assert model.inertia_ >= 0
    assert model.objective_ >= 0 or model._learns_metric
    assert model.cluster_sizes_.tolist() == [1] * 6


@every_example
def test_equal_rows_are_one_cluster_unless_kept_apart(example):
    X = np.full((5, 2), 7.0)
    model = clone(example).fit(X)
    assert len(np.unique(model.labels_)) == 1
    assert model.inertia_ >= 0
    assert model.inertia_ == pytest.approx(0, abs=1e-14)
    if model.capabilities.cannot_link == "hard":
        apart = clone(example).fit(X, constraints={"cannot_link": [(0, 1)]}).labels_
        assert apart[0] != apart[1]


@every_class
def test_a_warning_says_which_limit_was_met(cls, seed):
    X = np.random.default_rng(seed).normal(size=(300, 2))
    with pytest.warns(
        ConvergenceWarning, match=rf"{cls.__name__} stopped at max_iter=1 with centre shift .* > tol=0\."
    ):
        model = cls(4, init=X[:4], max_iter=1, tol=0).fit(X)
    assert model.n_iter_ == 1
    assert (model.predict(X) == model.labels_).all()


@euclidean_class
def test_an_empty_cluster_restarts_at_the_farthest_row(cls):
    X = np.array([[0.0], [1.0], [2.0], [10.0], [30.0]])
    model = cls(3, init=[[0.0], [1e3], [2e3]]).fit(X)
    assert sorted(model.cluster_sizes_.tolist()) == [1, 1, 3]
    assert model.labels_[3] != model.labels_[4]
    assert (np.diff(model.objective_history_) <= ROUNDING).all()


@every_class
def test_more_starts_are_never_worse(cls, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(80, 2))
    known = Constraints.sample(rng.integers(2, size=80), 10, random_state=seed)
    one, many = (cls(6, n_init=n_init, random_state=seed).fit(X, constraints=known) for n_init in (1, 8))
    assert many.objective_ <= one.objective_ + ROUNDING
    assert cls(6, n_init=8, init=X[:6]).fit(X).objective_ == cls(6, n_init=1, init=X[:6]).fit(X).objective_


@pytest.mark.sampled(11, slow=1)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_example
def test_threads_do_not_change_large_results(example, dtype):
    """Three chunks of rows, so that the order in which threads finish could matter."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(70_000, 3)) + rng.integers(3, size=70_000)[:, None]).astype(dtype)
    y = rng.integers(3, size=70_000)
    known = Constraints.sample(y, 500, balance=0.3, random_state=0)
    model = clone(example).set_params(init=X[:3], tol=1e-2)
    one, two = (clone(model).set_params(n_jobs=n_jobs).fit(X, constraints=known) for n_jobs in (1, 2))
    assert (one.labels_ == two.labels_).all()
    assert (one.cluster_centers_ == two.cluster_centers_).all()
    assert one.n_iter_ == two.n_iter_
    assert (one.predict(X) == two.predict(X)).all()


@euclidean_class
def test_far_from_the_origin_nothing_is_lost(cls, seed):
    X = np.random.default_rng(seed).normal(size=(60, 2))
    near, far = (cls(3, init=X[:3] + shift, tol=0).fit(X + shift) for shift in (0, 1e7))
    assert (near.labels_ == far.labels_).all()
    # A shift of 1e7 leaves nine digits to the rows themselves.
    assert near.inertia_ == pytest.approx(far.inertia_, rel=1e-6)
    assert (far.predict(X + 1e7) == far.labels_).all()


@every_class
def test_labels_name_the_centres(cls, seed):
    X = np.random.default_rng(seed).normal(size=(20, 2))
    known = np.full(20, -1)
    known[:6] = [9, 9, 7, 7, 7, 9]
    model = cls(3, random_state=0).fit(X, constraints=known)
    assert model.cluster_labels_.tolist() == [7, 9, 0]
    assert set(model.labels_.tolist()) <= {7, 9, 0}
    assert same_partition(model.labels_, cluster_of(model))
    assert model.transform(X).shape == (20, 3)
    assert set(model.predict(X).tolist()) <= {7, 9, 0}
