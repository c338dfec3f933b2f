"""Randel 2021, chapter 5, sections 6.4 and 6.5: results of the dual, the best metric, and moved rows."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.geometry import followed
from benchmarks.metrics import construction
from benchmarks.sets import ranked
from clew import Constraints
from clew.audit import (
    advise_metric,
    impact,
    optimistic,
    pessimistic,
    propagation,
)
from tests.helpers import benchmark_data


def f1(called, wrong):
    return 2 * (called & wrong).sum() / (called.sum() + wrong.sum())


@pytest.mark.benchmark_data
def test_section_5_4_1_wrong_constraints_are_found_on_every_25th_instance():
    # Published over all 500: precision 0.97, recall 0.99, F1 0.98. `python -m benchmarks audit` runs them all.
    data, called, wrong = benchmark_data(), [], []
    for number in range(0, 500, 25):
        X, y, pairs, kind, bad = data.synthetic(number)
        found = impact(
            X, Constraints(pairs[kind > 0], pairs[kind < 0], n_samples=len(X)), len(np.unique(y)), "kmedoids"
        )
        called += [found.must_link_suspect, found.cannot_link_suspect]
        wrong += [bad[kind > 0].astype(bool), bad[kind < 0].astype(bool)]
    assert f1(np.concatenate(called), np.concatenate(wrong)) >= 0.985


@pytest.mark.sampled(2, slow=1)
@pytest.mark.benchmark_data
@pytest.mark.parametrize("true", [2, 5])
def test_figure_5_3_the_fewest_constraints_cost_anything_at_the_true_number(true):
    # `python -m benchmarks number` runs all of the instances with five clusters.
    data, fitness = benchmark_data(), []
    for number in range(0, 120, 3):
        X, y, pairs, kind, _ = data.synthetic(number)
        if len(np.unique(y)) != true or not len(pairs) or len(fitness) == 5:
            continue
        known = Constraints(pairs[kind > 0], pairs[kind < 0], n_samples=len(X))
        fitness.append([impact(X, known, k, "kmedoids").fraction_free for k in range(2, 8)])
    assert len(fitness) == 5 and np.mean(fitness, axis=0).argmax() + 2 == true


def two_groups():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0, 0.5, (10, 2)), rng.normal((6, 0), 0.5, (10, 2))])


def test_figure_5_4_two_wrong_constraints_hide_each_other_from_the_optimistic_score():
    # A cannot-link to its own group and a must-link to the other hold row 0 in the wrong group together.
    # It is the cheapest of the two to move: else the best clustering would move row 1 once the must-link is gone.
    X, known = two_groups(), {"must_link": [(0, 10)], "cannot_link": [(0, 1)]}
    X[0] = (1.5, 0.0)
    naive = optimistic(X, known, 2)
    assert not naive.must_link_suspect.any() and not naive.cannot_link_suspect.any()
    dual = impact(X, known, 2)
    assert dual.must_link_suspect.all() and dual.cannot_link_suspect.all()


def test_figure_5_5_right_constraints_look_wrong_one_by_one():
    # An outlier takes a cluster of its own; the pairs between the two real groups all go against that.
    X = np.concatenate([two_groups()[:, :] * 0.5, [[1.5, 40.0]]])
    pairs = [(0, 10), (1, 11), (2, 12), (3, 13)]
    assert pessimistic(X, {"cannot_link": pairs}, 2).cannot_link_suspect.all()


@pytest.mark.sampled(2, slow=1)
@pytest.mark.benchmark_data
@pytest.mark.parametrize("kind", ["correct", "erroneous"])
def test_section_5_4_4_the_impact_of_whole_sets_tells_their_worth_on_iris(kind):
    # Figures 5.9 and 5.10: clusters are better with the half of the sets that impact prefers, and coherence is no help.
    found = ranked(benchmark_data(), "iris", kind, 40)
    assert found["rho"] > 0.4 > found["rho coherence"]
    assert found["half"] >= max(found["all"], found["half coherence"])


@pytest.mark.sampled(2, slow=1)
@pytest.mark.parametrize(
    ("metric", "seed_of_data"), [("euclidean", 6), ("manhattan", 11), ("chebyshev", 22), ("mahalanobis", 0)]
)
def test_figure_6_3_the_metric_of_the_construction_fits_best(metric, seed_of_data):
    # As in the figure, on data where clusters under the metric itself agree best with the classes: chosen draws, since
    # the construction does not see to that. `python -m benchmarks metrics` counts over all draws.
    X, y = construction(metric, seed_of_data)
    known = Constraints.sample(y, 100, random_state=seed_of_data)
    advice = advise_metric(X, known, 3, ["euclidean", "manhattan", "chebyshev", "mahalanobis"], n_bags=10)
    assert advice.best == metric


@pytest.mark.sampled(3, slow=1)
@pytest.mark.benchmark_data
@pytest.mark.parametrize("name", ["news_diff3", "news_sim3", "news_rel3"])
def test_figure_6_5_cosine_fits_texts_better_than_euclidean_distance(name):
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, y = benchmark_data().load(name)
    X = TfidfVectorizer(max_features=10_000, norm=None).fit_transform(texts)
    assert (
        advise_metric(X, Constraints.sample(y, 60, random_state=0), 3, ["euclidean", "cosine"], n_bags=4).best
        == "cosine"
    )


@pytest.mark.sampled(2, slow=1)
@pytest.mark.benchmark_data
@pytest.mark.parametrize(
    "name, n_pairs, rescore_every, n_sets",
    [
        ("iris_uci", 15, 1, 4),
        ("seeds", 20, 1, 4),
        pytest.param("optdigits_train", 400, 40, 1, marks=pytest.mark.slow),  # 30 s
    ],
)
def test_figure_6_7_rows_travel_less_by_impact_and_the_ari_rises(name, n_pairs, rescore_every, n_sets):
    # Means over sets: the total is not less for every single set. `python -m benchmarks geometry` has the figures.
    X, y = benchmark_data().load(name)
    runs = {
        order: [followed(X.astype(float), y, n_pairs, seed, order, rescore_every) for seed in range(n_sets)]
        for order in ("impact", "random")
    }
    for figure in ("half distance", "distance"):
        mean = {order: np.mean([run[figure] for run in found]) for order, found in runs.items()}
        assert mean["impact"] < mean["random"]
    for run in runs["impact"] + runs["random"]:
        assert run["violated"] == 0 and run["ari"] > run["first ari"]


LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def endgames():
    """Every final board of tic-tac-toe, and whether the first player has won."""
    ends = {}

    def play(board, player):
        if any(board[a] and board[a] == board[b] == board[c] for a, b, c in LINES):
            ends[tuple(board)] = player == -1
        elif 0 not in board:
            ends[tuple(board)] = False
        else:
            for cell in range(9):
                if not board[cell]:
                    board[cell] = player
                    play(board, -player)
                    board[cell] = 0

    play([0] * 9, 1)
    boards = np.array(list(ends))
    return np.concatenate([boards == value for value in (1, -1, 0)], axis=1).astype(float), np.array(
        list(ends.values())
    )


def test_survey_5_3_answers_about_tic_tac_toe_should_not_be_propagated(seed):
    X, wins = endgames()
    assert len(X) == 958 and wins.sum() == 626
    found = propagation(X, Constraints.sample(wins.astype(int), 200, random_state=seed))
    assert found.verdict == "no" and "do not propagate answers" in found.message
