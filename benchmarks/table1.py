"""Do constraints help? How many of 1,000 random sets of 25 right constraints lower the Rand index (survey, Table 1).

A method with constraints, from one start, is set against the mean of the same method without any over ten starts. The
table names four methods: COP-KMeans, and PKM, MKM and MPKM, which are settings of MPCKMeans.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np

import clew
from benchmarks._harness import Report
from benchmarks.questions import published
from clew.evaluation import rand_score

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "CKM": ("COPKMeans", {}),
    "PKM": ("MPCKMeans", {"metric": "none"}),
    "MKM": ("MPCKMeans", {"assignment": "nearest"}),
    "MPKM": ("MPCKMeans", {}),
}
PUBLISHED = {
    "glass": {"CKM": 28, "PKM": 1, "MKM": 11, "MPKM": 0},
    "ionosphere": {"CKM": 26, "PKM": 77, "MKM": 0, "MPKM": 77},
    "iris": {"CKM": 29, "PKM": 19, "MKM": 36, "MPKM": 36},
    "wine": {"CKM": 38, "PKM": 34, "MKM": 87, "MPKM": 74},
}
N_SETS, N_PAIRS, N_STARTS = 1000, 25, 10


def run(*, quick: bool) -> Report:
    rows = []
    for name, told in PUBLISHED.items():
        if quick and name != "iris":
            continue
        X, y = published(name)
        for method in METHODS:
            found = drops(X, y, method, 20 if quick else N_SETS)
            rows.append({"set": name, "method": method, "published": f"{told[method]} %", **found})
    columns = {
        "set": "set",
        "method": "method",
        "drops": "sets that lower it",
        "published": "published",
        "without": "Rand without",
        "with": "mean Rand with",
    }
    notes = [
        f"Share of {20 if quick else N_SETS:,} sets of {N_PAIRS} right answers about random pairs with which the Rand "
        f"index is below its mean over {N_STARTS} starts without constraints; one start each, columns as they are.",
        "CKM: COPKMeans; PKM, MKM and MPKM: MPCKMeans with metric='none', with assignment='nearest', and as it is.",
    ]
    return Report("table1", "How often constraints do harm (survey, Table 1)", columns, rows, notes)


def drops(X: Any, y: Any, method: str, n_sets: int) -> dict[str, Any]:
    plain = mean(score(X, y, method, None, seed) for seed in range(N_STARTS))
    known = [clew.Constraints.sample(y, N_PAIRS, random_state=seed) for seed in range(n_sets)]
    scores = np.array([score(X, y, method, one, seed) for seed, one in enumerate(known)])
    share = float(np.mean(scores < plain - 1e-9))
    return {"drops": f"{100 * share:.0f} %", "without": plain, "with": float(scores.mean())}


def score(X: Any, y: Any, method: str, known: clew.Constraints | None, seed: int) -> float:
    name, settings = METHODS[method]
    model = getattr(clew, name)(len(np.unique(y)), n_init=1, random_state=seed, **settings)
    return rand_score(y, model.fit(X, constraints=known).labels_)
