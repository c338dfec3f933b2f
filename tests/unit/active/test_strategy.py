"""What a strategy declares, and who makes the labels."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from clew import active
from clew.active import Auto, Feedback, MinMax, Pair, Questions, Strategy, SuperInstances
from clew.active._strategy import as_strategy, strategy_makes_labels
from clew.exceptions import ParameterError
from clew.partitional import COPKMeans

X = [[0.0], [0.1], [5.0], [5.1]]


class Halves(Strategy):
    """Asks nothing, and has labels of its own."""

    has_labels = True

    def __call__(self, view, rng):
        yield from ()

    def labels(self, view):
        return np.arange(view.n_rows) % 2


def first_two(view, rng):
    yield Pair(0, 1)


def test_every_strategy_of_the_package_is_one_by_declaration():
    found = [one for one in vars(active).values() if inspect.isclass(one) and Strategy in one.__mro__]
    assert {one.__name__ for one in found} == {
        "AbilityToSeparate", "Auto", "ClusterPairs", "Committee", "DenseMinMax", "DensityBorder", "ExploreConsolidate",
        "Feedback", "InformationGain", "MinMax", "PointUncertainty", "RandomPairs", "Strategy", "SuperInstances",
        "UncertainMatches",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("strategy", "chosen", "n_clusters", "expected"),
    [
        (Auto(), None, None, True),
        (Auto(), None, 3, True),
        (Auto(), "a method", 3, False),
        (SuperInstances(), None, None, True),
        (SuperInstances(), None, 3, False),  # it finds the number of clusters itself
        (MinMax(), None, None, False),
        (as_strategy(first_two), None, None, False),
    ],
)
def test_one_rule_says_who_makes_the_labels(strategy, chosen, n_clusters, expected):
    assert strategy_makes_labels(strategy, chosen=chosen, n_clusters=n_clusters) is expected


def test_questions_use_the_labels_that_a_strategy_declares():
    assert Questions(X, Halves(), n_clusters=2).labels().tolist() == [0, 1, 0, 1]
    assert Questions(X, Halves(), n_clusters=2, clusterer=COPKMeans(2)).labels().tolist() != [0, 1, 0, 1]


def test_a_function_is_a_strategy_that_only_asks():
    questions = Questions(X, first_two, n_clusters=2, random_state=0)
    assert questions.strategy is first_two
    assert questions.ask() == Pair(0, 1)
    assert len(set(questions.labels().tolist())) == 2
    with pytest.raises(ParameterError, match="Nobody asked"):
        questions.tell((2, 3), "same")
    assert Questions(X, Feedback(), n_clusters=2).tell((2, 3), "same")
