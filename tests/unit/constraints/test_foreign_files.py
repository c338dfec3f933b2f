"""Files of answers as other tools write them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from clew import Constraints
from clew.constraints import AnswerRecord, Answers, read_answers, write_answers
from clew.exceptions import ConstraintError, FileError, ParameterError

IDS = ["a", "b", "c", "d", "e"]


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def pairs_of(answers):
    return [(record.id_1, record.id_2, record.answer) for record in answers]


# -- splink ------------------------------------------------------------------------------------------------------------

SPLINK = "unique_id_l,unique_id_r,clerical_match_score\na,b,1.0\na,c,0.05\nb,d,0.5\n"


def test_splink_scores_are_answers_with_confidence(tmp_path):
    answers = read_answers(written(tmp_path, "labels.csv", SPLINK))
    assert answers.format == "splink"
    assert pairs_of(answers) == [("a", "b", "same"), ("a", "c", "different"), ("b", "d", "unsure")]
    assert [record.confidence for record in answers] == [1.0, 0.95, 0.5]
    assert {record.source for record in answers} == {"splink"}


def test_splink_file_and_frame_are_constraints(tmp_path):
    path = written(tmp_path, "labels.csv", SPLINK)
    expected = Constraints([(0, 1)], [(0, 2)], cannot_link_confidence=[0.95], ids=IDS)
    assert Constraints.from_file(path, ids=IDS) == expected
    assert Constraints.of(pd.read_csv(path), ids=IDS) == expected
    assert Constraints.of(pl.read_csv(path), ids=IDS) == expected


SOURCES = {
    "source_dataset_l": ["crm", "crm"],
    "unique_id_l": ["1", "2"],
    "source_dataset_r": ["web", "web"],
    "unique_id_r": ["1", "7"],
    "clerical_match_score": [1, 0],
}


def test_splink_sources_name_rows_where_ids_alone_do_not(tmp_path):
    pl.DataFrame(SOURCES).write_parquet(tmp_path / "labels.parquet")
    answers = read_answers(tmp_path / "labels.parquet")
    assert pairs_of(answers) == [("crm-__-1", "web-__-1", "same"), ("crm-__-2", "web-__-7", "different")]
    ids = ["crm-__-1", "crm-__-2", "web-__-1", "web-__-7"]
    assert Constraints.from_file(tmp_path / "labels.parquet", ids=ids) == Constraints([(0, 2)], [(1, 3)], ids=ids)


def test_splink_sources_are_dropped_where_ids_are_enough():
    frame = pd.DataFrame({**SOURCES, "unique_id_r": ["5", "7"]})
    ids = ["1", "2", "5", "7"]
    assert Constraints.of(frame, ids=ids) == Constraints([(0, 2)], [(1, 3)], ids=ids)


@pytest.mark.parametrize("score", ["1.5", "-0.1", "yes", ""])
def test_splink_score_out_of_range_is_named(tmp_path, score):
    path = written(tmp_path, "labels.csv", f"unique_id_l,unique_id_r,clerical_match_score\na,b,1\na,c,{score}\n")
    with pytest.raises(FileError, match=rf"labels.csv line 3: clerical_match_score is '{score}'; expected 0 to 1"):
        read_answers(path)


# -- zingg -------------------------------------------------------------------------------------------------------------

ZINGG = [
    {"z_zid": 11, "z_cluster": "168:0", "z_isMatch": 1, "id": "a", "name": "Ann", "z_zsource": "t"},
    {"z_zid": 12, "z_cluster": "168:0", "z_isMatch": 1, "id": "b", "name": "Anne", "z_zsource": "t"},
    {"z_zid": 13, "z_cluster": "168:1", "z_isMatch": 0, "id": "a", "name": "Ann", "z_zsource": "t"},
    {"z_zid": 14, "z_cluster": "168:1", "z_isMatch": 0, "id": "c", "name": "Bob", "z_zsource": "t"},
    {"z_zid": 15, "z_cluster": "168:2", "z_isMatch": 2, "id": "b", "name": "Anne", "z_zsource": "t"},
    {"z_zid": 16, "z_cluster": "168:2", "z_isMatch": 2, "id": "d", "name": "Nan", "z_zsource": "t"},
    {"z_zid": 17, "z_cluster": "168:3", "z_isMatch": -1, "id": "c", "name": "Bob", "z_zsource": "t"},
    {"z_zid": 18, "z_cluster": "168:3", "z_isMatch": -1, "id": "d", "name": "Nan", "z_zsource": "t"},
]
ZINGG_SAYS = [("a", "b", "same"), ("a", "c", "different"), ("b", "d", "unsure")]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "json"])
def test_zingg_groups_are_answers(tmp_path, ending):
    path = tmp_path / f"marked.{ending}"
    frame = pl.DataFrame(ZINGG)
    if ending == "json":
        path.write_text(json.dumps(ZINGG))
    else:
        {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[ending](path)
    answers = read_answers(path)
    assert (answers.format, answers.n_open) == ("zingg", 1)
    assert pairs_of(answers) == ZINGG_SAYS
    assert Constraints.from_file(path, ids=IDS) == Constraints([(0, 1)], [(0, 2)], ids=IDS)


def test_zingg_frame_with_flags_as_floats():
    frame = pd.DataFrame(ZINGG).astype({"z_isMatch": float})
    assert Constraints.of(frame, ids=IDS) == Constraints([(0, 1)], [(0, 2)], ids=IDS)


def test_zingg_records_are_found_by_their_content(tmp_path):
    rows = [{name: value for name, value in row.items() if name != "id"} for row in ZINGG]
    path = written(tmp_path, "marked.json", rows)
    table = {"a": {"name": "ann "}, "b": {"name": "ANNE"}, "c": {"name": "Bob"}, "d": {"name": "Nan"}}
    assert pairs_of(read_answers(path, table=table)) == ZINGG_SAYS
    with pytest.raises(FileError, match=r"object 0: holds a whole record without a known id.*table=.*id_columns="):
        read_answers(path)


def test_zingg_id_under_another_name(tmp_path):
    rows = [{**{k: v for k, v in row.items() if k != "id"}, "customer": row["id"]} for row in ZINGG]
    assert pairs_of(read_answers(written(tmp_path, "m.json", rows), id_columns="customer")) == ZINGG_SAYS


def test_zingg_id_is_looked_up_in_the_column_of_that_name(tmp_path):
    # Rows are known by their numbers here, and "id" is a column: a 1 in it is not row 1.
    rows = [{"z_cluster": 0, "z_isMatch": 1, "id": number, "name": "cleaned"} for number in (1, 2)]
    table = {0: {"id": 2, "name": "x"}, 1: {"id": 7, "name": "y"}, 2: {"id": 1, "name": "z"}}
    assert pairs_of(read_answers(written(tmp_path, "m.json", rows), table=table)) == [(2, 0, "same")]


def test_zingg_larger_group_is_a_chain():
    frame = pd.DataFrame({"z_cluster": [5, 5, 5], "z_isMatch": [1, 1, 1], "id": ["c", "a", "b"]})
    assert Constraints.of(frame, ids=IDS) == Constraints([(2, 0), (0, 1)], ids=IDS)


@pytest.mark.parametrize(
    "flags, sentence",
    [
        ([1, 0], r"z_cluster 5 has z_isMatch 0, 1; expected 1, 0, 2 or -1, one per group"),
        ([3, 3], r"z_cluster 5 has z_isMatch 3"),
        ([1], r"z_cluster 5 has one record; a pair has two"),
    ],
)
def test_zingg_groups_that_make_no_sense(flags, sentence):
    frame = pd.DataFrame({"z_cluster": 5, "z_isMatch": flags, "id": ["a", "b"][: len(flags)]})
    with pytest.raises(ConstraintError, match=sentence):
        Constraints.of(frame, ids=IDS)


# -- dedupe ------------------------------------------------------------------------------------------------------------


def as_tuple(*records):
    return {"__class__": "tuple", "__value__": list(records)}


ANN, ANNE, BOB = {"name": "ann", "city": None}, {"name": "anne", "city": "ulm"}, {"name": "bob", "city": "ulm"}
DEDUPE = {"distinct": [as_tuple(ANNE, BOB)], "match": [as_tuple(ANN, ANNE)]}
TABLE = {
    "a": {"name": "Ann", "city": "", "age": 3},
    "b": {"name": " Anne", "city": "Ulm", "age": 4},
    "c": {"name": "Bob", "city": "Ulm", "age": 5},
}
DEDUPE_SAYS = [("b", "c", "different"), ("a", "b", "same")]


def test_dedupe_records_are_found_by_their_content(tmp_path):
    path = written(tmp_path, "training.json", DEDUPE)
    answers = read_answers(path, table=TABLE)
    assert (answers.format, answers.unmatched) == ("dedupe", "")
    assert pairs_of(answers) == DEDUPE_SAYS
    ids = list(TABLE)
    expected = Constraints([(0, 1)], [(1, 2)], ids=ids)
    assert Constraints.from_file(path, ids=ids, table=TABLE) == expected
    assert Constraints.of(DEDUPE, ids=ids, table=TABLE) == expected


def test_dedupe_a_word_for_no_value_equals_a_missing_value(tmp_path):
    """pandas reads "n/a" as NaN, and the csv module, which dedupe's examples use, keeps it."""
    table = {1: {"name": "Ann", "phone": np.nan}, 2: {"name": "Anne", "phone": None}, 3: {"name": "Ann", "phone": "47"}}
    training = {"match": [[{"name": "Ann", "phone": "n/a"}, {"name": "Anne", "phone": "NULL"}]], "distinct": []}
    answers = read_answers(written(tmp_path, "t.json", training), table=table)
    assert (pairs_of(answers), answers.unmatched) == ([(1, 2, "same")], "")


def test_dedupe_pairs_written_by_hand_as_lists(tmp_path):
    plain = {word: [pair["__value__"] for pair in pairs] for word, pairs in DEDUPE.items()}
    assert pairs_of(read_answers(written(tmp_path, "t.json", plain), table=TABLE)) == DEDUPE_SAYS


def test_dedupe_values_that_are_tuples_and_sets(tmp_path):
    record = {"name": "ann", "tags": {"__class__": "frozenset", "__value__": ["y", "x"]}}
    table = {1: {"name": "Ann", "tags": ["x", "y"]}, 2: {"name": "Ann", "tags": ["x"]}, 3: {"name": "b", "tags": []}}
    path = written(tmp_path, "t.json", {"distinct": [as_tuple(record, {"name": "b", "tags": as_tuple()})], "match": []})
    assert pairs_of(read_answers(path, table=table)) == [(1, 3, "different")]


def test_dedupe_two_rows_of_one_content_answered_as_a_pair(tmp_path):
    path = written(tmp_path, "t.json", {"distinct": [], "match": [as_tuple(ANN, ANN)]})
    assert pairs_of(read_answers(path, table={**TABLE, "z": TABLE["a"]})) == [("a", "z", "same")]


def test_dedupe_records_in_no_row_or_several_are_counted_with_an_example(tmp_path):
    training = {
        "match": [as_tuple(ANN, ANNE), as_tuple(ANN, {"name": "cy", "city": "rom"})],
        "distinct": [as_tuple(BOB, ANNE)],
    }
    path = written(tmp_path, "training.json", training)
    table = {**TABLE, "bob-2": TABLE["c"]}
    answers = read_answers(path, table=table)
    assert pairs_of(answers) == [("a", "b", "same")]
    assert answers.unmatched == (
        "training.json: 2 pairs were left out: {'name': 'cy', 'city': 'rom'} is in no row (and 1 more)."
    )
    with pytest.warns(UserWarning, match="2 pairs were left out"):
        Constraints.from_file(path, ids=list(table), table=table)


def test_dedupe_with_another_table_is_an_error(tmp_path):
    path = written(tmp_path, "training.json", {"match": [as_tuple(ANN, BOB)], "distinct": []})
    with pytest.raises(FileError, match=r"1 pair was left out: .*'ann'.* is in no row\. No answer is left"):
        read_answers(path, table={1: {"name": "x", "city": "y"}})
    with pytest.raises(FileError, match=r"none of its fields \(name, city\) is a column of the table \(colour\)"):
        read_answers(path, table={1: {"colour": "red"}})
    with pytest.raises(FileError, match=r"training.json, match\[0\]: holds a whole record.*Pass table="):
        Constraints.from_file(path, ids=["x"])


# -- Label Studio ------------------------------------------------------------------------------------------------------


def annotation(choice, **more):
    result = [
        {"id": "x1", "type": "choices", "from_name": "same", "to_name": "pair", "value": {"choices": [choice]}},
    ]
    return {
        "id": 1001,
        "completed_by": 7,
        "result": result,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2024-03-09T22:16:08.728353Z",
        "lead_time": 4.288,
        "task": 1,
        **more,
    }


def task(number, first, second, *annotations):
    return {
        "id": number,
        "data": {"left_id": first, "right_id": second, "left": "Ann", "right": "Anne"},
        "annotations": list(annotations),
        "predictions": [annotation("Different")],
        "project": 3,
    }


def test_label_studio_export_keeps_who_when_and_how_long(tmp_path):
    remark = {"type": "textarea", "from_name": "why", "to_name": "pair", "value": {"text": ["same phone"]}}
    first = annotation("Same", completed_by={"id": 9, "email": "kim@example.org"})
    first["result"].append(remark)
    skipped = annotation("Same", was_cancelled=True, result=[])
    path = written(
        tmp_path,
        "export.json",
        [task(1, "a", "b", first, annotation("Different")), task(2, "b", "c", skipped), task(3, "c", "d")],
    )
    answers = read_answers(path)
    assert (answers.format, answers.n_open) == ("label-studio", 1)
    when = "2024-03-09T22:16:08.728353Z"
    assert list(answers) == [
        AnswerRecord("a", "b", "same", 1.0, "kim@example.org", when, 4.288, "same phone", "label-studio"),
        AnswerRecord("a", "b", "different", 1.0, "7", when, 4.288, None, "label-studio"),
        AnswerRecord("b", "c", "unsure", 1.0, "7", when, 4.288, None, "label-studio"),
    ]


def test_label_studio_short_export(tmp_path):
    rows = [
        {
            "id": 1,
            "first": "a",
            "second": "b",
            "text": "yes",
            "verdict": choice,
            "annotator": 1,
            "annotation_id": 5,
            "created_at": "2024-01-01T00:00:00Z",
            "updated_at": "2024-01-01T00:00:00Z",
            "lead_time": 2.5,
        }
        for choice in ("Same", {"choices": ["Different"]})
    ]
    for row in rows:
        row["text"] = "Ann"
    answers = read_answers(written(tmp_path, "min.json", rows), id_columns=("first", "second"))
    assert pairs_of(answers) == [("a", "b", "same"), ("a", "b", "different")]
    assert (answers[0].annotator, answers[0].seconds) == ("1", 2.5)


@pytest.mark.parametrize(
    "broken, sentence",
    [
        (task(1, "a", "b", annotation("Perhaps")), "object 0: cannot read the answer 'Perhaps'"),
        (task(1, "a", "b", annotation("Same", result=[])), "object 0: expected one choice .* found none"),
        (
            {**task(1, "a", "b", annotation("Same")), "data": {"text": "x"}},
            r"object 0: found no two ids among its fields \(text\)\. Name them: id_columns",
        ),
    ],
)
def test_label_studio_tasks_that_cannot_be_read(tmp_path, broken, sentence):
    with pytest.raises(FileError, match=sentence):
        read_answers(written(tmp_path, "export.json", [broken]))


# -- Argilla -----------------------------------------------------------------------------------------------------------


def test_argilla_records_of_version_2(tmp_path):
    records = [
        {
            "id": "r1",
            "fields": {"left": "Ann", "right": "Anne"},
            "metadata": {"id_1": "a", "id_2": "b"},
            "suggestions": {"verdict": {"value": "different", "score": 0.4, "agent": "m"}},
            "responses": {
                "verdict": [{"value": "same", "user_id": "u-1"}, {"value": "unsure", "user_id": "u-2"}],
                "why": [{"value": "phone", "user_id": "u-1"}],
            },
            "vectors": {},
            "_server_id": "s1",
        },
        {"id": "r2", "fields": {}, "metadata": {"id_1": "a", "id_2": "c"}, "suggestions": {}, "responses": {}},
    ]
    answers = read_answers(written(tmp_path, "records.json", records))
    assert (answers.format, answers.n_open) == ("argilla", 1)
    assert pairs_of(answers) == [("a", "b", "same"), ("a", "b", "unsure")]
    assert [record.annotator for record in answers] == ["u-1", "u-2"]


def test_argilla_records_of_version_1(tmp_path):
    lines = [
        {
            "fields": {"id_1": "a", "id_2": "b"},
            "responses": [
                {"user_id": "u1", "status": "submitted", "values": {"verdict": {"value": "distinct"}}},
                {"user_id": "u2", "status": "draft", "values": {"verdict": {"value": "match"}}},
                {"user_id": "u3", "status": "discarded", "values": {}},
            ],
        }
    ]
    path = written(tmp_path, "records.jsonl", "\n".join(map(json.dumps, lines)))
    assert pairs_of(read_answers(path)) == [("a", "b", "different"), ("a", "b", "unsure")]


def test_argilla_answer_that_cannot_be_read(tmp_path):
    record = {"fields": {"id_1": 1, "id_2": 2}, "responses": {"q": [{"value": "maybe", "user_id": "u"}]}}
    with pytest.raises(FileError, match="object 0: cannot read the answer 'maybe'"):
        read_answers(written(tmp_path, "records.json", [record]))


# -- Prodigy -----------------------------------------------------------------------------------------------------------


def prodigy(**more):
    hashes = {"_input_hash": 1, "_task_hash": 2, "_session_id": "pairs-kim", "_view_id": "blocks"}
    return {"html": "…", "meta": {"id_1": "a", "id_2": "b"}, "_timestamp": 1700000000, **hashes, **more}


OPTIONS = [{"id": 1, "text": "same"}, {"id": 2, "text": "different"}]


def test_prodigy_answers(tmp_path):
    tasks = [
        prodigy(answer="accept"),
        prodigy(answer="reject", _annotator_id="lee"),
        prodigy(answer="ignore"),
        prodigy(answer="accept", label="DIFFERENT"),
        prodigy(answer="accept", options=OPTIONS, accept=[2], comment="twins"),
    ]
    path = written(tmp_path, "pairs.jsonl", "\n".join(map(json.dumps, tasks)))
    answers = read_answers(path)
    assert answers.format == "prodigy"
    assert [record.answer for record in answers] == ["same", "different", "unsure", "different", "different"]
    assert [record.annotator for record in answers[:2]] == ["pairs-kim", "lee"]
    assert answers[0].time == "2023-11-14T22:13:20+00:00"
    assert answers[4].comment == "twins"


@pytest.mark.parametrize(
    "broken, sentence",
    [
        (prodigy(answer="maybe"), "line 1: answer is 'maybe'; expected accept, reject or ignore"),
        (prodigy(answer="accept", options=OPTIONS, accept=[1, 2]), "line 1: expected one accepted option, found 1, 2"),
        (prodigy(answer="accept", meta={}), "line 1: found no two ids among its fields"),
    ],
)
def test_prodigy_tasks_that_cannot_be_read(tmp_path, broken, sentence):
    with pytest.raises(FileError, match=sentence):
        read_answers(written(tmp_path, "pairs.jsonl", json.dumps(broken)))


# -- cognitivefactory --------------------------------------------------------------------------------------------------


def constraint(first, second, kind, **more):
    return {
        "data": {"id_1": first, "id_2": second},
        "constraint_type": kind,
        "constraint_type_previous": [None],
        "is_hidden": False,
        "to_annotate": False,
        "to_review": False,
        "to_fix_conflict": False,
        "comment": "",
        "date_of_update": 1650000000.5,
        "iteration_of_sampling": 1,
        **more,
    }


def test_cognitivefactory_file(tmp_path):
    content = {
        "(a,b)": constraint("a", "b", "MUST_LINK", comment="clear"),
        "(a,c)": constraint("a", "c", "CANNOT_LINK"),
        "(b,d)": constraint("b", "d", None, to_annotate=True, date_of_update=None),
        "(c,d)": constraint("c", "d", "MUST_LINK", is_hidden=True),
    }
    path = written(tmp_path, "constraints.json", content)
    answers = read_answers(path)
    assert (answers.format, answers.n_open) == ("cognitivefactory", 2)
    assert pairs_of(answers) == [("a", "b", "same"), ("a", "c", "different")]
    assert (answers[0].comment, answers[0].time) == ("clear", "2022-04-15T05:20:00.500000+00:00")
    assert Constraints.of(content, ids=IDS) == Constraints([(0, 1)], [(0, 2)], ids=IDS)


class Manager:
    """Has the two methods by which cognitivefactory's constraints manager is known."""

    def __init__(self, ids, added):
        self.ids, self.added = ids, added

    def get_list_of_managed_data_IDs(self):  # noqa: N802
        return self.ids

    def get_added_constraint(self, data_ID1, data_ID2):
        return self.added.get((data_ID1, data_ID2)) or self.added.get((data_ID2, data_ID1))


def test_cognitivefactory_manager():
    manager = Manager(IDS, {("a", "b"): ("MUST_LINK", 1.0), ("c", "a"): ("CANNOT_LINK", 0.8)})
    expected = Constraints([(0, 1)], [(0, 2)], cannot_link_confidence=[0.8], ids=IDS)
    assert Constraints.of(manager, ids=IDS) == expected


# -- COP-Kmeans, metric-learn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pairs.txt", "iris.cons", "iris.constraints"])
def test_cop_kmeans_text(tmp_path, name):
    path = written(tmp_path, name, "0\t4\t1\n\n2 3 -1\n")
    assert Constraints.from_file(path, n_samples=5) == Constraints([(0, 4)], [(2, 3)], n_samples=5)
    with pytest.raises(FileError, match=rf"{name} line 1: 2 words; expected two rows and 1 or -1"):
        read_answers(written(tmp_path, name, "0 1\n"))


def test_metric_learn_pairs(tmp_path):
    path = tmp_path / "pairs.npz"
    np.savez(path, pairs=[[0, 4], [2, 3]], y=[1, -1])
    assert Constraints.from_file(path, n_samples=5) == Constraints([(0, 4)], [(2, 3)], n_samples=5)
    np.savez(path, pairs=np.zeros((2, 2, 3)), y=[1, -1])
    with pytest.raises(FileError, match=r"pairs \(2, 2, 3\), y \(2,\); expected"):
        read_answers(path)


# -- ours --------------------------------------------------------------------------------------------------------------

RECORDS = [
    AnswerRecord("=a", "b", "same", 1.0, "kim", "2024-01-01T00:00:00+00:00", 2.5, "-- sure", "page"),
    AnswerRecord("a", "'c", "different", 0.75),
    AnswerRecord("007", "c", "unsure", comment="two\nlines"),
]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_what_is_written_is_read_back(tmp_path, ending):
    path = tmp_path / f"answers.{ending}"
    write_answers(path, RECORDS)
    assert list(read_answers(path)) == RECORDS
    write_answers(path, [])
    assert list(read_answers(path)) == []


def test_formulas_are_guarded(tmp_path):
    write_answers(tmp_path / "answers.csv", RECORDS)
    assert (tmp_path / "answers.csv").read_text().splitlines()[1].startswith("'=a,b,same,1.0,kim")


def test_answers_are_a_sequence_and_constraints(tmp_path):
    write_answers(tmp_path / "answers.csv", [AnswerRecord("a", "b", "same"), AnswerRecord("a", "c", "no")])
    answers = read_answers(tmp_path / "answers.csv")
    assert isinstance(answers, Answers)
    assert len(answers) == 2 and answers[-1].answer == "different"
    assert repr(answers) == "<2 answers from answers.csv (clew): 1 same, 1 different, 0 unsure>"
    assert Constraints.of(answers, ids=IDS) == Constraints([(0, 1)], [(0, 2)], ids=IDS)


def test_lines_that_are_no_pairs_are_for_constraints(tmp_path):
    path = written(tmp_path, "a.csv", "id_1,id_2,answer,group\na,,label,0\n")
    with pytest.raises(FileError, match=r"a.csv line 2: states a label, not an answer about a pair"):
        read_answers(path)


@pytest.mark.parametrize(
    "line, sentence",
    [("a,,same,1", "line 2: has no id_2"), ("a,b,same,fast", "line 2: seconds is 'fast'; expected a number")],
)
def test_lines_that_cannot_be_read(tmp_path, line, sentence):
    with pytest.raises(FileError, match=sentence):
        read_answers(written(tmp_path, "a.csv", f"id_1,id_2,answer,seconds\n{line}\n"))


# -- which tool? -------------------------------------------------------------------------------------------------------


def test_a_list_of_our_records_in_json(tmp_path):
    path = written(tmp_path, "a.json", [{"id_1": 1, "id_2": 2, "answer": "ml"}, {"id_1": 1, "id_2": 3, "answer": "cl"}])
    assert pairs_of(read_answers(path)) == [(1, 2, "same"), (1, 3, "different")]


def test_lines_of_json_under_the_wrong_ending(tmp_path):
    path = written(
        tmp_path, "a.json", '{"id_1": 1, "id_2": 2, "answer": "same"}\n{"id_1": 1, "id_2": 3, "answer": "no"}\n'
    )
    assert pairs_of(read_answers(path)) == [(1, 2, "same"), (1, 3, "different")]


@pytest.mark.parametrize(
    "content, sentence",
    [
        ('{"projects": {"x": 1}}', "cannot tell which tool wrote it; it has projects"),
        ("[1, 2]", "object 0: expected an object, found int"),
        ("7", "expected a list of objects, or one object; found int"),
        ('{"a": ', "line 1: not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_json_of_nobody(tmp_path, content, sentence):
    with pytest.raises(FileError, match=sentence):
        read_answers(written(tmp_path, "a.json", content))


def test_time_out_of_this_world(tmp_path):
    with pytest.raises(FileError, match=r"pairs.jsonl is not a file of prodigy \(\w+Error"):
        read_answers(written(tmp_path, "pairs.jsonl", json.dumps(prodigy(answer="accept", _timestamp=1e300))))


def test_columns_of_different_lengths(tmp_path):
    columns = {"unique_id_l": ["a"], "unique_id_r": [], "clerical_match_score": [1]}
    with pytest.raises(FileError, match=r"labels.json: cannot tell which tool wrote it"):
        read_answers(written(tmp_path, "labels.json", columns))


def test_format_by_name(tmp_path):
    path = written(tmp_path, "labels.csv", SPLINK)
    assert read_answers(path, format="splink").format == "splink"
    with pytest.raises(ParameterError, match="There is no format 'excel': expected one of clew, splink, zingg"):
        read_answers(path, format="excel")
    with pytest.raises(FileError, match=r"labels.csv is not a file of zingg \(KeyError: 'z_cluster'\)"):
        read_answers(path, format="zingg")
    with pytest.raises(FileError, match=r"has no column 'answer'"):
        read_answers(path, format="clew")
