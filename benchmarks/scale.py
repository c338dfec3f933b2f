"""How the cost of a fit grows with rows, columns, clusters and pairs: time, memory and operations, with exponents.

`make bench-scale` measures and draws. The exponent of a cost is the slope of its logarithm over the logarithm of the
size that grows. A test compares the exponents of counted operations with the expected ones, at toy sizes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import clew
from benchmarks._harness import RESULTS, Report, in_fresh_process, peak_megabytes
from clew.partitional import _geometry, _ties

ROUNDS = 5
BASE = {"n_rows": 200_000, "n_columns": 16, "n_clusters": 10, "n_pairs": 10_000}
GROWING = {
    "n_rows": [100_000, 400_000, 1_600_000],
    "n_columns": [8, 32, 128],
    "n_clusters": [10, 40, 160],
    "n_pairs": [1_000, 10_000, 100_000],
}
QUICK_BASE = {"n_rows": 4_000, "n_columns": 8, "n_clusters": 5, "n_pairs": 50}
QUICK_GROWING = {"n_rows": [4_000, 16_000], "n_columns": [8, 32], "n_clusters": [5, 20], "n_pairs": [50, 200]}
# Time O(t (n k d + m k)), memory O(n + k d + m) beyond X. Pairs and clusters are few beside the rows at these sizes.
EXPECTED = {"n_rows": 1.0, "n_columns": 1.0, "n_clusters": 1.0, "n_pairs": 0.0}
EXPECTED_OPERATIONS = {"n_rows": 1.0, "n_columns": 1.0, "n_clusters": 1.0, "n_pairs": 0.1}


def run(*, quick: bool) -> Report:
    base, growing = (QUICK_BASE, QUICK_GROWING) if quick else (BASE, GROWING)
    rows: list[dict[str, Any]] = []
    for what in ("in memory", "from a file"):
        for name, values in growing.items():
            measured = [in_fresh_process(measure, what=what, **{**base, name: value}) for value in values]
            slopes = {key: exponent(values, [one[key] for one in measured]) for key in ("seconds", "megabytes")}
            for value, one in zip(values, measured, strict=True):
                rows.append({"what": what, "grows": name, "value": value, **one, "time_exponent": slopes["seconds"],
                             "expected": EXPECTED[name], "memory_exponent": slopes["megabytes"]})  # fmt: skip
    columns = {
        "what": "fit",
        "grows": "what grows",
        "value": "to",
        "seconds": "round, s",
        "megabytes": "peak beyond X, MB",
        "time_exponent": "exponent of time",
        "expected": "expected",
        "memory_exponent": "exponent of memory",
    }
    title = f"How a fit of PCKMeans grows, from {base}"
    notes = ["round: mean over a fit of few rounds, start included."]
    return Report("scale", title, columns, rows, notes)


def measure(what: str, n_rows: int, n_columns: int, n_clusters: int, n_pairs: int) -> dict[str, float]:
    """Seconds per round and megabytes beyond X."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # few rounds are enough
    X, known, model = _problem(n_rows, n_columns, n_clusters, n_pairs)
    with tempfile.TemporaryDirectory() as folder:
        source: Any = X
        if what == "from a file":
            source = Path(folder, "rows.npy")
            np.save(source, X)
            del X
        started = time.perf_counter()
        peak = peak_megabytes(lambda: model.fit(source, constraints=known))
    return {"seconds": (time.perf_counter() - started) / model.n_iter_, "megabytes": peak}


def operations(n_rows: int, n_columns: int, n_clusters: int, n_pairs: int) -> float:
    """Products of the assignment and visits to pairs of a fit, per round."""
    X, known, model = _problem(n_rows, n_columns, n_clusters, n_pairs)
    with warnings.catch_warnings(), counted() as count:
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, constraints=known)
    return sum(count) / model.n_iter_


@contextmanager
def counted() -> Iterator[list[float]]:
    """Count the products of rows with centres, and the visits to units times clusters."""
    count: list[float] = []
    score, sweep = _geometry.Scoring.__call__, _ties.TiedAssignment.sweep

    def scoring(self: Any, rows: Any, out: Any = None) -> Any:
        count.append(float(rows.shape[0]) * self.directions.size)
        return score(self, rows, out)

    def sweeping(self: Any, problem: Any, units: Any, centers: Any, *others: Any) -> float:
        count.append(float(len(units)) * len(centers))
        return sweep(self, problem, units, centers, *others)

    with (
        mock.patch.object(_geometry.Scoring, "__call__", scoring),
        mock.patch.object(_ties.TiedAssignment, "sweep", sweeping),
    ):
        yield count


def exponent(sizes: list[int], costs: list[float]) -> float:
    """Slope of log cost over log size."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(costs, 1e-9)), 1)[0])


def _problem(n_rows: int, n_columns: int, n_clusters: int, n_pairs: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_columns), dtype=np.float32)
    known = clew.Constraints.sample(rng.integers(0, n_clusters, n_rows), n_pairs, balance=0.5, random_state=0)
    init = X[:n_clusters]
    return X, known, clew.PCKMeans(n_clusters, init=init, n_init=1, max_iter=ROUNDS, tol=0, random_state=0)


def draw(report: Report, path: Path) -> None:
    """Draw time and memory over the sizes, on logarithmic axes."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["grows"] for row in report.rows))
    figure, axes = plt.subplots(2, len(names), figsize=(3.2 * len(names), 5.4), squeeze=False)
    for column, name in enumerate(names):
        for line, key in enumerate(("seconds", "megabytes")):
            ax = axes[line, column]
            for what in ("in memory", "from a file"):
                rows = [row for row in report.rows if row["grows"] == name and row["what"] == what]
                slope = rows[0]["time_exponent" if key == "seconds" else "memory_exponent"]
                ax.loglog([row["value"] for row in rows], [max(row[key], 1e-9) for row in rows], "o-",
                          label=f"{what}, exponent {slope:.2f}")  # fmt: skip
            ax.set_xlabel(name)
            ax.set_ylabel({"seconds": "seconds per round", "megabytes": "MB beyond X"}[key])
            ax.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="How the cost of a fit grows.")
    parser.add_argument("--quick", action="store_true", help="toy sizes: shows that it runs")
    options = parser.parse_args()
    report = run(quick=options.quick)
    RESULTS.mkdir(parents=True, exist_ok=True)
    print(f"{report.title}\n\n{report.table()}\n")
    print(f"written: {report.write(RESULTS, 'make bench-scale')}")
    draw(report, RESULTS / "scale.png")
    print(f"written: {RESULTS / 'scale.png'}")


if __name__ == "__main__":
    from benchmarks import scale  # fresh processes import their work by the name of its module

    scale.main()
