"""Peak memory of a fit beyond the data, against scikit-learn's k-means; each fit in a process of its own."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import clew
from benchmarks._harness import Report, in_fresh_process, judged, peak_megabytes

N_COLUMNS, N_CLUSTERS, ROUNDS = 16, 10, 10
LIMIT = 2.0
METHODS = ("PCKMeans", "ConstrainedKMeans", "COPKMeans", "SeededKMeans")


def run(*, quick: bool) -> Report:
    rows = []
    for n_rows in [2_000] if quick else [100_000, 1_000_000]:
        for start in ("array",) if quick else ("array", "default"):
            theirs = in_fresh_process(measure, n_rows=n_rows, method="KMeans", start=start)
            for method in METHODS[:1] if quick else METHODS:
                ours = in_fresh_process(measure, n_rows=n_rows, method=method, start=start)
                ratio = ours / theirs if theirs else 0.0
                rows.append(
                    {
                        "n_rows": n_rows,
                        "start": start,
                        "method": method,
                        "data_mb": n_rows * N_COLUMNS * 8 / 2**20,
                        "peak_mb": ours,
                        "kmeans_mb": theirs,
                        "ratio": ratio,
                        **judged(ratio, None if quick else LIMIT),
                    }
                )
    columns = {
        "n_rows": "rows",
        "start": "init",
        "method": "method",
        "data_mb": "data, MB",
        "peak_mb": "peak of fit, MB",
        "kmeans_mb": "KMeans, MB",
        "ratio": "ratio",
        "bar": "bar",
        "verdict": "",
    }
    title = f"Peak memory of a fit beyond its data: {N_COLUMNS} columns of float64, pairs for 1 % of the rows"
    notes = ["init: the same array of centres for both, or each library's own default."]
    return Report("memory", title, columns, rows, notes)


def measure(n_rows: int, method: str, start: str) -> float:
    """Megabytes by which a fit raises the memory of the process at most."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # few rounds are enough: memory does not grow with them
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, N_COLUMNS))
    planted = rng.integers(0, N_CLUSTERS, n_rows)
    known = clew.Constraints.sample(planted, n_rows // 100, balance=0.5, random_state=0)
    settings: dict[str, Any] = {"max_iter": ROUNDS, "tol": 0, "random_state": 0}
    if start == "array":
        settings["init"] = X[rng.choice(n_rows, N_CLUSTERS, replace=False)]
    if method == "KMeans":
        model, knowledge = KMeans(N_CLUSTERS, n_init=1, algorithm="lloyd", **settings), {}
    else:
        model, knowledge = getattr(clew, method)(N_CLUSTERS, **settings), {"constraints": known}
    # What libraries load and keep on first use is not the fit's.
    small = np.arange(N_CLUSTERS * 20) % n_rows
    first = {"constraints": known[small]} if knowledge else {}
    type(model)(**model.get_params()).fit(X[small], **first)
    return peak_megabytes(lambda: model.fit(X, **knowledge))
