"""InformationGain: the gains against plain loops, and the laws of all strategies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from clew import Constraints, IGKMeans
from clew.active import UNSURE, Oracle, Questions
from clew.active._information_gain import Clustering, InformationGain
from clew.exceptions import ParameterError
from tests.reference import information_gain as reference

every_strategy = pytest.mark.parametrize(
    "strategy", [InformationGain(), InformationGain(dependent=True, n_sampled=5, refit_every=3)]
)


def blobs(rng, n=24, k=3, d=2):
    y = np.resize(np.arange(k), n)
    return rng.uniform(-6, 6, size=(k, d))[y] + rng.normal(size=(n, d)), y


def run(questions, oracle, budget=10_000):
    """Ask and tell; checks that no pair is asked twice and none that was decided. Returns the pairs."""
    asked = []
    while len(asked) < budget and (pair := questions.ask()) is not None:
        assert pair.first != pair.second
        assert pair not in asked
        assert questions.view.knowledge.relation(pair.first, pair.second) is None
        asked.append(pair)
        questions.tell(pair, oracle(pair))
    return asked


@every_strategy
def test_asks_until_nothing_is_left_and_never_twice(strategy, seed):
    X, y = blobs(np.random.default_rng(seed))
    questions = Questions(X, strategy, n_clusters=3, random_state=seed)
    asked = run(questions, Oracle(y))
    assert 0 < len(asked) < 24 * 23 / 2
    assert questions.ask() is None
    assert questions.progress().can_stop
    assert adjusted_rand_score(y, questions.labels()) > 0.7


@every_strategy
@given(turn=st.integers(0, 10_000))
@settings(max_examples=15)
def test_laws_hold_on_random_data_noise_and_doubt(strategy, turn):
    rng = np.random.default_rng(turn)
    n, k = int(rng.integers(1, 16)), int(rng.integers(1, 5))
    X = rng.integers(-2, 3, size=(n, int(rng.integers(1, 4)))).astype(float)
    y = rng.integers(k, size=n)
    questions = Questions(X, strategy, n_clusters=min(k, n), random_state=turn)
    asked = run(questions, Oracle(y, noise=0.1 * (turn % 2), unsure=0.2 * (turn % 3), random_state=turn))
    assert len(asked) <= n * (n - 1) / 2
    assert questions.ask() is None


@every_strategy
def test_same_seed_and_log_same_question(strategy, seed):
    X, y = blobs(np.random.default_rng(seed))
    runs = [run(Questions(X, strategy, n_clusters=3, random_state=seed), Oracle(y), 20) for _ in range(2)]
    assert runs[0] == runs[1]
    resumed = [Questions(X, strategy, n_clusters=3, random_state=seed) for _ in range(2)]
    for questions in resumed:
        questions.replay([(pair, Oracle(y)(pair)) for pair in runs[0][:10]])
    assert resumed[0].ask() == resumed[1].ask()


@every_strategy
def test_survives_undo_batches_and_answers_out_of_order(strategy, seed):
    rng = np.random.default_rng(seed)
    X, y = blobs(rng)
    questions, oracle = Questions(X, strategy, n_clusters=3, random_state=seed), Oracle(y)
    for _ in range(4):
        batch = questions.ask(4)
        assert len(set(batch)) == len(batch) > 1
        for pair in rng.permutation(np.array(batch, dtype=object)):
            questions.tell(pair, oracle(pair))
        questions.undo()
    resumed = Questions(X, strategy, n_clusters=3, random_state=seed)
    resumed.replay(questions.answers)
    assert run(resumed, oracle)
    assert run(questions, oracle)
    assert questions.ask() is None
    assert resumed.ask() is None


@every_strategy
def test_who_never_knows_is_left_alone_in_the_end(strategy, seed):
    X, _ = blobs(np.random.default_rng(seed), n=10)
    questions = Questions(X, strategy, n_clusters=3, random_state=seed)
    assert 0 < len(run(questions, lambda pair: UNSURE)) <= 45
    assert questions.ask() is None


@every_strategy
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_equal_rows_and_csr_work(strategy, form, seed):
    X, y = blobs(np.random.default_rng(seed))
    for rows in (X, np.ones((24, 2)), np.zeros((24, 2))):
        questions = Questions(form(rows), strategy, n_clusters=3, random_state=seed)
        run(questions, Oracle(y), 200)
        assert questions.labels().shape == (24,)


@every_strategy
@pytest.mark.parametrize("n", [1, 2])
def test_hardly_any_rows(strategy, n):
    for k in range(1, n + 1):
        questions = Questions(np.arange(1.0, n + 1)[:, None], strategy, n_clusters=k, random_state=0)
        asked = run(questions, Oracle(np.arange(n)))
        assert len(asked) <= n - 1
        assert questions.ask() is None


@every_strategy
def test_what_is_known_beforehand_is_not_asked(strategy, seed):
    X, y = blobs(np.random.default_rng(seed))
    groups = np.arange(24) // 3  # three rows, one of each class
    groups[groups > 3] = -1
    known = Constraints([(0, 3), (1, 4)], [(0, 1)], cannot_groups=groups)
    questions = Questions(X, strategy, n_clusters=3, constraints=known, random_state=seed)
    asked = {pair.key for pair in run(questions, Oracle(y))}
    together = {(0, 3), (1, 4), (0, 1), (3, 4), (0, 4), (1, 3)}
    apart = {(3 * g + i, 3 * g + j) for g in range(4) for i, j in ((0, 1), (0, 2), (1, 2))}
    assert not asked & (together | apart)
    every = Constraints(labels=y)
    assert Questions(X, strategy, n_clusters=3, constraints=every, random_state=seed).ask() is None


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_gains_match_the_reference(dependent, form, seed):
    rng = np.random.default_rng(seed)
    strategy = InformationGain(dependent=dependent, epsilon=2.0, budget=5, refit_every=50)
    for turn in range(15):
        X, y = rng.normal(size=(12, 3)) + 0.7, rng.integers(3, size=12)
        questions = Questions(form(X), strategy, n_clusters=int(rng.integers(1, 4)), random_state=turn)
        for _ in range(turn % 6):
            if (pair := questions.ask()) is not None:
                questions.tell(pair, Oracle(y)(pair))
        view = questions.view
        clustering = Clustering.of(view, form(X / np.linalg.norm(X, axis=1, keepdims=True)))
        labels = clustering.labels.tolist()
        selected = sorted({row for pair in view.asked for row in pair})
        for row, gain in enumerate(strategy._gains(view, clustering, np.arange(12)).tolist()):
            if dependent:
                expected = reference.dependent_gain(X.tolist(), labels, row, selected, 2.0, 5)
            else:
                expected = reference.independent_gain(X.tolist(), labels, row)
            assert gain == pytest.approx(expected, abs=1e-9)


def test_the_row_of_highest_gain_is_asked_with_a_row_of_its_cluster(seed):
    X, _ = blobs(np.random.default_rng(seed))
    questions = Questions(X, InformationGain(), n_clusters=3, random_state=seed)
    pair = questions.ask()
    _, labels = np.unique(questions.labels(), return_inverse=True)
    labels = labels.tolist()
    assert labels[pair.first] == labels[pair.second]
    means = reference.centers(X.tolist(), labels)
    stand_ins = {
        max(
            (row for row in range(24) if labels[row] == cluster),
            key=lambda row: reference.similarity(X[row], means[labels[row]]),
        )
        for cluster in range(3)
    }
    assert pair.second in stand_ins
    gains = {row: reference.independent_gain(X.tolist(), labels, row) for row in set(range(24)) - stand_ins}
    assert gains[pair.first] == pytest.approx(max(gains.values()))


def test_clusters_anew_after_as_many_answers_as_said(seed, monkeypatch):
    X, y = blobs(np.random.default_rng(seed))
    fits = []
    whole = Clustering.of.__func__
    monkeypatch.setattr(Clustering, "of", classmethod(lambda cls, *args: fits.append(1) or whole(cls, *args)))
    questions = Questions(X, InformationGain(refit_every=4), n_clusters=3, random_state=seed)
    run(questions, Oracle(y), 9)
    assert len(fits) == 3
    questions.ask(3)  # restarts with pending pairs use the clusters at hand
    assert len(fits) == 3
    questions.undo()
    assert questions.ask() is not None
    assert len(fits) == 3  # the last clustering saw eight answers, all still there
    questions.undo()
    questions.ask()
    assert len(fits) == 4


def test_works_with_its_own_clusterer_and_an_unknown_number_of_clusters(seed):
    X, y = blobs(np.random.default_rng(seed))
    own = Questions(X, InformationGain(), n_clusters=3, clusterer=IGKMeans(random_state=0), random_state=seed)
    assert run(own, Oracle(y), 30)
    unknown = Questions(X, InformationGain(), random_state=seed)
    assert run(unknown, Oracle(y), 30)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"dependent": 1}, "dependent=1 in InformationGain"),
        ({"n_sampled": 0}, "n_sampled=0 in InformationGain"),
        ({"refit_every": 1.5}, "refit_every=1.5 in InformationGain"),
        ({"budget": True}, "budget=True in InformationGain"),
        ({"epsilon": -1}, "epsilon=-1 in InformationGain"),
        ({"epsilon": float("nan")}, "epsilon=nan in InformationGain"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    with pytest.raises(ParameterError, match=message):
        InformationGain(**params)
