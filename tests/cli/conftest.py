"""Run the command in this process, in a directory of its own; projects need the extra app."""

import importlib.util

import pytest

from tests.command import type_in

collect_ignore = [] if importlib.util.find_spec("sqlalchemy") else ["test_ask.py", "test_projects.py"]


@pytest.fixture
def clew(tmp_path, monkeypatch):
    """Type a command; the working directory is `tmp_path`, the terminal 80 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CLEW_DEBUG", raising=False)
    return type_in


@pytest.fixture
def blobs(tmp_path):
    """Twelve rows in three tight groups of four, named a to l; answers that agree with them."""
    corners = {"abcd": (0, 0), "efgh": (10, 0), "ijkl": (0, 10)}
    lines = ["name,x,y"]
    for names, (x, y) in corners.items():
        lines += [f"{name},{x + place % 2},{y + place // 2}" for place, name in enumerate(names)]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "answers.csv").write_text("id_1,id_2,answer\na,b,same\ne,f,same\na,e,different\na,i,different\n")
    return tmp_path
