"""Truong and Battiti 2013, sections 3.1 and 3.2.1: statements about Algorithms 1, 2, 7 and 8."""

from __future__ import annotations

import numpy as np
import pytest

from clew import CVQE, LCVQE, ConstrainedKMeans, Constraints, COPKMeans, PCKMeans, SeededKMeans
from clew.evaluation import same_partition
from tests.helpers import benchmark_data, random_knowledge
from tests.reference.assign import broken, components, given_pairs

PUBLISHED = [
    ("iris_uci", "randel-kmedoids__iris__1.csv"),
    ("iris_uci", "randel-kmedoids__iris__2.csv"),
    ("iris_uci", "randel-lagrangian__iris__25correct.csv"),
    ("iris", "cop-kmeans__iris__1.csv"),
    ("iris_uci", "pc-sos-sdp__iris__all.csv"),
    ("wine", "randel-lagrangian__wine__25correct.csv"),
    ("wine", "pc-sos-sdp__wine__all.csv"),
    ("glass", "randel-lagrangian__glass__25correct.csv"),
    ("glass", "pc-sos-sdp__glass__all.csv"),
    ("seeds", "pc-sos-sdp__seeds__all.csv"),
    ("ionosphere", "randel-kmedoids__ionosphere__1.csv"),
    ("ionosphere", "randel-kmedoids__ionosphere__2.csv"),
    ("ionosphere", "randel-lagrangian__ionosphere__25correct.csv"),
    ("balance_scale", "randel-kmedoids__balance_scale__2.csv"),
    ("soybean_small", "randel-kmedoids__soybean_small__1.csv"),
    ("synthetic_control", "randel-kmedoids__synthetic_control__2.csv"),
    ("image_segmentation", "randel-kmedoids__image_segmentation__2.csv"),
    ("yeast", "randel-kmedoids__yeast__2.csv"),
    ("page_blocks", "randel-kmedoids__page_blocks__2.csv"),
    ("optdigits_train", "randel-kmedoids__optdigits_train__2.csv"),
]


@pytest.mark.parametrize("cls", [SeededKMeans, ConstrainedKMeans])
def test_algorithms_1_and_2_start_at_the_means_of_the_seeds(cls, seed):
    """With one round allowed and a complete seed set, rows go to the nearest mean of a class."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(50, 2)), rng.integers(3, size=50)
    known = np.where(np.arange(50) < 12, y, -1)
    means = np.array([X[known == c].mean(axis=0) for c in range(3)])
    nearest = ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    first = np.where(known >= 0, known, nearest) if cls is ConstrainedKMeans else nearest
    objective = ((X - means[first]) ** 2).sum()
    assert cls(3, random_state=seed).fit(X, constraints=known).objective_history_[0] == pytest.approx(objective)


def test_algorithm_1_an_incomplete_seed_set_starts_the_rest_near_the_global_centre(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 2)) + 5
    known = np.full(50, -1)
    known[:4] = 1
    model = SeededKMeans(2, leftover="mean", n_init=1, random_state=seed).fit(X, constraints=known)
    means = [X.mean(axis=0), X[:4].mean(axis=0)]
    expected = np.minimum(*(((X - mean) ** 2).sum(axis=1) for mean in means)).sum()
    # A perturbation of a tenth of a deviation changes squared distances by a few per cent.
    assert model.objective_history_[0] == pytest.approx(expected, rel=0.2)


def test_section_3_1_noisy_seeds_are_corrected_by_seeded_kmeans_and_kept_by_constrained_kmeans():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = np.array([[0, 0], [9, 0], [0, 9]])[y] + rng.normal(size=(120, 2))
    noisy = np.where(np.arange(120) % 4 == 0, y, -1)
    noisy[[0, 40, 80]] = [1, 2, 0]
    seeded = SeededKMeans(3).fit(X, constraints=noisy)
    assert (seeded.labels_ == y).all()
    kept = ConstrainedKMeans(3).fit(X, constraints=noisy)
    assert kept.labels_[[0, 40, 80]].tolist() == [1, 2, 0]
    assert (kept.labels_ != y).sum() == 3


def test_observations_1_and_2_entailed_constraints_hold_in_cop_kmeans(seed):
    rng = np.random.default_rng(seed)
    for turn in range(40):
        n = int(rng.integers(4, 20))
        X, known = rng.normal(size=(n, 2)), random_knowledge(rng, n, 3)
        labels = COPKMeans(3, random_state=turn).fit(X, constraints=known).labels_.tolist()
        must, cannot = given_pairs(known)
        component = components(n, must)
        assert broken(must, cannot, labels) == 0
        assert all(len({labels[i] for i in range(n) if component[i] == c}) == 1 for c in component)
        for i, j in cannot:
            ours, theirs = ({labels[r] for r in range(n) if component[r] == component[row]} for row in (i, j))
            assert not ours & theirs


def test_algorithm_7_solves_what_the_greedy_pass_cannot():
    """Rows 0 and 1 are visited before row 2 in some order and take both clusters: the survey's version gives up."""
    X = [[0.0], [4.0], [5.0]]
    for seed in range(20):
        labels = COPKMeans(2, random_state=seed).fit(X, constraints={"cannot_link": [(0, 2), (1, 2)]}).labels_
        assert labels[0] == labels[1] != labels[2]


@pytest.mark.sampled(5, slow=1)
@pytest.mark.benchmark_data
@pytest.mark.parametrize(("name", "file"), PUBLISHED)
def test_algorithm_7_satisfies_every_published_consistent_set(name, file):
    data = benchmark_data()
    X, y = data.load(name)
    n_clusters = len(np.unique(y))
    sets = data.constraints(file)
    assert sets
    for number, (must, cannot) in enumerate(sets.values()):
        known = Constraints(must, cannot, n_samples=len(X))
        model = COPKMeans(n_clusters, n_init=1, random_state=number).fit(X, constraints=known)
        labels = model.labels_
        assert (labels[must[:, 0]] == labels[must[:, 1]]).all()
        assert (labels[cannot[:, 0]] != labels[cannot[:, 1]]).all()


def test_section_3_2_1_cvqe_breaks_what_does_not_pay_and_both_centres_give_way():
    """Eq. 6 and 8: a must-link over a short way holds, one across the whole line is broken and pulls."""
    X = np.array([[0.0], [1.0], [5.0], [20.0], [21.0]])
    init = [[1.0], [20.0]]
    for pair, together in (((1, 2), True), ((2, 3), True), ((0, 4), False)):
        model = CVQE(2, init=init, tol=0).fit(X, constraints={"must_link": [pair]})
        assert (model.labels_[pair[0]] == model.labels_[pair[1]]) == together
    low, high = model.cluster_centers_.ravel()
    assert [low, high] == pytest.approx([(6 + high) / 4, (41 + low) / 3])


def test_equations_12_and_13_a_pair_that_shares_no_row_holds_in_lcvqe(seed):
    """Apart costs s + s' + (L + L') / 2, together s + L' or L + s': the cheaper of these is never dearer."""
    rng = np.random.default_rng(seed)
    for turn in range(30):
        X = rng.normal(size=(12, 2))
        known = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(4, 5), (6, 7)]}
        model = LCVQE(3, random_state=turn).fit(X, constraints=known)
        assert len(model.violated_must_link_) + len(model.violated_cannot_link_) == 0


def test_equation_14_half_of_the_other_row_is_added_for_a_broken_must_link():
    """Row 2 belongs with both sides, which differ: one of its must-links must break."""
    X = np.array([[0.0], [2.0], [14.0], [30.0], [32.0]])
    known = {"must_link": [(0, 2), (2, 4)], "cannot_link": [(0, 4)]}
    model = LCVQE(2, init=[[1.0], [31.0]], tol=0).fit(X, constraints=known)
    assert model.labels_.tolist() == [0, 0, 0, 1, 1]
    assert model.cluster_centers_.ravel() == pytest.approx([(16 + 32 / 2) / 3.5, (62 + 14 / 2) / 2.5])


def test_equation_13_of_two_cannot_linked_rows_near_one_centre_the_farther_goes_to_its_next():
    X = np.array([[0.0], [1.0], [4.0], [10.0], [11.0]])
    model = LCVQE(2, init=[[1.0], [10.5]]).fit(X, constraints={"cannot_link": [(1, 2)]})
    assert same_partition(model.labels_, [0, 0, 1, 1, 1])


@pytest.mark.benchmark_data
def test_erroneous_sets_are_solved_or_refused_with_a_reason_and_always_priced():
    """Two thirds of these pairs are wrong: if that is impossible the hard method says so, the soft one answers."""
    data = benchmark_data()
    for name, file in (("iris_uci", "iris__p20"), ("wine", "wine__p20"), ("glass", "glass__p20")):
        X, y = data.load(name)
        [(must, cannot)] = data.constraints(f"randel-lagrangian__{file}.csv").values()
        known = Constraints(must, cannot, n_samples=len(X))
        feasible = known.check(len(np.unique(y)))
        assert feasible.status in ("feasible", "infeasible")
        if feasible:
            model = COPKMeans(len(np.unique(y)), random_state=0).fit(X, constraints=known)
            assert len(model.violated_must_link_) + len(model.violated_cannot_link_) == 0
        else:
            with pytest.raises(ValueError, match=r"Remove one|Raise n_clusters"):
                COPKMeans(len(np.unique(y)), random_state=0).fit(X, constraints=known)
        soft = PCKMeans(len(np.unique(y)), entailed=False, random_state=0).fit(X, constraints=known)
        assert (np.diff(soft.objective_history_) <= 1e-9 * soft.objective_history_[0]).all()


@pytest.mark.benchmark_data
def test_knowledge_of_iris_helps_every_method():
    """The published set of the first open implementation of COP-KMeans (60 pairs)."""
    data = benchmark_data()
    X, y = data.load("iris")
    [(must, cannot)] = data.constraints("cop-kmeans__iris__1.csv").values()
    known = Constraints(must, cannot, n_samples=len(X))
    assert len(must) + len(cannot) == 60
    plain = SeededKMeans(3, random_state=0).fit(X).labels_
    for cls in (COPKMeans, PCKMeans):
        labels = cls(3, random_state=0).fit(X, constraints=known).labels_
        assert agreement(y, labels) > agreement(y, plain)
        assert not same_partition(labels, plain)


def agreement(y, labels):
    """Share of row pairs on which two labellings agree."""
    first, second = np.triu_indices(len(y), 1)
    return np.mean((y[first] == y[second]) == (labels[first] == labels[second]))
