"""`Constraints.sample`: as many pairs as asked for, all different, right or wrong as asked for."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from clew import Constraints
from clew.constraints._sampling import _different_class, _same_class, _unrank
from clew.exceptions import ParameterError

LABELS = np.array([0, 1, 0, 2, -1, 1, 0, 0, 2, -1])
N_KNOWN_PAIRS = 28
N_SAME = 8


def all_pairs(constraints):
    return [tuple(sorted(pair)) for pair in [*constraints.must_link.tolist(), *constraints.cannot_link.tolist()]]


def test_counts_and_distinct_pairs(seed):
    for n in (0, 1, 10, N_KNOWN_PAIRS):
        sampled = Constraints.sample(LABELS, n, random_state=seed)
        pairs = all_pairs(sampled)
        assert len(pairs) == len(set(pairs)) == n
        assert len(sampled) == len(LABELS)
        assert not np.isin(pairs, [4, 9]).any()


def test_answers_are_right_without_noise(seed):
    sampled = Constraints.sample(LABELS, N_KNOWN_PAIRS, random_state=seed)
    assert len(sampled.must_link) == N_SAME
    assert (LABELS[sampled.must_link[:, 0]] == LABELS[sampled.must_link[:, 1]]).all()
    assert (LABELS[sampled.cannot_link[:, 0]] != LABELS[sampled.cannot_link[:, 1]]).all()
    assert not sampled.closure().contradictory


def test_answers_are_all_wrong_with_certain_noise(seed):
    sampled = Constraints.sample(LABELS, N_KNOWN_PAIRS, noise=1.0, random_state=seed)
    assert len(sampled.cannot_link) == N_SAME
    assert (LABELS[sampled.must_link[:, 0]] != LABELS[sampled.must_link[:, 1]]).all()
    assert (LABELS[sampled.cannot_link[:, 0]] == LABELS[sampled.cannot_link[:, 1]]).all()


def test_noise_is_the_share_of_wrong_answers(seed):
    labels = np.random.default_rng(seed).integers(0, 5, 1000)
    sampled = Constraints.sample(labels, 20_000, noise=0.2, random_state=seed)
    wrong = (labels[sampled.must_link[:, 0]] != labels[sampled.must_link[:, 1]]).sum()
    wrong += (labels[sampled.cannot_link[:, 0]] == labels[sampled.cannot_link[:, 1]]).sum()
    # Binomial with standard deviation 57: seven of them.
    assert abs(wrong - 4000) < 400


@pytest.mark.parametrize(
    ("balance", "n", "n_must"), [(0.5, 10, 5), (0.0, 10, 0), (1.0, 8, 8), (0.25, 8, 2), (0.5, 0, 0)]
)
def test_balance_is_the_share_of_must_links(seed, balance, n, n_must):
    sampled = Constraints.sample(LABELS, n, balance=balance, random_state=seed)
    assert (len(sampled.must_link), len(sampled.cannot_link)) == (n_must, n - n_must)
    assert len(set(all_pairs(sampled))) == n


@pytest.mark.parametrize("balance", [None, 0.5])
def test_every_pair_is_as_likely_as_any_other(seed, balance):
    counts = dict.fromkeys(combinations(range(5), 2), 0)
    rng = np.random.default_rng(seed)
    for _ in range(2000):
        for pair in all_pairs(Constraints.sample([0, 0, 1, 1, 2], 2, balance=balance, random_state=rng)):
            counts[pair] += 1
    same = [counts[0, 1], counts[2, 3]]
    different = [count for pair, count in counts.items() if pair not in ((0, 1), (2, 3))]
    for alike in [same + different] if balance is None else [same, different]:
        expected = sum(alike) / len(alike)
        # Counts have a standard deviation below the root of their mean; six of them.
        assert max(abs(count - expected) for count in alike) < 6 * expected**0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"n": 29}, "The sample needs 29 pairs, but there are only 28. Lower n.", id="pairs"),
        pytest.param(
            {"n": 10, "balance": 1.0},
            "The sample needs 10 pairs with one label, but there are only 8. Lower n.",
            id="same",
        ),
        pytest.param(
            {"n": 24, "balance": 0.0},
            "The sample needs 24 pairs with different labels, but there are only 20. Lower n.",
            id="different",
        ),
        pytest.param({"n": -1}, "n=-1 in sample: expected an integer >= 0.", id="negative"),
        pytest.param({"n": 2.5}, "n=2.5 in sample: expected an integer >= 0.", id="float"),
        pytest.param({"n": 2, "noise": 1.5}, "noise=1.5 in sample: expected a number in [0, 1].", id="noise"),
        pytest.param({"n": 2, "noise": np.nan}, "noise=nan in sample: expected a number in [0, 1].", id="noise-nan"),
        pytest.param(
            {"n": 2, "balance": -0.5}, "balance=-0.5 in sample: expected a number in [0, 1], or None.", id="balance"
        ),
    ],
)
def test_what_cannot_be_sampled(arguments, message):
    with pytest.raises(ParameterError) as caught:
        Constraints.sample(LABELS, **arguments)
    assert str(caught.value) == message


def test_labels_of_two_dimensions():
    with pytest.raises(ParameterError, match=r"^y has shape \(2, 1\): expected one label per row"):
        Constraints.sample([[0], [1]], 1)


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(["x", "y", "x", "z"], id="strings"),
        pytest.param(pd.Series(["x", "y", "x", "z"], index=[3, 2, 1, 0]), id="series"),
        pytest.param(np.array(["x", "y", "x", "z"], dtype=object), id="objects"),
        pytest.param([0.0, 1.0, 0.0, 2.0], id="floats"),
    ],
)
def test_labels_of_any_type(labels):
    sampled = Constraints.sample(labels, 6, random_state=0)
    assert [sorted(pair) for pair in sampled.must_link.tolist()] == [[0, 2]]
    assert len(sampled.cannot_link) == 5


@pytest.mark.parametrize("labels", [[], [3], [-1, -1, -1]])
def test_no_pair_to_ask_about(labels):
    assert len(Constraints.sample(labels, 0)) == len(labels)
    with pytest.raises(ParameterError, match=r"The sample needs 1 pairs, but there are only 0"):
        Constraints.sample(labels, 1)


def test_same_seed_same_pairs():
    first = Constraints.sample(LABELS, 10, noise=0.3, random_state=5)
    assert first == Constraints.sample(LABELS, 10, noise=0.3, random_state=5)
    assert first != Constraints.sample(LABELS, 10, noise=0.3, random_state=6)
    assert Constraints.sample(LABELS, 10, random_state=np.random.RandomState(5)) == Constraints.sample(
        LABELS, 10, random_state=np.random.RandomState(5)
    )
    generator = np.random.default_rng(5)
    assert Constraints.sample(LABELS, 10, random_state=generator) != Constraints.sample(
        LABELS, 10, random_state=generator
    )


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    Constraints.sample(LABELS, 10)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_pairs_are_not_listed_to_draw_some(seed):
    labels = np.zeros(3_000_000, dtype=int)
    sampled = Constraints.sample(labels, 1000, random_state=seed)
    assert len({tuple(sorted(pair)) for pair in sampled.must_link.tolist()}) == 1000


@pytest.mark.parametrize("n", range(2, 51))
def test_unrank_counts_every_pair_once(n):
    n_pairs = n * (n - 1) // 2
    found = _unrank(np.arange(n_pairs), n)
    assert found.tolist() == [[low, high] for high in range(n) for low in range(high)]


@pytest.mark.parametrize("n", [10**4, 10**6, 94_906_267, 10**9, 2**31])
def test_unrank_is_exact_at_huge_numbers(n):
    # Around the first pair of each of the last rows, where a rounded root would slip to the row beside.
    rows = np.array([n - 1, n - 2, n // 2, n // 3], dtype=np.int64)
    starts = rows * (rows - 1) // 2
    for offset in (-1, 0, 1):
        for number, row in zip((starts + offset).tolist(), rows.tolist(), strict=True):
            low, high = _unrank(np.array([number]), n)[0].tolist()
            assert 0 <= low < high < n
            assert high * (high - 1) // 2 + low == number
            assert high == (row - 1 if offset < 0 else row)


@pytest.mark.parametrize("sizes", [[3], [1, 1], [2, 3], [4, 1, 3], [1, 2, 1, 5]])
def test_numbering_of_pairs_within_and_across_classes(sizes):
    classes = np.repeat(np.arange(len(sizes)), sizes)
    sizes = np.array(sizes)
    pairs = set(combinations(range(len(classes)), 2))
    same = {pair for pair in pairs if classes[pair[0]] == classes[pair[1]]}
    for numbering, expected in ((_same_class, same), (_different_class, pairs - same)):
        found = numbering(np.arange(len(expected)), sizes, np.cumsum(sizes))
        assert {tuple(sorted(pair)) for pair in found.tolist()} == expected
        assert len(found) == len(expected)
