"""`clew cluster --stream`: the labels of the command in memory, stopped and continued."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from clew import PCKMeans
from clew.cli import _streamed
from clew.partitional._checkpoint import Checkpoint
from tests.command import type_in

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 3)) + 2 * classes[:, None]
    table = pa.table({"name": [f"r{row}" for row in range(400)], **{f"c{column}": X[:, column] for column in range(3)}})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=150)
    np.save(tmp_path / "rows.npy", X)
    pairs = [(one, two) for one, two in rng.integers(0, 400, (60, 2)) if one != two]
    for prefix, name in (("r", "named.csv"), ("", "numbered.csv")):
        lines = [
            f"{prefix}{one},{prefix}{two},{'same' if classes[one] == classes[two] else 'different'}\n"
            for one, two in pairs
        ]
        (tmp_path / name).write_text("id_1,id_2,answer\n" + "".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("scale", ["auto", "minmax", "none"])
@pytest.mark.parametrize("data", ["rows.parquet", "rows.npy"])
def test_streamed_labels_are_those_of_the_command_in_memory(folder, data, scale):
    flags = ["--id", "name", "-c", "named.csv"] if data == "rows.parquet" else ["-c", "numbered.csv"]
    for how in ("--stream", "--no-stream"):
        result = type_in("cluster", data, "-k", 3, *flags, "--scale", scale, how, "-o", f"labels{how}.csv")
        assert result.exit_code == 0, result.output
    streamed = (folder / "labels--stream.csv").read_text()
    assert streamed == (folder / "labels--no-stream.csv").read_text()
    assert "violated" in result.output
    assert not list(folder.glob("*.checkpoint"))


@pytest.mark.parametrize("request_to_stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_fit_keeps_its_rounds_and_the_same_command_continues(folder, monkeypatch, request_to_stop):
    words = [
        "cluster",
        "rows.parquet",
        "-k",
        8,
        "--id",
        "name",
        "-c",
        "named.csv",
        "--n-init",
        2,
        "--tol",
        0,
        "--stream",
    ]
    assert type_in(*words, "-o", "straight.parquet").exit_code == 0
    round_done, n_rounds = Checkpoint.round_done, []

    def interrupted(checkpoint, state):
        n_rounds.append(len(state["history"]))
        if len(n_rounds) == 3:
            signal.raise_signal(request_to_stop)
        round_done(checkpoint, state)

    monkeypatch.setattr(Checkpoint, "round_done", interrupted)
    stopped = type_in(*words, "-o", "labels.parquet")
    assert stopped.exit_code == 130
    assert "labels.parquet.checkpoint. Repeat the command to continue" in stopped.stderr
    assert not (folder / "labels.parquet").exists()
    other = type_in(*[9 if word == 8 else word for word in words], "-o", "labels.parquet")
    assert other.exit_code == 2
    assert "n_clusters was 8, and is 9" in other.stderr
    resumed = type_in(*words, "-o", "labels.parquet")
    assert resumed.exit_code == 0
    assert "after the 3 rounds" in resumed.stderr
    assert pq.read_table("labels.parquet").equals(pq.read_table("straight.parquet"))
    assert not (folder / "labels.parquet.checkpoint").exists()


def test_what_cannot_be_streamed_is_refused(folder):
    (folder / "rows.csv").write_text("a,b\n1,2\n")
    (folder / "nothing").mkdir()
    for words, message in [
        (["rows.csv", "-k", 2], "is no .npy or parquet file"),
        (["rows.parq", "-k", 2], "rows.parq does not exist"),
        (["nothing", "-k", 2], "nothing is a folder without parquet files"),
        (["rows.parquet", "-k", 2, "--id", "name", "--source", "name"], "--source needs all rows in memory"),
        (["rows.parquet", "-k", 2, "--id", "name", "--scale", "robust"], "--scale robust needs all rows in memory"),
        (["rows.parquet", "-k", 2, "--id", "name", "-m", "mpck-means"], "MPCKMeans needs all rows in memory"),
        (["rows.parquet", "-k", 2], "Column 'name' of rows.parquet has type"),
        (["rows.parquet", "-k", 2, "--id", "nobody", "--columns", "c0"], 'has no column "nobody"'),
    ]:
        result = type_in("cluster", *words, "--stream")
        assert result.exit_code == 2, words
        assert message in result.stderr


def _in_both_ways(data, *words):
    """The same command streamed and in memory; checks that labels and description of the columns are equal."""
    results = [type_in("cluster", data, *words, how, "-o", f"labels{how}.csv") for how in ("--stream", "--no-stream")]
    for result in results:
        assert result.exit_code == 0, result.output
    labels = [
        np.loadtxt(f"labels{how}.csv", delimiter=",", skiprows=1, usecols=1) for how in ("--stream", "--no-stream")
    ]
    assert np.array_equal(*labels)
    told = [result.stderr[result.stderr.index("columns: read as") :] for result in results]
    assert told[0] == told[1]
    return told[0]


@pytest.mark.parametrize("scale", ["auto", "standard", "minmax", "none"])
def test_columns_are_chosen_and_weighed_as_in_memory(folder, scale):
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 3, 300)
    table = pa.table(
        {
            "customer_id": rng.permutation(300),
            "shop_id": groups * 7,
            "one": np.full(300, 5.0),
            "size": rng.normal(size=300) + 4 * groups,
            "vector": list(rng.normal(size=(300, 4)) * 10 + groups[:, None]),
            "vip": groups > 1,
        }
    )
    pq.write_table(table, folder / "mixed.parquet", row_group_size=100)
    told = _in_both_ways("mixed.parquet", "-k", 3, "--scale", scale)
    assert "customer_id  left out          it names the rows" in told
    assert "one          left out          it has one value only" in told
    told = _in_both_ways("mixed.parquet", "-k", 3, "--scale", scale, "--columns", "customer_id,size")
    assert "customer_id  number" in told


@pytest.mark.parametrize("scale", ["auto", "standard"])
def test_a_file_of_vectors_only_is_a_matrix(folder, scale):
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(300, 4)) * [1, 1, 1, 30] + 4 * rng.integers(0, 3, 300)[:, None]
    pq.write_table(pa.table({"vector": list(vectors)}), folder / "vectors.parquet")
    for how in ("--stream", "--no-stream"):
        result = type_in("cluster", "vectors.parquet", "-k", 3, "--scale", scale, how, "-o", f"labels{how}.csv")
        assert result.exit_code == 0
        assert "columns" not in result.stderr
    assert (folder / "labels--stream.csv").read_text() == (folder / "labels--no-stream.csv").read_text()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([*range(399), 7], 'names two rows "7" (rows 7 and 399)'),
        ([*(f"r{row}" for row in range(399)), "r7"], 'names two rows "r7" (rows 7 and 399)'),
        ([*(f"r{row}" for row in range(399)), ""], "has no id in row 399"),
        ([*(f"r{row}" for row in range(399)), None], "has no id in row 399"),
        ([*range(399), None], "has no id in row 399"),
    ],
)
def test_repeated_and_missing_ids_are_refused_as_in_memory(folder, ids, message):
    size = np.random.default_rng(0).normal(size=400)
    pq.write_table(pa.table({"name": ids, "size": size}), folder / "ids.parquet", row_group_size=150)
    for how in ("--stream", "--no-stream"):
        result = type_in("cluster", "ids.parquet", "-k", 2, "--id", "name", how)
        assert result.exit_code == 2
        assert message in result.stderr


def test_large_and_colliding_ids_are_no_repeated_ids(folder):
    """-1 and -2 have one hash in Python, and the last two differ by their sign only if they are cut to 64 bits."""
    for ids in (pa.array([-1.0, -2.0, 3.0, 4.0]), pa.array([0, 1, 2**63, 2**64 - 1], type=pa.uint64())):
        pq.write_table(pa.table({"name": ids, "size": [0.0, 1.0, 8.0, 9.0]}), folder / "ids.parquet")
        assert type_in("cluster", "ids.parquet", "-k", 2, "--id", "name", "--stream").exit_code == 0


def test_an_unknown_id_names_the_columns_or_the_line(folder):
    mistyped = type_in("cluster", "rows.parquet", "-k", 2, "--id", "nme", "--stream")
    assert mistyped.exit_code == 2
    assert 'rows.parquet has no column "nme". Did you mean "name"? It has name, c0, c1, c2.' in mistyped.stderr
    (folder / "stranger.csv").write_text("id_1,id_2,answer\nr0,r1,same\nr2,zz9,same\n")
    stranger = type_in("cluster", "rows.parquet", "-k", 2, "--id", "name", "-c", "stranger.csv", "--stream")
    assert stranger.exit_code == 2
    assert "stranger.csv line 3: id_2 'zz9' is not among the row ids. Correct it" in stranger.stderr


def test_ctrl_c_while_writing_keeps_the_fit_and_the_same_command_only_writes(folder, monkeypatch):
    words = ["cluster", "rows.parquet", "-k", 3, "--id", "name", "-c", "named.csv", "--stream", "--n-init", 2]
    straight = type_in(*words, "-o", "straight.csv")
    assert straight.exit_code == 0

    def interrupted(target, batches):
        next(iter(batches))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(_streamed, "write_batches", interrupted)
        stopped = type_in(*words, "-o", "labels.csv")
    assert stopped.exit_code == 130
    assert "kept: the complete fit, in labels.csv.checkpoint. Repeat the command to write" in stopped.stderr
    assert not (folder / "labels.csv").exists()
    (folder / "other.csv").write_text("id_1,id_2,answer\n" + "r0,r1,same\n" * 50)
    other = type_in(*["other.csv" if word == "named.csv" else word for word in words], "-o", "labels.csv")
    assert other.exit_code == 2
    assert "is a checkpoint of another fit" in other.stderr
    with monkeypatch.context() as patched:
        patched.setattr(PCKMeans, "fit", lambda *_args, **_others: pytest.fail("fitted again"))
        resumed = type_in(*words, "-o", "labels.csv")
    assert resumed.exit_code == 0
    assert "resumed: with the complete fit in labels.csv.checkpoint" in resumed.stderr
    assert (folder / "labels.csv").read_text() == (folder / "straight.csv").read_text()
    assert not list(folder.glob("*.checkpoint"))

    def without_time_and_file(output):
        return [line for line in output.splitlines() if not line.lstrip().startswith(("time", "written"))]

    assert without_time_and_file(resumed.stdout) == without_time_and_file(straight.stdout)


def test_an_output_that_cannot_be_written_is_refused_before_the_fit(folder, monkeypatch):
    monkeypatch.setattr(PCKMeans, "fit", lambda *_args, **_others: pytest.fail("fitted first"))
    result = type_in("cluster", "rows.npy", "-k", 3, "--stream", "-o", "/proc/labels.csv")
    assert result.exit_code == 2
    assert "Cannot write /proc/labels.csv" in result.stderr


@pytest.fixture
def parts(folder):
    """A folder of two parquet files."""
    table = pq.read_table("rows.parquet")
    (folder / "parts").mkdir()
    pq.write_table(table[:250], "parts/a.parquet")
    pq.write_table(table[250:], "parts/b.parquet")
    return folder / "parts"


def _copy(parts):
    (parts / "c.parquet").write_bytes((parts / "a.parquet").read_bytes())


def _grow(parts):
    with open(parts / "b.parquet", "ab") as file:
        file.write(b"more")


@pytest.mark.parametrize(
    ("change", "message"),
    [(_copy, "parts/c.parquet was added while parts was read"), (_grow, "parts/b.parquet grew while it was read")],
)
@pytest.mark.parametrize("when", ["fit", "labels"])
def test_a_folder_that_changes_meanwhile_is_refused_and_nothing_is_left_behind(
    parts, monkeypatch, change, message, when
):
    place, name = (PCKMeans, "fit") if when == "fit" else (_streamed, "_labelled")
    original = getattr(place, name)

    def changed(*args, **others):
        change(parts)
        return original(*args, **others)

    monkeypatch.setattr(place, name, changed)
    result = type_in("cluster", "parts", "-k", 3, "--id", "name", "-o", "labels.csv")
    assert result.exit_code == 2
    assert f"{message}. Fit again when it is complete." in result.stderr
    assert "kept" not in result.stderr
    assert not list(parts.parent.glob("*labels*"))


def test_ids_of_two_types_are_refused_before_the_fit(parts):
    other = pq.read_table("parts/b.parquet")
    pq.write_table(other.set_column(0, "name", pa.array(range(len(other)))), "parts/b.parquet")
    result = type_in("cluster", "parts", "-k", 3, "--id", "name")
    assert result.exit_code == 2
    assert (
        'Column "name" of parts changes its type in row 250: int64 and str. Write ids with one type.' in result.stderr
    )
