"""Labels may be names: every estimator takes them, works as with numbers, and gives the names back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import clew
from clew import Constraints
from clew._registry import all_estimators
from clew.exceptions import ConstraintError, ContradictoryConstraintsError

CASES = [
    pytest.param(example, id=f"{cls.__name__}-{place}")
    for cls in all_estimators("clusterer")
    for place, example in enumerate(cls._examples())
    if getattr(example, "n_clusters", None) != "auto" and example.capabilities.pairwise is None
]
FORMS = {
    "strings": lambda words: [word or "" for word in words],
    "None": lambda words: words,
    "NaN": lambda words: np.array([word or np.nan for word in words], dtype=object),
    "-1": lambda words: np.array([word or "-1" for word in words]),
    "masked": lambda words: np.ma.array([word or "x" for word in words], mask=[word is None for word in words]),
    "pandas": lambda words: pd.Series(words),
    "pandas strings": lambda words: pd.Series(words, dtype="string"),
    "categories": lambda words: pd.Series(words, dtype="category"),
    "dict": lambda words: {"labels": words},
    "Constraints": lambda words: Constraints(labels=words),
}


@pytest.fixture
def blobs():
    """Thirty rows in three groups; some rows of two groups are labelled."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, 0.3, size=(10, 2)) for centre in ((2, 2), (7, 2), (2, 7))])
    words = [None] * 30
    words[0] = words[1] = "pear"
    words[10] = words[11] = "apple"
    return X, words


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("example", CASES)
def test_names_give_the_partition_of_numbers_and_come_back(blobs, example):
    X, words = blobs
    numbers = np.array([{"apple": 0, "pear": 1, None: -1}[word] for word in words])
    if "n_clusters" in example.get_params():
        example = clone(example).set_params(n_clusters=3)
    if example.capabilities.counts:
        X = np.rint(20 * X)
    plain = clone(example).fit(X, constraints=numbers)
    named = clone(example).fit(X, constraints=words)
    names = np.append(named.classes_, "noise")  # -1 is the last one
    assert_array_equal(named.labels_, names[plain.labels_])
    n_new = 1 if "n_clusters" in example.get_params() else plain.labels_.max() - 1
    assert named.classes_.tolist() == ["apple", "pear", *(f"new-{place + 1}" for place in range(n_new))]
    assert adjusted_rand_score(plain.labels_, named.labels_) == 1.0
    assert_array_equal(named.violated_cannot_link_, plain.violated_cannot_link_)
    assert not hasattr(plain, "classes_")
    if hasattr(named, "predict"):
        assert_array_equal(named.predict(X[:5]), names[plain.predict(X[:5])])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_named_labels(blobs, form):
    X, words = blobs
    model = clew.SeededKMeans(3, random_state=0).fit(X, constraints=form(words))
    assert model.labels_[0] == "pear" and model.labels_[10] == "apple" and model.labels_[25] == "new-1"


@pytest.mark.parametrize("unknown", [np.nan, None, -1])
def test_unknown_among_numbers(blobs, unknown):
    X, words = blobs
    labels = [unknown if word is None else 4.0 if word == "pear" else 2 for word in words]
    model = clew.SeededKMeans(3, random_state=0).fit(X, constraints=labels)
    assert model.labels_[0] == 4 and model.labels_[10] == 2


def test_masked_numbers_are_unknown():
    labels = np.ma.array([0, 1, 1], mask=[False, False, True])
    assert_array_equal(Constraints(labels=labels).labels, [0, 1, -1])
    with pytest.raises(ConstraintError, match="must_link holds None"):
        Constraints(must_link=np.ma.array([[0, 1]], mask=[[False, True]]))


def test_a_refit_with_numbers_forgets_the_names(blobs):
    X, words = blobs
    model = clew.PCKMeans(3, random_state=0).fit(X, constraints=words)
    model.fit(X, constraints=np.array([-1] * 30))
    assert not hasattr(model, "classes_") and model.labels_.dtype.kind == "i"


def test_a_saved_model_keeps_the_names(blobs, tmp_path):
    X, words = blobs
    model = clew.PCKMeans(3, random_state=0).fit(X, constraints=words)
    model.save(tmp_path / "model.clew")
    again = clew.load(tmp_path / "model.clew")
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.labels_, model.labels_)


def test_later_batches_name_the_same_clusters(blobs):
    X, words = blobs
    model = clew.PCKMeans(3, random_state=0).partial_fit(X, constraints=words)
    model.partial_fit(X[10:12], constraints=["apple", None])
    assert model.labels_.tolist() == ["apple", "apple"]
    with pytest.raises(ConstraintError, match="the class 'plum', which the first batch lacks"):
        model.partial_fit(X[:2], constraints=["plum", None])


def test_names_are_kept_by_slices_joins_and_files(tmp_path):
    known = Constraints(labels=["b", None, "a", None], n_samples=4)
    assert known.labels.tolist() == [1, -1, 0, -1] and known.classes.tolist() == ["a", "b"]
    assert known[[0, 1]].classes.tolist() == ["a", "b"]
    joined = known | Constraints(labels=[None, "c", None, "a"])
    assert joined.classes[joined.labels].tolist() == ["b", "c", "a", "a"]
    with pytest.raises(ContradictoryConstraintsError, match="Row 0 has class b in one and c in the other"):
        known | Constraints(labels=["c", None, None, None])
    with pytest.raises(ConstraintError, match="numbers its classes, the other names them"):
        known | Constraints(labels=[0, -1, -1, -1])
    for name in ("labels.csv", "labels.jsonl"):
        known.to_file(tmp_path / name)
        assert Constraints.from_file(tmp_path / name) == known
    assert known.numbered().classes is None


def test_questions_and_audits_take_named_labels(blobs):
    from clew.active import Questions
    from clew.audit import optimistic

    X, words = blobs
    questions = Questions(X, n_clusters=3, constraints=words, random_state=0)
    assert questions.ask() is not None and np.asarray(questions.labels()).dtype.kind == "i"
    known = Constraints(must_link=[(0, 1)], cannot_link=[(0, 10)], labels=words)
    assert optimistic(X, known, 3, random_state=0) is not None
