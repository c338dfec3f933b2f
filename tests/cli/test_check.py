"""`clew check`: yes, no with the reason, or undecided."""

import json

import pytest

from clew.constraints import Constraints, Feasibility

HEADER = "id_1,id_2,answer\n"


@pytest.fixture
def check(clew, tmp_path):
    def run(content, *words):
        (tmp_path / "answers.csv").write_text(HEADER + content)
        return clew("check", "answers.csv", *words)

    return run


def test_feasible_says_what_follows(check):
    result = check("a,b,same\nb,c,same\nc,d,different\n", "-k", 2)
    assert result.exit_code == 0, result.output
    assert "Yes: all answers can hold in 2 clusters." in result.stdout
    assert "2 same, 1 different" in result.stdout
    assert "1 same, 2 different, without asking" in result.stdout
    assert "clusters of 3 and 1 rows" in result.stdout


def test_clusters_that_one_way_leaves_empty_are_counted(check):
    stdout = " ".join(check("a,b,same\nb,c,different\n", "-k", 4).stdout.split())
    assert "clusters of 2 and 1 rows; 2 more clusters would be empty" in stdout


def test_feasible_as_json(check):
    told = json.loads(check("a,b,same\nb,c,same\nb,a,same\nc,d,different\n", "-k", 2, "--json").stdout)
    assert told["status"] == "feasible"
    assert told["rows"] == 4
    assert told["joined_groups"] == 1
    assert told["implied_must_link"] == 1
    assert told["implied_cannot_link"] == 2
    assert told["witness_sizes"] == [3, 1]


def test_contradiction_is_told_with_its_chain(check):
    content = "a,b,same\nb,c,same\na,c,different\n"
    result = check(content, "-k", 2)
    assert result.exit_code == 1
    assert "No: the answers contradict each other" in result.stdout
    assert "(a-b-c)" in result.stdout
    told = json.loads(check(content, "-k", 2, "--json").stdout)
    assert told["status"] == "contradictory"
    assert told["conflicts"][0]["chain"] == ["a", "b", "c"]


def test_only_the_first_contradictions_are_told(check):
    content = "".join(f"a{i},b{i},same\nb{i},a{i},different\n" for i in range(12))
    result = check(content, "-k", 2)
    assert result.exit_code == 1
    assert result.stdout.count("•") == 10
    assert "There are more contradictions; these are the first 10." in result.stdout
    assert "more" not in check("a,b,same\na,b,different\n", "-k", 2).stdout


def test_infeasible_names_the_rows(check):
    content = "a,b,different\na,c,different\nb,c,different\nc,d,different\n"
    result = check(content, "-k", 2)
    assert result.exit_code == 1
    assert "No: the answers cannot all hold in 2 clusters." in result.stdout
    assert "Rows a, b and c are pairwise cannot-linked and need 3 clusters" in result.stdout
    told = json.loads(check(content, "-k", 2, "--json").stdout)
    assert told["status"] == "infeasible"
    assert told["proof"] == ["a", "b", "c"]


def test_three_rows_of_two_kinds_fit_two_clusters_not_one(check):
    content = "1,3,different\n2,3,different\n"
    assert check(content, "-k", 2).exit_code == 0
    assert check(content, "-k", 1).exit_code == 1


def test_undecided_is_exit_3(check, monkeypatch):
    def undecided(self, n_clusters):
        return Feasibility("unknown", "Neither a labelling nor a proof was found.")

    monkeypatch.setattr(Constraints, "check", undecided)
    result = check("a,b,different\n", "-k", 2)
    assert result.exit_code == 3
    assert "Undecided" in result.stdout
    assert "Neither a labelling nor a proof was found." in result.stdout
    assert json.loads(check("a,b,different\n", "-k", 2, "--json").stdout)["status"] == "unknown"


def test_data_is_the_universe_when_given(check, blobs):
    told = json.loads(check("a,b,same\n", "-k", 2, "--data", "data.csv", "--id", "name", "--json").stdout)
    assert told["rows"] == 12
    stranger = check("a,zebra,same\n", "-k", 2, "--data", "data.csv", "--id", "name")
    assert stranger.exit_code == 2
    assert "'zebra' is not among the row ids" in stranger.stderr


def test_data_without_ids_is_about_row_numbers(check, blobs):
    assert check("0,11,same\n", "-k", 2, "--data", "data.csv").exit_code == 0
    assert check("0,12,same\n", "-k", 2, "--data", "data.csv").exit_code == 2


def test_labels_and_groups_in_the_file_are_checked_too(clew, tmp_path):
    lines = ["id_1,id_2,answer,group", "a,,label,0", "b,,label,1", "c,,label,2"]
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    assert clew("check", "answers.csv", "-k", 3).exit_code == 0
    assert clew("check", "answers.csv", "-k", 2).exit_code == 1


def test_no_answers_at_all_are_feasible(check):
    assert check("", "-k", 1).exit_code == 0


def test_many_clusters_are_cut_short(check):
    chain = "".join(f"{a},{b},different\n" for a in range(30) for b in range(a))
    result = check(chain, "-k", 30)
    assert result.exit_code == 0
    assert "and 18 more" in result.stdout


@pytest.mark.parametrize(
    "content, words, sentence",
    [
        ("a,b,same\n", ("-k", 0), "Invalid value for '-k'"),
        ("a,a,same\n", ("-k", 2), "pairs 'a' with itself"),
        ("a,b,perhaps\n", ("-k", 2), "line 2: cannot read the answer 'perhaps'"),
        ("a,b,same\n", ("-k", 2, "--data", "missing.csv"), "missing.csv: No such file"),
    ],
)
def test_bad_input_is_exit_2(check, content, words, sentence):
    result = check(content, *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stdout == ""


WRONG = "a,b,same,1,ann\nb,c,same,0.6,bob\na,c,different,1,ann\nd,a,unsure,,bob\n"


def test_repair_is_printed_and_written(clew, tmp_path):
    (tmp_path / "answers.csv").write_text("id_1,id_2,answer,confidence,annotator\n" + WRONG)
    result = clew("check", "answers.csv", "-k", 2, "--repair", "-o", "repaired.csv")
    assert result.exit_code == 0, result.output
    assert "Repair: Drop 1 statement at a price of 0.6, and the rest holds in 2 clusters." in result.stdout
    assert "• drop: b and c belong together (price 0.6)" in result.stdout
    assert "The repaired answers are in repaired.csv." in result.stdout
    assert (tmp_path / "repaired.csv").read_text() == (
        "id_1,id_2,answer,confidence,annotator\na,b,same,1.0,ann\na,c,different,1.0,ann\nd,a,unsure,1.0,bob\n"
    )
    assert clew("check", "repaired.csv", "-k", 2).exit_code == 0


def test_repair_by_trust_and_as_json(clew, tmp_path):
    (tmp_path / "answers.csv").write_text("id_1,id_2,answer,confidence,annotator\n" + WRONG)
    result = clew("check", "answers.csv", "-k", 2, "--repair", "--trust", "ann=0.1", "--json")
    told = json.loads(result.stdout)
    assert told["status"] == "contradictory"
    assert told["repair"]["cost"] == 0.1
    assert told["repair"]["exact"]
    assert told["repair"]["dropped"][0]["rows"] in (["a", "b"], ["a", "c"])


def test_repair_of_a_file_with_labels(clew, tmp_path):
    (tmp_path / "answers.csv").write_text(
        "id_1,id_2,answer,group\n0,1,same,\n0,,label,red\n1,,label,blue\n2,,label,blue\n"
    )
    result = clew("check", "answers.csv", "-k", 2, "--repair", "-o", "repaired.csv")
    assert result.exit_code == 0, result.output
    assert clew("check", "repaired.csv", "-k", 2).exit_code == 0


def test_nothing_to_repair(check):
    result = check("a,b,same\n", "-k", 1, "--repair")
    assert result.exit_code == 0
    assert "Repair: Nothing to drop: everything holds in 1 cluster." in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "x.csv"), "--output is for a repair: add --repair."),
        (("--trust", "ann=1"), "--trust is for a repair: add --repair."),
        (("--repair", "--trust", "ann"), "--trust ann: expected NAME=NUMBER with a number >= 0, like --trust ann=0.9."),
        (("--repair", "--trust", "ann=-1"), "--trust ann=-1: expected NAME=NUMBER"),
        (("--repair", "--trust", "ann=1"), "'ann' gave no answer in answers.csv."),
    ],
)
def test_bad_options_of_a_repair(check, words, message):
    result = check("a,b,same\n", "-k", 2, *words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
