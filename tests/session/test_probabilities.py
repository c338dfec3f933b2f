"""Probabilities of clusters in a session: from the fit through the log to exports, and models that judge answers."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from clew import Session
from clew.exceptions import ParameterError
from clew.session._labelling import packed_labels, unpacked_labels

rng = np.random.default_rng(0)
ROWS = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 3]).round(3)
MIXTURE = "constrained-gaussian-mixture"


@pytest.fixture
def session(store_url):
    with Session.create(store_url, ROWS.tolist(), n_clusters=2, method=MIXTURE) as session:
        session.import_answers([(0, 1, "same"), (0, 25, "different")])
        yield session


def test_rows_have_the_probability_of_their_cluster(session, store_url):
    labels, found = session.labels(), session.probabilities()
    assert set(found) == set(labels) and all(0.5 <= one <= 1 for one in found.values())
    assert min(found.values()) < 0.999 < max(found.values())
    assert session.probability_of(3) == found[3]
    version = session.version
    session.fit()
    assert session.version == version  # the same fit again is no event
    session.close()
    with Session.open(store_url) as again:
        assert again.probabilities() == found


def test_methods_without_probabilities_have_none(sqlite_url, tmp_path):
    with Session.create(sqlite_url, ROWS.tolist(), n_clusters=2) as session:
        assert session.probabilities() == {} and session.probability_of(0) is None
        session.export("labels", tmp_path / "labels.csv")
        assert "probability" not in (tmp_path / "labels.csv").read_text()
        session.set(method=MIXTURE)
        assert len(session.probabilities()) == len(ROWS)
        session.set(method="cop-kmeans")
        assert session.probabilities() == {}


def test_the_borderline_rows_are_the_least_probable(session):
    found = session.probabilities()
    for cluster in session.clusters():
        members = sorted(session.members(cluster.id), key=found.__getitem__)
        assert cluster.borderline == members[:6]
        assert found[cluster.typical[0]] > found[cluster.borderline[0]]


def test_a_moved_row_loses_its_probability_and_others_keep_theirs(session):
    before = session.probabilities()
    row = min(before, key=before.get)
    clusters = [one.id for one in session.clusters()]
    session.move(row, next(one for one in clusters if one != session.cluster_of(row)))
    assert session.probability_of(row) is None
    after = session.probabilities()
    assert row not in after
    assert {one: before[one] for one in after} == after and len(after) >= len(before) - 2
    assert row not in {one for cluster in session.clusters() for one in cluster.borderline}
    session.undo()
    assert session.probabilities() == before


def test_new_rows_have_a_probability_from_the_next_fit_on(session):
    session.fit()
    (new,) = session.add_rows([[1.5, 1.4]])
    assert session.cluster_of(new) is not None and session.probability_of(new) is None
    session.fit()
    assert 0.5 <= session.probability_of(new) <= 1


def test_exported_labels_have_a_column_of_probabilities(session, tmp_path):
    found = session.probabilities()
    row = max(found, key=found.get)
    session.move(row)
    session.export("labels", tmp_path / "labels.csv")
    records = list(csv.DictReader((tmp_path / "labels.csv").read_text().splitlines()))
    assert list(records[0]) == ["id", "cluster", "name", "probability"]
    written = {int(one["id"]): one["probability"] for one in records}
    assert written[row] == ""
    assert all(float(written[one]) == pytest.approx(found[one], abs=1e-6) for one in found if written[one])


def test_packed_labels_of_earlier_versions_have_no_probability():
    labels, probability = unpacked_labels(packed_labels(np.array([0, 1, -1])))
    assert labels.tolist() == [0, 1, -1] and probability is None
    labels, probability = unpacked_labels(packed_labels(np.array([0, 1]), np.array([0.5, np.nan], dtype=np.float32)))
    assert probability[0] == 0.5 and np.isnan(probability[1])
    assert unpacked_labels(packed_labels(np.array([0]), np.array([np.nan], dtype=np.float32)))[1] is None


def suspicions(items):
    return {item.answer_id: item for item in items}


@pytest.fixture
def judged(sqlite_url):
    with Session.create(sqlite_url, ROWS.tolist(), n_clusters=2) as session:
        right = [(row, row + 1, "same") for row in range(0, 18, 3)]
        right += [(row, row + 20, "different") for row in range(0, 15, 3)]
        session.import_answers([*right, (18, 39, "same")])
        yield session


def test_a_named_model_judges_the_answers(judged):
    wrong = judged.answers()[-1].id
    without, with_model = (suspicions(judged.review(model=name)) for name in (None, "penalized-gaussian-mixture"))
    assert with_model[wrong].suspicion > without[wrong].suspicion
    assert "By the model, the chance that the two are different is" in " ".join(with_model[wrong].reasons)
    assert not any("By the model" in reason for item in without.values() for reason in item.reasons)


def test_the_mixture_of_a_session_judges_its_answers(judged):
    wrong = judged.answers()[-1].id
    judged.set(method="penalized-gaussian-mixture")
    plan = judged.plan_review()
    assert plan.model == "penalized-gaussian-mixture"
    assert "By the model, the chance that the two are different" in " ".join(suspicions(plan.run())[wrong].reasons)
    judged.set(method="graph-propagation")  # its probabilities follow the answers that they would judge
    assert judged.plan_review().model is None


def test_a_hard_model_gets_the_clusters_that_the_answers_need(sqlite_url):
    with Session.create(sqlite_url, ROWS.tolist(), n_clusters=2, method=MIXTURE) as session:
        session.import_answers([(0, 1, "different"), (0, 2, "different"), (1, 2, "different")])
        assert isinstance(session.review(), list)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cop-kmeans", "cop-kmeans has no probabilities for new rows. Choose one of constrained-gaussian-mixture"),
        ("nothing", 'There is no method "nothing"'),
    ],
)
def test_models_without_probabilities_are_refused(judged, name, message):
    with pytest.raises(ParameterError, match=message):
        judged.review(model=name)
