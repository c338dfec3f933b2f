"""`clew cluster-edges`: files in, clusters and pairs to check out."""

from __future__ import annotations

import csv
import json

import pytest

EDGES = "id_1,id_2,score\na,b,0.9\nb,c,0.6\nc,d,0.9\n"


@pytest.fixture
def run(clew, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words, edges=EDGES, **files):
        (tmp_path / "edges.csv").write_text(edges)
        for name, content in files.items():
            (tmp_path / f"{name}.csv").write_text(content)
        return clew("cluster-edges", "edges.csv", *words)

    return call


def clusters(path):
    with open(path, newline="") as file:
        return {row["id"]: row["cluster"] for row in csv.DictReader(file)}


def test_edges_become_clusters(run, tmp_path):
    result = run("-o", "clusters.csv")
    assert result.exit_code == 0, result.output
    assert "4 ids in 2 clusters by 3 scored pairs" in result.stdout
    assert "which is the lowest possible" in result.stdout
    assert clusters(tmp_path / "clusters.csv") == {"a": "0", "b": "0", "c": "1", "d": "1"}
    assert run().exit_code == 0
    assert (tmp_path / "edges-clusters.csv").exists()


def test_answers_hold(run, tmp_path):
    answers = "id_1,id_2,answer\nb,c,same\na,d,different\n"
    assert run("-c", "answers.csv", "-o", "clusters.csv", answers=answers).exit_code == 0
    found = clusters(tmp_path / "clusters.csv")
    assert found["b"] == found["c"]
    assert found["a"] != found["d"]
    result = run("-c", "answers.csv", answers=answers + "b,c,different\n")
    assert result.exit_code == 1
    assert "b" in result.stderr


def test_the_review_is_written_and_its_answers_are_read_back(run, tmp_path):
    result = run("--review", "check.csv", "-n", "1")
    assert "Pairs to check next, all 1 in check.csv" in result.stdout
    with open(tmp_path / "check.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["id_1"], row["id_2"], row["rows"]) == ("b", "c", "2")
    again = run("-c", "answers.csv", "-o", "clusters.csv", answers="id_1,id_2,answer\nb,c,same\n")
    assert "4 ids in 1 cluster " in again.stdout
    everything = "id_1,id_2,answer\nb,c,same\na,b,same\nc,d,different\n"
    assert "No pair is left to check" in run("--review", "check.csv", "-c", "answers.csv", answers=everything).stdout


def test_json_has_the_facts_and_the_review(run):
    told = json.loads(run("--json", "-o", "clusters.csv").stdout)
    assert (told["edges"], told["ids"], told["clusters"], told["largest"]) == (3, 4, 2, 2)
    assert told["lower_bound"] == pytest.approx(told["objective"])
    assert told["review"][0]["id_1"] == "b"


def test_records_bring_lone_ids_and_sources(run, tmp_path):
    records = "id,list\na,x\nb,x\nc,y\nd,z\ne,\n"
    assert (
        run("--records", "people.csv", "--id", "id", "--source", "list", "-o", "out.csv", people=records).exit_code == 0
    )
    found = clusters(tmp_path / "out.csv")
    assert set(found) == set("abcde")
    assert found["a"] != found["b"]
    assert found["c"] == found["d"]
    unknown = run("--records", "people.csv", "--id", "id", people="id\na\nb\n")
    assert unknown.exit_code == 2
    assert "edges.csv row 1: id_2 is 'c', which is not among the 2 ids" in unknown.stderr


def test_splinks_predictions(run, tmp_path):
    edges = (
        "match_weight,match_probability,source_dataset_l,source_dataset_r,unique_id_l,unique_id_r\n"
        "6.6,0.99,crm,web,1,1\n5.5,0.97,crm,web,2,1\n"
    )
    assert run("--one-per-source", "-o", "out.csv", edges=edges).exit_code == 0
    found = clusters(tmp_path / "out.csv")
    assert found["crm-__-1"] == found["web-__-1"] != found["crm-__-2"]


@pytest.mark.parametrize(
    ("words", "edges", "sentence"),
    [
        ([], EDGES.replace("0.6", "1.6"), "score is 1.6, expected a probability from 0 to 1"),
        ([], EDGES.replace("score", "points"), "has no column of scores"),
        (["-o", "edges.csv"], EDGES, "edges.csv is an input, which would be overwritten"),
        (["-o", "a.csv", "--review", "a.csv"], EDGES, "-o and --review both name a.csv"),
        (["--id", "id"], EDGES, "--id id names a column of the records: add --records FILE"),
        (["--json", "-o", "-"], EDGES, "cannot both go to stdout"),
        (["--missing", "0.9"], EDGES, "missing=0.9 is above threshold=0.5"),
    ],
)
def test_bad_input_is_one_sentence(run, words, edges, sentence):
    result = run(*words, edges=edges)
    assert result.exit_code == 2
    assert sentence in result.stderr.replace("\n", " ")


def test_records_need_their_ids(run):
    result = run("--records", "people.csv", people="id\na\n")
    assert result.exit_code == 2
    assert "add --id COLUMN" in result.stderr


def test_stdout_has_the_clusters_alone(run):
    result = run("-o", "-")
    assert result.stdout == "id,cluster\na,0\nb,0\nc,1\nd,1\n"
