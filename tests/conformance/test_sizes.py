"""Laws of size limits, for every estimator with the capability `sizes`, and of refusals, for every hard method."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from clew import Constraints
from clew._registry import all_estimators
from clew.evaluation import same_partition
from clew.exceptions import ConstraintError, InfeasibleConstraintsError
from tests.conformance.scenarios import SCENARIOS, build
from tests.reference.sized_instances import draw

SIZED = [cls for cls in all_estimators("clusterer") if cls._capabilities.sizes == "hard"]
KEEPS_PAIRS = [
    cls for cls in all_estimators("clusterer") if "hard" in (cls._capabilities.must_link, cls._capabilities.cannot_link)
]
# Methods that are given the number of clusters, and methods that find it themselves.
HARD = [
    cls
    for cls in all_estimators("clusterer")
    if cls in SIZED or (cls in KEEPS_PAIRS and cls._capabilities.needs_n_clusters)
]
ANY_NUMBER = [cls for cls in KEEPS_PAIRS if cls not in HARD]
EXAMPLES = [
    pytest.param(example, id=f"{cls.__name__}{number}")
    for cls in SIZED
    for number, example in enumerate(cls._examples())
]
every_example = pytest.mark.parametrize("example", EXAMPLES)
every_class = pytest.mark.parametrize("cls", SIZED)
every_scenario = pytest.mark.parametrize("scenario", [pytest.param(one, id="-".join(one)) for one in SCENARIOS])


def limited(example, lower, upper):
    return clone(example).set_params(size_min=lower, size_max=upper, n_init=2)


def band(case, k, slack):
    """Limits that the hidden labelling keeps, the same for every cluster."""
    sizes = np.bincount(case.hidden, minlength=k)
    return max(int(sizes.min()) - slack, 0), int(sizes.max()) + slack


@pytest.mark.sampled(16, slow=8)
@pytest.mark.parametrize("slack", [0, 2])
@every_scenario
@every_example
def test_sizes_hold_with_every_kind_of_knowledge(example, scenario, slack, seed):
    case = build(scenario, example, seed)
    low, high = band(case, example.n_clusters, slack)
    model = limited(example, low, high).fit(case.X, constraints=case.constraints)
    sizes = np.array([(model.labels_ == label).sum() for label in model.cluster_labels_])
    assert sizes.tolist() == model.cluster_sizes_.tolist()
    assert ((sizes >= low) & (sizes <= high)).all()
    if model.capabilities.must_link == "hard":
        assert len(model.violated_must_link_) == len(model.violated_cannot_link_) == 0
    history = model.objective_history_
    assert (np.diff(history) <= 1e-12 * (float((case.X**2).sum()) + abs(history[0]))).all()
    if hasattr(model, "lower_bound_"):
        assert model.lower_bound_ <= model.objective_
        if scenario[1] == "none":
            assert model.lower_bound_ == model.objective_


@pytest.mark.sampled(2, slow=1)
@every_example
def test_limits_of_their_own_hold_for_each_cluster(example, seed):
    case = build(("blobs", "labels"), example, seed)
    known = case.constraints.labels
    least = np.bincount(known[known >= 0], minlength=3)
    upper = np.array([8, 10, 12])
    upper = np.maximum(upper, least)
    model = limited(example, [0, 5, 10], upper.tolist()).fit(case.X, constraints=case.constraints)
    assert (model.cluster_sizes_ <= upper).all()
    assert (model.cluster_sizes_ >= [0, 5, 10]).all()


@every_example
def test_one_limit_is_that_limit_for_every_cluster(example, seed):
    case = build(("blobs", "pairs"), example, seed)
    first = limited(example, 8, 12).fit(case.X, constraints=case.constraints)
    second = limited(example, [8, 8, 8], np.full(3, 12)).fit(case.X, constraints=case.constraints)
    assert (first.labels_ == second.labels_).all()


@every_example
def test_limits_that_nothing_meets_change_nothing(example, seed):
    case = build(("blobs", "none"), example, seed)
    init = np.arange(3) if hasattr(example, "max_shake") else case.X[:3]  # medoids are rows, means are points
    plain = clone(example).set_params(init=init).fit(case.X)
    assert same_partition(limited(example, 0, len(case.X)).set_params(init=init).fit(case.X).labels_, plain.labels_)


@every_class
def test_limits_that_cannot_hold_are_refused_with_the_arithmetic(cls, seed):
    X = np.random.default_rng(seed).normal(size=(150, 2))
    with pytest.raises(
        InfeasibleConstraintsError, match=r"3 clusters of at most 40 hold 120 rows, the data has 150\. "
    ):
        cls(3, size_max=40).fit(X)
    with pytest.raises(
        InfeasibleConstraintsError, match=r"3 clusters of at least 60 need 180 rows, the data has 150\. "
    ):
        cls(3, size_min=60).fit(X)
    with pytest.raises(
        InfeasibleConstraintsError, match="3 clusters of at most 10, 20 and 40 hold 70 rows, the data has 150"
    ):
        cls(3, size_max=[10, 20, 40]).fit(X)


def check_instance(rng, methods=(*HARD, *ANY_NUMBER)):
    """No hard method breaks a pair or a size, and every refusal is right; returns the number of refusals."""
    case = draw(rng)
    return sum(not check_method(cls, case) for cls in methods if takes(cls, case))


def takes(cls, case):
    """Limits in weights are for methods that can count weights."""
    return not (cls in SIZED and case.in_weights) or "size_unit" in cls._parameters


def check_method(cls, case):
    """Whether the method returned clusters; they are right, or the refusal is."""
    sized = cls in SIZED
    options = {"n_clusters": case.k, "n_init": 1, "min_samples": 2, "random_state": 0}
    options["on_dead_end"] = "color" if case.in_weights else "stop"
    if "max_shake" in cls._parameters:
        options["max_iter"] = 2  # further shakes repeat what the first ones do to pairs and sizes
    params = {name: value for name, value in options.items() if name in cls().get_params()}
    weights = {}
    if sized:
        params |= {"size_min": case.lower.tolist(), "size_max": case.upper.tolist()}
    if sized and case.in_weights:
        params["size_unit"] = "weight"
        weights["sample_weight"] = case.weights
    if cls in ANY_NUMBER:
        params.pop("n_clusters", None)
    model, can = cls(**params), cls._capabilities
    X = signed_weights(case.X) if model.capabilities.pairwise else case.X
    told = (cls.__name__, case)
    with contextlib.suppress(ConstraintError):
        model.fit(X, constraints=case.constraints, **weights)
    pairs = "hard" in (can.must_link, can.cannot_link)
    judge = case if can.cannot_link == "hard" else case.without_cannot_links
    if not hasattr(model, "labels_"):
        refused = pairs and not case.is_consistent()
        assert refused or (cls in HARD and not judge.is_feasible(pairs=pairs, sizes=sized)), told
        return False
    assert not sized or case.keeps_sizes(model.labels_), told
    if can.needs_n_clusters:
        assert not pairs or judge.keeps_pairs(model.labels_), told
    else:
        assert judge.keeps_links(model.labels_), told
        assert judge.keeps_classes(model.labels_), told
    return True


def signed_weights(X):
    """Rows that are close attract, rows that are far apart repel."""
    weights = 5 - np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(weights, 0)
    return sparse.csr_array(weights)


# Every case takes seconds: `make test` runs one, and `make test-rest` all ten thousand instances.
@pytest.mark.sampled(500)
@pytest.mark.filterwarnings("ignore::clew.exceptions.FewerClustersWarning")
@pytest.mark.parametrize("block", range(500))
def test_no_hard_method_breaks_anything_and_every_refusal_is_right(block, seed):
    found = [check_instance(np.random.default_rng([seed, case])) for case in range(20 * block, 20 * block + 20)]
    assert 0 < sum(found) < 20 * len(HARD + ANY_NUMBER)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::clew.exceptions.FewerClustersWarning")
@pytest.mark.parametrize("block", range(10))
def test_ten_thousand_random_instances(block, seed):
    found = [
        check_instance(np.random.default_rng([seed, case]), methods_in_turn(case))
        for case in range(1000 * block, 1000 * block + 1000)
    ]
    assert 0 < sum(found) < 2 * 1000


def methods_in_turn(number):
    """One method with size limits and one without, each in turn, to save time."""
    others = [cls for cls in HARD + ANY_NUMBER if cls not in SIZED]
    return [SIZED[number % len(SIZED)], others[number % len(others)]]


@every_class
def test_weights_cannot_be_negative_or_missing(cls):
    if not cls._capabilities.sample_weight:
        return
    for wrong, told in ((-1.0, "-1"), (np.nan, "nan")):
        with pytest.raises(ValueError, match=rf"sample_weight\[1\] is {told}: expected a number >= 0"):
            cls(2, size_min=1).fit(np.eye(4), sample_weight=[1, wrong, 1, 1])


@every_class
def test_blocks_larger_than_every_limit_are_named(cls):
    if cls._capabilities.must_link != "hard":
        return
    known = Constraints(must_link=[(1, 4), (4, 6)], n_samples=8)
    message = "Rows 1, 4 and 6 are must-linked and are a block of 3 rows, but no cluster may hold more than 2"
    with pytest.raises(InfeasibleConstraintsError, match=message) as found:
        cls(4, size_max=2).fit(np.eye(8), constraints=known)
    assert found.value.rows.tolist() == [1, 4, 6]
