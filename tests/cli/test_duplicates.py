"""Duplicate records in the shell, from a csv file to a clean table."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tests.command import type_in

CUSTOMERS = """number,name,city,phone,list
c1,Ann Meyer,Bonn,4711,a
c2,Anne Meyer,Bonn,4711,b
c3,Bob Smith,Rome,1234,a
c4,Bob Smyth,Rome,,b
c5,Zoe Adler,Oslo,9999,b
"""


@pytest.fixture
def customers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("customers.csv").write_text(CUSTOMERS)
    return "customers.csv"


def read_labels(project):
    """The cluster of each row of a project."""
    type_in("export", project, "-o", "labels.csv")
    return {row["id"]: row["cluster"] for row in read_csv("labels.csv")}


def read_csv(path):
    return list(csv.DictReader(Path(path).read_text().splitlines()))


def test_a_clean_table_without_any_answer(customers):
    found = type_in(
        "cluster", customers, "--groups", "small", "--id", "number", "--columns", "name,city,phone",
        "--golden", "clean.csv",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert found.output.split()[-3:] == ["golden", "records", "clean.csv"]
    assert re.search(r"compared +name, city, phone \(as numbers\)", found.output)
    labels = read_csv("customers-labels.csv")
    assert [row["cluster"] for row in labels] == ["0", "0", "1", "1", "2"]
    assert all(0.5 < float(row["probability"]) <= 1 for row in labels)
    assert [row["name"] for row in read_csv("clean.csv")] == ["Anne Meyer", "Bob Smith", "Zoe Adler"]


def test_the_number_of_groups_of_each_size_is_printed(customers):
    words = [f"{first}{second}" for first in "bcdfghklmnp" for second in "rstvwz"]
    rows = [f"{word} {word[::-1]} {word}ax,{place}{word}" for place, word in enumerate(words)]
    Path(customers).write_text("name,street\n" + "\n".join([*rows, rows[0], rows[1]]) + "\n")
    found = type_in("cluster", customers, "--groups", "small")
    assert "sizes 64 of 1 row, 2 of 2 rows" in " ".join(found.output.split())
    assert "others" not in found.output  # no chart of some of the clusters


def test_one_record_per_source(customers):
    found = type_in("cluster", customers, "--groups", "small", "--id", "number", "--source", "list")
    assert found.exit_code == 0, found.output
    assert len({row["cluster"] for row in read_csv("customers-labels.csv")}) == 3
    assert "one per list: no cluster has two rows of one list" in " ".join(found.output.split())


def test_a_source_column_with_one_value_is_refused(customers):
    Path(customers).write_text(CUSTOMERS.replace(",b\n", ",a\n"))
    found = type_in("cluster", customers, "--groups", "small", "--source", "list")
    assert found.exit_code != 0
    assert 'the column has only one value, "a"' in " ".join(found.output.split())


def test_a_project_of_small_groups_says_how_columns_are_compared(customers):
    found = type_in("ask", customers, "--id", "number", "--groups", "small", keys="q\n")
    lines = [line.split(maxsplit=2) for line in found.output.splitlines()]
    assert ["name", "text", "compared as text"] in lines
    assert "weight" not in found.output
    assert "TF-IDF" not in found.output


def test_a_project_keeps_one_record_per_source(customers):
    Path(customers).write_text(CUSTOMERS + "c6,Ann Meyer,Bonn,4711,a\nc7,Zoe Adler,Oslo,9999,\n")
    found = type_in("ask", customers, "--id", "number", "--groups", "small", "--source", "list", keys="q\n")
    assert found.exit_code == 0, found.output
    assert type_in("export", "customers.clew", "-o", "groups.csv").exit_code == 0
    cluster = {row["id"]: row["cluster"] for row in read_csv("groups.csv")}
    assert cluster["c1"] != cluster["c6"]
    assert cluster["c3"] == cluster["c4"]
    assert cluster["c5"] == cluster["c7"]
    Path("new.csv").write_text("number,name,city,phone,list\nc8,Ann Meyer,Bonn,4711,a\n")
    assert type_in("add", "customers.clew", "new.csv").exit_code == 0
    assert type_in("export", "customers.clew", "-o", "groups.csv").exit_code == 0
    cluster = {row["id"]: row["cluster"] for row in read_csv("groups.csv")}
    assert len({cluster["c1"], cluster["c6"], cluster["c8"]}) == 3
    refused = type_in("ask", "customers.clew", "--source", "city", keys="q\n")
    assert refused.exit_code != 0
    assert "--source city: this project began with list, which cannot change" in " ".join(refused.output.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-m", "pck-means"), "pck-means makes large groups"),
        (("-k", "3"), "determines the number of clusters itself"),
        (("--golden", "customers.csv"), "would overwrite"),
    ],
)
def test_flags_that_do_not_fit_small_groups(customers, words, message):
    found = type_in("cluster", customers, "--groups", "small", *words)
    assert found.exit_code != 0
    assert message in " ".join(found.output.split())
    assert Path(customers).read_text() == CUSTOMERS


def test_answers_new_rows_and_golden_records_in_a_project(customers):
    asked = type_in(
        "ask", customers, "--id", "number", "--groups", "small", "--columns", "name,city,phone", keys="s\nq\n"
    )
    assert asked.exit_code == 0, asked.output
    Path("new.csv").write_text("number,name,city,phone,list\nc6,Ann Meier,Bonn,4711,a\nc7,Xaver Quell,Wien,505,a\n")
    assert type_in("add", "customers.clew", "new.csv").exit_code == 0
    assert type_in("export", "customers.clew", "golden", "-o", "clean.csv").exit_code == 0
    clean = {row["name"]: row["n_rows"] for row in read_csv("clean.csv")}
    assert clean["Xaver Quell"] == "1"
    assert sum(map(int, clean.values())) == 7


NO_TWO_ALIKE = "a,b\naaaa,qqqq\nbbbb,rrrr\ncccc,ssss\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,b\nx,y\nx,y\nx,y\n", "has no column to compare"),
        ("a,b\n,\n,\n,\n", "no column is left to cluster by"),
        (NO_TWO_ALIKE, "3 rows in 3 clusters"),
        ("a\nann meyer\nanne meyer\nbob\nbobb\nzoe\n", "5 rows in 3 clusters"),
    ],
    ids=["all rows equal", "only missing values", "no two rows alike", "one column"],
)
def test_tables_with_little_to_compare(customers, rows, message):
    Path("odd.csv").write_text(rows)
    found = type_in("cluster", "odd.csv", "--groups", "small")
    assert message in " ".join(found.output.split())


def test_contradictory_answers_are_refused_with_their_chain(customers):
    Path("answers.csv").write_text("id_1,id_2,answer\nc1,c2,same\nc2,c3,same\nc1,c3,different\n")
    found = type_in("cluster", customers, "--groups", "small", "--id", "number", "-c", "answers.csv")
    assert found.exit_code == 1
    assert "c1-c2-c3" in found.output


def test_a_row_in_place_of_a_cluster_is_told_its_cluster(customers):
    lines = [f"x{row},Nobody Number{row},Town{row},{row},a" for row in range(30)]
    Path("customers.csv").write_text(CUSTOMERS + "\n".join(lines) + "\n")
    type_in("ask", customers, "--id", "number", "--groups", "small", keys="q\n")
    cluster = read_labels("customers.clew")["c3"]
    found = type_in("correct", "customers.clew", "merge", "c3", "0")
    assert (
        f"no cluster is called 'c3'. c3 is a row of cluster {cluster}: give the number of the cluster." in found.output
    )
    found = type_in("correct", "customers.clew", "merge", "birds", "0")
    assert re.search(r"18, 19 and \d+ more\.", found.output)
    assert found.exit_code == 2


def test_rows_that_are_added_to_many_clusters_are_only_counted(customers):
    towns = ["Bonn", "Rome", "Oslo", "Kyiv", "Lima", "Cork", "Graz", "Nice", "Ulm", "Bath", "York", "Linz", "Kiel"]
    lines = [f"{place},{town}mann Ltd,{town},{place * 7919}" for place, town in enumerate(towns)]
    Path(customers).write_text("\n".join(["number,name,city,phone", *lines]))
    assert type_in("ask", customers, "--id", "number", "--groups", "small", keys="q\n").exit_code == 0
    again = [f"n{line}" for line in lines] + ["m,Zeta Works,Moss,1"]
    Path("new.csv").write_text("\n".join(["number,name,city,phone", *again]))
    found = type_in("add", "customers.clew", "new.csv")
    assert found.output.splitlines() == ["14 rows added.", "13 joined 13 clusters, 1 started 1 new cluster."]
    Path("more.csv").write_text("\n".join(["number,name,city,phone", *(f"o{line}" for line in lines)]))
    found = type_in("add", "customers.clew", "more.csv")
    assert found.output.splitlines() == ["13 rows added.", "13 joined 13 clusters."]
