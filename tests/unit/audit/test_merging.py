"""Small clusters that answers merge, and the advice that follows from them."""

import zlib

import numpy as np
from sklearn.preprocessing import StandardScaler

from clew import Constraints
from clew.audit import advise_n_clusters
from clew.audit._merging import merge_small


def test_without_answers_the_nearest_groups_merge_first():
    merged = merge_small(np.array([[0.0], [1.0], [5.0], [9.0]]), np.ones(4), np.zeros((4, 4)), 1.0, 2)
    assert merged[3].tolist() == [0, 0, 2, 3]
    assert merged[2].tolist() == [0, 0, 2, 2]


def test_answers_join_what_is_far_apart_and_separate_what_is_near():
    answers = np.zeros((4, 4))
    answers[0, 3] = answers[3, 0] = 200.0
    answers[0, 1] = answers[1, 0] = -200.0
    merged = merge_small(np.array([[0.0], [1.0], [5.0], [9.0]]), np.ones(4), answers, 1.0, 2)
    assert merged[2].tolist() == [0, 1, 0, 0]


def test_a_class_of_two_separate_groups_counts_once():
    """Each of three classes has two groups of rows. The advice was five clusters, 93 % likely.

    One draw of answers of five may mislead: which one depends on the rounding errors of the processor.
    """
    rng = np.random.default_rng(zlib.crc32(b"two modes-3"))
    y = rng.integers(0, 3, 300)
    group = 2 * y + rng.integers(0, 2, 300)
    X = rng.normal(0, 4.0, (6, 3))[group] + rng.normal(size=(300, 3))
    X = StandardScaler().fit_transform(X)
    advice = [advise_n_clusters(X, Constraints.sample(y, 200, random_state=seed)).best for seed in range(5)]
    assert advice.count(3) >= 4
