"""Files of constraints: reading, writing, and errors that name the line."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from clew import Constraints
from clew.constraints import read_records
from clew.exceptions import FileError

ENDINGS = ["csv", "tsv", "jsonl", "parquet"]
HEADER = "id_1,id_2,answer\n"
FULL = Constraints(
    [(0, 1), (1, 2)],
    [(0, 3), (4, 2)],
    must_link_confidence=[0.1, 1.0],
    cannot_link_confidence=[1 / 3, 1.0],
    labels=[0, -1, -1, 1, -1],
    must_groups=[[0, -1], [-1, 3], [2, 3], [-1, -1], [0, 4]],
    cannot_groups=[1, 2, 1, -1, 2],
    soft_groups=[[0.1, 0.2], [0, 0], [0, 1], [0.3, 0], [0, 0.7]],
    triplets=[(0, 1, 2), (4, 3, 2)],
    n_samples=5,
)


def with_ids(constraints, ids):
    return Constraints.of(constraints, ids=ids)


@pytest.fixture
def read(tmp_path):
    """Write some text (or bytes) to a file and read it as constraints."""

    def read(content, *, name="answers.csv", **options):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return Constraints.from_file(tmp_path / name, **options)

    return read


WRITTEN = {
    "pairs": Constraints([(0, 1), (3, 4)], [(2, 1)]),
    "confidences": Constraints(
        [(0, 1), (3, 4)], [(2, 1)], must_link_confidence=[0.1, 1], cannot_link_confidence=[1e-9]
    ),
    "labels": Constraints(labels=[3, -1, 0, -1, 3]),
    "must-groups": Constraints(must_groups=[3, -1, 0, -1, 3]),
    "cannot-groups": Constraints(cannot_groups=[3, -1, 0, -1, 3]),
    "two-columns": Constraints(must_groups=[[0, 1], [-1, -1], [0, 1], [2, 2], [2, 3]], cannot_groups=[[1, 0]] * 5),
    "soft-groups": Constraints(soft_groups=[[0.5, 0], [0, 0], [0.25, 0.75], [1, 0], [0, 1e-3]]),
    "triplets": Constraints(triplets=[(0, 1, 2), (4, 3, 0)]),
    "large-numbers": Constraints(labels=[2**63 - 1, -1, 0, -1, -1], cannot_groups=[10**18] * 5),
    "nothing": Constraints(),
    "everything": FULL,
}
IDS = {
    "no-ids": None,
    "text": ["a", "b c", "ü漢", "-", "N/A"],
    "awkward-text": ['with "quotes"', "a,b;c\td", "two\nlines", "it's", "#5"],
    "formulas": ["=1+1", "+a", "-b", "@c", "plain"],
    "hidden-formulas": ["\n=1", "＝1", "＋a", "－b", "＠c"],
    "apostrophes": ["=b", "'=b", "''=b", "'c", "c"],
    "numbers": [10, 20, 30, 40, 50],
    "large-numbers": [2**62, 2**62 + 1, 3, 2, 1],
    "floats": [7.0, 8.0, 9.5, -1.0, 1e15],
    "numbers-as-text": ["07", "7", "1e3", "7.50", "+7"],
    "dates": np.array(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"], dtype="M8[D]"),
    "mixed": np.array([1, "a", 2.5, "3.5", "b"], dtype=object),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("constraints", WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_is_read_back(tmp_path, ending, constraints):
    constraints = constraints | Constraints(n_samples=5)
    constraints.to_file(tmp_path / f"known.{ending}")
    assert Constraints.from_file(tmp_path / f"known.{ending}", n_samples=5) == constraints


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_are_written_and_read_back(tmp_path, ending, ids):
    constraints = with_ids(FULL, ids)
    constraints.to_file(tmp_path / f"known.{ending}")
    assert Constraints.from_file(tmp_path / f"known.{ending}", ids=ids, n_samples=5) == constraints


@pytest.mark.parametrize("ending", ENDINGS)
def test_number_of_rows_is_in_the_file_where_groups_are(tmp_path, ending):
    constraints = Constraints(labels=[0, 1, -1, -1])
    constraints.to_file(tmp_path / f"known.{ending}")
    assert Constraints.from_file(tmp_path / f"known.{ending}") == constraints


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_rows(tmp_path, ending):
    constraints = FULL[[]]
    constraints.to_file(tmp_path / f"known.{ending}")
    again = Constraints.from_file(tmp_path / f"known.{ending}", n_samples=0)
    assert len(again) == 0
    assert not again


def test_file_is_the_documented_table(tmp_path):
    Constraints([(0, 1)], [(2, 1)], must_link_confidence=[0.5], ids=["a", "b", "c"]).to_file(tmp_path / "known.csv")
    assert (tmp_path / "known.csv").read_text() == "id_1,id_2,answer,confidence\na,b,same,0.5\nc,b,different,\n"
    Constraints([(0, 1)]).to_file(tmp_path / "known.csv")
    assert (tmp_path / "known.csv").read_text() == "id_1,id_2,answer\n0,1,same\n"
    Constraints([(0, 1)]).to_file(tmp_path / "known.jsonl")
    assert json.loads((tmp_path / "known.jsonl").read_text()) == {"id_1": 0, "id_2": 1, "answer": "same"}


def test_endings_are_read_in_any_case(tmp_path):
    FULL.to_file(tmp_path / "KNOWN.CSV")
    assert Constraints.from_file(tmp_path / "KNOWN.CSV") == FULL


SAME = ["same", "must", "must_link", "must-link", "ml", "match", "yes", "y", "1", "+1", "true"]
DIFFERENT = ["different", "cannot", "cannot_link", "cannot-link", "cl", "distinct", "no", "n", "-1", "0", "false"]
UNSURE = ["unsure", "unknown", "skip", "uncertain", "u", "?"]


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title, lambda word: f"  {word} "])
@pytest.mark.parametrize(
    ("words", "n_must", "n_cannot"),
    [
        pytest.param(SAME, 1, 0, id="same"),
        pytest.param(DIFFERENT, 0, 1, id="different"),
        pytest.param(UNSURE, 0, 0, id="unsure"),
    ],
)
def test_every_word_for_an_answer_in_any_case(read, case, words, n_must, n_cannot):
    for word in words:
        known = read(f"{HEADER}0,1,{case(word)}\n")
        assert (len(known.must_link), len(known.cannot_link)) == (n_must, n_cannot)


@pytest.mark.parametrize(("answer", "n_must"), [(1, 1), (-1, 0), (0, 0), (1.0, 1), (True, 1), (False, 0)])
def test_answers_as_json_numbers_and_booleans(read, answer, n_must):
    known = read(json.dumps({"id_1": 0, "id_2": 1, "answer": answer}), name="answers.jsonl")
    assert (len(known.must_link), len(known.cannot_link)) == (n_must, 1 - n_must)


def test_unsure_is_passed_over_whatever_else_its_line_says(read):
    known = read("id_1,id_2,answer,confidence\na,nobody,unsure,0\na,a,skip,\na,b,same,\n", ids=["a", "b"])
    assert known == Constraints([(0, 1)], ids=["a", "b"])


def test_other_columns_are_passed_over(read):
    known = read("comment,id_2,annotator,id_1,answer,time,source\nwhy,1,me,0,same,now,here\n")
    assert known.must_link.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        pytest.param("\ufeff" + HEADER + "0,1,same\n", "answers.csv", id="byte-order-mark"),
        pytest.param("id_1,id_2,answer\r\n0,1,same\r\n", "answers.csv", id="windows-lines"),
        pytest.param(HEADER + "0,1,same", "answers.csv", id="no-last-line-end"),
        pytest.param(HEADER + "\n\n0,1,same\n\n", "answers.csv", id="blank-lines"),
        pytest.param(' id_1 ,"id_2",answer \n 0 , 1 ,"same"\n', "answers.csv", id="spaces-and-quotes"),
        pytest.param("id_1;id_2;answer\n0;1;same\n", "answers.csv", id="semicolons"),
        pytest.param("id_1\tid_2\tanswer\n0\t1\tsame\n", "answers.tsv", id="tabs"),
        pytest.param(HEADER + "0.0,1.0,same\n", "answers.csv", id="numbers-with-a-point"),
        pytest.param("i,j,type\n0,1,ml\n", "answers.csv", id="short-column-names"),
        pytest.param('{"id_1": "0", "id_2": 1, "answer": "same"}\n\n', "answers.jsonl", id="jsonl"),
        pytest.param('\ufeff{"id_1": 0, "id_2": 1.0, "answer": "same"}', "answers.jsonl", id="jsonl-mark"),
    ],
)
def test_what_programs_make_of_a_table_is_read(read, content, name):
    assert read(content, name=name) == Constraints([(0, 1)])


def test_ids_named_in_a_file_in_order_of_appearance(tmp_path):
    Constraints([(2, 0)], [(0, 1)], labels=[-1, -1, -1, 5, -1], triplets=[(1, 0, 4)], ids=list("abcde")).to_file(
        tmp_path / "known.csv"
    )
    assert read_records(tmp_path / "known.csv").ids() == ["c", "a", "b", "d", "e"]


def test_splink_table_as_csv(read):
    table = "unique_id_l,unique_id_r,clerical_match_score\na,b,0.9\nb,c,0.0\na,c,0.5\n"
    known = read(table, ids=["a", "b", "c"])
    assert known == Constraints([(0, 1)], [(1, 2)], must_link_confidence=[0.9], ids=["a", "b", "c"])


def test_parquet_by_pandas_with_missing_cells(tmp_path):
    table = pd.DataFrame({"id_1": [0, 1], "id_2": [1, 2], "answer": ["same", "different"], "confidence": [0.5, np.nan]})
    table.to_parquet(tmp_path / "answers.parquet")
    known = Constraints.from_file(tmp_path / "answers.parquet")
    assert known == Constraints([(0, 1)], [(1, 2)], must_link_confidence=[0.5])


@pytest.mark.parametrize("content", [HEADER, "", "\n"], ids=["header", "empty", "blank"])
def test_jsonl_and_csv_without_a_record(read, content):
    assert read("" if content == HEADER else content, name="answers.jsonl") == Constraints()
    assert read(HEADER) == Constraints()


def test_equal_repeats_of_a_class_are_fine(read):
    known = read("id_1,id_2,answer,group\n0,,label,1\n0,,label,1\n", n_samples=2)
    assert known.labels.tolist() == [1, -1]


BAD_LINES = [
    pytest.param("id_1,answer\n0,same\n", "answers.csv has no column 'id_2'; it has 'id_1', 'answer'", id="no-id_2"),
    pytest.param("a,b\n0,1\n", "answers.csv has no column 'answer'; it has 'a', 'b'", id="no-answer"),
    pytest.param("", "answers.csv is empty. Expected a header", id="empty"),
    pytest.param(HEADER + "0,1,same\n\n0,1,maybe\n", "answers.csv line 4: cannot read the answer 'maybe'", id="word"),
    pytest.param(HEADER + "0,1,\n", "answers.csv line 2: cannot read the answer ''", id="no-word"),
    pytest.param(HEADER + "0,1,2\n", "answers.csv line 2: cannot read the answer '2'", id="number"),
    pytest.param(HEADER + "0,1,same\n3,3,different\n", "answers.csv line 3: pairs '3' with itself", id="self-pair"),
    pytest.param(HEADER + "0,x,same\n", "answers.csv line 2: id_2 'x' is not a row position", id="text-id"),
    pytest.param(HEADER + "0,-1,same\n", "answers.csv line 2: id_2 '-1' is not a row position", id="negative"),
    pytest.param(HEADER + "0,1.5,same\n", "answers.csv line 2: id_2 '1.5' is not a row position", id="half"),
    pytest.param(HEADER + "0,,same\n", "answers.csv line 2: id_2 '' is not a row position", id="no-id"),
    pytest.param(HEADER + f"0,{10**30},same\n", f"answers.csv line 2: id_2 '{10**30}' is not a row", id="huge-id"),
    pytest.param(HEADER + "0,1\n", "answers.csv line 2: 2 cells, but the header has 3", id="short-line"),
    pytest.param(
        HEADER + "0,1,same\n0,1,same,x\n", "answers.csv line 3: 4 cells, but the header has 3", id="long-line"
    ),
    pytest.param(HEADER + f"0,1,{'x' * 200_000}\n", "answers.csv line 2: field larger than", id="huge-cell"),
    pytest.param((HEADER + "0,1,s").encode() + b"\xe4me\n", "answers.csv line 2: not UTF-8", id="latin-1"),
    pytest.param(
        (HEADER + "0,1,same\n" * 20_000).encode() + b"\xe4,1,same\n", "answers.csv line 20002: not UTF-8", id="far-down"
    ),
    pytest.param((HEADER + "0,1,same\n").encode("utf-16-le"), "answers.csv", id="utf-16 without a mark"),
]


@pytest.mark.parametrize(("content", "message"), BAD_LINES)
def test_what_is_wrong_and_in_which_line(read, content, message):
    with pytest.raises(FileError) as caught:
        read(content)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("confidence", "shown"), [("0", "'0'"), ("1.5", "'1.5'"), ("nan", "'nan'"), ("-1", "'-1'"), ("high", "'high'")]
)
def test_bad_confidence(read, confidence, shown):
    with pytest.raises(FileError) as caught:
        read(f"id_1,id_2,answer,confidence\n0,1,same,1\n0,2,same,{confidence}\n")
    assert str(caught.value) == f"answers.csv line 3: confidence is {shown}; expected a number in (0, 1]."


def test_bad_splink_score(read):
    with pytest.raises(FileError, match=r"^answers\.csv line 2: clerical_match_score is 'x'; expected 0 to 1"):
        read("unique_id_l,unique_id_r,clerical_match_score\n0,1,x\n")


@pytest.mark.parametrize("ending", ENDINGS)
def test_unknown_id(tmp_path, ending):
    Constraints([(0, 1), (1, 2)], ids=["a", "b", "z"]).to_file(tmp_path / f"answers.{ending}")
    place = {"csv": "line 3", "tsv": "line 3", "jsonl": "line 2", "parquet": "row 1"}[ending]
    with pytest.raises(FileError) as caught:
        Constraints.from_file(tmp_path / f"answers.{ending}", ids=["a", "b", "c"])
    assert str(caught.value).startswith(f"answers.{ending} {place}: id_2 'z' is not among the row ids")


def test_groups_of_files_may_be_names(read):
    lines = "0,,cannot_group,shop\n1,,cannot_group,crm\n3,,cannot_group,shop\n2,,must_group,5\n"
    known = read(f"id_1,id_2,answer,group\n{lines}", n_samples=5)
    assert known.cannot_groups.tolist() == [1, 0, -1, 1, -1]
    assert known.must_groups.tolist() == [-1, -1, 5, -1, -1]


def test_row_out_of_range(read):
    with pytest.raises(FileError, match=r"^answers\.csv line 2: names row 9, but there are 5 rows \(0 to 4\)"):
        read(HEADER + "0,9,same\n", n_samples=5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("0,1,closer,,,9", "line 2: names row 9, but there are 5 rows", id="triplet-out-of-range"),
        pytest.param("0,1,closer,,,0", "line 2: names a row twice", id="triplet-repeats"),
        pytest.param("0,1,closer,,,", "line 2: id_3 '' is not a row position", id="triplet-of-two"),
        pytest.param("0,,label,,,", "line 2: group is ''; expected a whole number >= 0", id="no-class"),
        pytest.param("0,,label,-2,,", "line 2: group is '-2'; expected a whole number", id="negative-class"),
        pytest.param(
            "0,,label,red,,\n1,,label,3,,",
            "line 2: group is 'red'; expected a whole number >= 0. Give numbers in all lines",
            id="word-among-numbers",
        ),
        pytest.param(f"0,,label,{10**30},,", f"line 2: group is '{10**30}'; expected", id="huge-class"),
        pytest.param(f"0,,must_group,1,{10**12},", f"line 2: column is '{10**12}'; expected", id="huge-column"),
        pytest.param("9,,label,1,,", "line 2: names row 9, but there are 5 rows", id="class-out-of-range"),
        pytest.param("0,,label,1,,\n0,,label,2,,", "line 2: gives '0' a second label (1)", id="two-classes"),
        pytest.param("0,,label,red,,\n0,,label,tan,,", "line 2: gives '0' a second label (red)", id="two-names"),
        pytest.param(
            "0,,cannot_group,1,,\n0,,cannot_group,2,,", "line 2: gives '0' a second cannot_group (1)", id="two-groups"
        ),
        pytest.param(",,rows,9,,", "is about 9 rows, but there are 5", id="other-number-of-rows"),
    ],
)
def test_what_is_wrong_with_knowledge_that_is_no_pair(read, line, message):
    with pytest.raises(FileError) as caught:
        read(f"id_1,id_2,answer,group,column,id_3\n{line}\n", n_samples=5)
    assert str(caught.value).startswith(f"answers.csv {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param('{"id_1": 0, "id_2": 1, "answer": "same"}\n{oops\n', "line 2: not JSON (Expecting", id="not-json"),
        pytest.param("[0, 1]\n", "line 1: expected one JSON object per line", id="list"),
        pytest.param('{"id_1": 0, "answer": "same"}\n', "has no column 'id_2'", id="no-id_2"),
        pytest.param(
            '{"id_1": 0, "id_2": 1, "answer": "same"}\n\n{"id_1": 0, "answer": "same"}\n',
            "line 3: id_2 None is not a row position",
            id="once-no-id_2",
        ),
        pytest.param('{"id_1": 0, "id_2": 1, "answer": "hm"}\n', "line 1: cannot read the answer 'hm'", id="word"),
        pytest.param('{"id_1": 0, "id_2": 1, "answer": null}\n', "line 1: cannot read the answer None", id="null"),
        pytest.param(b'{"id_1": 0}\n\xe4\n', "line 2: not UTF-8", id="latin-1"),
    ],
)
def test_bad_jsonl(read, content, message):
    with pytest.raises(FileError) as caught:
        read(content, name="answers.jsonl")
    assert str(caught.value).startswith(f"answers.jsonl {message}")


def test_bad_parquet(read, tmp_path):
    with pytest.raises(FileError, match=r"^answers\.parquet: not readable as parquet"):
        read("not parquet", name="answers.parquet")
    pa.parquet.write_table(pa.table({"id_1": [0], "id_2": [1], "answer": ["perhaps"]}), tmp_path / "p.parquet")
    with pytest.raises(FileError, match=r"^p\.parquet row 0: cannot read the answer 'perhaps'"):
        Constraints.from_file(tmp_path / "p.parquet")


@pytest.mark.parametrize("ending", ENDINGS)
def test_missing_file(tmp_path, ending):
    path = tmp_path / f"nowhere.{ending}"
    with pytest.raises(FileError) as caught:
        Constraints.from_file(path)
    assert str(caught.value) == f"{path}: No such file or directory. Check the path."


@pytest.mark.parametrize(("name", "shown"), [("answers.xlsx", "'.xlsx'"), ("answers", "without an ending")])
def test_unknown_ending(tmp_path, name, shown):
    with pytest.raises(
        FileError, match=rf"^{name}: cannot read .*{shown}.* Use \.csv, \.tsv, \.jsonl, \.json, \.parquet"
    ):
        Constraints.from_file(tmp_path / name)
    with pytest.raises(FileError, match=rf"^Cannot write .*{name}: tables are written as \.csv, \.tsv"):
        FULL.to_file(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_a_directory_is_no_file(tmp_path):
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(FileError, match=r"folder\.csv: Is a directory"):
        Constraints.from_file(folder)
    with pytest.raises(FileError, match=r"^Cannot write .*folder\.csv: it is a directory"):
        FULL.to_file(folder)
    assert os.listdir(folder) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_unwritable_places_leave_nothing_behind(tmp_path, ending):
    with pytest.raises(FileError, match=rf"^Cannot write .*known\.{ending}: the directory .*nowhere does not exist"):
        FULL.to_file(tmp_path / "nowhere" / f"known.{ending}")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=rf"^Cannot write .*known\.{ending}: .*file is not a directory"):
        FULL.to_file(tmp_path / "file" / f"known.{ending}")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failed_write_keeps_the_old_file(tmp_path, ending, monkeypatch):
    path = tmp_path / f"known.{ending}"
    path.write_text("old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(FileError, match=r"^Cannot write .*: No space left on device"):
        FULL.to_file(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_an_interrupted_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "known.csv"
    path.write_text("old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        FULL.to_file(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_a_file_is_replaced_and_readable_like_any_other(tmp_path):
    path = tmp_path / "known.csv"
    FULL.to_file(path)
    Constraints([(0, 1)]).to_file(path)
    assert Constraints.from_file(path) == Constraints([(0, 1)])
    (tmp_path / "plain").write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["known.csv", "plain"]


def test_damaged_pairs_of_metric_learn_are_refused_by_name(tmp_path):
    path = tmp_path / "pairs.npz"
    np.savez_compressed(path, pairs=np.array([[0, 1], [1, 2]]), y=np.array([1, -1]))
    data = path.read_bytes()
    n_refused = 0
    for place in range(0, len(data), 3):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            Constraints.from_file(path)
        except FileError as error:
            assert "pairs.npz" in str(error)  # noqa: PT017 either outcome is right
            n_refused += 1
    assert n_refused > len(data) // 12
