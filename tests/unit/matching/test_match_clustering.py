"""`MatchClustering` on tables of records: groups, learning, explanations and errors."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from benchmarks.record_tables import record_table, word
from clew import Constraints, MatchClustering
from clew.datasets import as_table
from clew.evaluation import pairwise_scores, same_partition
from clew.exceptions import ClewWarning, ContradictoryConstraintsError, DataError, FileError, ParameterError
from clew.matching._fellegi_sunter import two_normals
from tests.helpers import examples

PEOPLE = [
    {"name": "Ann Meyer", "city": "Bonn", "phone": "4711"},
    {"name": "Anne Meyer", "city": "Bonn", "phone": "4711"},
    {"name": "Bob Smith", "city": "Rome", "phone": "1234"},
    {"name": "Bob Smyth", "city": "Rome", "phone": ""},
    {"name": "Zoe Adler", "city": "Oslo", "phone": "9999"},
]


def made(name, n_rows=300, seed=0):
    found = record_table(name, n_rows, seed)
    return as_table(found.columns), found.entity, found.source


def f(y, labels):
    return pairwise_scores(y, labels, Constraints(n_samples=len(y))).f


@pytest.mark.parametrize("form", [list, pd.DataFrame, pl.DataFrame, as_table])
def test_tables_of_any_form_give_the_same_groups(form):
    model = MatchClustering(random_state=0).fit(form(PEOPLE))
    assert model.labels_.tolist() == [0, 0, 1, 1, 2]
    assert model.columns_.tolist() == ["name", "city", "phone"]
    assert model.predict(form(PEOPLE)).tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("name", ["people", "companies", "patients", "products"])
def test_duplicates_are_found_without_answers(name, seed):
    table, y, _ = made(name, seed=seed)
    assert f(y, MatchClustering(random_state=0).fit(table).labels_) > 0.9


def test_answers_help(seed):
    table, y, _ = made("songs", seed=seed)
    model = MatchClustering(random_state=0).fit(table)
    doubtful = np.argsort(np.abs(model.pair_probabilities_ - 0.5))[:60]
    pairs = model.pairs_[doubtful]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    known = Constraints(pairs[same], pairs[~same], n_samples=len(y))
    better = MatchClustering(random_state=0).fit(table, constraints=known)
    assert f(y, better.labels_) > f(y, model.labels_)
    assert len(better.violated_must_link_) == len(better.violated_cannot_link_) == 0


def test_probabilities_are_calibrated(seed):
    table, y, _ = made("people_dirty", 600, seed)
    model = MatchClustering(random_state=0).fit(table)
    rng = np.random.default_rng(seed)
    pairs = model.pairs_[rng.choice(len(model.pairs_), 150, replace=False)]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    model.fit(table, constraints=Constraints(pairs[same], pairs[~same], n_samples=len(y)))
    truth = y[model.pairs_[:, 0]] == y[model.pairs_[:, 1]]
    assert abs(model.pair_probabilities_.mean() - truth.mean()) < 0.05
    assert ((model.pair_probabilities_ - truth) ** 2).mean() < 0.05


def test_one_record_per_source_always_holds(seed):
    table, y, source = made("companies_sources", seed=seed)
    model = MatchClustering(random_state=0).fit(table, constraints=Constraints(cannot_groups=source))
    for label in np.unique(model.labels_):
        members = source[model.labels_ == label]
        assert len(np.unique(members)) == len(members)
    assert f(y, model.labels_) > 0.9


@pytest.mark.parametrize("groups", [["crm"] * 5, [0] * 5, [[1, 0], [0, 0], [1, 0], [-1, 0], [0, 0]]])
def test_cannot_groups_with_one_value_for_all_rows_are_kept_with_a_warning(groups):
    sentence = "cannot_groups has only one value, so no two rows can be together. Choose a column that says which list"
    with pytest.warns(ClewWarning, match=re.escape(sentence)):
        model = MatchClustering().fit(PEOPLE, constraints=Constraints(cannot_groups=groups))
    assert len(set(model.labels_)) == len(PEOPLE)


def test_one_cannot_group_leaves_the_other_rows_free():
    one_photo = Constraints(cannot_groups=["crm", None, "crm", None, "crm"])
    assert MatchClustering(random_state=0).fit(PEOPLE, constraints=one_photo).n_clusters_ == 3


def test_new_records_join_a_group_or_start_one(tmp_path):
    model = MatchClustering(random_state=0).fit(PEOPLE)
    new = [
        {"name": "Ann Meyer", "city": "Bon", "phone": "4711"},
        {"name": "Quentin Xu", "city": "Lima", "phone": "5"},
        {"name": "Quentin Xu", "city": "Lima", "phone": "5"},
    ]
    assert model.predict(new).tolist() == [0, 3, 3]
    model.save(tmp_path / "model.clew")
    again = clew.load(tmp_path / "model.clew")
    assert again.predict(new).tolist() == [0, 3, 3]
    assert again.explain(0, 1) == model.explain(0, 1)
    with pytest.raises(ParameterError, match='no column "phone"'):
        model.predict([{"name": "Ann", "city": "Bonn"}])


def test_new_records_get_names_where_classes_have_names():
    known = Constraints(labels=["Ann", None, None, None, None])
    model = MatchClustering(random_state=0).fit(PEOPLE, constraints=known)
    assert model.labels_.tolist()[:2] == ["Ann", "Ann"]
    found = model.predict([PEOPLE[1], {"name": "Quentin Xu", "city": "Lima", "phone": "5"}]).tolist()
    assert found[0] == "Ann" and found[1] not in model.labels_.tolist()


def test_pairs_are_explained_in_a_sentence():
    model = MatchClustering(random_state=0).fit(PEOPLE)
    said = model.explain(1, 0)
    assert said.startswith("city and phone are equal; name differs by one letter; the same with probability ")
    assert "phone is missing" in model.explain(2, 3)
    assert model.explain(0, 4).startswith("name, city and phone are different; the same")
    with pytest.raises(ParameterError, match="Row 9 is out of range"):
        model.explain(0, 9)


def test_copies_of_long_texts_that_begin_elsewhere_are_found(seed):
    rng = np.random.default_rng(seed)
    words = np.array([word(rng) for _ in range(400)])
    texts = words[rng.integers(400, size=(60, 100))]
    copies = np.where(rng.random((60, 70)) < 0.2, words[rng.integers(400, size=(60, 70))], texts[:, 30:])
    rows = [
        {"text": " ".join(text), "topic": str(topic)}
        for text, topic in zip([*texts, *copies], np.tile(rng.choice(words[:20], 60), 2), strict=True)
    ]
    labels = MatchClustering(random_state=0).fit(rows).labels_
    assert f(np.tile(np.arange(60), 2), labels) > 0.95


def test_keys_make_rows_candidates():
    table, _, _ = made("people")
    few = MatchClustering(1, random_state=0).fit(table)
    more = MatchClustering(1, keys=["city"], random_state=0).fit(table)
    assert len(more.pairs_) > len(few.pairs_)
    with pytest.raises(ParameterError, match='no column "town"'):
        MatchClustering(keys=["town"]).fit(table)
    with pytest.raises(ParameterError, match='columns names column "city" twice'):
        MatchClustering(columns=["city", "city"]).fit(table)
    with pytest.raises(ParameterError, match="X is an array of vectors"):
        MatchClustering(columns=["city"]).fit([[0.0], [1.0]])


def test_no_two_rows_alike_are_single_rows():
    words = ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "yew"]
    model = MatchClustering(random_state=0).fit(
        pd.DataFrame({"tree": words, "number": [f"x{i * 7919}" for i in range(12)]})
    )
    assert model.n_clusters_ == 12 and model.row_probabilities_.min() > 0.5


def test_equal_rows_are_one_group():
    same = pd.DataFrame({"name": ["Ann Meyer"] * 5 + ["Bob Smith"], "city": ["Bonn"] * 5 + ["Rome"]})
    assert MatchClustering(random_state=0).fit(same).labels_.tolist() == [0] * 5 + [1]
    reasons = r'no column to compare: "name" \(it has one value only\), "city" \(it has one value only\)\. Use'
    with pytest.raises(DataError, match=reasons):
        MatchClustering().fit(same[:5])


def test_one_column_is_enough():
    names = ["ann meyer", "anne meyer", "bob smith", "bob smyth", "zoe adler", "quentin xu", "ida berg", "max holm"]
    labels = MatchClustering(random_state=0).fit(pd.DataFrame({"name": names})).labels_
    assert same_partition(labels, [0, 0, 1, 1, 2, 3, 4, 5])


def test_only_missing_values_are_refused():
    empty = pd.DataFrame({"id": ["x", "y", "z"], "a": ["", "", ""], "b": [None, None, None]})
    reasons = r'"id" \(it names the rows\), "a" \(it has no values\), "b" \(it has no values\)'
    with pytest.raises(DataError, match=reasons):
        MatchClustering().fit(empty)


def test_named_columns_without_a_value_are_refused():
    table = [row | {"mail": "-"} for row in PEOPLE]
    with pytest.raises(DataError, match=r'no column to compare: "mail" \(it has no values\)\. Use'):
        MatchClustering(columns=["mail"]).fit(table)
    assert MatchClustering(columns=["name", "mail"], random_state=0).fit(table).columns_.tolist() == ["name", "mail"]


def test_no_named_column_is_refused():
    with pytest.raises(DataError, match="no column to compare: no column is named"):
        MatchClustering(columns=[]).fit(PEOPLE)


def test_columns_of_vectors_are_refused():
    with pytest.raises(DataError, match='Column "v" of the data holds vectors'):
        MatchClustering().fit([{"a": "x", "v": [1.0, 2.0]}, {"a": "y", "v": [0.0, 2.0]}])


def test_contradictory_answers_are_refused():
    with pytest.raises(ContradictoryConstraintsError, match="rows 1 and 0"):
        MatchClustering().fit(PEOPLE, constraints={"must_link": [(0, 1)], "cannot_link": [(1, 0)]})


def test_a_file_without_rows_is_refused(tmp_path):
    model = MatchClustering(random_state=0).fit(PEOPLE)
    del model.fitted_cells_
    model.save(tmp_path / "model.clew")
    with pytest.raises(FileError, match="fitted_rows_ is missing"):
        clew.load(tmp_path / "model.clew")


def test_numbers_and_dates_are_compared_by_their_difference():
    frame = pd.DataFrame(
        {"day": ["2024-01-03", "2024-01-04", "1950-06-01"], "price": [10.0, 10.1, np.nan], "x": list("aab")}
    )
    model = MatchClustering(random_state=0).fit(frame)
    assert dict(zip(model.columns_, model.column_kinds_, strict=True)) == {
        "day": "date",
        "price": "number",
        "x": "text",
    }


def test_a_date_in_another_format_is_equal():
    born = ["1948-04-15", "15.04.1948", "1951-12-30", "02.02.1960", "1970-08-09", "1948-04-16"]
    rows = [{"name": f"name {row}", "born": day} for row, day in enumerate(born)]
    model = MatchClustering(random_state=0).fit(rows)
    assert model.column_kinds_.tolist() == ["text", "date"]
    assert "born is equal" in model.explain(0, 1)
    assert "born is equal" not in model.explain(0, 5)


def test_versions_stay_texts():
    rows = [{"name": f"n{row}", "version": version} for row, version in enumerate(["3.1", "3.10", "4.0", "2.5"])]
    assert "version is equal" not in MatchClustering(random_state=0).fit(rows).explain(0, 1)


@pytest.mark.parametrize("nothing", ["-", "unknown", "N/A", "k.A.", "--"])
def test_placeholders_are_missing(nothing):
    people = [{"name": "Ann Meyer", "phone": nothing}, {"name": "Bob Smith", "phone": nothing}]
    model = MatchClustering(random_state=0).fit([*people, *PEOPLE])
    assert "phone and city are missing" in model.explain(0, 1)


@examples(20, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6)), min_size=2, max_size=12))
def test_any_table_gives_groups_or_a_clear_message(rows):
    frame = pd.DataFrame(rows, columns=["one", "two"])
    try:
        model = MatchClustering(random_state=0).fit(frame)
    except DataError as error:
        assert "column" in str(error) or "Unicode" in str(error)  # noqa: PT017 either outcome is right
        return
    assert len(model.labels_) == len(rows)
    assert model.predict(frame).shape == (len(rows),)
    assert ((model.pair_probabilities_ >= 0) & (model.pair_probabilities_ <= 1)).all()


def test_two_normals_split_two_heaps():
    values = np.r_[np.linspace(0, 0.2, 50), np.linspace(0.8, 1, 20)]
    assert ((two_normals(values) > 0.5) == (values > 0.5)).all()
    assert two_normals(np.ones(4)).tolist() == [0.0] * 4
