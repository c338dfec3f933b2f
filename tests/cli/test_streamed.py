"""`clew cluster --stream`: the labels of the command in memory, stopped and continued."""

from __future__ import annotations

import signal

import numpy as np
import pytest

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


def test_ctrl_c_keeps_the_rounds_and_the_same_command_continues(folder, monkeypatch):
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
            signal.raise_signal(signal.SIGINT)
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
    for words, message in [
        (["rows.csv", "-k", 2], "is no .npy or parquet file"),
        (["rows.parquet", "-k", 2, "--id", "name", "--source", "name"], "--source needs all rows in memory"),
        (["rows.parquet", "-k", 2, "--id", "name", "--scale", "robust"], "--scale robust needs all rows in memory"),
        (["rows.parquet", "-k", 2, "--id", "name", "-m", "mpck-means"], "MPCKMeans needs all rows in memory"),
        (["rows.parquet", "-k", 2], "Column 'name' of rows.parquet has type"),
        (["rows.parquet", "-k", 2, "--id", "nobody", "--columns", "c0"], 'has no column "nobody"'),
    ]:
        result = type_in("cluster", *words, "--stream")
        assert result.exit_code == 2, words
        assert message in result.stderr
