"""`clew cluster`: files in, labels out, one sentence for everything that goes wrong."""

import csv
import json
import os

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from clew import PCKMeans, _registry
from clew.cli._project import ProjectRequest, opened_or_begun
from clew.cli._reading import Reading
from clew.datasets import encode, read_table
from clew.dissimilarity import edit_distances
from clew.evaluation import same_partition
from tests.helpers import OF_ROWS

GROUPS = [set("abcd"), set("efgh"), set("ijkl")]


def groups_in(path, key="name"):
    found = {}
    for record in csv.DictReader(path.read_text().splitlines()):
        found.setdefault(record["cluster"], set()).add(record[key])
    return sorted(found.values(), key=min)


def test_labels_file_has_the_users_ids(clew, blobs):
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv", "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert groups_in(blobs / "out.csv") == GROUPS
    assert (blobs / "out.csv").read_text().startswith("name,cluster\na,")


@pytest.mark.parametrize("name", ["constrained-gaussian-mixture", "graph-propagation"])
def test_labels_file_has_the_probability_of_each_rows_cluster(clew, blobs, name):
    clew("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv", "-m", name, "-o", "out.csv")
    records = list(csv.DictReader((blobs / "out.csv").read_text().splitlines()))
    assert list(records[0]) == ["name", "cluster", "probability"]
    assert all(0.5 < float(record["probability"]) <= 1 for record in records)


def test_summary_tells_sizes_pairs_and_file(clew, blobs):
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv")
    assert "12 rows in 3 clusters" in result.stdout
    assert "0 of 2 violated" in result.stdout
    assert "objective" in result.stdout
    assert "data-labels.csv" in result.stdout
    assert groups_in(blobs / "data-labels.csv") == GROUPS
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_number_of_clusters_may_be_found(clew, blobs):
    told = json.loads(clew("cluster", "data.csv", "--id", "name", "-k", "auto", "--json").stdout)
    assert len(told["clusters"]) == 3
    assert told["rows"] == 12


def test_noise_is_not_a_cluster(clew, tmp_path):
    (tmp_path / "line.csv").write_text("x\n0\n1\n2\n10\n11\n12\n90\n")
    words = (
        "cluster",
        tmp_path / "line.csv",
        "-m",
        "constrained-dbscan",
        "--eps",
        1,
        "--min-samples",
        2,
        "--scale",
        "none",
    )
    result = clew(*words)
    assert "7 rows in 2 clusters" in result.stdout
    assert any(line.split()[:2] == ["noise", "1"] for line in result.stdout.splitlines())
    found = json.loads(clew(*words, "--json").stdout)
    assert found["noise"] == 1
    assert found["clusters"] == [{"cluster": 0, "rows": 3}, {"cluster": 1, "rows": 3}]


def test_a_clusterer_is_chosen_by_name(clew, blobs):
    words = ("cluster", "data.csv", "--id", "name", "-m", "constrained-density", "--clusterer")
    assert "12 rows in 1 cluster by constrained-density" in clew(*words, "dbscan").stdout  # groups of 4 are not dense
    assert "--clusterer kmeans: expected 'hdbscan' or 'optics' or 'dbscan'" in clew(*words, "kmeans").stderr


def test_a_number_that_was_found_is_called_a_guess(clew, blobs):
    done = clew("cluster", "data.csv", "--id", "name", "-k", "auto")
    told = " ".join(done.stdout.split())
    assert "3 is a guess" in told
    assert "Compare with -k 2 and -k 4, or collect answers: clew advise says which number they support" in told
    assert "guess" not in clew("cluster", "data.csv", "--id", "name", "-k", 3).stdout


def test_unsure_answers_are_counted(clew, blobs):
    with open(blobs / "answers.csv", "a", encoding="utf-8") as file:
        file.write("c,g,unsure\nd,h,unsure\n")
    words = ("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv")
    assert "2 answers, which constrain nothing" in " ".join(clew(*words).stdout.split())
    assert json.loads(clew(*words, "--json").stdout)["unsure"] == 2


def test_the_number_found_is_told_where_it_is_less_than_asked_for(clew, tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("name,x\n" + "".join(f"row {row},{row % 2}\n" for row in range(10)), encoding="utf-8")
    done = clew("cluster", path, "--id", "name", "-k", 3, "-o", tmp_path / "out.csv")
    told = " ".join((done.stdout + done.stderr).split())
    assert "10 rows in 2 clusters" in told
    assert "PCKMeans found 2 of 3 clusters: X has 2 distinct rows." in told


def test_without_ids_rows_are_numbered(clew, blobs):
    (blobs / "answers.csv").write_text("id_1,id_2,answer\n0,1,must\n0,4,cannot\n")
    result = clew("cluster", "data.csv", "--columns", "x,y", "-k", 3, "-c", "answers.csv", "-o", "out.csv", "-q")
    assert result.exit_code == 0, result.output
    assert result.output == ""
    assert groups_in(blobs / "out.csv", "row")[0] == {"0", "1", "2", "3"}


def test_json_is_one_object_on_stdout(clew, blobs):
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv", "--json")
    told = json.loads(result.stdout)
    assert told["method"] == "pck-means"
    assert told["parameters"]["random_state"] == 0
    assert told["rows"] == 12
    assert [cluster["rows"] for cluster in told["clusters"]] == [4, 4, 4]
    assert told["violated"] == {"must_link": {"count": 0, "of": 2}, "cannot_link": {"count": 0, "of": 2}}
    assert told["output"] == "data-labels.csv"
    assert told["seconds"] >= 0


def test_a_soft_method_says_that_answers_contradict_each_other(clew, blobs):
    (blobs / "answers.csv").write_text("id_1,id_2,answer\na,b,same\nb,c,same\na,c,different\n")
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv")
    assert result.exit_code == 0
    assert "the answers contradict each other; clew check shows how" in result.stdout


def test_violated_pairs_are_named_in_the_users_ids(clew, blobs):
    (blobs / "answers.csv").write_text("id_1,id_2,answer\na,l,same\na,b,different\n")
    words = ("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv", "--penalty", 0)
    told = json.loads(clew(*words, "--json").stdout)
    assert told["violated_must_link"] == [["a", "l"]]
    assert told["violated_cannot_link"] == [["a", "b"]]
    assert "1 of 1 violated: a–l" in clew(*words).stdout


def test_minus_sends_labels_to_stdout_and_the_summary_to_stderr(clew, blobs):
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-o", "-")
    assert result.stdout.splitlines()[0] == "name,cluster"
    assert len(result.stdout.splitlines()) == 13
    assert "12 rows in 3 clusters" in result.stderr
    assert sorted(os.listdir(blobs)) == ["answers.csv", "data.csv"]


@pytest.mark.parametrize("suffix", ["tsv", "parquet", "jsonl"])
def test_other_output_formats(clew, blobs, suffix):
    assert clew("cluster", "data.csv", "--id", "name", "-k", 3, "-o", f"out.{suffix}").exit_code == 0
    if suffix == "jsonl":
        rows = [json.loads(line) for line in (blobs / "out.jsonl").read_text().splitlines()]
        assert [row["name"] for row in rows] == list("abcdefghijkl")
    else:
        assert read_table(blobs / f"out.{suffix}").column("name").tolist() == list("abcdefghijkl")


@pytest.mark.parametrize("kind", ["npy", "npz", "sparse npz", "parquet of lists"])
def test_other_input_formats(clew, blobs, kind):
    X = read_table(blobs / "data.csv").matrix(["x", "y"])
    path = blobs / ("in.npy" if kind == "npy" else "in.parquet" if "parquet" in kind else "in.npz")
    if kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        np.savez(path, X=X, name=np.array(list("abcdefghijkl")))
    elif kind == "sparse npz":
        sparse.save_npz(path, sparse.csr_matrix(X))
    else:
        pl.DataFrame({"vector": X.tolist()}).write_parquet(path)
    result = clew("cluster", path, "-k", 3, "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert [len(group) for group in groups_in(blobs / "out.csv", "row")] == [4, 4, 4]


@pytest.mark.parametrize("how", ["standard", "minmax", "robust"])
def test_scale_lets_small_columns_count(clew, tmp_path, how):
    rng = np.random.default_rng(0)
    small = np.repeat([0.0, 1.0], 10)
    big = np.concatenate([rng.permutation(10), rng.permutation(10)]) * 1000
    lines = [f"{first},{second}" for first, second in zip(big, small, strict=True)]
    (tmp_path / "data.csv").write_text("big,small\n" + "\n".join(lines) + "\n")
    partitions = {}
    for scale in ("none", how):
        assert clew("cluster", "data.csv", "-k", 2, "--scale", scale, "--n-init", 10).exit_code == 0
        partitions[scale] = read_table(tmp_path / "data-labels.csv").column("cluster")
    assert same_partition(partitions[how], small)
    assert not same_partition(partitions["none"], small)


def test_minmax_refuses_sparse(clew, tmp_path):
    sparse.save_npz(tmp_path / "in.npz", sparse.eye(4, format="csr"))
    result = clew("cluster", "in.npz", "-k", 2, "--scale", "minmax")
    assert result.exit_code == 2
    assert "minmax would make a sparse matrix dense" in result.stderr


def test_known_labels_name_the_clusters(clew, blobs):
    lines = (blobs / "data.csv").read_text().splitlines()
    known = {1: "north", 2: "north", 5: "south"}
    table = [lines[0] + ",class"] + [f"{line},{known.get(place, '')}" for place, line in enumerate(lines[1:], 1)]
    (blobs / "data.csv").write_text("\n".join(table) + "\n")
    words = ("cluster", "data.csv", "--id", "name", "-k", 3, "--label-column", "class", "-o", "out.csv")
    told = json.loads(clew(*words, "--json").stdout)
    assert told["relabelled"] == {"count": 0, "of": 3, "rows": []}
    assert [cluster["cluster"] for cluster in told["clusters"]] == ["north", "south", "new-1"]
    assert groups_in(blobs / "out.csv") == GROUPS
    assert "a,north" in (blobs / "out.csv").read_text()
    assert "3 of 3 labelled rows kept theirs" in clew(*words).stdout


def test_labels_and_pairs_together(clew, blobs):
    lines = (blobs / "data.csv").read_text().splitlines()
    table = [lines[0] + ",class"] + [line + (",-1" if place else ",9") for place, line in enumerate(lines[1:])]
    (blobs / "data.csv").write_text("\n".join(table) + "\n")
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "--label-column", "class", "-c", "answers.csv")
    assert result.exit_code == 0, result.output
    assert "a,9" in (blobs / "data-labels.csv").read_text()


def test_named_classes_and_numbered_ones_do_not_mix(clew, blobs):
    (blobs / "data.csv").write_text("name,x,class\na,0,north\nb,1,\n")
    (blobs / "answers.csv").write_text("id_1,id_2,answer,group\nb,,label,0\n")
    result = clew("cluster", "data.csv", "--id", "name", "-k", 2, "--label-column", "class", "-c", "answers.csv")
    assert result.exit_code == 2
    assert "Leave out one of them." in result.stderr


def test_label_column_without_a_label(clew, tmp_path):
    (tmp_path / "data.csv").write_text("x,class\n0,\n1,-1\n")
    result = clew("cluster", "data.csv", "-k", 2, "--label-column", "class")
    assert result.exit_code == 2
    assert 'Column "class" of data.csv contains no class' in result.stderr


def test_known_classes_in_a_binary_file_keep_their_numbers(clew, tmp_path):
    pl.DataFrame({"x": [0.0, 1.0, 9.0, 10.0], "class": [7, None, None, None]}).write_parquet(tmp_path / "in.parquet")
    assert clew("cluster", "in.parquet", "-k", 2, "--label-column", "class", "-o", "out.csv").exit_code == 0
    assert (tmp_path / "out.csv").read_text() == "row,cluster\n0,7\n1,7\n2,0\n3,0\n"


def test_parameters_of_the_method_are_flags(clew, blobs):
    words = (
        "--n-init",
        2,
        "--max-iter=7",
        "--tol",
        "1e-3",
        "--init",
        "k-means++",
        "--penalty",
        2,
        "--no-entailed",
    )
    told = json.loads(clew("cluster", *words, "data.csv", "--columns", "x,y", "-k", 3, "--json").stdout)
    expected = {"n_init": 2, "max_iter": 7, "tol": 1e-3, "init": "k-means++", "penalty": 2, "entailed": False}
    assert {name: told["parameters"][name] for name in expected} == expected


def test_flags_and_data_come_in_any_order(clew, blobs):
    result = clew("cluster", "--no-entailed", "data.csv", "-k", 3, "--columns", "x,y", "--entailed", "--json")
    assert json.loads(result.stdout)["parameters"]["entailed"] is True


def test_same_command_same_labels(clew, blobs):
    words = ("cluster", "data.csv", "--columns", "x,y", "-k", 5, "--init", "k-means++", "-o", "-", "-q")
    assert clew(*words).stdout == clew(*words).stdout


@pytest.mark.parametrize("name, kind", sorted((_registry.method_name(kind), kind) for kind in OF_ROWS))
def test_every_method_has_its_command(clew, blobs, name, kind):
    counts = "n_clusters" in kind._parameters
    flags = ("-k", 3) if counts else ()
    result = clew("cluster", "data.csv", "--id", "name", *flags, "-c", "answers.csv", "-m", name)
    assert result.exit_code == 0, result.output
    n_groups = len(groups_in(blobs / "data-labels.csv"))
    assert n_groups == 3 if counts else n_groups >= 1


@pytest.mark.parametrize("name", ["constrained-dbscan", "constrained-density"])
def test_a_method_that_finds_the_number_of_clusters_refuses_one(clew, blobs, name):
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-m", name)
    assert result.exit_code == 2
    assert f"{name} determines the number of clusters itself: leave out -k." in " ".join(result.output.split())


def test_a_column_that_names_the_rows_is_left_out_with_and_without_its_flag(clew, tmp_path):
    (tmp_path / "data.csv").write_text("id,x\n1,0\n2,0\n3,9\n")
    for flags in ((), ("--id", "id")):
        result = clew("cluster", "data.csv", "-k", 2, *flags)
        assert result.exit_code == 0
        assert "id      left out          it names the rows" in result.stderr


# Numbers alone, numbers with gaps, numbers with text beside them: what `--id` names is never part of it.
MEASURED = {
    "numbers": "id,small,large\n" + "".join(f"r{i},{i % 7},{1000 * (i % 11)}\n" for i in range(40)),
    "gaps": "id,small,large\n" + "".join(f"r{i},{i % 7 or ''},{1000 * (i % 11)}\n" for i in range(40)),
    "unreadable": "id,small,large\n" + "".join(f"r{i},{i % 7 if i else '>9'},{1000 * (i % 11)}\n" for i in range(40)),
    "words": "id,small,kind\n" + "".join(f"r{i},{i % 7},{'ab'[i % 2]}\n" for i in range(40)),
}


@pytest.mark.parametrize("content", MEASURED.values(), ids=MEASURED.keys())
def test_ids_do_not_change_the_vectors_and_every_command_has_the_same(clew, tmp_path, monkeypatch, content):
    (tmp_path / "data.csv").write_text(content)
    (tmp_path / "rows.csv").write_text("id_1,id_2,answer\n0,1,different\n")
    (tmp_path / "names.csv").write_text("id_1,id_2,answer\nr0,r1,different\n")
    seen = []
    vectors = Reading.vectors

    def seen_vectors(*words):
        seen.append(vectors(*words).X)
        raise KeyboardInterrupt  # what the commands do with them takes longer, and is tested elsewhere

    monkeypatch.setattr(Reading, "vectors", seen_vectors)
    for flags, answers in (((), "rows.csv"), (("--id", "id"), "names.csv")):
        for words in (("cluster",), ("audit",), ("advise",)):
            assert clew(*words, "data.csv", *flags, "-k", 2, "-c", answers).exit_code == 130
    with pytest.importorskip("clew.session").Session.create(
        tmp_path / "p.clew", tmp_path / "data.csv", id_column="id"
    ) as session:
        seen.append(session._state.rows.X)
    seen.append(encode(tmp_path / "data.csv").X)
    assert len(seen) == 8
    for X in seen:
        assert_array_equal(X, seen[0])


def test_standard_input_is_a_table(clew, blobs):
    done = clew("cluster", "-", "-k", 3, "--id", "name", keys=(blobs / "data.csv").read_bytes())
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("name,cluster\n")
    assert len(done.stdout.splitlines()) == len((blobs / "data.csv").read_text().splitlines())
    lines = clew("cluster", "-", "-k", 2, keys='{"a": 1}\n{"a": 2}\n{"a": 9}\n').stdout.splitlines()
    assert lines[0] == "row,cluster" and len(lines) == 4
    assert "standard input is empty" in clew("cluster", "-", "-k", 2, keys="").stderr


@pytest.mark.parametrize(
    "separator, encoding, flags",
    [
        (";", "utf-8", ()),
        ("\t", "utf-8", ()),
        ("|", "utf-8", ()),
        ("\t", "utf-16", ()),
        (";", "cp1252", ("--encoding", "cp1252")),
        ("~", "utf-8", ("--sep", "~")),
    ],
)
def test_separators_and_encodings(clew, tmp_path, separator, encoding, flags):
    rows = [("größe", "preis, netto"), ("1,5", "10"), ("2,5", "20"), ("8,5", "30")]
    quoted = [[f'"{cell}"' for cell in row] for row in rows]
    (tmp_path / "data.csv").write_text("\n".join(separator.join(row) for row in quoted), encoding=encoding)
    result = clew("cluster", "data.csv", "-k", 2, "--json", "-o", "out.csv", *flags)
    assert result.exit_code == 0, result.output
    assert [column["name"] for column in json.loads(result.stdout)["columns"]] == ["größe", "preis, netto"]


def test_another_encoding_is_refused_with_the_flag_to_use(clew, tmp_path):
    (tmp_path / "data.csv").write_text("größe\n1\n2\n", encoding="cp1252")
    assert "--encoding cp1252" in clew("cluster", "data.csv", "-k", 2).stderr
    assert "There is no encoding 'nonsense'" in clew("cluster", "data.csv", "-k", 2, "--encoding", "nonsense").stderr
    assert "expected one character" in clew("cluster", "data.csv", "-k", 2, "--sep", "ab").stderr


def test_tables_of_texts_are_compared_by_cosine_unless_told(clew, tmp_path):
    words = ("printer paper jam toner", "password login account locked", "screen cable monitor black")
    texts = [f"{words[i % 3]} {words[i % 3].split()[i % 4]} {i}" for i in range(30)]
    (tmp_path / "data.csv").write_text("id,text\n" + "".join(f"r{i},{text}\n" for i, text in enumerate(texts)))
    result = clew("cluster", "data.csv", "-k", 3, "--id", "id", "-o", "a.csv")
    assert "cosine, since texts have most of the weight" in result.stdout
    told = clew("cluster", "data.csv", "-k", 3, "--id", "id", "--metric", "euclidean", "--json", "-o", "b.csv")
    assert json.loads(told.stdout)["parameters"]["metric"] == "euclidean"
    numbers = clew("cluster", "data.csv", "-k", 3, "--text", "none", "--json", "-o", "c.csv")
    assert numbers.exit_code == 2
    with pytest.importorskip("clew.session").Session.create(
        tmp_path / "p.clew", tmp_path / "data.csv", id_column="id"
    ) as session:
        assert session.metric == "cosine"
        session.set(metric="euclidean")
        assert session.metric == "euclidean"


TICKETS = """ticket,subject,priority
T-1,The printer does not print,high
T-2,Paper jam in the printer,high
T-3,Printer out of paper,high
T-4,I cannot log in to my account,low
T-5,My account is locked after login,low
T-6,Login to the account fails,low
"""


def test_texts_are_clustered_and_the_columns_explained(clew, tmp_path):
    (tmp_path / "tickets.csv").write_text(TICKETS)
    result = clew("cluster", "tickets.csv", "-k", 2, "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert groups_in(tmp_path / "out.csv", "row") == [set("012"), set("345")]
    said = result.stderr.splitlines()
    assert [line.split()[:2] for line in said if line.startswith(("ticket", "subject", "priority"))] == [
        ["ticket", "left"], ["subject", "text"], ["priority", "category"],
    ]  # fmt: skip
    quiet = clew("cluster", "tickets.csv", "-k", 2, "-o", "out.csv", "-q")
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_label_column_of_a_mixed_table_is_no_feature(clew, tmp_path):
    (tmp_path / "tickets.csv").write_text(TICKETS)
    result = clew("cluster", "tickets.csv", "-k", 2, "--id", "ticket", "--label-column", "priority", "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert "not among the columns to use" in next(line for line in result.stderr.splitlines() if "priority" in line)
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "T-1,high"


def test_answers_about_whole_records_are_found_in_the_data(clew, tmp_path):
    (tmp_path / "tickets.csv").write_text(TICKETS)
    records = [{"subject": line.split(",")[1].lower()} for line in TICKETS.splitlines()[1:]]
    pairs = {"match": [[records[0], records[3]]], "distinct": [[records[0], records[1]]]}
    (tmp_path / "training.json").write_text(json.dumps(pairs))
    command = ["cluster", "tickets.csv", "-k", 2, "-c", "training.json", "-m", "cop-kmeans", "-o", "out.csv"]
    assert clew(*command).exit_code == 0
    cluster = [line.split(",")[1] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert cluster[0] == cluster[3] != cluster[1]
    checked = clew("check", "training.json", "-k", 1, "--data", "tickets.csv", "--id", "ticket")
    assert checked.exit_code == 1
    assert "T-1" in checked.output


def test_folder_of_images(clew, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="needs the extra images")
    (tmp_path / "pictures").mkdir()
    for name, across in (("a", True), ("b", True), ("c", False), ("d", False)):
        grey = np.full((32, 32), 10 + ord(name), dtype=np.uint8)
        (grey if across else grey.T)[::8] = 250
        image.fromarray(grey).save(tmp_path / "pictures" / f"{name}.png")
    (tmp_path / "answers.csv").write_text("id_1,id_2,answer\na.png,b.png,same\na.png,c.png,different\n")
    result = clew("cluster", "pictures", "-k", 2, "-c", "answers.csv", "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert groups_in(tmp_path / "out.csv", "file") == [{"a.png", "b.png"}, {"c.png", "d.png"}]
    assert clew("check", "answers.csv", "-k", 2, "--data", "pictures").exit_code == 0
    with opened_or_begun(ProjectRequest(str(tmp_path / "pictures"), n_clusters=2)) as session:
        assert session.settings["id_column"] == "file"
    with opened_or_begun(ProjectRequest(str(tmp_path / "pictures"))) as session:
        assert session.labels().keys() == {"a.png", "b.png", "c.png", "d.png"}


def test_a_folder_of_parquet_files_may_hold_an_image(clew, tmp_path):
    frame = pytest.importorskip("pandas").DataFrame({"x": [0.0, 0.1, 5.0, 5.1]})
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "plot.png").touch()
    frame.to_parquet(tmp_path / "rows" / "part.parquet")
    result = clew("cluster", "rows", "-k", 2, "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert groups_in(tmp_path / "out.csv", "row") == [{"0", "1"}, {"2", "3"}]


def test_many_clusters_are_cut_short(clew, tmp_path):
    np.save(tmp_path / "data.npy", np.arange(40.0)[:, None])
    result = clew("cluster", "data.npy", "-k", 20)
    assert result.exit_code == 0, result.output
    assert "others" in result.stdout


BAD_COMMANDS = [
    ("cluster missing.csv -k 3", "Cannot read missing.csv: No such file"),
    ("cluster data.xlsx -k 3", "Cannot read data.xlsx"),
    ("cluster data.csv -k 3 --columns x,z", 'data.csv has no column "z"'),
    ("cluster data.csv -k 3 --id nam", 'Did you mean "name"?'),
    ("cluster data.csv --id x -k 3 --columns y", 'names two rows "0"'),
    ("cluster data.csv --id name", "pck-means needs the number of clusters: add -k"),
    ("cluster data.csv --id name", "such as duplicates: --groups small"),
    ("cluster data.csv --id name -k 0", "-k 0: expected 'auto' or an integer >= 1"),
    ("cluster data.csv --id name -k many", "-k many: expected 'auto' or an integer >= 1"),
    ("cluster data.csv --id name -k auto -m cop-kmeans", "-k auto: expected an integer >= 1"),
    ("cluster data.csv --id name -k 13", "-k 13: data.csv has only 12 rows"),
    ("cluster data.csv --id name -k 3 -m pck-mean", "Did you mean pck-means?"),
    ("cluster data.csv --id name -k 3 --penalti 2", "Did you mean --penalty?"),
    ("cluster data.csv --id name -k 3 --constrains answers.csv", "Did you mean --constraints?"),
    ("cluster data.csv --id name -k 3 --wibble 2", "pck-means takes --"),
    ("cluster data.csv --id name -k 3 --penalty", "--penalty of pck-means needs a value"),
    ("cluster data.csv --id name -k 3 --penalty -1", "--penalty -1: expected 'auto' or a finite number >= 0"),
    ("cluster data.csv --id name -k 3 --metric taxi", "--metric taxi: expected 'euclidean' or 'cosine'"),
    ("cluster data.csv more.csv --id name -k 3", "takes one data file (data.csv more.csv given)"),
    ("cluster --n-init 2 -k 3", "takes one data file (none given)"),
    ("cluster data.csv --id name -k 3 -o nowhere/out.csv", "the directory nowhere does not exist"),
    ("cluster data.csv --id name -k 3 -o out.xlsx", "Cannot write out.xlsx"),
    ("cluster data.csv --id name -k 3 -o data.csv", "-o data.csv would overwrite an input"),
    ("cluster data.csv --id name -k 3 -c answers.csv -o answers.csv", "would overwrite an input"),
    ("cluster data.csv --id name -k 3 --json -o -", "cannot both go to stdout"),
    ("cluster data.csv --id name -k 3 -c missing.csv", "missing.csv: No such file"),
    ("cluster data.csv --id name -k 3 --label-column blank", 'data.csv has no column "blank"'),
]


@pytest.mark.parametrize("line, sentence", BAD_COMMANDS)
def test_bad_input_is_one_sentence_and_exit_2(clew, blobs, line, sentence):
    before = sorted(os.listdir(blobs))
    result = clew(*line.split())
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert sorted(os.listdir(blobs)) == before


BAD_ANSWERS = [
    ("id_1,id_2\na,b\n", "no column 'answer'"),
    ("id_1,id_2,answer\na,b,same\na,c,perhaps\n", "answers.csv line 3: cannot read the answer 'perhaps'"),
    ("id_1,id_2,answer\na,zebra,same\n", "line 2: id_2 'zebra' is not among the row ids"),
    ("id_1,id_2,answer\na,a,same\n", "line 2: pairs 'a' with itself"),
    ("id_1,id_2,answer,confidence\na,b,same,1.5\n", "line 2: confidence is '1.5'"),
    ("id_1,id_2,answer,confidence\na,b,same,0\n", "line 2: confidence is '0'"),
]


@pytest.mark.parametrize("content, sentence", BAD_ANSWERS)
def test_bad_answers_are_named_with_their_line(clew, blobs, content, sentence):
    (blobs / "answers.csv").write_text(content)
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (blobs / "data-labels.csv").exists()


@pytest.mark.parametrize("row, sentence", [("99", "99"), ("-1", "-1")])
def test_row_numbers_outside_the_data(clew, blobs, row, sentence):
    (blobs / "answers.csv").write_text(f"id_1,id_2,answer\n0,{row},same\n")
    result = clew("cluster", "data.csv", "--columns", "x,y", "-k", 3, "-c", "answers.csv")
    assert result.exit_code == 2
    assert "line 2" in result.stderr
    assert sentence in result.stderr


@pytest.mark.parametrize(
    "content, sentence",
    [
        ("name,x,y\na,1,3\nb,2,soon\n", 'Column "y" of data.csv holds 1 number, but also 1 other cell, such as "soon"'),
        ("name,x,y\na,1,inf\nb,2,3\n", 'Column "y" of data.csv has an infinite value in row 0, id "a"'),
        ("name,x,y\n", "data.csv has a header but no rows"),
        ("", "data.csv is empty"),
        ("name,x,y\na,1\n", "data.csv, line 2: 2 cells"),
    ],
)
def test_bad_data_is_named_with_its_place(clew, blobs, content, sentence):
    (blobs / "data.csv").write_text(content)
    result = clew("cluster", "data.csv", "--id", "name", "-k", 1)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_contradiction_is_exit_1_with_the_chain(clew, blobs):
    (blobs / "answers.csv").write_text("id_1,id_2,answer\na,b,same\nb,c,same\na,c,different\n")
    words = ("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv")
    result = clew(*words, "-m", "cop-kmeans")
    assert result.exit_code == 1
    assert "(a-b-c)" in result.stderr
    assert not (blobs / "data-labels.csv").exists()
    assert clew(*words).exit_code == 0


def test_infeasible_is_exit_1_with_the_rows(clew, blobs):
    pairs = [f"{first},{second},different" for first, second in ("ab", "ac", "bc")]
    (blobs / "answers.csv").write_text("\n".join(["id_1,id_2,answer", *pairs]) + "\n")
    result = clew("cluster", "data.csv", "--id", "name", "-k", 2, "-c", "answers.csv", "-m", "cop-kmeans")
    assert result.exit_code == 1
    assert "Rows a, b and c" in result.stderr
    assert not (blobs / "data-labels.csv").exists()


def test_empty_answers_are_no_knowledge(clew, blobs):
    (blobs / "answers.csv").write_text("id_1,id_2,answer\n")
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-c", "answers.csv", "--init", "k-means++")
    assert result.exit_code == 0, result.output


def test_interrupted_fit_writes_nothing(clew, blobs, monkeypatch):
    def interrupted(self, X, constraints=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(PCKMeans, "fit", interrupted)
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3)
    assert result.exit_code == 130
    assert result.stderr == "stopped; nothing was written\n"
    assert sorted(os.listdir(blobs)) == ["answers.csv", "data.csv"]


def test_interrupted_writing_leaves_no_half_file(clew, blobs, monkeypatch):
    (blobs / "out.csv").write_text("before\n")

    def interrupted(stream, arrays, delimiter):
        stream.write("name,clu")
        raise KeyboardInterrupt

    monkeypatch.setattr("clew._tables._write_delimited", interrupted)
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-o", "out.csv")
    assert result.exit_code == 130
    assert result.stderr == "stopped; nothing was written\n"
    assert (blobs / "out.csv").read_text() == "before\n"
    assert sorted(os.listdir(blobs)) == ["answers.csv", "data.csv", "out.csv"]


def test_interrupted_summary_admits_the_file(clew, blobs, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("clew.cli._cluster.print_summary", interrupted)
    result = clew("cluster", "data.csv", "--id", "name", "-k", 3, "-o", "out.csv")
    assert result.exit_code == 130
    assert result.stderr == "stopped; written: out.csv\n"


def test_ids_that_look_like_formulas_are_guarded(clew, tmp_path):
    (tmp_path / "data.csv").write_text("name,x\n=cmd(),0\n@b,1\n-5,9\n")
    assert clew("cluster", "data.csv", "--id", "name", "-k", 2, "-o", "out.csv").exit_code == 0
    assert [line.split(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()] == [
        "name", "'=cmd()", "'@b", "-5",
    ]  # fmt: skip


def test_a_matrix_of_dissimilarities_takes_the_place_of_the_columns(clew, blobs):
    words = ["kitten", "mitten", "fitting", "monday", "sunday"]
    (blobs / "words.csv").write_text("word\n" + "\n".join(words) + "\n")
    np.save(blobs / "d.npy", edit_distances(words))
    options = ("cluster", "words.csv", "--id", "word", "-k", 2, "--dissimilarity", "d.npy")
    result = clew(*options, "-m", "constrained-kmedoids", "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert groups_in(blobs / "out.csv", "word") == [set(words[:3]), set(words[3:])]
    assert "mitten (0), sunday (1); rows that represent their clusters" in " ".join(result.output.split())
    assert clew(*options, "-o", "default.csv").exit_code == 0
    assert (blobs / "default.csv").read_text() == (blobs / "out.csv").read_text()
    told = clew(*options, "-m", "constrained-kmedoids", "--solver", "exact")
    assert "objective 6, proven optimal" in " ".join(told.output.split())
    told = json.loads(clew(*options, "-m", "constrained-kmedoids", "--json").stdout)
    assert [one["medoid"] for one in told["clusters"]] == ["mitten", "sunday"] and "lower_bound" not in told
    for more, told in (
        (("-m", "pck-means"), "pck-means cannot use --dissimilarity. Use one of constrained-agglomerative"),
        (("-m", "constrained-kmedoids", "--metric", "cosine"), "leave out one of them"),
    ):
        assert told in " ".join(clew(*options, *more).output.split())
    np.save(blobs / "d.npy", np.zeros((4, 4)))
    refused = clew(*options, "-m", "constrained-kmedoids")
    assert "has shape (4, 4), but words.csv has 5 rows" in " ".join(refused.output.split())
    for content in ("no matrix", ""):
        (blobs / "d.npy").write_text(content)
        refused = clew(*options, "-m", "constrained-kmedoids")
        assert "d.npy holds no matrix of numbers" in " ".join(refused.output.split())


def test_words_of_texts_are_counted_and_those_of_feedback_shown(clew, tmp_path):
    senders, topics = ("ann writes", "regards bob"), ("the orbit of a shuttle", "the church and faith")
    rows = [f"r{i},{senders[i // 6]}: {topics[i % 2]}" for i in range(12)]
    (tmp_path / "posts.csv").write_text("id,text\n" + "\n".join(rows) + "\n")
    (tmp_path / "answers.csv").write_text("id_1,id_2,answer\nr0,r1,different\nr6,r7,different\nr0,r6,same\n")
    flags = ("--id", "id", "-k", 2, "-c", "answers.csv", "-m", "feedback-naive-bayes")
    result = clew("cluster", "posts.csv", *flags)
    assert result.exit_code == 0, result.output
    assert groups_in(tmp_path / "posts-labels.csv", "id") == [
        {f"r{i}" for i in range(0, 12, 2)}, {f"r{i}" for i in range(1, 12, 2)},
    ]  # fmt: skip
    assert "words of 0" in result.output
    found = json.loads(clew("cluster", "posts.csv", *flags, "--json").stdout)
    assert all(
        {"orbit", "shuttle"} <= set(words) or {"church", "faith"} <= set(words) for words in found["words"].values()
    )
    assert all(one["weight"] > 1 for one in found["important_words"])
    (tmp_path / "counts.csv").write_text(
        "id,a,b\n" + "".join(f"r{i},{i % 2 * 5},{(i + 1) % 2 * 5}\n" for i in range(6))
    )
    assert clew("cluster", "counts.csv", "--id", "id", "-k", 2, "-m", "feedback-naive-bayes").exit_code == 0
    (tmp_path / "counts.csv").write_text("id,a,b\nr1,1,-1\nr2,2,2\n")
    refused = clew("cluster", "counts.csv", "--id", "id", "-k", 2, "-m", "feedback-naive-bayes")
    assert "Negative values in data" in refused.output
    (tmp_path / "lone.csv").write_text("id,text\nr1,alpha\nr2,beta gamma\n")
    refused = clew("cluster", "lone.csv", "--id", "id", "-k", 2, "-m", "feedback-naive-bayes")
    assert "No two texts share a word" in " ".join(refused.output.split())
