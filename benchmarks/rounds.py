"""What one more round costs, against scikit-learn's k-means on the same rows from the same centres.

The data is uniform noise, on which k-means keeps moving, so that every run does as many rounds as it may. The time of
a round is the difference between a run of many rounds and one of few, which leaves out all set-up. Each run of clew is
set against the run of scikit-learn just before it, in the same process, in processor time: what else the machine does
then hurts both.
"""

from __future__ import annotations

import time
import warnings
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import clew
from benchmarks._harness import Report, in_fresh_process, judged, verdict

N_COLUMNS, N_CLUSTERS = 16, 10
FEW, MANY = 5, 45
# Bars for one more round, and for a whole fit of PCKMeans, both with most rows.
BARS = {
    "PCKMeans": 1.0,
    "ConstrainedKMeans": 1.0,
    "COPKMeans": 1.0,
    "SeededKMeans": 1.0,
    "CVQE": None,
    "LCVQE": None,
    "MPCKMeans": 5.0,
    "HMRFKMeans": None,
}
WHOLE_FIT = 1.2

Runs = list[tuple[float, float]]  # seconds of few rounds, seconds of many; one per repetition


def run(*, quick: bool) -> Report:
    rows = []
    sizes = [(20_000, 1)] if quick else [(100_000, 9), (1_000_000, 5)]
    for n_rows, n_repeats in sizes:
        bars = BARS if not quick and n_rows == sizes[-1][0] else dict.fromkeys(BARS)
        for dtype in ("float64", "float32"):
            measured = in_fresh_process(measure, n_rows=n_rows, dtype=dtype, n_repeats=n_repeats)
            rows += [
                {"n_rows": n_rows, "dtype": dtype, "method": method, **_compare(runs, bars[method])}
                for method, runs in measured.items()
            ]
    columns = {
        "n_rows": "rows",
        "dtype": "type",
        "method": "method",
        "round_ms": "round, ms",
        "kmeans_ms": "KMeans, ms",
        "ratio": "ratio",
        "spread": "lowest to highest",
        "fit_ratio": "whole fit",
        "bar": "bar",
        "verdict": "",
    }
    title = f"One more round: {N_COLUMNS} columns, {N_CLUSTERS} clusters, pairs for 1 % of the rows, one thread"
    whole = max(row["fit_ratio"] for row in rows[-2 * len(BARS) :] if row["method"] == "PCKMeans")
    notes = [
        "ratio: one more round of clew over one of scikit-learn's KMeans(algorithm='lloyd'); medians of CPU time.",
        f"whole fit: {MANY} rounds with all set-up, over the same of KMeans. With most rows and PCKMeans it is at most "
        f"{whole:.2f}, bar {WHOLE_FIT}: {verdict(whole, None if quick else WHOLE_FIT)}.",
    ]
    return Report("rounds", title, columns, rows, notes)


def _compare(runs: dict[str, Runs], limit: float | None) -> dict[str, Any]:
    ours, theirs = runs["clew"], runs["sklearn"]
    ratios = _ratios(_rounds(ours), _rounds(theirs))
    ratio = median(ratios)
    return {
        "round_ms": 1000 * median(_rounds(ours)),
        "kmeans_ms": 1000 * median(_rounds(theirs)),
        "ratio": ratio,
        "spread": f"{min(ratios):.2f} to {max(ratios):.2f}",
        "fit_ratio": median(_ratios([many for _, many in ours], [many for _, many in theirs])),
        **judged(ratio, limit),
        "seconds": runs,
    }


def _rounds(runs: Runs) -> list[float]:
    return [(many - few) / (MANY - FEW) for few, many in runs]


def _ratios(ours: list[float], theirs: list[float]) -> list[float]:
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]


def measure(n_rows: int, dtype: str, n_repeats: int) -> dict[str, dict[str, Runs]]:
    """Processor seconds of each method and of the runs of scikit-learn beside it."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is the point
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, N_COLUMNS)).astype(dtype)
    planted = rng.integers(0, N_CLUSTERS, n_rows)
    known = clew.Constraints.sample(planted, n_rows // 100, balance=0.5, random_state=0)
    init = X[rng.choice(n_rows, N_CLUSTERS, replace=False)]

    def kmeans(max_iter: int) -> float:
        model = KMeans(N_CLUSTERS, init=init, n_init=1, max_iter=max_iter, tol=0, algorithm="lloyd")
        return _seconds(model, X)

    def constrained(method: str, max_iter: int) -> float:
        model = getattr(clew, method)(N_CLUSTERS, init=init, max_iter=max_iter, tol=0, random_state=0)
        return _seconds(model, X, constraints=known)

    kmeans(FEW)
    for method in BARS:
        constrained(method, FEW)
    measured: dict[str, dict[str, Runs]] = {method: {"clew": [], "sklearn": []} for method in BARS}
    for _ in range(n_repeats):
        for method, runs in measured.items():
            runs["sklearn"].append((kmeans(FEW), kmeans(MANY)))
            runs["clew"].append((constrained(method, FEW), constrained(method, MANY)))
    return measured


def _seconds(model: Any, X: Any, **knowledge: Any) -> float:
    started = time.process_time()
    model.fit(X, **knowledge)
    seconds = time.process_time() - started
    if model.n_iter_ != model.max_iter:
        raise RuntimeError(f"{type(model).__name__} ended after {model.n_iter_} of {model.max_iter} rounds.")
    return seconds
