"""What importing clew costs beyond scikit-learn's own import: whole processes, taken in turns."""

from __future__ import annotations

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
    seconds: dict[str, list[float]] = {what: [] for what in statements}
    for _ in range(n_repeats):
        for what, statement in statements.items():
            seconds[what].append(_process_seconds(statement))
    theirs = median(seconds[SKLEARN])
    rows = []
    for what in STATEMENTS:
        ours = median(seconds[what])
        rows.append(
            {
                "what": what,
                "seconds": ours,
                "sklearn_seconds": theirs,
                "beyond": ours - theirs,
                **judged(ours - theirs, None if quick else LIMIT),
                "all_seconds": {"clew": seconds[what], "sklearn": seconds[SKLEARN]},
            }
        )
    columns = {
        "what": "process",
        "seconds": "seconds",
        "sklearn_seconds": SKLEARN,
        "beyond": "beyond it",
        "bar": "bar",
        "verdict": "",
    }
    notes = [f"Wall time of a new interpreter from start to end, median of {n_repeats}, taken in turns."]
    return Report("import", "Import", columns, rows, notes)


def _process_seconds(statement: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], cwd=ROOT, check=True)
    return time.perf_counter() - started
