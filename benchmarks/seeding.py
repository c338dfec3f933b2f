"""Which neighbourhoods start the clusters when there are more of them: the largest, or farthest first by size.

With one start, since several hide what the first is worth. Behind the entry on seeding in docs/decisions.md.
"""

from __future__ import annotations

from statistics import mean
from typing import Any
from unittest import mock

from benchmarks._harness import Report
from benchmarks.quality import ANSWERS, N_SEEDS, data, fit
from clew.evaluation import adjusted_rand_score

SETS = ("iris", "wine")
METHODS = ("PCKMeans", "SeededKMeans")


def run(*, quick: bool) -> Report:
    seeds = range(1 if quick else N_SEEDS)
    rows = [
        {"set": name, "answers": n_answers, "method": method, **_compare(name, n_answers, method, seeds)}
        for name in (SETS[:1] if quick else SETS)
        for n_answers in (ANSWERS[:1] if quick else ANSWERS)
        for method in METHODS
    ]
    columns = {
        "set": "set",
        "answers": "answers",
        "method": "method",
        "largest": "the largest",
        "farthest": "farthest first",
    }
    notes = [f"Mean adjusted Rand index over {len(seeds)} seeds, answers about random pairs, n_init=1."]
    return Report("seeding", "Neighbourhoods that start the clusters", columns, rows, notes)


def _compare(name: str, n_answers: int, method: str, seeds: range) -> dict[str, Any]:
    X, y = data(name)

    def ari() -> float:
        return mean(adjusted_rand_score(y, fit(method, X, y, n_answers, seed, n_init=1).labels_) for seed in seeds)

    farthest = ari()
    # Taken for known to differ, the largest neighbourhoods are used as the paper does.
    with mock.patch("clew.partitional._seeding._all_apart", return_value=True):
        return {"largest": ari(), "farthest": farthest}
