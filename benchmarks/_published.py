"""The published benchmark data beside the project, and parts of a benchmark that are kept once they were run."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._harness import RESULTS, ROOT, Report
from clew import Constraints

SHARED = ROOT.parent / "shared" / "data"


def published_data() -> Any:
    """The reader of the published data, or None where they are not beside the project."""
    script = SHARED / "load.py"
    if not script.exists():
        return None
    spec = importlib.util.spec_from_file_location("benchmark_data_load", script)
    data = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(data)
    return data


def not_run(name: str, title: str) -> Report:
    note = "Not run: the published benchmark data is not beside the project."
    return Report(name, title, {"what": "what"}, [{"what": "not run"}], [note])


def rows_of(data: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A real set as the thesis has it. Its Glass has ten columns: row numbers first, and sorted classes."""
    X, y = data.load("iris_uci" if name == "iris" else name)
    return (np.column_stack([np.arange(1, len(X) + 1), X]) if name == "glass" else X), y


def breaks(known: Constraints, y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which constraints contradict the classes, must-links first."""
    must, cannot = known.must_link, known.cannot_link
    return np.concatenate([y[must[:, 0]] != y[must[:, 1]], y[cannot[:, 0]] == y[cannot[:, 1]]])


def f1(called: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> float:
    return float(2 * (called & wrong).sum() / max(called.sum() + wrong.sum(), 1))


def kept(benchmark: str, name: str, quick: bool, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A row of a table with its processor time, unless `work` measures it, from its file if it was run before."""
    path = _path(benchmark, name)
    if not quick and path.exists():
        return json.loads(path.read_text())
    started = time.process_time()
    row = work()
    row.setdefault("seconds", time.process_time() - started)
    if not quick:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(row))
    return row


def is_kept(benchmark: str, name: str) -> bool:
    """Whether a part was run before."""
    return _path(benchmark, name).exists()


def _path(benchmark: str, name: str) -> Path:
    return RESULTS / f"{benchmark}-parts" / f"{name}.json"
