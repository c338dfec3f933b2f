"""Clusterings unlike a given one: is the second grouping found, and at what cost?"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks._harness import Report
from clew import CondEns, CoordinatedConditionalIB
from clew.evaluation import adjusted_rand_score

TITLE = "Clusterings unlike a given one"
# Rows, clusters of the given and of the other grouping, columns of each and of noise, distance of the centres.
TABLES = {
    "few rows": (300, 2, 2, 2, 2, 0, 6.0),
    "many groups": (2000, 5, 4, 5, 4, 0, 6.0),
    "columns of noise": (2000, 3, 3, 3, 3, 10, 6.0),
    "other grouping is weak": (2000, 3, 3, 4, 3, 2, 3.5),
    "many rows": (20_000, 3, 3, 3, 3, 2, 6.0),
}


def run(*, quick: bool) -> Report:
    """ARI to the hidden second grouping, likeness to the given one and processor seconds of both methods."""
    rows = []
    for name in ["few rows"] if quick else TABLES:
        X, given, other = two_groupings(*TABLES[name])
        for seen, rotated in (("", X), (", rotated", X @ rotation(X.shape[1]))):
            rows.append({"table": name + seen, **compared(rotated, given, other)})
    columns = {
        "table": "table", "plain": "ARI of k-means", "CondEns": "CondEns", "CondEns s": "CondEns (s)",
        "CoordinatedConditionalIB": "CCIB", "CoordinatedConditionalIB s": "CCIB (s)", "likeness": "NMI to given",
        "ratio": "times faster",
    }  # fmt: skip
    notes = [
        "ARI to a second grouping that is independent of the given one; k-means does not know the given one.",
        "`NMI to given`: the larger of both methods. Rotated: columns mix both groupings. Defaults of all parameters.",
    ]
    return Report("alternatives", TITLE, columns, rows, notes)


def two_groupings(
    n_rows: int, n_given: int, n_other: int, d_given: int, d_other: int, d_noise: int, distance: float
) -> tuple[Any, Any, Any]:
    """Rows whose first columns show the given grouping, from twice as far, and whose next columns show the other."""
    rng = np.random.default_rng(0)
    given, other = rng.integers(n_given, size=n_rows), rng.integers(n_other, size=n_rows)
    parts = [
        size * np.eye(max(n, d))[labels, :d] / np.sqrt(2)
        for labels, n, d, size in ((given, n_given, d_given, 2 * distance), (other, n_other, d_other, distance))
    ]
    X = np.hstack([*parts, np.zeros((n_rows, d_noise))])
    return X + rng.normal(size=X.shape), given, other


def rotation(n_columns: int) -> Any:
    """A random rotation of the columns."""
    return np.linalg.qr(np.random.default_rng(1).normal(size=(n_columns, n_columns)))[0]


def compared(X: Any, given: Any, other: Any) -> dict[str, Any]:
    """Scores of plain k-means and of both methods."""
    n_clusters = int(other.max()) + 1
    found: dict[str, Any] = {
        "plain": adjusted_rand_score(other, KMeans(n_clusters, n_init=5, random_state=0).fit_predict(X))
    }
    likeness = []
    for cls in (CondEns, CoordinatedConditionalIB):
        started = time.process_time()
        model = cls(n_clusters, random_state=0).fit(X, given=given)
        found[f"{cls.__name__} s"] = time.process_time() - started
        found[cls.__name__] = adjusted_rand_score(other, model.labels_)
        likeness.append(model.normalized_mutual_info_)
    found["likeness"] = max(likeness)
    found["ratio"] = found["CoordinatedConditionalIB s"] / found["CondEns s"]
    return found
