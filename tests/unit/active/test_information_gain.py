"""InformationGain: the gains against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from clew import Constraints, IGKMeans
from clew.active import UNSURE, Oracle, Questions
from clew.active._information_gain import Clustering, InformationGain
from clew.active._questions import run
from clew.exceptions import ParameterError
from tests.reference import information_gain as reference


def blobs(rng, n=24, k=3, d=2):
    y = np.resize(np.arange(k), n)
    return rng.uniform(-6, 6, size=(k, d))[y] + rng.normal(size=(n, d)), y


@pytest.mark.sampled(2, slow=1)
@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_gains_match_the_reference(dependent, form, seed):
    rng = np.random.default_rng(seed)
    strategy = InformationGain(dependent=dependent, epsilon=2.0, budget=5, refit_every=50)
    for turn in range(15):
        X, y = rng.normal(size=(12, 3)) + 0.7, rng.integers(3, size=12)
        prior = Constraints([(0, 1)], [(2, 3)] if turn % 2 else None, n_samples=12) if turn % 3 else None
        questions = Questions(
            form(X), strategy, n_clusters=int(rng.integers(2, 4)), constraints=prior, random_state=turn
        )
        oracle = Oracle(y, unsure=0.3, random_state=turn)
        for _ in range(turn % 6):
            if (pair := questions.ask()) is not None:
                questions.tell(pair, oracle(pair))
        view = questions.view
        clustering = Clustering.of(form(X / np.linalg.norm(X, axis=1, keepdims=True)), view.labels())
        labels = clustering.labels.tolist()
        known = questions.constraints
        selected = np.unique([*known.must_link.ravel(), *known.cannot_link.ravel()]).tolist()
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
    assert len(fits) == 3  # nor is the one before it lost
    questions.revise(questions.answers[0].question, UNSURE)
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
