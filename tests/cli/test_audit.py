"""`clew audit` and `clew advise`: table, picture, JSON, refusals."""

import json

import pytest

HEADER = "id_1,id_2,answer,annotator\n"


@pytest.fixture
def answers(blobs):
    """Answers about the twelve rows; b-g is wrong."""
    names = ["abcd", "efgh", "ijkl"]
    lines = [f"{group[0]},{other},same,ann" for group in names for other in group[1:]]
    lines += [f"{first},{second},different,bob" for first, second in ["ae", "bi", "fj", "ck", "gl", "dh"]]
    (blobs / "answers.csv").write_text(HEADER + "\n".join([*lines, "b,g,same,bob"]) + "\n")
    return blobs


WORDS = ("data.csv", "-c", "answers.csv", "--id", "name")


def test_audit_lists_the_wrong_answer_first(clew, answers):
    result = clew("audit", *WORDS, "-k", 3, "--most", 2, "--plot", "audit.PNG", "-o", "ranked.csv")
    assert result.exit_code == 0, result.output
    first = next(line for line in result.stdout.splitlines() if "–" in line)
    assert "b – g" in first and "same" in first
    assert "(by bob)" in result.stdout and "14 answers less suspicious" in result.stdout
    assert (answers / "audit.PNG").read_bytes().startswith(b"\x89PNG")
    ranked = (answers / "ranked.csv").read_text().splitlines()
    assert ranked[0].startswith("rank,id_1,id_2,answer,suspicion,likely") and ranked[1].startswith("1,b,g,same,")
    assert len(ranked) == 17


def test_audit_as_json(clew, answers):
    told = json.loads(clew("audit", *WORDS, "-k", 3, "--json").stdout)
    assert [told["answers"][0][key] for key in ("id_1", "id_2", "answer", "annotator")] == ["b", "g", "same", "bob"]
    assert told["answers"][0]["likely"] in ("same", "different") and set(told["error_rates"]) == {"ann", "bob"}


@pytest.mark.parametrize("model", ["constrained-gaussian-mixture", "soft-group-mixture"])
def test_audit_with_a_mixture_takes_answers_that_cannot_all_hold(clew, answers, model):
    result = clew("audit", *WORDS, "-k", 3, "--model", model)
    assert result.exit_code == 0, result.output
    first = next(line for line in result.stdout.splitlines() if "–" in line)
    assert "b – g" in first and "By the model, the chance that the two are different" in " ".join(result.stdout.split())


def test_audit_writes_the_answers_that_change_the_clustering(clew, answers):
    result = clew("audit", *WORDS, "-k", 3, "--filtered", "useful.csv")
    assert result.exit_code == 0, result.output
    assert "1 of 16 answers written to useful.csv." in " ".join(result.stdout.split())
    lines = (answers / "useful.csv").read_text().splitlines()
    assert lines == ["id_1,id_2,answer,confidence,annotator", "b,g,same,1.0,bob"]
    told = json.loads(
        clew("audit", *WORDS, "-k", 3, "--filtered", "right.csv", "--drop", 1, "--keep-free", "--json").stdout
    )
    assert told["filtered"] == {"output": "right.csv", "kept": 15, "answers": 16}
    lines = (answers / "right.csv").read_text().splitlines()
    assert len(lines) == 16 and not any(line.startswith("b,g,") for line in lines)
    assert clew("cluster", *WORDS[:1], "-c", "right.csv", *WORDS[3:], "-k", 3).exit_code == 0
    assert clew("audit", *WORDS, "-k", 3, "--filtered", "none.csv", "--drop", 1).exit_code == 0
    assert (answers / "none.csv").read_text().splitlines() == ["id_1,id_2,answer,confidence"]


def test_audit_keeps_classes_beside_the_answers_that_it_filters(clew, answers):
    file = answers / "answers.csv"
    header, *lines = file.read_text().splitlines()
    file.write_text("\n".join([f"{header},group", *(f"{line}," for line in lines), "a,,label,ann,first"]) + "\n")
    result = clew("audit", *WORDS, "-k", 3, "--filtered", "useful.csv")
    assert result.exit_code == 0, result.output
    text = (answers / "useful.csv").read_text()
    assert "a,,label,first" in text and "b,g,same," in text and text.count("same") == 1 and "different" not in text


def test_advise_tells_number_and_distance(clew, answers):
    result = clew("advise", *WORDS, "--most-clusters", 4, "--metrics", "euclidean,cosine", "--plot", "advice.png")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("The answers ") and "propagation" in result.stdout
    assert (answers / "advice.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(clew("advise", *WORDS, "--most-clusters", 4, "-k", 3, "--json").stdout)
    assert told["n_clusters"] == 3 and len(told["n_clusters_table"]) == 3
    assert told["n_clusters_sure"] == (told["n_clusters_table"][1]["probability"] >= 0.8)
    assert {row["metric"] for row in told["metric_table"]} >= {"euclidean", "cosine"}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("audit", *WORDS, "-k", 30), 2, "-k 30: data.csv has only 12 rows. Give a smaller number."),
        (
            ("audit", *WORDS, "-k", 3, "--drop", 0.5),
            2,
            "--drop only has an effect with --filtered: add --filtered FILE.",
        ),
        (("audit", *WORDS, "-k", 3, "--keep-free"), 2, "--keep-free only has an effect with --filtered"),
        (
            ("audit", *WORDS, "-k", 3, "--filtered", "answers.csv"),
            2,
            "answers.csv is an input, which would be overwrit",
        ),
        (
            ("audit", *WORDS, "-k", 3, "--filtered", "a.csv", "-o", "a.csv"),
            2,
            "--filtered and --output both name a.csv. Choose another name for one.",
        ),
        (("audit", *WORDS, "-k", 3, "--plot", "a.txt"), 2, "pictures are written as .png"),
        (
            ("advise", *WORDS, "--metrics", "cosine,euclid"),
            2,
            "--metrics euclid: expected some of euclidean, manhattan",
        ),
        (("advise", *WORDS, "--metrics", "edit"), 2, "--metrics edit: expected some of"),
        (("advise", *WORDS, "--metrics", ","), 2, "--metrics '': expected some of"),
        (("audit", "data.csv", "-c", "none.csv", "--id", "name", "-k", 3), 2, "none.csv"),
    ],
)
def test_bad_input_is_one_sentence(clew, answers, words, code, message):
    result = clew(*words)
    assert result.exit_code == code and message in " ".join(result.stderr.split())


def test_a_file_without_pairs_is_refused(clew, answers):
    (answers / "answers.csv").write_text("id_1,id_2,answer\na,b,unsure\n")
    result = clew("audit", *WORDS, "-k", 3)
    assert result.exit_code == 2 and "no answers about pairs" in result.stderr
