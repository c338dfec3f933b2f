"""Commands about a project: export, import, status, correct, add, review."""

import csv
import io
import json
import re
import sqlite3
from contextlib import closing

import pytest

from clew import Session

GROUPS = ("abcd", "efgh", "ijkl")


@pytest.fixture
def project(clew, blobs):
    """A project on the twelve rows with three clusters and four answers."""
    with Session.create("data.clew", "data.csv", id_column="name", n_clusters=3) as session:
        session.import_answers("answers.csv", annotator="ada")
        session.fit()
    return blobs / "data.clew"


def labels():
    with Session.open("data.clew") as session:
        return session.labels()


def cluster(row):
    return labels()[row]


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


# -- export ------------------------------------------------------------------------------------------------------------


def test_labels_go_to_stdout_as_csv(clew, project):
    result = clew("export", "data.clew")
    assert result.exit_code == 0, result.output
    rows = read_csv(result.stdout)
    assert [row["id"] for row in rows] == list("abcdefghijkl")
    assert len({row["cluster"] for row in rows}) == 3
    assert clew("export", "data.csv", "labels", "-o", "-").stdout == result.stdout


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("what", ["labels", "constraints", "answers"])
def test_what_goes_to_a_file_by_its_suffix(clew, project, what, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="needs the extra io")
    result = clew("export", "data.clew", what, "-o", f"out.{suffix}")
    assert result.exit_code == 0, result.output
    assert result.stderr == f"{what} written to out.{suffix}\n"
    assert result.stdout == ""
    if what != "labels":  # clew's own commands read it back
        assert clew("check", f"out.{suffix}", "-k", 3, "--data", "data.csv", "--id", "name").exit_code == 0


def test_exported_answers_come_back_whole(clew, project):
    clew("export", "data.clew", "answers", "-o", "all.jsonl")
    with Session.create("other.clew", "data.csv", id_column="name"):
        pass
    told = json.loads(clew("import", "other.clew", "all.jsonl", "--json").stdout)
    assert (told["read"], told["taken"], told["skipped"]) == (4, 4, [])
    with Session.open("other.clew") as session:
        assert {record.annotator for record in session.answers()} == {"ada"}


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("missing.clew",), "There is no project missing.clew. Create one with clew ask DATA."),
        (("data.clew", "labels", "-o", "data.clew"), "-o data.clew would overwrite the project"),
        (("data.clew", "labels", "-o", "labels.docx"), "tables are written as"),
        (("data.clew", "--name", "other"), 'holds no project "other"'),
        (("answers.csv",), "There is no project answers.clew"),
    ],
)
def test_exports_that_cannot_be_are_refused(clew, project, words, sentence):
    result = clew("export", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_data_that_moved_is_named_or_told(clew, project, blobs):
    (blobs / "data.csv").rename(blobs / "moved.csv")
    assert "is gone" in clew("export", "data.clew").stderr
    assert clew("export", "data.clew", "--data", "moved.csv").exit_code == 0


# -- import ------------------------------------------------------------------------------------------------------------


def test_import_tells_what_became_of_each_answer(clew, project, blobs):
    lines = ["id_1,id_2,answer", "a,c,same", "b,a,same", "a,zebra,same", "d,d,same", "i,j,unsure", "b,f,different"]
    (blobs / "more.csv").write_text("\n".join(lines) + "\n")
    result = clew("import", "data.clew", "more.csv", "--annotator", "ada")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "6 answers read from more.csv (clew): 4 same, 1 different, 1 unsure" in text
    assert "imported 3" in text
    assert "known 1 already in the project" in text
    assert "skipped 1 about a row that the project does not have: zebra" in text
    assert "skipped 1 about one row twice: d" in text
    again = json.loads(clew("import", "data.clew", "more.csv", "--annotator", "ada", "--json").stdout)
    assert (again["taken"], again["known"], len(again["skipped"])) == (0, 4, 2)


def test_contradicting_answers_are_counted_and_kept_out(clew, project, blobs):
    (blobs / "more.csv").write_text("id_1,id_2,answer\nb,e,same\n")
    result = clew("import", "data.clew", "more.csv")
    assert "1 conflict with other answers to resolve" in " ".join(result.stdout.split())
    assert "clew review data.clew" in " ".join(result.stdout.split())
    assert cluster("b") != cluster("e")


DEDUPE = {
    "match": [{"__class__": "tuple", "__value__": [{"x": "0", "y": "0"}, {"x": "1", "y": "0"}]}],
    "distinct": [{"__class__": "tuple", "__value__": [{"x": "0", "y": "0"}, {"x": "999", "y": "0"}]}],
}
LABEL_STUDIO = [
    {
        "id": 1,
        "data": {"id_1": "a", "id_2": "c"},
        "annotations": [
            {
                "completed_by": {"email": "ada@example.org"},
                "created_at": "2024-05-01T10:00:00Z",
                "lead_time": 3.5,
                "result": [{"type": "choices", "value": {"choices": ["Same"]}}],
            }
        ],
    }
]
ZINGG = "z_cluster,z_isMatch,name,x\n0,1,a,0\n0,1,d,1\n1,0,a,0\n1,0,j,1\n2,-1,b,0\n2,-1,k,1\n"
SPLINK = "unique_id_l,unique_id_r,clerical_match_score\na,c,0.95\nb,k,0\nc,d,0.5\n"


@pytest.mark.parametrize(
    "tool, file, content, taken",
    [
        ("splink", "labels.csv", SPLINK, 3),
        ("zingg", "marked.csv", ZINGG, 2),
        ("dedupe", "training.json", json.dumps(DEDUPE), 0),
        ("label-studio", "export.json", json.dumps(LABEL_STUDIO), 1),
    ],
)
@pytest.mark.parametrize("named", [False, True], ids=["found", "named"])
def test_files_of_other_tools(clew, project, blobs, tool, file, content, taken, named):
    (blobs / file).write_text(content)
    words = ("--format", tool) if named else ()
    result = clew("import", "data.clew", file, "--json", *words)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["format"] == tool
    if tool == "dedupe":  # the match is known from answers.csv; the other record is no row
        assert told["taken"] + told["known"] == 1
        assert "999" in told["unmatched"] or told["unmatched"]
    else:
        assert told["taken"] == taken
    if tool == "zingg":
        assert told["open"] == 1


def test_what_the_tool_knows_of_an_answer_is_kept(clew, project, blobs):
    (blobs / "export.json").write_text(json.dumps(LABEL_STUDIO))
    clew("import", "data.clew", "export.json")
    with Session.open("data.clew") as session:
        record = session.answers()[-1]
    assert (record.left, record.right, record.answer) == ("a", "c", "same")
    assert record.annotator == "ada@example.org"
    assert record.seconds == 3.5


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("missing.csv",), "missing.csv"),
        (("answers.csv", "--format", "excel"), "There is no format 'excel': expected one of clew, splink"),
        (("data.csv",), "data.csv"),
    ],
)
def test_imports_that_cannot_be_are_refused(clew, project, words, sentence):
    result = clew("import", "data.clew", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


# -- status ------------------------------------------------------------------------------------------------------------


def test_status_in_words(clew, project):
    result = clew("status", "data.clew")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "data in data.clew" in text
    assert "answers 4: 2 same, 2 different, 0 unsure" in text
    assert "clusters 3 now, 3 asked for, at least 2 by the answers" in text
    assert "asked by auto" in text
    assert "cluster rows typical row" in text
    assert "0 4 a x 0 · y 0" in text


def test_status_of_a_new_project_says_that_there_are_no_clusters(clew, blobs):
    with Session.create("data.clew", "data.csv", id_column="name"):
        pass
    assert "There are no clusters yet: clew export data.clew makes them." in clew("status", "data.clew").stdout


def test_status_of_many_clusters_counts_the_small_ones(clew, blobs):
    lines = [f"{place},{place * 100},0" for place in range(33)] + [f"{place},{place},0" for place in range(33, 66)]
    (blobs / "many.csv").write_text("id,x,y\n" + "\n".join(lines) + "\n")
    with Session.create("many.clew", "many.csv", id_column="id", n_clusters=32) as session:
        session.fit()
    assert "in 2 smaller clusters" in clew("status", "many.clew").stdout


def test_status_keeps_numbers_and_cuts_long_rows(clew, blobs):
    (blobs / "wide.csv").write_text("id,text\n" + "".join(f"{place},{'word ' * 40}{place}\n" for place in range(4)))
    with Session.create("wide.clew", "wide.csv", id_column="id", n_clusters=2) as session:
        session.fit()
    last = clew("status", "wide.clew").stdout.splitlines()[-1]
    assert last.split()[0].isdecimal() and last.split()[1].isdecimal()
    assert len(last) == 80 and last.endswith("…")


def test_status_as_json(clew, project):
    told = json.loads(clew("status", "data.clew", "--json").stdout)
    assert told["progress"]["answered"] == 4
    assert told["progress"]["can_stop"] in (True, False) and told["progress"]["reason"]
    assert sorted(entry["size"] for entry in told["clusters"]) == [4, 4, 4]
    assert told["people"] == [
        {
            "annotator": "ada", "answered": 4, "shared": 0, "agreed": 0, "looks_wrong": 0, "error_rate": None,
            "corrected": 0,
        }
    ]  # fmt: skip


def test_status_says_how_many_answers_of_each_person_look_wrong(clew, project):
    assert "look wrong" not in clew("status", "data.clew").stdout
    with Session.open("data.clew") as session:
        session.set(error_rate=0.1)
    text = " ".join(clew("status", "data.clew").stdout.split())
    assert "person answers look wrong error rate others agree corrected ada 4 0 " in text


def test_status_tells_people_conflicts_and_what_is_new(clew, project):
    with Session.open("data.clew") as session:
        session.import_answers([("a", "b", "same"), ("a", "e", "same"), ("a", "i", "different")], annotator="bob")
    text = " ".join(clew("status", "data.clew").stdout.split())
    assert "kappa ada and bob 0.40" in text
    assert re.search(r"ada 4 0 \d+% 2 of 3 0 bob 3 1 \d+% 2 of 3 0 ", text)
    assert "conflicts 1: clew review data.clew" in text
    assert "There are new answers or corrections since the last fit" in text


def test_status_writes_nothing(clew, project):
    def events():
        with sqlite3.connect(project) as connection:
            return connection.execute("SELECT count(*) FROM events").fetchone()

    before = events()
    clew("status", "data.clew")
    assert events() == before


# -- correct -----------------------------------------------------------------------------------------------------------


def test_merge_by_number_and_preview(clew, project):
    one, two = cluster("a"), cluster("e")
    preview = clew("correct", "data.clew", "merge", one, two, "--preview")
    assert preview.exit_code == 1  # the answer a,e,different
    assert "This correction contradicts earlier answers or corrections:" in preview.stdout
    assert "Nothing was recorded." in preview.stdout
    two = cluster("i")
    with Session.open("data.clew") as session:
        for record in session.answers():
            if record.right == "i":
                session.revise(record.id, "unsure")
    preview = clew("correct", "data.clew", "merge", one, two, "--preview")
    assert preview.exit_code == 0, preview.output
    assert "merge would change 4 rows." in preview.stdout
    assert f"{two} → {one}" in preview.stdout
    assert cluster("i") == two
    done = clew("correct", "data.clew", "merge", one, two)
    assert done.exit_code == 0
    assert "4 rows changed." in done.stdout
    assert cluster("i") == one


def test_split_move_never_and_name(clew, project):
    four = cluster("e")
    assert clew("correct", "data.clew", "name", four, "two", "words").stdout == f"Cluster {four} is called two words.\n"
    result = clew("correct", "data.clew", "split", "Two Words", "g", "h", "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert told["changed"] == {"g": [four, told["cluster"]], "h": [four, told["cluster"]]}
    assert cluster("g") == cluster("h") == told["cluster"]
    assert clew("correct", "data.clew", "move", "d", four).exit_code == 0
    assert cluster("d") == cluster("e") == four
    told = json.loads(clew("correct", "data.clew", "move", "d", "none", "--json").stdout)
    assert told["changed"] == {"d": [four, told["cluster"]]}
    assert cluster("d") != four
    result = clew("correct", "data.clew", "never", "two words", cluster("k"))
    assert "No later fit joins them." in result.stdout
    assert clew("correct", "data.clew", "never", "--rows", "g", "l").exit_code == 0


def test_a_correction_against_an_answer_names_it_and_is_kept(clew, project):
    result = clew("correct", "data.clew", "never", "--rows", "a", "b")
    assert result.exit_code == 1
    text = " ".join(result.stdout.split())
    assert "a and b are the same answer 3 by ada" in text
    assert "b and a are different never, correction" in text
    assert "The correction is recorded, but not used until the conflict is resolved." in text
    assert cluster("a") == cluster("b")


def conflict_id():
    with Session.open("data.clew") as session:
        (found,) = session.conflicts()
    return found.id


@pytest.mark.parametrize("how", ["soft", "unsure", "change 3", "change 3 unsure"])
def test_conflicts_are_resolved(clew, project, how):
    with Session.open("data.clew") as session:
        session.import_answers([("a", "b", "different")], annotator="bob")
    number = conflict_id()
    result = clew("correct", "data.clew", "resolve", number, *how.split())
    assert result.exit_code == 0, result.output
    assert result.stdout == f"Conflict {number} is resolved; 0 conflicts left.\n"


def test_a_correction_of_a_conflict_is_taken_back(clew, project):
    assert clew("correct", "data.clew", "never", "--rows", "a", "d").exit_code == 0
    with Session.open("data.clew") as session:
        session.import_answers([("a", "d", "same")], annotator="bob")
        (conflict,) = session.conflicts()
    result = clew("correct", "data.clew", "resolve", conflict.id, "withdraw", *conflict.corrections)
    assert result.stdout == f"Conflict {conflict.id} is resolved; 0 conflicts left.\n", result.output


def test_an_answer_is_changed_and_taken_back(clew, project):
    assert clew("correct", "data.clew", "answer", 3, "different").stdout == "Answer 3 is different now.\n"
    assert cluster("a") != cluster("b")
    assert clew("correct", "data.clew", "undo").stdout == "Undone: the change of answer 3.\n"
    assert cluster("a") == cluster("b")


def test_everything_is_taken_back_in_words(clew, project):
    clew("correct", "data.clew", "name", cluster("a"), "first")
    clew("correct", "data.clew", "never", "--rows", "c", "k")
    clew("ask", "data.clew", "-k", 4, keys="d\n")
    told = [clew("correct", "data.clew", "undo").stdout for _ in range(6)]
    assert [line.split()[1] for line in told[:5]] == ["answer", "the", "correction", "the", "the"]
    assert "the setting n_clusters=4" in told[1]
    assert "a never" in told[2]
    assert "the name 'first' of cluster" in told[3]
    assert "the import of 4 answers from answers.csv" in told[4]
    assert told[5] == "There is nothing to undo.\n"


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize(
    "words, sentence",
    [
        (("glue", "0", "1"), "There is no correction 'glue'. Use one of merge, split"),
        (("merge", "0"), "Expected: clew correct PROJECT merge CLUSTER CLUSTER."),
        (("undo", "3"), "Expected: clew correct PROJECT undo."),
        (("merge", "0", "99"), "There is no cluster 99"),
        (("merge", "0", "birds"), "no cluster is called 'birds'. Give the number of one: 0, 1, 2."),
        (("merge", "0", "0"), "cannot be merged with itself"),
        (("split", "0", "zebra"), "There is no row 'zebra'"),
        (("move", "zebra", "0"), "There is no row 'zebra'"),
        (("answer", "x", "same"), "'x' is not the number of an answer"),
        (("answer", "3", "perhaps"), "perhaps"),
        (("answer", "99", "same"), "There is no answer 99"),
        (("resolve", "99", "soft"), "There is no conflict 99. `clew review`"),
        (("merge", "0", "1", "--rows"), "--rows works only with never"),
        (("name", "0", "x", "--preview"), "--preview works only with merge, split, move, never"),
    ],
)
def test_corrections_that_cannot_be_are_refused(clew, project, words, sentence):
    before = labels()
    result = clew("correct", "data.clew", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert labels() == before


# -- add ---------------------------------------------------------------------------------------------------------------


def test_rows_appended_to_the_data_join(clew, project, blobs):
    home = cluster("a")
    with open(blobs / "data.csv", "a") as stream:
        stream.write("m,0,2\nn,1,2\n")
    result = clew("add", "data.clew")
    assert result.exit_code == 0, result.output
    assert "2 rows added." in result.stdout
    assert "note" not in result.stderr
    assert cluster("m") == cluster("n") == home
    assert "There are no new rows." in clew("add", "data.clew").stdout


def test_rows_of_another_file_join(clew, project, blobs):
    (blobs / "new.csv").write_text("name,x,y\nm,10,2\n")
    told = json.loads(clew("add", "data.clew", "new.csv", "--json").stdout)
    assert told == {"added": 1, "clusters": {"m": cluster("e")}}
    again = clew("add", "data.clew", "new.csv")
    assert again.exit_code == 2
    assert "Row 'm' is known already" in again.stderr


# -- review ------------------------------------------------------------------------------------------------------------


def test_nothing_to_review(clew, project):
    assert clew("review", "data.clew").stdout == "Nothing looks wrong.\n"


def test_review_lists_conflicts_and_suspicious_answers(clew, project):
    with Session.open("data.clew") as session:
        session.import_answers([("a", "b", "different"), ("c", "k", "same")], annotator="bob")
    result = clew("review", "data.clew")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "People disagree about a and b:" in text
    assert re.search(r"a and b are different answer \d+ by bob, [-0-9]+ [0-9:]+, probably wrong", text)
    with Session.open("data.clew") as session:
        changes = " | ".join(f"change {answer}" for answer in session.conflicts()[0].answers)
    assert f"clew correct data.clew resolve {conflict_id()} {changes} | soft | unsure" in text
    assert "bob said different, likely same, suspicion" in text
    assert "ada said the opposite about the same pair." in text
    assert "clew correct data.clew answer NUMBER" in text
    told = json.loads(clew("review", "data.clew", "--json").stdout)
    assert [one["kind"] for one in told["conflicts"]] == ["disagreement"]
    assert {(item["left"], item["right"]) for item in told["answers"]} >= {("a", "b")}
    cut = clew("review", "data.clew", "-n", 1).stdout
    n_more = sum(item["likely"] != item["answer"] for item in told["answers"][1:])
    assert "more answer" in cut and (f", {n_more} of them more likely wrong than right;" in cut) == (n_more > 0)


def test_an_answer_that_is_kept_is_not_listed_again(clew, project):
    with Session.open("data.clew") as session:
        session.import_answers([("a", "c", "different")], annotator="bob")
        number = session.answers()[-1].id
    for more in ((), ("--quick",)):
        told = json.loads(clew("review", "data.clew", "--json", *more).stdout)
        assert number in [item["answer_id"] for item in told["answers"]]
    kept = clew("correct", "data.clew", "keep", number)
    assert kept.stdout.startswith(f"Answer {number} stays different.")
    told = json.loads(clew("review", "data.clew", "--json").stdout)
    assert number not in [item["answer_id"] for item in told["answers"]]
    assert clew("correct", "data.clew", "undo").stdout == f"Undone: the confirmation of answer {number}.\n"


def test_several_projects_in_one_place_are_told_by_name(clew, project):
    with Session.create("data.clew", "data.csv", id_column="name", name="second"):
        pass
    assert "holds several projects: data, second" in clew("status", "data.clew").stderr
    assert clew("status", "data.clew", "--name", "second").stdout.startswith("second in data.clew")


def test_every_command_works_on_postgresql(clew, blobs, postgresql_url):
    for file in ("data.csv", "other.csv"):
        (blobs / "other.csv").write_text((blobs / "data.csv").read_text())
        result = clew("ask", file, "--id", "name", "-k", 3, "--project", postgresql_url, keys="d\nd\nz\n")
        assert result.exit_code == 0, result.output
    assert "--name other" in result.stdout
    assert "holds several projects: data, other" in clew("status", postgresql_url).stderr
    here = (postgresql_url, "--name", "data")
    assert json.loads(clew("import", *here, "answers.csv", "--json").stdout)["taken"] == 4
    with open(blobs / "data.csv", "a") as stream:
        stream.write("m,0,2\n")
    assert "1 row added." in clew("add", *here).stdout
    assert len(read_csv(clew("export", *here).stdout)) == 13
    assert clew("correct", *here, "name", 0, "first").exit_code == 0
    assert clew("correct", *here, "undo").stdout == "Undone: the name 'first' of cluster 0.\n"
    assert clew("review", *here).exit_code == 0
    told = json.loads(clew("status", *here, "--json").stdout)
    assert (told["progress"]["answered"], told["progress"]["n_rows"]) == (5, 13)


def test_a_project_that_cannot_be_clustered_exports_its_answers_and_is_mended(clew, project, blobs):
    text = (blobs / "data.csv").read_text()
    (blobs / "data.csv").write_text(text + "m,1e200,0\n")
    run = clew("add", project)
    assert run.exit_code == 2
    assert 'Column "x" of' in run.stderr and "holds 1e+200" in run.stderr
    (blobs / "data.csv").write_text(text + "m,1,0\n")
    assert clew("add", project).exit_code == 0
    (blobs / "data.csv").write_text(text.replace("d,1,1", "d,1e200,1") + "m,1,0\n")
    run = clew("export", project, "answers")
    assert run.exit_code == 0
    assert len(run.stdout.splitlines()) == 5
    assert "holds 1e+200" in run.stderr
    for words in (["status", project], ["ask", "data.csv"], ["serve", "data.csv", "--no-browser"]):
        run = clew(*words)
        assert run.exit_code == 2
        assert "holds 1e+200" in run.stderr
        assert "data.clew undo undoes the last change" in " ".join(run.stderr.split())
    (blobs / "data.csv").write_text(text + "m,1,0\n")
    assert clew("correct", project, "undo").stdout == "Undone: the addition of 1 row.\n"
    assert len(clew("export", project).stdout.splitlines()) == 13


def test_backup_copies_a_project(clew, project, blobs):
    run = clew("backup", project, "copy.clew")
    assert run.exit_code == 0
    assert "4 answers copied to copy.clew" in run.stderr
    assert clew("export", "copy.clew", "answers").stdout == clew("export", project, "answers").stdout
    for words, sentence in [
        ((project, "copy.db"), "a copy of a project is a .clew file. Call it copy.clew"),
        ((project, project), "is the project itself"),
        (("none.clew", "other.clew"), "There is no project none.clew"),
        ((project, "copy.clew"), "copy.clew exists already. Choose another name, or replace it with --force."),
    ]:
        run = clew("backup", *words)
        assert run.exit_code == 2
        assert sentence in " ".join(run.stderr.split())
    (blobs / "copy.clew").write_text("something else")
    assert clew("backup", project, "copy.clew", "--force").exit_code == 0
    assert clew("export", "copy.clew", "answers").stdout == clew("export", project, "answers").stdout


def test_status_counts_the_clusters_after_a_split(clew, project):
    assert clew("correct", project, "split", 0, "d").exit_code == 0
    assert "4 now, 3 asked for" in " ".join(clew("status", project).stdout.split())


def test_export_tells_why_there_are_fewer_clusters_than_asked_for(clew, tmp_path):
    (tmp_path / "two.csv").write_text("name,x\n" + "".join(f"row {row},{row % 2}\n" for row in range(10)))
    with Session.create("two.clew", "two.csv", id_column="name", n_clusters=3):
        pass
    done = clew("export", "two.clew", "-o", "labels.csv")
    assert "note: 2 clusters instead of 3" in " ".join(done.stderr.split())
    assert "note" not in clew("export", "two.clew", "answers").stderr


def test_a_project_that_lost_its_content_is_not_begun_anew(clew, blobs):
    with closing(sqlite3.connect(blobs / "data.clew")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    for words in (["ask", "data.csv"], ["serve", "data.csv", "--no-browser"], ["status", "data.clew"]):
        run = clew(*words)
        assert run.exit_code == 2
        assert "has lost its content" in " ".join(run.stderr.split())
