"""Limits on the sizes of clusters: rounds beside k-means-constrained, and a million rows by the sampled method.

k-means-constrained is no dependency of clew: without it, the lines beside it have no other figure.
"""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances

import clew
from benchmarks._harness import Report, in_fresh_process, judged, peak_megabytes
from clew.solvers.transport import transport

N_COLUMNS, N_CLUSTERS = 16, 10
FEW, MANY = 1, 4  # rounds of the two fits whose difference is timed
# A round of clew over one of the other; difference of the objectives; seconds of 20,000 rows; the million.
RATIO, DIFFERENCE, SECONDS, MILLION_SECONDS, MILLION_MEGABYTES = 0.2, 1e-6, 60.0, 300.0, 2048.0
Result = dict[str, Any]


def run(*, quick: bool) -> Report:
    rows: list[Result] = []
    for n_rows in (500,) if quick else (10_000, 100_000):
        rows += _compared(in_fresh_process(measure_rounds, n_rows=n_rows, n_repeats=1 if quick else 3), n_rows, quick)
    size = {"n_rows": 500 if quick else 20_000, "n_columns": 50}
    found = in_fresh_process(measure_fit, method="BalancedKMeans", tolerance=None, **size)
    rows.append(_line("fit, s", size, found["wall"], found["cpu"], None if quick else SECONDS))
    for what, tolerance in (("half to double the mean", None), ("mean ± 2 %", 0.02)):
        size = {"n_rows": 30_000 if quick else 1_000_000, "n_columns": N_COLUMNS}
        found = in_fresh_process(measure_fit, method="SampledBalancedKMeans", tolerance=tolerance, **size)
        limits = (None, None) if quick else (MILLION_SECONDS, MILLION_MEGABYTES)
        rows.append(_line(f"sampled fit, {what}, s", size, found["wall"], found["cpu"], limits[0]))
        rows.append(_line(f"sampled fit, {what}, MB", size, found["megabytes"], None, limits[1]))
    columns = {
        "what": "what",
        "n_rows": "rows",
        "n_columns": "columns",
        "clew": "clew",
        "cpu": "CPU",
        "other": "k-means-constrained",
        "ratio": "ratio",
        "bar": "bar",
        "verdict": "",
    }
    title = f"Sizes: {N_CLUSTERS} clusters of half to double the mean size, planted ones of 1 to 10 shares, one thread"
    notes = [
        "round: the difference between fits of 4 rounds and of 1 from the same centres; medians over repetitions in "
        "turn. difference: of the cost of one assignment by both solvers, for the same distances. squares: the sum of "
        "squared distances of one assignment; k-means-constrained minimises the distances themselves. MB: peak of the "
        "resident memory beyond the data."
    ]
    return Report("sizes", title, columns, rows, notes)


def _line(what: str, size: Result, ours: float, cpu: float | None, limit: float | None) -> Result:
    dash = "-" if cpu is None else cpu
    return {"what": what, **size, "clew": ours, "cpu": dash, "other": "-", "ratio": "-", **judged(ours, limit)}


def _compared(found: Result, n_rows: int, quick: bool) -> list[Result]:
    size = {"n_rows": n_rows, "n_columns": N_COLUMNS}
    ours = 1000 * median(found["clew"])
    if found["other"] is None:
        return [_line("round, ms", size, ours, 1000 * median(found["clew_cpu"]), None)]
    theirs, costs = 1000 * median(found["other"]), found["costs"]
    ratio, difference = ours / theirs, abs(costs["clew"] - costs["other"]) / costs["other"]
    return [
        {
            **_line("round, ms", size, ours, 1000 * median(found["clew_cpu"]), None),
            "other": theirs,
            "ratio": ratio,
            **judged(ratio, None if quick else RATIO),
            "seconds": found,
        },
        {
            **_line("difference", size, costs["clew"], None, None),
            "other": costs["other"],
            "ratio": difference,
            **judged(difference, None if quick else DIFFERENCE),
        },
        {
            **_line("squares", size, costs["clew_squares"], None, None),
            "other": costs["other_squares"],
            "ratio": costs["clew_squares"] / costs["other_squares"],
        },
    ]


def measure_rounds(n_rows: int, n_repeats: int) -> Result:
    """Seconds of one more round of both, and what one assignment by both costs."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is the point
    X, limits, init = _problem(n_rows, N_COLUMNS)
    start = {"init": init, "n_init": 1, "tol": 0}

    def ours(max_iter: int) -> tuple[float, float]:
        return _seconds(clew.BalancedKMeans(N_CLUSTERS, max_iter=max_iter, **limits, **start), X)

    ours(FEW)
    found: Result = {"clew": [], "clew_cpu": [], "other": None, "costs": None}
    compare = find_spec("k_means_constrained") is not None
    if compare:
        from k_means_constrained import KMeansConstrained

        found["other"], found["costs"] = [], _costs(X, limits, init)

        def theirs(max_iter: int) -> tuple[float, float]:
            return _seconds(KMeansConstrained(N_CLUSTERS, max_iter=max_iter, n_jobs=1, **limits, **start), X)

    for _ in range(n_repeats):
        few, many = ours(FEW), ours(MANY)
        found["clew"].append((many[0] - few[0]) / (MANY - FEW))
        found["clew_cpu"].append((many[1] - few[1]) / (MANY - FEW))
        if compare:
            found["other"].append((theirs(MANY)[0] - theirs(FEW)[0]) / (MANY - FEW))
    return found


def _costs(X: Any, limits: Result, centers: Any) -> dict[str, float]:
    """The cost of one assignment by both solvers, in distances and in squares."""
    from k_means_constrained.k_means_constrained_ import minimum_cost_flow_problem_graph, solve_min_cost_flow_graph

    distances = euclidean_distances(X, centers)
    problem = minimum_cost_flow_problem_graph(X, centers, distances, limits["size_min"], limits["size_max"])
    theirs = np.asarray(solve_min_cost_flow_graph(*problem))
    lower, upper = (np.full(N_CLUSTERS, limits[name]) for name in ("size_min", "size_max"))
    rows = np.arange(len(X))
    return {
        "clew": transport(distances, lower, upper).cost,
        "other": float(distances[rows, theirs].sum()),
        "clew_squares": transport(distances**2, lower, upper).cost,
        "other_squares": float((distances[rows, theirs] ** 2).sum()),
    }


def measure_fit(method: str, n_rows: int, n_columns: int, tolerance: float | None) -> Result:
    """Seconds and megabytes of a whole fit."""
    X, limits, _ = _problem(n_rows, n_columns)
    if tolerance is not None:
        limits = {"tolerance": tolerance}
    model = getattr(clew, method)(N_CLUSTERS, random_state=0, **limits)
    seconds: list[float] = []
    megabytes = peak_megabytes(lambda: seconds.extend(_seconds(model, X)))
    return {"wall": seconds[0], "cpu": seconds[1], "megabytes": megabytes}


def _seconds(model: Any, X: Any) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X)
    return time.perf_counter() - wall, time.process_time() - cpu


def _problem(n_rows: int, n_columns: int) -> tuple[Any, Result, Any]:
    rng = np.random.default_rng(0)
    shares = np.arange(1, N_CLUSTERS + 1)
    planted = rng.choice(N_CLUSTERS, n_rows, p=shares / shares.sum())
    X = 1.5 * rng.normal(size=(N_CLUSTERS, n_columns))[planted] + rng.normal(size=(n_rows, n_columns))
    mean = n_rows // N_CLUSTERS
    return X, {"size_min": mean // 2, "size_max": 2 * mean}, X[rng.choice(n_rows, N_CLUSTERS, replace=False)]
