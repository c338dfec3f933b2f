"""`clew demo`, end to end, and the commands it tells people to type next."""

import builtins
import csv
import os
import shlex

import numpy as np
import pytest
from matplotlib import image

from clew.cli import _demo
from clew.constraints import Constraints
from clew.datasets import read_table

FILES = ["answers.csv", "before-after.png", "data.csv", "labels.csv"]


@pytest.fixture
def demo(clew, tmp_path):
    result = clew("demo")
    assert result.exit_code == 0, result.output
    return result


def test_table_shows_the_gain(demo):
    rows = {line[:26].strip(): line[26:].split() for line in demo.stdout.splitlines()}
    for score in ("adjusted Rand index (ARI)", "mutual information (NMI)", "pairwise F, unasked pairs"):
        without, knowing, gain = map(float, rows[score])
        assert 0 < without < knowing <= 1
        assert gain == pytest.approx(knowing - without, abs=0.0015)
    assert "violated pairs" in rows
    assert "seconds" in rows
    assert max(map(len, demo.stdout.splitlines())) <= 80


def test_files_are_all_there(demo, tmp_path):
    assert sorted(os.listdir(tmp_path / "demo")) == FILES
    picture = image.imread(tmp_path / "demo" / "before-after.png")
    height, width, _ = picture.shape
    assert width > height > 500
    assert len(np.unique((255 * picture[..., :3]).astype(int) @ (65536, 256, 1))) > 100  # colours
    labels = read_table(tmp_path / "demo" / "labels.csv")
    assert labels.columns == ["id", "cluster", "cluster_without", "class"]
    assert labels.n_rows == 150


def test_answers_agree_with_the_classes(demo, tmp_path):
    labels = read_table(tmp_path / "demo" / "labels.csv")
    answers = Constraints.from_file(tmp_path / "demo" / "answers.csv", ids=labels.ids("id"))
    classes = labels.column("class")
    assert len(answers.must_link) + len(answers.cannot_link) == 48
    assert (classes[answers.must_link[:, 0]] == classes[answers.must_link[:, 1]]).all()
    assert (classes[answers.cannot_link[:, 0]] != classes[answers.cannot_link[:, 1]]).all()


def test_what_it_says_to_type_next_works_and_repeats_it(demo, clew, tmp_path):
    typed = demo.stdout.replace("\\\n", " ").splitlines()
    lines = [line for line in typed if line.startswith("  clew ")]
    assert [line.split()[1] for line in lines] == ["cluster", "check", "methods", "serve"]
    for line in lines[:-1]:  # the last one would go on serving
        result = clew(*shlex.split(line)[1:])
        assert result.exit_code == 0, result.output
    mine, theirs = (
        {record["id"]: record["cluster"] for record in csv.DictReader(path.read_text().splitlines())}
        for path in (tmp_path / "my-labels.csv", tmp_path / "demo" / "labels.csv")
    )
    assert mine == theirs


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_other_data_sets(clew, tmp_path, name):
    result = clew("demo", "--data", name, "--answers", 20, "--out", "here/there", "--random-state", 1)
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(tmp_path / "here" / "there")) == FILES
    assert "--random-state 1" in result.stdout
    assert ("--scale none" in result.stdout) == (name == "digits")


def test_demo_repeats_itself(demo, clew, tmp_path):
    before = {name: (tmp_path / "demo" / name).read_bytes() for name in FILES}
    assert clew("demo").exit_code == 0
    assert {name: (tmp_path / "demo" / name).read_bytes() for name in FILES} == before


def test_without_matplotlib_it_names_the_extra_and_goes_on(clew, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    result = clew("demo")
    assert result.exit_code == 0, result.output
    assert "pip install 'clew[plot]'" in result.stderr
    assert sorted(os.listdir(tmp_path / "demo")) == [name for name in FILES if not name.endswith(".png")]


def test_no_answers_is_no_gain(clew):
    result = clew("demo", "--answers", 0)
    assert result.exit_code == 0, result.output
    assert "+0.000" in result.stdout


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("--out", "taken"), "Cannot write into taken: it is a file"),
        (("--answers", "1000000"), "Lower n"),
    ],
)
def test_bad_input_is_exit_2(clew, tmp_path, words, sentence):
    (tmp_path / "taken").write_text("")
    result = clew("demo", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert os.listdir(tmp_path) == ["taken"]


def test_interrupted_demo_admits_its_directory(clew, tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("clew.cli._picture.draw", interrupted)
    result = clew("demo")
    assert result.exit_code == 130
    assert result.stderr == "stopped; written: demo\n"
    assert sorted(os.listdir(tmp_path / "demo")) == ["answers.csv", "data.csv", "labels.csv"]


@pytest.mark.parametrize(
    "started, on_path, expected",
    [
        ("/nowhere/else/clew", None, "../nowhere/else/clew"),
        ("/nowhere/else/clew", "/usr/bin/clew", "clew"),
        ("/nowhere/else/pytest", None, "clew"),
    ],
)
def test_next_commands_start_with_what_the_shell_finds(monkeypatch, started, on_path, expected):
    monkeypatch.setattr("sys.argv", [started])
    monkeypatch.setattr("shutil.which", lambda name: on_path)
    monkeypatch.chdir("/tmp")
    assert _demo._command() == expected
