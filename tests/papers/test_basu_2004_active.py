"""Basu, Banerjee & Mooney (2004), sections 5.3 and 5.4: how much chosen questions help.

As in the paper there is one start (`n_init=1`): several starts hide what a good first one is worth. Documents are
TF-IDF rows clustered by cosines; w = 1, the paper's weight on Iris, is penalty=2 here.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from clew import PCKMeans
from clew.active import ExploreConsolidate
from clew.active._learning_curve import learning_curve
from clew.active._random_pairs import RandomPairs
from clew.datasets import load_iris
from tests.helpers import benchmark_data

QUESTIONS = (25, 50, 100, 200)


def test_active_beats_random_on_iris_over_most_of_the_curve():
    """Figure 10, on all rows: level at first, ahead from 50 questions on."""
    iris = load_iris()
    active, chance = (
        learning_curve(
            iris.X,
            iris.y,
            strategy,
            n_clusters=3,
            clusterer=PCKMeans(penalty=2.0, n_init=1),
            budgets=(10, *QUESTIONS),
            seeds=range(10),
            scores=["NMI"],
        )
        for strategy in (ExploreConsolidate, RandomPairs)
    )
    assert active.area > chance.area
    assert (active.mean[2:] > chance.mean[2:] + 0.02).all()


@cache
def documents(name):
    texts, classes = benchmark_data().load(name)
    return TfidfVectorizer(stop_words="english", min_df=3, max_features=2000).fit_transform(texts), classes


def curve(name, strategy, *, penalty="auto", **settings):
    X, y = documents(name)
    model = PCKMeans(metric="cosine", penalty=penalty, n_init=1)
    return learning_curve(X, y, strategy, n_clusters=3, clusterer=model, scores=["NMI"], **settings)


@pytest.mark.sampled(2, slow=1)
@pytest.mark.benchmark_data
@pytest.mark.parametrize("name", ["news_sim3", "news_diff3"])
def test_active_beats_random_on_documents_all_along(name):
    """Figures 4 and 6: the curve of chosen questions is above that of random pairs at every point, and by far."""
    active, chance = (
        curve(name, strategy, budgets=QUESTIONS, seeds=range(3)) for strategy in (ExploreConsolidate, RandomPairs)
    )
    assert (active.mean > chance.mean).all()
    assert active.area > chance.area + 0.1


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_the_weight_of_a_pair_matters_less_than_a_good_start():
    """Section 5.4: seeds only (w = 0), intermediate and hard weights give nearly one curve, far above random pairs."""
    settings = {"budgets": QUESTIONS, "seeds": range(3)}
    areas = [curve("news_sim3", ExploreConsolidate, penalty=w, **settings).area for w in (0.0, "auto", 1e6)]
    chance = curve("news_sim3", RandomPairs, **settings).area
    assert np.ptp(areas) < 0.25 * (min(areas) - chance)


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_explore_and_consolidate_is_no_worse_than_explore_alone():
    """Figure 12, NMI on rows set aside: both phases together against farthest-first questions to the end.

    The paper has both phases ahead. Here the two are level (area 0.852 and 0.850 over five sets of folds, either one
    ahead by up to 0.06 in a single set) and far above random pairs (0.672); so level, within that spread, is asserted.
    """
    settings = {"budgets": (25, 50, 100), "seeds": range(3), "protocol": "basu2004"}
    both = curve("news_diff3", ExploreConsolidate(), **settings)
    explore = curve("news_diff3", ExploreConsolidate(consolidate=False), **settings)
    chance = curve("news_diff3", RandomPairs(), **settings)
    assert both.area > explore.area - 0.03
    assert min(both.area, explore.area) > chance.area + 0.1
