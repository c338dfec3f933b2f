"""Trees of clusters: time beside SciPy's `linkage` of the same kind, and peak memory beside one condensed matrix."""

from __future__ import annotations

import time
import warnings
from statistics import median

import numpy as np
from scipy.cluster.hierarchy import linkage

import clew
from benchmarks._harness import Report, in_fresh_process, judged, peak_megabytes
from clew.exceptions import MoreClustersWarning

N_COLUMNS, N_CLUSTERS = 16, 10
# Time over SciPy's; memory over one condensed matrix, with a few arrays of one entry per row.
TIME_LIMIT, MEMORY_LIMIT = 3.0, 1.05
KINDS = ("single", "average", "complete", "ward", "centroid")


def run(*, quick: bool) -> Report:
    n_rows, n_repeats = (400, 1) if quick else (5_000, 5)
    rows = []
    for kind in (*KINDS, "space-level"):
        seconds = in_fresh_process(measure_time, kind=kind, n_rows=n_rows, n_repeats=n_repeats)
        ratio = median(ours / theirs for ours, theirs in zip(seconds["clew"], seconds["scipy"], strict=True))
        is_judged = kind != "space-level" and not quick
        rows.append(
            {
                "what": "seconds",
                "kind": kind,
                "n_rows": n_rows,
                "clew": median(seconds["clew"]),
                "other": median(seconds["scipy"]),
                "ratio": ratio,
                **judged(ratio, TIME_LIMIT if is_judged else None),
                "seconds": seconds,
            }
        )
    sizes = [(400, ("average",))] if quick else [(5_000, ("average", "space-level")), (20_000, KINDS)]
    for n_rows, kinds in sizes:
        for kind in kinds:
            peak = in_fresh_process(measure_memory, kind=kind, n_rows=n_rows)
            matrix = n_rows * (n_rows - 1) // 2 * 8 / 2**20
            limit = None if quick else MEMORY_LIMIT
            rows.append(
                {
                    "what": "megabytes",
                    "kind": kind,
                    "n_rows": n_rows,
                    "clew": peak,
                    "other": matrix,
                    "ratio": peak / matrix,
                    **judged(peak / matrix, limit),
                }
            )
    columns = {
        "what": "of a fit",
        "kind": "linkage",
        "n_rows": "rows",
        "clew": "clew",
        "other": "SciPy, or one matrix",
        "ratio": "ratio",
        "bar": "bar",
        "verdict": "",
    }
    title = f"Trees of clusters: {N_COLUMNS} columns, pairs for 1 % of the rows, one thread"
    notes = [
        "seconds: beside scipy.cluster.hierarchy.linkage of the same kind without constraints (space-level: complete); "
        "medians over repetitions in turn. megabytes: peak beyond the data, beside one condensed matrix."
    ]
    return Report("trees", title, columns, rows, notes)


def measure_time(kind: str, n_rows: int, n_repeats: int) -> dict[str, list[float]]:
    """Seconds of whole fits and of SciPy, in turn."""
    X, model, known = _problem(kind, n_rows)
    seconds: dict[str, list[float]] = {"scipy": [], "clew": []}
    for _ in range(n_repeats):
        started = time.perf_counter()
        linkage(X, "complete" if kind == "space-level" else kind)
        seconds["scipy"].append(time.perf_counter() - started)
        started = time.perf_counter()
        model.fit(X, constraints=known)
        seconds["clew"].append(time.perf_counter() - started)
    return seconds


def measure_memory(kind: str, n_rows: int) -> float:
    """Megabytes by which a fit raises the memory of the process at most."""
    X, model, known = _problem(kind, n_rows)
    _problem(kind, 300)[1].fit(X[:300])  # what libraries load and keep on first use is not the fit's
    return peak_megabytes(lambda: model.fit(X, constraints=known))


def _problem(kind: str, n_rows: int) -> tuple[np.ndarray, clew.ConstrainedAgglomerative, clew.Constraints]:
    warnings.simplefilter("ignore", MoreClustersWarning)
    rng = np.random.default_rng(0)
    planted = rng.integers(0, N_CLUSTERS, n_rows)
    X = rng.normal(size=(N_CLUSTERS, N_COLUMNS))[planted] + rng.normal(size=(n_rows, N_COLUMNS))
    known = clew.Constraints.sample(planted, max(n_rows // 100, 1), balance=0.5, random_state=0)
    if kind == "space-level":
        return X, clew.SpaceLevelAgglomerative(N_CLUSTERS), known
    return X, clew.ConstrainedAgglomerative(N_CLUSTERS, linkage=kind), known
