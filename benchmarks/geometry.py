"""How far rows move until k-means satisfies the constraints: by impact against random order, as in Figure 6.7."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._harness import Report
from benchmarks._published import kept, not_run, published_data
from clew import Constraints
from clew.evaluation import adjusted_rand_score
from clew.metric._geometry_preserving_learner import MovedRows, preserve_geometry

TITLE = "Rows that move until constraints hold"
# Data set, rows that are used (None: all), sets, constraints in a set, steps between new scores. The first, second and
# last are those of the thesis, with 20 sets each and new scores after each step. Few rows in many columns are harder.
SETS: list[tuple[str, int | None, int, int, int]] = [
    ("iris_uci", None, 20, 15, 1),
    ("seeds", None, 20, 20, 1),
    ("optdigits_train", 200, 20, 20, 1),
    ("optdigits_train", None, 10, 400, 20),
]
N_INIT = 20


def run(*, quick: bool) -> Report:
    """Travelled distance, violated pairs and ARI of both orders after half of the steps and at the end."""
    data = published_data()
    if data is None:
        return not_run("geometry", TITLE)
    rows = []
    for name, n_rows, n_sets, n_pairs, rescore_every in SETS[:1] if quick else SETS:
        X, y = data.load(name)
        if n_rows is not None:
            chosen = np.random.default_rng(0).choice(len(X), n_rows, replace=False)
            X, y = X[chosen], y[chosen]
        sizes = (2, 5) if quick else (n_sets, n_pairs)
        rows += compared(name, X.astype(np.float64), y, *sizes, rescore_every, quick)
    columns = {
        "what": "set", "order": "order", "half distance": "distance after m/2 steps", "distance": "distance at the end",
        "shorter half": "sets with less after m/2", "shorter": "sets with less at the end", "steps": "steps",
        "violated": "violated at the end", "first ari": "ARI of k-means", "half ari": "ARI after m/2",
        "ari": "ARI at the end",
    }  # fmt: skip
    notes = [
        "Means over sets of m constraints, drawn among the pairs that k-means violates. Distances are sums",
        "over all moves. Both orders start from the same clusters. Random order treats each constraint by itself.",
        "Scores and goals are computed anew after each step, for all digits after 20 steps.",
    ]
    return Report("geometry", TITLE, columns, rows, notes)


def compared(
    name: str, X: NDArray[np.float64], y: NDArray[np.int64], n_sets: int, n_pairs: int, rescore_every: int, quick: bool
) -> list[dict[str, Any]]:
    """A row of the table for each order."""
    both: dict[str, list[dict[str, float]]] = {"impact": [], "random": []}
    for number in range(n_sets):
        for order, found in both.items():
            part = f"{name}-{len(X)}-{number}-{order}"
            work = partial(followed, X, y, n_pairs, number, order, rescore_every)
            found.append(kept("geometry", part, quick, work))
    rows = []
    for order, other in (("impact", "random"), ("random", "impact")):
        row: dict[str, Any] = {"what": f"{name} (n={len(X)}, m={n_pairs})", "order": order}
        row |= {key: float(np.mean([each[key] for each in both[order]])) for key in both[order][0]}
        for key, heading in (("half distance", "shorter half"), ("distance", "shorter")):
            less = sum(a[key] < b[key] for a, b in zip(both[order], both[other], strict=True))
            row[heading] = f"{less} of {n_sets}"
        rows.append(row)
    return rows


def violated_pairs(
    X: NDArray[np.float64], y: NDArray[np.int64], n_pairs: int, seed: int
) -> tuple[Constraints, NDArray[np.int32]]:
    """Random right constraints among those that k-means violates, and the clusters of k-means."""
    k = len(np.unique(y))
    nothing = Constraints(n_samples=len(X))
    labels = preserve_geometry(X, nothing, k, 0, np.random.default_rng(seed), n_init=N_INIT).labels
    first, second = np.triu_indices(len(X), 1)
    alike, together = y[first] == y[second], labels[first] == labels[second]
    chosen = np.random.default_rng(seed).choice(np.flatnonzero(alike != together), n_pairs, replace=False)
    pairs, must = np.column_stack([first, second])[chosen], alike[chosen]
    return Constraints(pairs[must], pairs[~must], n_samples=len(X)), labels


def followed(
    X: NDArray[np.float64], y: NDArray[np.int64], n_pairs: int, seed: int, order: str, rescore_every: int = 1
) -> dict[str, Any]:
    """Figures of one run: after m/2 steps, and at the end."""
    known, first = violated_pairs(X, y, n_pairs, seed)
    course: list[tuple[float, float]] = [(0.0, adjusted_rand_score(y, first))]

    def watch(now: MovedRows) -> None:
        course.append((float(now.distances.sum()), adjusted_rand_score(y, now.labels)))

    found = preserve_geometry(
        X, known, len(np.unique(y)), 5000, np.random.default_rng(seed),
        n_init=N_INIT, by_impact=order == "impact", rescore_every=rescore_every, watch=watch,
    )  # fmt: skip
    half = course[min(n_pairs // 2, len(course) - 1)]
    return {
        "half distance": half[0], "distance": course[-1][0], "steps": found.n_iter,
        "violated": sum(map(len, known.violations(found.labels))), "first ari": course[0][1], "half ari": half[1],
        "ari": course[-1][1],
    }  # fmt: skip
