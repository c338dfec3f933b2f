"""What one more round costs, against scikit-learn's k-means on the same rows from the same centres.

The data is uniform noise, on which k-means keeps moving, so that every run does as many rounds as it may. The time of a
round is the difference between a run of many rounds and one of few, which leaves out all set-up.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import clew
from benchmarks._harness import Report, in_fresh_process, verdict

N_COLUMNS, N_CLUSTERS = 16, 10
FEW, MANY = 5, 45
BARS = {"PCKMeans": 1.3, "ConstrainedKMeans": 1.3, "COPKMeans": 3.0, "SeededKMeans": None}


def run(*, quick: bool) -> Report:
    sizes = [2_000] if quick else [100_000, 1_000_000]
    rows = []
    for n_rows in sizes:
        for dtype in ("float64", "float32"):
            n_repeats = 1 if quick else 15 if n_rows <= 100_000 else 5
            measured = in_fresh_process(
                measure, n_rows=n_rows, dtype=dtype, n_repeats=n_repeats, many=FEW + 2 if quick else MANY
            )
            for method, seconds in measured.items():
                rows.append(_row(n_rows, dtype, method, seconds, quick))
    columns = {
        "n_rows": "rows",
        "dtype": "type",
        "method": "method",
        "round_ms": "round, ms",
        "kmeans_ms": "KMeans, ms",
        "ratio": "ratio",
        "ratio_low": "lowest",
        "ratio_high": "highest",
        "fit_ratio": "whole fit",
        "limit": "bar",
        "verdict": "",
    }
    title = f"One more round, {N_COLUMNS} columns, {N_CLUSTERS} clusters, pairs for 1 % of the rows, one thread"
    notes = [
        "Medians over repetitions, each taken beside a run of scikit-learn's KMeans(algorithm='lloyd') in the same process.",
        f"'whole fit' compares fits of {MANY} rounds, set-up included.",
    ]
    return Report("rounds", title, columns, rows, notes)


def _row(n_rows: int, dtype: str, method: str, seconds: dict[str, list[list[float]]], quick: bool) -> dict[str, Any]:
    ours, theirs = seconds["clew"], seconds["sklearn"]
    ratios = [mine[0] / other[0] for mine, other in zip(ours, theirs, strict=True)]
    whole = [mine[1] / other[1] for mine, other in zip(ours, theirs, strict=True)]
    limit = None if quick else BARS[method]
    ratio = statistics.median(ratios)
    return {
        "n_rows": n_rows,
        "dtype": dtype,
        "method": method,
        "round_ms": 1000 * statistics.median(mine[0] for mine in ours),
        "kmeans_ms": 1000 * statistics.median(other[0] for other in theirs),
        "ratio": ratio,
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "fit_ratio": statistics.median(whole),
        "limit": "-" if limit is None else limit,
        "verdict": verdict(ratio, limit),
        "seconds": seconds,
    }


def measure(n_rows: int, dtype: str, n_repeats: int, many: int) -> dict[str, dict[str, list[list[float]]]]:
    """Per method: pairs of [seconds a round, seconds a fit], of clew and of the scikit-learn run before it."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is the point
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, N_COLUMNS)).astype(dtype)
    planted = rng.integers(0, N_CLUSTERS, n_rows)
    known = clew.Constraints.sample(planted, n_rows // 100, balance=0.5, random_state=0)
    init = X[rng.choice(n_rows, N_CLUSTERS, replace=False)]

    def kmeans(max_iter: int) -> float:
        model = KMeans(N_CLUSTERS, init=init, n_init=1, max_iter=max_iter, tol=0, algorithm="lloyd")
        return _seconds(model, max_iter, X)

    def constrained(method: str, max_iter: int) -> float:
        model = getattr(clew, method)(N_CLUSTERS, init=init, max_iter=max_iter, tol=0, random_state=0)
        return _seconds(model, max_iter, X, constraints=known)

    kmeans(FEW)
    seconds: dict[str, dict[str, list[list[float]]]] = {}
    for method in BARS:
        constrained(method, FEW)
        seconds[method] = {"clew": [], "sklearn": []}
    for _ in range(n_repeats):
        for method, found in seconds.items():
            few, most = kmeans(FEW), kmeans(many)
            found["sklearn"].append([(most - few) / (many - FEW), most])
            few, most = constrained(method, FEW), constrained(method, many)
            found["clew"].append([(most - few) / (many - FEW), most])
    return seconds


def _seconds(model: Any, max_iter: int, X: Any, **knowledge: Any) -> float:
    started = time.perf_counter()
    model.fit(X, **knowledge)
    elapsed = time.perf_counter() - started
    if model.n_iter_ != max_iter:
        raise RuntimeError(f"{type(model).__name__} stopped after {model.n_iter_} of {max_iter} rounds: not comparable")
    return elapsed
