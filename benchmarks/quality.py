"""Agreement with the classes (ARI): what answers about random pairs are worth to each method."""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

import clew
from benchmarks._harness import Report
from clew.datasets import load
from clew.evaluation import adjusted_rand_score

SETS = ("iris", "wine", "digits")
ANSWERS = (20, 60, 150)
N_SEEDS = 10
METHODS = ("PCKMeans", "COPKMeans", "ConstrainedKMeans", "SeededKMeans", "CVQE", "LCVQE", "MPCKMeans")


def run(*, quick: bool) -> Report:
    rows = []
    seeds = range(1 if quick else N_SEEDS)
    for name in SETS[:1] if quick else SETS:
        X, y = data(name)
        plain = [KMeans(n_classes(y), n_init=10, random_state=seed).fit(X).labels_ for seed in seeds]
        for n_answers in ANSWERS[:1] if quick else ANSWERS:
            row: dict[str, Any] = {"set": name, "answers": n_answers, "KMeans": _mean_ari(y, plain)}
            for method in METHODS:
                row[method] = _mean_ari(y, [fit(method, X, y, n_answers, seed).labels_ for seed in seeds])
            rows.append(row)
    columns = {"set": "set", "answers": "answers", "KMeans": "KMeans", **{method: method for method in METHODS}}
    notes = [
        f"Mean adjusted Rand index over {len(seeds)} seeds and all rows, default parameters; KMeans with n_init=10.",
        "Wine is standardised.",
        "Answers are right and about pairs drawn at random, so most say 'different' where there are many classes.",
    ]
    return Report("quality", "Agreement with the classes (ARI) after answers about random pairs", columns, rows, notes)


def data(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A bundled set; wine, whose columns have different units, is standardised."""
    bundled = load(name)
    return (StandardScaler().fit_transform(bundled.X) if name == "wine" else bundled.X), bundled.y


def n_classes(y: NDArray[np.int64]) -> int:
    return len(np.unique(y))


def fit(method: str, X: NDArray[np.float64], y: NDArray[np.int64], n_answers: int, seed: int, **settings: Any) -> Any:
    """A method with default parameters except `settings`, and answers to random questions."""
    known = clew.Constraints.sample(y, n_answers, random_state=seed)
    return getattr(clew, method)(n_classes(y), random_state=seed, **settings).fit(X, constraints=known)


def _mean_ari(y: NDArray[np.int64], labellings: list[NDArray[Any]]) -> float:
    return mean(adjusted_rand_score(y, labels) for labels in labellings)
