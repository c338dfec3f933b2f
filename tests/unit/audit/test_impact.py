"""`clew.audit.impact`: input, errors and results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from clew import ConstrainedGaussianMixture, Constraints, COPKMeans, GraphPropagation
from clew._distances import VECTOR_METRICS
from clew.audit import impact
from clew.exceptions import ConstraintError, DataError, ParameterError
from clew.medoids._search import plain_medoids
from tests.helpers import examples

GROUPS = np.repeat(np.arange(3), 10)


@pytest.fixture
def blobs():
    return np.random.default_rng(0).normal(size=(30, 2)) + 12.0 * np.array([[0, 0], [1, 0], [0, 1]])[GROUPS]


WRONG = {"must_link": [(0, 1), (0, 10)], "cannot_link": [(2, 3), (2, 20)]}


@pytest.mark.parametrize("model", ["kmeans", "kmedoids"])
def test_wrong_pairs_are_suspect_and_right_ones_cost_nothing(blobs, model):
    found = impact(blobs, WRONG, 3, model)
    assert found.must_link_suspect.tolist() == [False, True]
    assert found.cannot_link_suspect.tolist() == [True, False]
    assert found.must_link_score[0] == 0 and found.cannot_link_score[1] == 0
    assert found.converged and found.lower_bound <= found.upper_bound
    assert found.total == found.must_link_score.sum() + found.cannot_link_score.sum()
    assert found.fraction_suspect == 0.5


def test_a_fitted_mixture_prices_pairs_by_its_chances(blobs):
    mixture = ConstrainedGaussianMixture(3, covariance_type="tied", random_state=0).fit(blobs)
    found = impact(blobs, WRONG, 3, mixture)
    assert found.model == "ConstrainedGaussianMixture" and found.converged
    assert found.must_link_suspect.tolist() == [False, True]
    assert found.cannot_link_suspect.tolist() == [True, False]
    assert found.must_link_chance == pytest.approx([1, 0], abs=1e-6)
    assert found.cannot_link_chance == pytest.approx([1, 0], abs=1e-6)
    by_rows = {row["rows"]: row for row in found.table()}
    assert by_rows[0, 10]["chance"] == found.must_link_chance[1]
    assert by_rows[0, 10]["sentence"].endswith("By the model, the chance that they are together is 0%.")
    assert impact(blobs, WRONG, 3).must_link_chance is None


def test_prices_of_a_fitted_model_are_differences_of_logarithms():
    """Two rows that a model separates with chances 0.8 and 0.9 are joined at a cost of min(log 4, log 9)."""
    X = np.arange(4.0)[:, None]
    chances = np.array([[0.8, 0.2], [0.1, 0.9], [0.7, 0.3], [0.4, 0.6]])
    found = impact(X, {"must_link": [(0, 1), (0, 2)], "cannot_link": [(1, 3)]}, 2, Chances(chances))
    assert found.lower_bound <= found.upper_bound
    assert found.upper_bound == pytest.approx(-np.log([0.8, 0.7, 0.1, 0.4]).sum() + np.log(0.4 / 0.6), abs=2)
    assert found.labels.tolist() == [0, 1, 0, 1]
    assert found.unit == pytest.approx(np.median(np.log([4, 9, 7 / 3, 1.5])))
    assert found.must_link_suspect.tolist() == [True, False]
    assert found.cannot_link_suspect.tolist() == [True]
    assert found.must_link_chance == pytest.approx([0.26, 0.62])


def test_classes_and_groups_are_priced_by_a_fitted_model(blobs):
    model = GraphPropagation(3, random_state=0).fit(blobs, constraints={"must_link": [(0, 1), (10, 11), (20, 21)]})
    classes = np.full(30, -1)
    classes[[0, 1, 2, 10, 11, 12]] = [0, 0, 1, 1, 1, 1]
    found = impact(blobs, Constraints(labels=classes), 3, model)
    assert np.flatnonzero(found.label_suspect).tolist() == [2]


class Chances:
    """A model that knows the chances of its own rows."""

    def __init__(self, probabilities_):
        self.probabilities_ = probabilities_


def test_fitted_models_that_do_not_fit_are_refused(blobs):
    mixture = ConstrainedGaussianMixture(3, random_state=0).fit(blobs)
    with pytest.raises(ParameterError, match="n_clusters=2, but model=ConstrainedGaussianMixture has 3 clusters"):
        impact(blobs, WRONG, 2, mixture)
    with pytest.raises(
        ParameterError, match="metric with model=ConstrainedGaussianMixture: a fitted model has its own"
    ):
        impact(blobs, WRONG, 3, mixture, metric="cosine")
    with pytest.raises(ParameterError, match="solver='lp' with model=ConstrainedGaussianMixture"):
        impact(blobs, WRONG, 3, mixture, solver="lp")
    with pytest.raises(ParameterError, match=r"model=Chances have shape \(2, 3\), but X has 30 rows"):
        impact(blobs, WRONG, 3, Chances(np.ones((2, 3)) / 3))
    with pytest.raises(ParameterError, match="model=COPKMeans has no probabilities"):
        impact(blobs, WRONG, 3, COPKMeans(3, random_state=0).fit(blobs))


def test_table_ranks_and_tells_in_the_users_ids(blobs):
    ids = [f"r{row}" for row in range(30)]
    found = impact(blobs, Constraints.of({key: np.array(ids)[pairs] for key, pairs in WRONG.items()}, ids=ids), 3)
    table = found.table()
    assert [row["rank"] for row in table] == [1, 2, 3, 4]
    assert {row["rows"] for row in table[:2]} == {("r0", "r10"), ("r2", "r3")}
    assert [row["suspect"] for row in table] == [True, True, False, False]
    assert "r0 and r10 are said to belong together, but that costs" in " ".join(row["sentence"] for row in table)
    assert table[0]["price"] == -table[0]["score"] / found.unit
    assert str(found) == "2 of 4 constraints look wrong for 3 clusters."


def test_plots_are_figures_of_the_first_rows(blobs):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    found = impact(blobs, WRONG, 3)
    axes = found.plot(most=3).axes[0]
    assert len(axes.patches) == 3 and axes.get_title(loc="left") == found.message
    assert len(found.plot_trace().axes[0].lines) == 2


def test_a_wrong_class_is_found_among_the_right_ones(blobs):
    labels = np.where(np.arange(30) % 2 == 0, GROUPS, -1)
    labels[4] = 2
    found = impact(blobs, labels, 3)
    assert np.flatnonzero(found.label_suspect).tolist() == [4]
    assert found.table()[0]["sentence"].startswith("4 is said to belong to its class")


@pytest.mark.parametrize("model", ["kmeans", "kmedoids"])
def test_groups_are_priced_by_row(blobs, model):
    must, cannot = np.full(30, -1), np.full(30, -1)
    must[[0, 1, 2, 3, 25]] = 7  # row 25 is of another blob
    cannot[[5, 6, 15]] = 1  # rows 5 and 6 are of one blob
    found = impact(blobs, {"must_groups": must, "cannot_groups": cannot}, 3, model)
    assert found.must_group_score.shape == found.cannot_group_score.shape == (30, 1)
    assert np.flatnonzero(found.must_group_score.ravel() < -found.tolerance * found.unit).tolist() == [25]
    assert np.flatnonzero(found.cannot_group_score.ravel()).tolist() == [5, 6]
    assert found.must_link_suspect.size == 0


def test_doubtful_pairs_cost_at_most_their_odds(blobs):
    sure = impact(blobs, {"cannot_link": [(2, 3)]}, 3)
    doubtful = impact(blobs, Constraints(cannot_link=[(2, 3)], cannot_link_confidence=0.1), 3)
    assert sure.cannot_link_score[0] < doubtful.cannot_link_score[0] < 0
    assert -doubtful.cannot_link_score[0] <= 3 * doubtful.unit * 0.1 / 0.9 * (1 + 1e-12)  # in each of three clusters


def test_contradictory_and_infeasible_sets_are_scored(blobs):
    contradictory = impact(blobs, {"must_link": [(0, 10)], "cannot_link": [(0, 10)]}, 3)
    assert contradictory.upper_bound == np.inf
    assert contradictory.must_link_suspect.tolist() == [True] and contradictory.cannot_link_suspect.tolist() == [False]
    clique = [(a, b) for a in range(4) for b in range(a)]
    infeasible = impact(blobs, {"cannot_link": clique}, 3)
    assert infeasible.upper_bound == np.inf and infeasible.cannot_link_suspect.any()
    one = impact(blobs, WRONG, 1)
    assert one.must_link_score.tolist() == [0, 0] and one.cannot_link_suspect.all()


def test_no_constraints_is_a_result_too(blobs):
    found = impact(blobs, None, 3)
    assert found.table() == [] and found.converged and found.fraction_suspect == 0
    np.testing.assert_allclose(found.lower_bound, found.upper_bound, rtol=1e-12)


def test_a_limit_of_rounds_gives_a_partial_result_that_says_so(blobs):
    found = impact(blobs, WRONG, 3, max_iter=5)
    assert not found.converged and len(found.history) == 5
    assert "Partial: the bound was still rising after 5 rounds. Raise max_iter." in found.message


def test_history_keeps_the_best(blobs):
    history = impact(blobs, WRONG, 3).history
    assert (history[:, 1] == np.maximum.accumulate(history[:, 0])).all()


def test_sparse_rows_and_given_distances_are_the_same_data(blobs):
    dense, from_csr = impact(blobs, WRONG, 3), impact(sparse.csr_matrix(blobs), WRONG, 3)
    np.testing.assert_allclose(from_csr.must_link_score, dense.must_link_score, rtol=1e-9)
    rows = impact(blobs, WRONG, 3, "kmedoids")
    for metric, X in (("precomputed", cdist(blobs, blobs)), (cdist(blobs, blobs), None)):
        given = impact(X, WRONG, 3, "kmedoids", metric=metric)
        np.testing.assert_allclose(given.cannot_link_score, rows.cannot_link_score, rtol=1e-12)


def test_many_rows_have_a_sample_of_medoids(blobs, monkeypatch):
    from clew import _distances

    monkeypatch.setattr(_distances, "MOST_DISTANCES", 30 * 20)
    found = impact(blobs, WRONG, 3, "kmedoids")
    assert found.must_link_suspect.tolist() == [False, True]


@pytest.mark.parametrize(
    ("X", "options", "error", "message"),
    [
        (np.zeros((3, 2)), {"metric": "precomputed"}, DataError, r"shape \(3, 2\): expected a square matrix"),
        (np.full((3, 3), np.nan), {"metric": "precomputed"}, DataError, "between rows 0 and 0 is NaN"),
        (-np.ones((3, 3)), {"metric": "precomputed"}, DataError, "is -1: expected a finite number >= 0"),
        ([["a"]], {"metric": "precomputed"}, DataError, "not a number"),
        (np.zeros((3, 2)), {"metric": "euclid"}, ParameterError, "metric='euclid': expected one of euclidean"),
        (np.zeros((3, 2)), {"model": "kmeans", "metric": "cosine"}, ParameterError, "Use model='kmedoids'"),
        (np.zeros((3, 2)), {"model": "means"}, ParameterError, "model='means'"),
        (np.zeros((1, 2)), {}, DataError, "n_clusters=2, but X has 1 rows"),
        (np.zeros((3, 2)), {"n_clusters": 0}, ParameterError, "n_clusters=0"),
        (np.zeros((3, 2)), {"max_iter": 0}, ParameterError, "max_iter=0"),
        (np.zeros((3, 2)), {"tolerance": -1}, ParameterError, "tolerance=-1"),
        (np.array([[0.0], [np.nan]]), {"model": "kmeans"}, DataError, "NaN at row 1"),
        (3, {"metric": "edit"}, DataError, "compares sequences"),
        (np.zeros((3, 2)), {"model": "kmeans", "metric": np.zeros((3, 3))}, ParameterError, "a ndarray with model"),
        (np.zeros((3, 2)), {"metric": lambda a, b: np.nan}, DataError, "between rows 0 and 0 is NaN"),
        (np.zeros((3, 2)), {"metric": lambda a, b: "far"}, DataError, "metric function gives 'far' for two rows"),
        (np.zeros((3, 2)), {"metric": lambda a, b: a - b}, DataError, "metric function gives array"),
        (np.zeros((3, 2)), {"metric": None}, ParameterError, "metric=None: expected one of euclidean"),
        (
            np.array([[0.0, 2], [1, 0]]),
            {"metric": "precomputed"},
            DataError,
            "rows 0 and 1 is 2 one way and 1 the other",
        ),
        (sparse.eye(3), {"metric": "precomputed"}, DataError, "sparse matrix"),
        (np.empty((0, 2)), {}, DataError, r"0 sample\(s\).* is required\.$"),
    ],
)
def test_bad_input_is_refused_by_name(X, options, error, message):
    options = {"model": "kmedoids", "n_clusters": 2, **options}
    with pytest.raises(error, match=message):
        impact(X, None, **options)


def test_pairs_must_fit_the_rows(blobs):
    with pytest.raises(ConstraintError, match=r"must_link\[0\] names row 30"):
        impact(blobs, {"must_link": [(0, 30)]}, 3)


def test_equal_rows_are_defined():
    found = impact(np.ones((5, 2)), {"cannot_link": [(0, 1)]}, 2)
    assert np.isfinite(found.cannot_link_score).all()


def test_sequences_are_compared_by_edits():
    found = impact(
        ["abcd", "abdc", "abcc", "wxyz", "wxzy"], {"must_link": [(0, 1), (0, 3)]}, 2, "kmedoids", metric="edit"
    )
    assert found.must_link_suspect.tolist() == [False, True]


@examples(25)
@given(data=st.data())
def test_order_and_direction_of_pairs_do_not_matter(data):
    X = np.random.default_rng(1).normal(size=(12, 2)) + 6.0 * (np.arange(12) % 3)[:, None]
    pairs = data.draw(
        st.lists(st.sampled_from([(a, b) for b in range(12) for a in range(b)]), min_size=1, max_size=8, unique=True)
    )
    order = data.draw(st.permutations(range(len(pairs))))
    first = impact(X, {"cannot_link": pairs}, 3)
    other = impact(X, {"cannot_link": [pairs[place][::-1] for place in order]}, 3)
    # Charges are added up in another order, so the last digits differ; ties may then fall the other way.
    np.testing.assert_allclose(other.cannot_link_score, first.cannot_link_score[order], atol=0.02 * first.unit)


def test_scores_scale_with_the_data(blobs):
    one, ten = impact(blobs, WRONG, 3), impact(10 * blobs, WRONG, 3)
    np.testing.assert_allclose(ten.must_link_score, 100 * one.must_link_score, rtol=1e-6)
    assert (ten.must_link_suspect == one.must_link_suspect).all()


def test_the_limit_falls_with_the_share_of_constraints_that_cost_something(blobs):
    right = [(row, row + 1) for row in range(1, 9)]
    alone = impact(blobs, {"must_link": [(0, 10), *right]}, 3)
    assert alone.limit == pytest.approx(0.2 * ((1 + 8) / (1 + 9)) ** 2)
    assert alone.fraction_free == 8 / 9 and alone.must_link_suspect.tolist() == [True] + [False] * 8
    many = impact(blobs, {"must_link": [(0, 10), (1, 20), (11, 21), *right[2:3]]}, 3)
    assert many.limit == pytest.approx(0.2 * ((1 + 1) / (1 + 4)) ** 2)
    labelled = impact(blobs, np.where(np.arange(30) < 4, 0, -1), 3)
    assert labelled.limit == 0.2  # four classes count, and cost nothing; rows without one do not count
    assert impact(blobs, {}, 3).limit == 0.2 and impact(blobs, WRONG, 3, tolerance=0).limit == 0


def test_of_the_medoids_no_single_one_can_be_exchanged_for_a_better(seed):
    # Loops over every exchange; whole numbers add up exactly.
    rng = np.random.default_rng(seed)
    distances = rng.integers(1, 50, (9, 7)).astype(float)  # seven of nine rows are candidates
    found = plain_medoids(distances, np.arange(7), 3, rng, n_init=2)

    def cost(medoids):
        return sum(min(distances[row, medoid] for medoid in medoids) for row in range(9))

    others = [[*found[:place], column, *found[place + 1 :]] for place in range(3) for column in range(7)]
    assert cost(found) == min(cost(medoids) for medoids in others)


def test_sentences_count_one_as_one(blobs):
    found = impact(blobs, {"must_link": [(0, 1)], "cannot_link": [(0, 2)]}, 3)
    assert str(found) == "1 of 2 constraints looks wrong for 3 clusters."
    alone = impact(blobs, {"must_link": [(0, 1)]}, 1, max_iter=1)
    assert str(alone).startswith("0 of 1 constraint looks wrong for 1 cluster.")
    partial = impact(blobs, {"must_link": [(0, 20)]}, 3, max_iter=1)
    assert "still rising after 1 round." in str(partial)


@pytest.mark.parametrize("metric", [*VECTOR_METRICS, lambda a, b: np.float32(abs(a - b).sum())])
def test_one_row_is_its_own_medoid(metric):
    assert impact([[1.0, 2.0]], None, 1, "kmedoids", metric=metric).labels.tolist() == [0]


def test_distances_in_single_precision_are_symmetric(blobs):
    distances = (cdist(blobs, blobs) * (1 + 1e-7 * np.arange(30))).astype(np.float32)
    assert impact(distances, WRONG, 3, "kmedoids", metric="precomputed").fraction_suspect == 0.5


@pytest.mark.parametrize("model", ["kmeans", "kmedoids"])
def test_a_pair_costs_the_same_however_often_it_is_stated(blobs, model):
    alone = impact(blobs, WRONG, 3, model)
    known = Constraints(
        [(0, 1), (0, 10), (10, 0), (0, 10)],
        [(2, 20), (2, 3), (3, 2)],
        must_link_confidence=[1.0, 0.6, 1.0, 0.9],
        n_samples=30,
    )
    often = impact(blobs, known, 3, model)
    # Charges are added up in another order, so the last digits differ.
    np.testing.assert_allclose(often.must_link_score, alone.must_link_score[[0, 1, 1, 1]], rtol=1e-12)
    np.testing.assert_allclose(often.cannot_link_score, alone.cannot_link_score[[1, 0, 0]], rtol=1e-12)
    assert often.total == pytest.approx(alone.total, rel=1e-12)
