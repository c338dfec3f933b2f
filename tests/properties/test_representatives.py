"""Laws of `Auto` on representatives: answers hold on rows, and the state depends on the log alone."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import Constraints
from clew.active import Oracle, Pair, Questions, _representatives
from clew.active._auto import Auto
from clew.active._representatives import MicroClusters
from clew.datasets import load_iris
from clew.graph._kernels import standard
from tests.helpers import examples

N = 30
ROWS = st.integers(0, N - 1)
PAIRS = st.lists(st.tuples(ROWS, ROWS).filter(lambda pair: pair[0] != pair[1]), max_size=12)


@contextmanager
def representatives(n_micro, most_rows=10):
    """Let `Auto` work on few micro-clusters of few rows."""
    with ExitStack() as changes:
        for name, value in (("MOST_ROWS", most_rows), ("_N_MICRO_CLUSTERS", n_micro), ("_PER_CLUSTER", 0)):
            changes.enter_context(mock.patch.object(_representatives, name, value))
        yield


def truth(seed):
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=(N, 2)), 1), rng.integers(3, size=N)


@given(
    seed=st.integers(0, 20),
    said=PAIRS,
    given_pairs=PAIRS,
    labelled=st.lists(ROWS, max_size=5),
    n_clusters=st.sampled_from([None, 3]),
    n_asked=st.integers(0, 4),
)
@examples(40)
def test_labels_never_contradict_certain_answers(seed, said, given_pairs, labelled, n_clusters, n_asked):
    X, y = truth(seed)
    classes = np.full(N, -1)
    classes[labelled] = y[labelled]
    same = [pair for pair in given_pairs if y[pair[0]] == y[pair[1]]]
    differ = [pair for pair in given_pairs if y[pair[0]] != y[pair[1]]]
    prior = Constraints(same, differ, labels=classes, n_samples=N)
    oracle = Oracle(y)
    with representatives(8):
        questions = Questions(X, n_clusters=n_clusters, constraints=prior, random_state=0)
        questions.replay([(Pair(*pair), oracle(Pair(*pair))) for pair in said])
        for _ in range(n_asked):
            if (pair := questions.ask()) is not None:
                assert questions.view.knowledge.relation(*pair.key) is None or pair.check
                questions.tell(pair, oracle(pair))
        labels, known = questions.labels(), questions.constraints
        again = Questions(X, n_clusters=n_clusters, constraints=prior, random_state=0)
        again.replay(questions.answers)
        assert again.labels().tolist() == labels.tolist()
        assert again.ask() == questions.ask()
    assert (labels[known.must_link[:, 0]] == labels[known.must_link[:, 1]]).all()
    assert (labels[known.cannot_link[:, 0]] != labels[known.cannot_link[:, 1]]).all()
    assert (labels[labelled] == y[labelled]).all()


@given(seed=st.integers(0, 20), said=PAIRS, n_undone=st.integers(0, 12))
@examples(20)
def test_undone_answers_leave_nothing_behind(seed, said, n_undone):
    X, y = truth(seed)
    log = [(Pair(*pair), Oracle(y, noise=0.2, random_state=seed)(Pair(*pair))) for pair in said]
    kept = log[: max(len(log) - n_undone, 0)]
    with representatives(8):
        questions = Questions(X, n_clusters=3, random_state=0)
        questions.replay(log)
        questions.ask()
        for _ in log[len(kept) :]:
            questions.undo()
        questions.wait_for([])
        again = Questions(X, n_clusters=3, random_state=0)
        again.replay(kept)
        assert again.ask() == questions.ask()
        assert again.labels().tolist() == questions.labels().tolist()


@pytest.mark.parametrize("noise", [0.0, 0.15])
@pytest.mark.parametrize("n_clusters", [3, None])
def test_rows_that_represent_themselves_give_the_exact_form(n_clusters, noise, seed, monkeypatch):
    iris = load_iris()
    exact = asked(iris, n_clusters, noise, seed)
    monkeypatch.setattr(MicroClusters, "of", lambda X, *_: MicroClusters.around(standard(X), np.arange(len(X))))
    with representatives(10):
        assert asked(iris, n_clusters, noise, seed) == exact


def asked(data, n_clusters, noise, seed):
    questions = Questions(data.X, Auto(random_state=seed), n_clusters=n_clusters, random_state=seed)
    oracle = Oracle(data.y, noise=noise, unsure=0.1, random_state=seed)
    for _ in range(20):
        questions.tell(pair := questions.ask(), oracle(pair))
    doubts = questions.strategy.answer_doubts(questions.view) or {}
    return (
        [(one.question.key, one.question.why, one.answer) for one in questions.answers],
        questions.labels().tolist(),
        {pair: float(np.nan_to_num(doubt, nan=-1.0)) for pair, doubt in doubts.items()},
    )


def test_kernels_between_all_rows_inherit_from_micro_clusters():
    X = truth(0)[0]
    with representatives(8):
        auto = Auto()
        view = Questions(X, auto, n_clusters=3, random_state=0).view
        micro, of_rows, between = auto._micro_clusters(view), auto.kernel_sum(view), auto._kernels(view)
    assert of_rows.n_rows == N
    assert (of_rows.partitions[:, micro.medoids] == between.partitions).all()
    assert (of_rows.walk[:, micro.medoids].toarray()[micro.medoids] == between.walk.toarray()).all()
