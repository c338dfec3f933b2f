"""Background jobs in separate processes: results are cached by key, and jobs end when the server stops."""

import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from clew.exceptions import DataError
from clew.web._jobs import BackgroundJobs


@dataclass
class Double:
    number: int

    def run(self):
        sys.stdout.write("this goes nowhere near the result")
        if self.number < 0:
            raise DataError(f"{self.number} is too small.")
        return 2 * self.number


@dataclass
class Sleep:
    seconds: float

    def run(self):
        threading.Event().wait(self.seconds)


@pytest.fixture
def jobs(monkeypatch):
    paths = [Path(__file__).resolve().parents[2], os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))  # the process needs the plans of this file
    jobs = BackgroundJobs()
    yield jobs
    jobs.close()


def test_a_result_is_kept_and_outlives_a_refusal(jobs):
    assert jobs.look("double", 1, lambda: Double(21)).working
    jobs.settle()
    assert jobs.look("double", 1, lambda: None).value == 42
    assert jobs.done == 1
    later = jobs.look("double", 2, lambda: Double(-3))
    assert (later.value, later.key, later.working) == (42, 1, True)
    jobs.settle()
    found = jobs.look("double", 2, lambda: None)
    assert (found.value, found.problem, found.working) == (42, "-3 is too small.", False)


def test_a_crash_is_told_without_its_traceback(jobs, caplog):
    jobs.look("double", 1, lambda: Double("text"))
    jobs.settle()
    found = jobs.look("double", 1, lambda: None)
    assert found.problem.startswith("This is a bug in clew")
    assert "TypeError" in caplog.text


def test_closing_does_not_wait(jobs):
    jobs.look("sleep", 1, lambda: Sleep(3600))
    jobs.close()
    assert not any(one.name == "clew-jobs" for one in threading.enumerate())
    assert not jobs.look("sleep", 2, lambda: Sleep(3600)).working


def test_modules_in_the_folder_of_the_data_are_not_loaded(jobs, tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise SystemExit('this is not numpy')")
    monkeypatch.chdir(tmp_path)
    jobs.look("double", 1, lambda: Double(21))
    jobs.settle()
    assert jobs.look("double", 1, lambda: None).value == 42
