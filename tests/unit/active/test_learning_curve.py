"""Learning curves: questions, scores, and the same curve for the same seed."""

from __future__ import annotations

import json
import sys
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

from clew import Constraints, COPKMeans, PCKMeans
from clew.active import DIFFERENT, SAME, UNSURE, ExploreConsolidate, Oracle, Pair, Questions, RandomPairs
from clew.active._learning_curve import LearningCurve, learning_curve, lifted
from clew.datasets import load_iris
from clew.evaluation import adjusted_rand_score, normalized_mutual_info_score, pairwise_scores, rand_score
from clew.exceptions import DataError, MissingExtraError, ParameterError

BUDGETS = (3, 8, 20)


def blobs(n=60, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return y[:, None] * 3.0 + rng.normal(size=(n, 2)), y


def in_order(view, rng):
    """Ask about every pair, first rows first."""
    for first in range(view.n_rows):
        for second in range(first + 1, view.n_rows):
            if view.is_open(first, second):
                yield Pair(first, second)


def test_scores_are_those_of_a_run_by_hand():
    X, y = blobs()
    curve = learning_curve(X, y, ExploreConsolidate(), n_clusters=3, budgets=BUDGETS, seeds=[4])
    questions = Questions(X, ExploreConsolidate(), n_clusters=3, random_state=4)
    oracle, expected = Oracle(y), []
    for n_asked in range(1, BUDGETS[-1] + 1):
        pair = questions.ask()
        questions.tell(pair, oracle(pair))
        if n_asked in BUDGETS:
            expected.append(adjusted_rand_score(y, questions.labels()))
    assert curve.values[:, 0].tolist() == expected
    assert curve.asked[:, 0].tolist() == list(BUDGETS)


def test_shapes_mean_and_area():
    X, y = blobs()
    curve = learning_curve(
        X, y, ExploreConsolidate, n_clusters=3, budgets=BUDGETS, seeds=range(4), scores=("NMI", "ARI")
    )
    assert list(curve.scores) == ["NMI", "ARI"]
    assert curve.values.shape == curve.scores["ARI"].shape == curve.asked.shape == (3, 4)
    np.testing.assert_array_equal(curve.values, curve.scores["NMI"])
    np.testing.assert_allclose(curve.mean, curve.values.mean(axis=1))
    np.testing.assert_allclose(
        curve.area, np.trapezoid(curve.mean, np.log(BUDGETS)) / (np.log(BUDGETS[-1]) - np.log(BUDGETS[0]))
    )


def test_area_of_known_values():
    values = np.array([[0.0], [1.0], [1.0]])
    curve = LearningCurve("Made", "all", (1, 10, 100), (0,), {"ARI": values}, np.ones((3, 1)))
    assert curve.area == pytest.approx(0.75)
    assert LearningCurve("Made", "all", (5,), (0,), {"ARI": np.array([[0.5]])}, np.ones((1, 1))).area == 0.5


def test_same_seed_same_curve_and_seeds_do_not_depend_on_each_other():
    X, y = blobs()
    settings = {"n_clusters": 3, "budgets": BUDGETS, "noise": 0.2, "unsure": 0.1, "clusterer": PCKMeans(n_init=1)}
    both = learning_curve(X, y, ExploreConsolidate, seeds=[1, 2], **settings)
    alone = learning_curve(X, y, ExploreConsolidate, seeds=[2], **settings)
    np.testing.assert_array_equal(both.values[:, 1], alone.values[:, 0])
    np.testing.assert_array_equal(
        both.values, learning_curve(X, y, ExploreConsolidate, seeds=[1, 2], **settings).values
    )


def test_the_last_value_is_carried_on_where_questions_run_out():
    X, y = blobs(12)
    curve = learning_curve(X, y, in_order, n_clusters=3, budgets=(2, 50, 100, 1000), seeds=[0])
    assert curve.strategy == "in_order"
    assert curve.asked[0, 0] == 2
    assert curve.asked[1, 0] == curve.asked[2, 0] == curve.asked[3, 0] < 50
    assert curve.values[1:, 0].tolist() == [1.0, 1.0, 1.0]


def test_nothing_to_ask_scores_the_clusters_without_questions():
    X, y = blobs()
    curve = learning_curve(X, y, lambda view, rng: iter(()), n_clusters=3, budgets=(5, 10), seeds=[3])
    plain = adjusted_rand_score(y, PCKMeans(3, random_state=3).fit(X).labels_)
    assert curve.values[:, 0].tolist() == [plain, plain]
    assert curve.asked.tolist() == [[0.0], [0.0]]


def test_one_row():
    curve = learning_curve([[0.0]], [0], ExploreConsolidate, n_clusters=1, budgets=(1,), seeds=[0])
    assert curve.values.tolist() == [[1.0]] and curve.asked.tolist() == [[0.0]]


@pytest.mark.parametrize("strategy", [ExploreConsolidate(), ExploreConsolidate, lambda: ExploreConsolidate()])
def test_a_strategy_or_what_makes_one(strategy):
    X, y = blobs()
    curve = learning_curve(X, y, strategy, n_clusters=3, budgets=(4,), seeds=[0])
    assert curve.strategy == "ExploreConsolidate"


def test_unknown_number_of_clusters_and_sparse_rows():
    X, y = blobs()
    dense = learning_curve(X, y, ExploreConsolidate, budgets=BUDGETS, seeds=[0])
    csr = learning_curve(sparse.csr_matrix(X), y, ExploreConsolidate, budgets=BUDGETS, seeds=[0])
    np.testing.assert_allclose(csr.values, dense.values)


def test_the_clusterer_is_used_and_left_as_it_was():
    X, y = blobs()
    model = COPKMeans()
    curve = learning_curve(X, y, in_order, n_clusters=3, clusterer=model, budgets=(10,), seeds=[5])
    questions = Questions(X, in_order, n_clusters=3, clusterer=COPKMeans(random_state=5), random_state=5)
    for _ in range(10):
        pair = questions.ask()
        questions.tell(pair, Oracle(y)(pair))
    assert curve.values[0, 0] == adjusted_rand_score(y, questions.labels())
    assert model.get_params() == COPKMeans().get_params()


def test_words_as_classes():
    X, y = blobs()
    words = np.array(["a", "b", "c"])[y]
    settings = {"n_clusters": 3, "budgets": BUDGETS, "seeds": [0]}
    np.testing.assert_array_equal(
        learning_curve(X, words, ExploreConsolidate, **settings).values,
        learning_curve(X, y, ExploreConsolidate, **settings).values,
    )


@pytest.mark.parametrize("protocol", ["all", "basu2004"])
def test_rows_without_a_class_are_not_scored(protocol):
    X, y = blobs()
    X = np.vstack([X, X[:6] + 0.01])
    unknown = np.append(y, np.full(6, -1))
    seen = []

    def watched(view, rng):
        for pair in in_order(view, rng):
            seen.append((yield pair))

    settings = {"n_clusters": 3, "clusterer": PCKMeans(n_init=1), "budgets": (200,), "seeds": [0]}
    curve = learning_curve(X, unknown, watched, protocol=protocol, **settings)
    assert UNSURE in seen
    # All pairs of rows with a class are decided by then, so only rows without one could be scored wrong.
    assert protocol == "basu2004" or curve.values[0, 0] == 1.0


def test_pairwise_f_leaves_out_the_pairs_that_were_answered():
    X, y = blobs(40)
    X += np.random.default_rng(1).normal(size=X.shape)
    y = np.where(np.arange(40) < 3, -1, y)
    settings = {"n_clusters": 3, "clusterer": PCKMeans(n_init=1), "budgets": (20,), "seeds": [7]}
    curve = learning_curve(X, y, RandomPairs, scores=["pairwise F", "Rand"], **settings)
    questions = Questions(X, RandomPairs(), 3, PCKMeans(n_init=1, random_state=7), random_state=7)
    oracle = Oracle(y)
    for _ in range(20):
        pair = questions.ask()
        questions.tell(pair, oracle(pair))
    told = {entry.question.key for entry in questions.answers if entry.answer is not UNSURE}
    labels = questions.labels()
    pairs = [pair for pair in combinations(range(3, 40), 2) if pair not in told]
    together = {(one, two) for one, two in pairs if labels[one] == labels[two]}
    right = {(one, two) for one, two in pairs if y[one] == y[two]}
    f = 2 * len(together & right) / (len(together) + len(right))
    np.testing.assert_allclose(curve.scores["pairwise F"], f)
    np.testing.assert_allclose(curve.scores["Rand"], rand_score(y[3:], labels[3:]))


def test_held_out_protocol_step_by_step():
    X, y = blobs(40)
    X += np.random.default_rng(1).normal(size=X.shape)  # so that no score is perfect
    settings = {"n_clusters": 3, "clusterer": PCKMeans(n_init=1), "budgets": (5, 15), "seeds": [7]}
    curve = learning_curve(X, y, ExploreConsolidate, protocol="basu2004", **settings)
    assert list(curve.scores) == ["NMI", "pairwise F"]
    nmi, f = np.zeros((2, 10)), np.zeros((2, 10))
    folds = KFold(10, shuffle=True, random_state=7).split(y)
    for fold, (train, test) in enumerate(folds):
        questions = Questions(X[train], ExploreConsolidate(), n_clusters=3, random_state=7)
        for place, n_more in enumerate((5, 10)):
            for _ in range(n_more):
                pair = questions.ask()
                questions.tell(pair, Oracle(y[train])(pair))
            known = questions.constraints
            everywhere = Constraints(train[known.must_link], train[known.cannot_link], n_samples=40)
            labels = PCKMeans(3, n_init=1, random_state=7).fit(X, constraints=everywhere).labels_[test]
            nmi[place, fold] = normalized_mutual_info_score(y[test], labels)
            f[place, fold] = pairwise_scores(y[test], labels).f
    np.testing.assert_allclose(curve.scores["NMI"][:, 0], nmi.mean(axis=1))
    np.testing.assert_allclose(curve.scores["pairwise F"][:, 0], f.mean(axis=1))


def test_held_out_rows_are_never_seen_by_the_strategy():
    X, y = blobs(30)
    shown = []

    def watching(view, rng):
        shown.append(view.X.copy())
        yield from in_order(view, rng)

    learning_curve(X, y, watching, n_clusters=3, budgets=(5,), seeds=[0], protocol="basu2004")
    folds = list(KFold(10, shuffle=True, random_state=0).split(y))
    assert [len(rows) for rows in shown] == [27] * 10
    for rows, (train, _) in zip(shown, folds, strict=True):
        np.testing.assert_array_equal(rows, X[train])


def test_held_out_protocol_uses_guesses_of_the_strategy():
    X, y = blobs(40)
    X += np.random.default_rng(1).normal(scale=2.0, size=X.shape)
    truth = {tuple(row): label for row, label in zip(X.tolist(), y, strict=True)}

    def guessing(view, rng):
        classes = [truth[tuple(row)] for row in view.X.tolist()]
        for one, two in combinations(range(view.n_rows), 2):
            view.impute(Pair(one, two), SAME if classes[one] == classes[two] else DIFFERENT, 1.0)
        return
        yield

    settings = {"n_clusters": 3, "clusterer": PCKMeans(n_init=1), "budgets": (5,), "seeds": [0]}
    settings["protocol"] = "basu2004"
    with_guesses = learning_curve(X, y, guessing, **settings)
    without = learning_curve(X, y, lambda view, rng: iter(()), **settings)
    assert not np.array_equal(with_guesses.values, without.values)


def test_lifted_pairs_name_the_rows_they_came_from():
    inner = Constraints([(0, 1)], [(1, 2)], must_link_confidence=[0.5], cannot_link_confidence=[0.25], n_samples=3)
    outer = lifted(inner, np.array([4, 2, 9]), 10)
    assert outer.n_samples == 10
    assert sorted(outer.must_link[0].tolist()) == [2, 4] and sorted(outer.cannot_link[0].tolist()) == [2, 9]
    assert outer.must_link_confidence.tolist() == [0.5] and outer.cannot_link_confidence.tolist() == [0.25]


@pytest.mark.parametrize("protocol", ["all", "basu2004"])
def test_wrong_and_missing_answers(protocol):
    X, y = blobs(30)
    settings = {"n_clusters": 3, "clusterer": PCKMeans(n_init=1), "budgets": (20,), "protocol": protocol, "seeds": [0]}
    noisy = learning_curve(X, y, ExploreConsolidate, noise=0.3, unsure=0.1, **settings)
    assert np.isfinite(noisy.values).all()
    # Nobody answers: the clusters are those without questions.
    silent = learning_curve(X, y, ExploreConsolidate, unsure=1.0, **settings)
    nothing = learning_curve(X, y, lambda view, rng: iter(()), **settings)
    np.testing.assert_array_equal(silent.values, nothing.values)


def test_wrong_answers_cost():
    iris = load_iris()
    settings = {"n_clusters": 3, "budgets": (150,), "seeds": range(2)}
    right = learning_curve(iris.X, iris.y, ExploreConsolidate, **settings)
    wrong = learning_curve(iris.X, iris.y, ExploreConsolidate, noise=0.3, **settings)
    assert wrong.mean[0] < right.mean[0]


def test_rows_and_dict_hold_plain_numbers():
    X, y = blobs()
    curve = learning_curve(X, y, ExploreConsolidate, n_clusters=3, budgets=(4, 9), seeds=[2, 3])
    rows = curve.table()
    assert [(row["questions"], row["seed"]) for row in rows] == [(4, 2), (4, 3), (9, 2), (9, 3)]
    assert [row["ARI"] for row in rows] == curve.values.ravel().tolist()
    document = json.loads(json.dumps(curve.to_dict()))
    assert document["strategy"] == "ExploreConsolidate" and document["protocol"] == "all"
    assert document["budgets"] == [4, 9] and document["seeds"] == [2, 3]
    assert document["scores"]["ARI"] == curve.values.tolist()
    assert document["area"] == curve.area and document["mean"] == curve.mean.tolist()


def test_plot_gives_the_figure_and_draws_on_given_axes():
    figures = pytest.importorskip("matplotlib.figure", reason="needs the extra plot")
    X, y = blobs()
    curve = learning_curve(X, y, ExploreConsolidate, n_clusters=3, budgets=(4, 9), seeds=[0, 1], scores=("ARI", "NMI"))
    figure = curve.plot()
    (axes,) = figure.axes
    assert axes.get_ylabel() == "ARI" and axes.get_xscale() == "log"
    np.testing.assert_allclose(axes.lines[0].get_ydata(), curve.mean)
    mine = figures.Figure()
    axes = mine.subplots()
    assert curve.plot(axes) is mine and curve.plot(axes, score="NMI") is mine
    assert len(axes.lines) == 2 and axes.get_ylabel() == "NMI"
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    with pytest.raises(ParameterError, match=r"'Rand'.*ARI, NMI"):
        curve.plot(score="Rand")


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    curve = LearningCurve("Made", "all", (5,), (0,), {"ARI": np.array([[0.5]])}, np.ones((1, 1)))
    with pytest.raises(MissingExtraError, match=r"clew\[plot\]"):
        curve.plot()


class Needy:
    def __init__(self, parameter):
        self.parameter = parameter

    def __call__(self, view, rng):
        yield from ()


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"strategy": "explore"}, ParameterError, "strategy='explore'"),
        ({"strategy": Needy}, ParameterError, "Needy needs arguments"),
        ({"strategy": lambda: 3}, ParameterError, "makes 3"),
        ({"budgets": ()}, ParameterError, r"budgets=\(\)"),
        ({"budgets": (10, 5)}, ParameterError, r"budgets=\(10, 5\)"),
        ({"budgets": (0, 5)}, ParameterError, r"budgets=\(0, 5\)"),
        ({"budgets": (2.5,)}, ParameterError, r"budgets=\(2.5,\)"),
        ({"seeds": ()}, ParameterError, r"seeds=\(\)"),
        ({"seeds": [-1]}, ParameterError, r"seeds=\[-1\]"),
        ({"protocol": "loo"}, ParameterError, "protocol='loo'"),
        ({"scores": ("f1",)}, ParameterError, "f1"),
        ({"scores": ()}, ParameterError, "scores"),
        ({"noise": 2.0}, ParameterError, "noise=2.0"),
        ({"unsure": -1.0}, ParameterError, "unsure=-1.0"),
        ({"n_clusters": 0}, ParameterError, "n_clusters=0"),
        ({"y": [0, 1]}, DataError, "60 rows and y 2"),
        ({"y": np.zeros((60, 2))}, DataError, r"\(60, 2\)"),
        ({"y": np.full(60, -1)}, DataError, "no class"),
        ({"X": np.full((60, 2), np.nan)}, DataError, "NaN"),
        ({"X": np.zeros((8, 1)), "y": np.zeros(8), "protocol": "basu2004"}, DataError, "8 rows.*at least 10"),
    ],
)
def test_bad_input(change, error, says):
    X, y = blobs()
    given = {"X": X, "y": y, "strategy": ExploreConsolidate, "n_clusters": 3, "budgets": (4,), "seeds": [0]} | change
    with pytest.raises(error, match=says):
        learning_curve(given.pop("X"), given.pop("y"), given.pop("strategy"), **given)


def test_scores_by_their_old_names_still_work_with_a_notice():
    X, y = blobs()
    with pytest.warns(DeprecationWarning, match="'ari' is called 'ARI' now"):
        curve = learning_curve(X, y, RandomPairs, n_clusters=3, budgets=(3,), seeds=[0], scores=["ari"])
    assert list(curve.scores) == ["ARI"]
