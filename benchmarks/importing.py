"""What importing clew costs beyond scikit-learn's own import: whole processes, taken in turns."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from statistics import median

from benchmarks._harness import ROOT, Report, judged

LIMIT = 1.0
SKLEARN = "import sklearn.cluster"
STATEMENTS = {
    "import clew": "import clew",
    "import clew and use PCKMeans": "import clew; clew.PCKMeans",
    "import all public names": "import clew; [getattr(clew, name) for name in clew.__all__]",
}


def run(*, quick: bool) -> Report:
    n_repeats = 1 if quick else 15
    statements = {SKLEARN: SKLEARN, **STATEMENTS}
    runs: dict[str, list[tuple[float, float]]] = {what: [] for what in statements}
    for _ in range(n_repeats):
        for what, statement in statements.items():
            runs[what].append(_process_seconds(statement))
    wall, cpu = ({what: median(run[clock] for run in runs[what]) for what in runs} for clock in (0, 1))
    rows = []
    for what in STATEMENTS:
        beyond = wall[what] - wall[SKLEARN]
        rows.append(
            {
                "what": what,
                "seconds": wall[what],
                "sklearn_seconds": wall[SKLEARN],
                "beyond": beyond,
                "cpu_beyond": cpu[what] - cpu[SKLEARN],
                **judged(beyond, None if quick else LIMIT),
                "all_seconds": {"clew": runs[what], "sklearn": runs[SKLEARN]},
            }
        )
    columns = {
        "what": "process",
        "seconds": "seconds",
        "sklearn_seconds": SKLEARN,
        "beyond": "beyond it",
        "cpu_beyond": "CPU beyond it",
        "bar": "bar",
        "verdict": "",
    }
    notes = [f"Wall time of a new interpreter from start to end, median of {n_repeats}, taken in turns."]
    return Report("import", "Import", columns, rows, notes)


def _process_seconds(statement: str) -> tuple[float, float]:
    """Wall and CPU seconds of a process that runs a statement."""
    started, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-c", statement], cwd=ROOT, check=True)
    elapsed, after = time.perf_counter() - started, os.times()
    return elapsed, after.children_user + after.children_system - before.children_user - before.children_system
