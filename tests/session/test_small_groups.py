"""Projects with very many groups of few rows: duplicate records."""

from __future__ import annotations

import csv
import pickle
import re

import numpy as np
import pytest

from benchmarks.record_tables import record_table
from clew import Session
from clew.active import UncertainMatches
from clew.datasets import as_table
from clew.exceptions import ParameterError

PEOPLE = [
    {"id": "p1", "name": "Ann Meyer", "city": "Bonn", "phone": "4711"},
    {"id": "p2", "name": "Anne Meyer", "city": "Bonn", "phone": "4711"},
    {"id": "p3", "name": "Bob Smith", "city": "Rome", "phone": "1234"},
    {"id": "p4", "name": "Bob Smyth", "city": "Rome", "phone": ""},
    {"id": "p5", "name": "Zoe Adler", "city": "Oslo", "phone": "9999"},
]
NEW = [
    {"id": "p6", "name": "Ann Meier", "city": "Bonn", "phone": "4711"},
    {"id": "p7", "name": "Xaver Quell", "city": "Wien", "phone": "5050"},
]


@pytest.fixture
def session(sqlite_url):
    with Session.create(sqlite_url, PEOPLE, id_column="id", groups="small") as session:
        yield session


def groups(session):
    found = {}
    for row, cluster in session.labels().items():
        found.setdefault(cluster, set()).add(row)
    return sorted(map(sorted, found.values()))


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_records_are_grouped_without_any_answer(session):
    assert groups(session) == [["p1", "p2"], ["p3", "p4"], ["p5"]]


def test_answers_hold_and_the_project_is_as_it_was_when_it_is_opened_again(session, sqlite_url):
    question = session.ask()
    session.tell(question, "different")
    assert session.labels()[question.left] != session.labels()[question.right]
    before = groups(session)
    with Session.open(sqlite_url) as again:
        assert again.settings["groups"] == "small"
        assert groups(again) == before


def test_new_rows_join_a_group_or_start_one(session):
    before = session.labels()
    session.add_rows(NEW)
    labels = session.labels(refit=False)
    assert labels["p6"] == before["p1"]
    assert labels["p7"] not in before.values()
    assert groups(session) == [["p1", "p2", "p6"], ["p3", "p4"], ["p5"], ["p7"]]


def test_a_corrected_group_keeps_its_rows_and_a_row_that_leaves_starts_a_group(session):
    before = session.labels()
    session.merge(before["p3"], before["p5"])
    session.import_answers([{"id_1": "p1", "id_2": "p2", "answer": "different"}])
    assert groups(session) == [["p1"], ["p2"], ["p3", "p4", "p5"]]


def test_labels_have_probabilities_and_golden_records_merge_groups(session, tmp_path):
    session.export("labels", tmp_path / "labels.csv")
    session.export("golden", tmp_path / "golden.csv")
    labels, golden = read_csv(tmp_path / "labels.csv"), read_csv(tmp_path / "golden.csv")
    assert [row["id"] for row in labels] == ["p1", "p2", "p3", "p4", "p5"]
    assert all(0.5 < float(row["probability"]) <= 1 for row in labels)
    kept = [(row["n_rows"], row["name"], row["city"], row["phone"]) for row in golden]
    assert kept == [
        ("2", "Anne Meyer", "Bonn", "4711"), ("2", "Bob Smith", "Rome", "1234"), ("1", "Zoe Adler", "Oslo", "9999"),
    ]  # fmt: skip


def test_rows_have_the_probabilities_that_are_exported(session, tmp_path):
    session.export("labels", tmp_path / "labels.csv")
    exported = {row["id"]: float(row["probability"]) for row in read_csv(tmp_path / "labels.csv")}
    found = session.probabilities()
    assert {row: round(one, 6) for row, one in found.items()} == exported
    assert {row: session.probability_of(row) for row in found} == found
    for cluster in session.clusters():
        least = min(session.members(cluster.id), key=found.get)
        assert found[cluster.borderline[0]] == found[least]
    session.merge(session.cluster_of("p1"), session.cluster_of("p5"))
    assert session.probability_of("p5") == session.probabilities()["p5"]


def test_small_groups_that_the_data_show_have_the_same_probabilities(sqlite_url, seed):
    rng = np.random.default_rng(seed)
    rows = np.repeat(rng.normal(size=(150, 4)), 2, axis=0) + 0.01 * rng.normal(size=(300, 4))
    with Session.create(sqlite_url, rows) as session:
        found = session.probabilities()
        assert session.settings["groups"] != "small" and session.has_small_groups and len(found) == 300
        assert {row: session.probability_of(row) for row in found} == found


def test_probabilities_after_an_answer_are_the_same_when_the_project_is_opened_again(session, sqlite_url):
    before, question = session.probabilities(), session.ask()
    session.tell(question, "different")
    found = session.probabilities(refit=False)
    assert found != before
    with Session.open(sqlite_url) as again:
        assert again.probabilities(refit=False) == found


def test_the_strategy_that_makes_the_clusters_gives_the_probabilities(sqlite_url):
    with Session.create(sqlite_url, PEOPLE, id_column="id", strategy="uncertain-matches") as session:
        assert sorted(session.probabilities()) == ["p1", "p2", "p3", "p4", "p5"]


def test_probabilities_are_computed_once_for_the_same_clusters(session, monkeypatch):
    session.fit()
    calls, compute = [], UncertainMatches.probabilities
    monkeypatch.setattr(UncertainMatches, "probabilities", lambda *told: calls.append(told) or compute(*told))
    for row in session.probabilities(refit=False):
        session.probability_of(row)
    assert len(calls) == 1


def test_contradictory_answers_are_kept_and_nothing_is_lost(session):
    said = [("p1", "p2", "same"), ("p2", "p3", "same"), ("p1", "p3", "different")]
    session.import_answers([{"id_1": one, "id_2": two, "answer": answer} for one, two, answer in said])
    assert len(session.answers()) == 3
    assert len(session.conflicts()) == 1
    assert session.labels()["p1"] == session.labels()["p2"]


def test_twenty_different_answers_do_not_change_the_strategy(sqlite_url):
    found = record_table("people", 130)
    columns = list(found.columns)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*found.columns.values(), strict=True)]
    with Session.create(sqlite_url, rows, groups="small") as session:
        for _ in range(22):
            assert session.tell(session.ask(), "different").note is None
        assert session.settings["strategy"] is None


def test_small_groups_have_no_given_number(session, tmp_path):
    with pytest.raises(ParameterError, match='groups="small" and n_clusters=3'):
        session.set(n_clusters=3)
    with pytest.raises(ParameterError, match='groups="small" and n_clusters=2'):
        Session.create(tmp_path / "other.clew", PEOPLE, n_clusters=2, groups="small")
    with pytest.raises(ParameterError, match="groups='tiny'"):
        session.set(groups="tiny")


def test_the_method_compares_records_too(sqlite_url):
    with Session.create(sqlite_url, PEOPLE, id_column="id", method="match-clustering") as session:
        assert groups(session) == [["p1", "p2"], ["p3", "p4"], ["p5"]]


def test_numbers_are_compared_as_vectors(sqlite_url):
    with Session.create(sqlite_url, [[0.0], [0.1], [5.0], [5.1], [9.0]], groups="small") as session:
        session.import_answers(
            [{"id_1": 0, "id_2": 1, "answer": "same"}, {"id_1": 1, "id_2": 2, "answer": "different"}]
        )
        labels = session.labels()
        assert labels[0] == labels[1] != labels[2]


def test_a_group_has_one_record_of_each_source(sqlite_url):
    listed = [row | {"list": name} for row, name in zip(PEOPLE, ["a", "a", "a", "b", "b"], strict=True)]
    with Session.create(sqlite_url, listed, id_column="id", groups="small", source="list") as session:
        assert groups(session) == [["p1"], ["p2"], ["p3", "p4"], ["p5"]]
        assert re.search(r"^list +left out +it names the sources", session.describe(), re.MULTILINE)
    with Session.open(sqlite_url) as session:
        assert groups(session) == [["p1"], ["p2"], ["p3", "p4"], ["p5"]]


def test_answers_that_follow_from_sources_alone_are_not_counted(sqlite_url):
    listed = [
        {"name": f"{word} {town}", "city": town, "list": name}
        for name, words in (("a", ("Anne", "Bob", "Zoe")), ("b", ("Ann", "Bobb", "Zoey")))
        for word in words
        for town in ("Bonn", "Rome", "Oslo", "Kyiv")
    ]
    with Session.create(sqlite_url, listed, groups="small", source="list") as session:
        told = session.tell(session.ask(), "same")
        assert told.implied == session.progress().implied == 0


def test_a_source_with_one_value_is_refused(sqlite_url):
    listed = [row | {"list": "a"} for row in PEOPLE]
    with pytest.raises(
        ParameterError, match='source list: the column has only one value, "a", so no two rows can be together'
    ):
        Session.create(sqlite_url, listed, id_column="id", source="list")


def test_a_new_row_starts_a_group_if_its_source_is_in_the_group_already(sqlite_url):
    listed = [row | {"list": name} for row, name in zip(PEOPLE, "ababa", strict=True)]
    with Session.create(sqlite_url, listed, id_column="id", groups="small", source="list") as session:
        before = session.labels()
        assert before["p1"] == before["p2"]
        session.add_rows([NEW[0] | {"id": f"n-{name}", "list": name} for name in "abc"])
        labels = session.labels()
        assert labels["p1"] == labels["p2"]
        assert labels["n-a"] == labels["n-b"] == labels["n-c"] != labels["p1"]
    with Session.open(sqlite_url) as session:
        assert session.labels() == labels


def test_the_review_asks_the_pair_model(sqlite_url, seed):
    found, rng = record_table("people", 300, seed), np.random.default_rng(seed)
    flipped, whys = set(), {}
    with Session.create(sqlite_url, as_table(found.columns), groups="small") as session:
        for _ in range(60):
            question = session.ask("ann")
            is_wrong = rng.random() < 0.1
            is_same = found.entity[question.left] == found.entity[question.right]
            told = session.tell(question, "same" if is_same != is_wrong else "different")
            whys[told.id] = question.why.removeprefix("The rows compare as follows: ")
            if is_wrong:
                flipped.add(told.id)
        items, plan = session.review(), session.plan_review()
        assert session.review(quick=True) == items == pickle.loads(pickle.dumps(plan)).run()
        first_fifth = {item.answer_id for item in items[: len(session.answers()) // 5]}
        assert len(flipped & first_fifth) > len(flipped) / 2
        for item in items:
            assert item.annotator == "ann" and item.time
            assert item.likely == item.answer or item.suspicion > 0.5
            # The rows are described with the words of the question.
            assert any(reason.endswith(f": {whys[item.answer_id]}") for reason in item.reasons)
        session.confirm(items[0].answer_id)
        assert items[0].answer_id not in [item.answer_id for item in session.review()]


def test_a_review_of_contradictory_answers_and_of_none(session):
    assert session.review() == []
    session.import_answers([("p1", "p2", "same"), ("p2", "p5", "same"), ("p1", "p5", "different")])
    found = {item.left + item.right: item for item in session.review()}
    assert found["p2p5"].suspicion > found["p1p2"].suspicion
    assert any("contradicts other answers" in reason for reason in found["p2p5"].reasons)


def test_a_named_model_and_a_chosen_method_review_by_clusters(session):
    session.import_answers([("p1", "p2", "different"), ("p3", "p4", "same")])
    assert session.review()[0].answer == "different"
    session.set(method="match-clustering")
    assert not any("compare" in reason for item in session.review() for reason in item.reasons)


def test_a_column_whose_texts_share_no_word_is_compared_too(sqlite_url):
    rows = [{"code": code, "city": city} for code, city in zip("abcdef", ["bonn", "rome"] * 3, strict=True)]
    with Session.create(sqlite_url, rows, groups="small") as session:
        assert re.search(r"code +text +compared as text", session.describe())
        assert "code is different" in session.ask().why
