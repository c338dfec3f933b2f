"""Density under constraints: time beside scikit-learn's DBSCAN, and `DensityBorder` beside other questions.

The second table repeats a comparison of the survey (after Algorithm 19): which questions suit
`ConstrainedDBSCAN`, `PCKMeans` and `IGKMeans`? It needs the published benchmark data beside the project.
"""

from __future__ import annotations

import time
from statistics import mean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import DBSCAN
from sklearn.neighbors import radius_neighbors_graph

import clew
from benchmarks._harness import Report, in_fresh_process, judged
from benchmarks._published import kept, not_run, published_data
from benchmarks.methods import rows_of
from clew.active import DensityBorder, ExploreConsolidate, InformationGain, Oracle, Questions, RandomPairs
from clew.active._questions import run as answered
from clew.evaluation import adjusted_rand_score

N_CLUSTERS = 10
TIME_LIMIT = 3.0
TITLE = "DensityBorder beside other questions"
SETS = (
    "iris", "wine", "seeds", "breast_wdbc", "ionosphere", "moons", "dils_circles", "dils_spiral",
    "news_sim3", "news_rel3", "news_diff3",
)  # fmt: skip
BUDGET, N_SEEDS = 100, 3
STRATEGIES = {
    "none": None,
    "random": RandomPairs,
    "explore": ExploreConsolidate,
    "gain": InformationGain,
    "border": DensityBorder,
}
METHODS = {
    "dbscan": "ConstrainedDBSCAN",
    "pck": "PCKMeans",
    "ig": "IGKMeans",
    "wrapped": 'ConstrainedDensity("dbscan")',
}


def run(*, quick: bool) -> Report:
    n_rows, n_repeats = (2_000, 1) if quick else (100_000, 5)
    rows = []
    for what, n_columns in (("rows", 2), ("rows", 4), ("graph", 2)):
        found = in_fresh_process(measure_time, what=what, n_rows=n_rows, n_columns=n_columns, n_repeats=n_repeats)
        ratio = median(ours / theirs for ours, theirs in zip(found["clew"], found["sklearn"], strict=True))
        rows.append(
            {
                "what": what,
                "n_rows": n_rows,
                "n_columns": n_columns,
                "neighbours": found["neighbours"],
                "clew": median(found["clew"]),
                "sklearn": median(found["sklearn"]),
                "ratio": ratio,
                **judged(ratio, None if quick else TIME_LIMIT),
                "seconds": found,
            }
        )
    columns = {
        "what": "given",
        "n_rows": "rows",
        "n_columns": "columns",
        "neighbours": "neighbours of a row",
        "clew": "clew, s",
        "sklearn": "scikit-learn, s",
        "ratio": "ratio",
        "bar": "bar",
        "verdict": "",
    }
    notes = [
        "A fit of ConstrainedDBSCAN with pairs for 1 % of the rows over one of scikit-learn's DBSCAN with the same "
        "radius, without constraints; one thread, medians over repetitions in turn. graph: a sparse distance matrix."
    ]
    return Report("density", "ConstrainedDBSCAN beside scikit-learn's DBSCAN", columns, rows, notes)


def measure_time(what: str, n_rows: int, n_columns: int, n_repeats: int) -> dict[str, Any]:
    """Seconds of whole fits and of scikit-learn's, in turn."""
    rng = np.random.default_rng(0)
    planted = rng.integers(0, N_CLUSTERS, n_rows)
    X: Any = 5 * rng.normal(size=(N_CLUSTERS, n_columns))[planted] + rng.normal(size=(n_rows, n_columns))
    known = clew.Constraints.sample(planted, max(n_rows // 100, 1), balance=0.5, random_state=0)
    eps = clew.ConstrainedDBSCAN().fit(X).eps_
    graph = radius_neighbors_graph(X, eps, mode="distance")
    metric = "precomputed" if what == "graph" else "euclidean"
    found: dict[str, Any] = {"neighbours": graph.nnz / n_rows, "clew": [], "sklearn": []}
    if what == "graph":
        X = graph
    for _ in range(n_repeats):
        started = time.perf_counter()
        DBSCAN(eps=eps, min_samples=5, metric=metric).fit(X)
        found["sklearn"].append(time.perf_counter() - started)
        started = time.perf_counter()
        clew.ConstrainedDBSCAN(eps, metric=metric).fit(X, constraints=known)
        found["clew"].append(time.perf_counter() - started)
    return found


def run_questions(*, quick: bool) -> Report:
    data = published_data()
    if data is None:
        return not_run("density-questions", TITLE)
    n_seeds, budget = (1, 5) if quick else (N_SEEDS, BUDGET)
    names = SETS[:1] if quick else SETS
    found = {
        name: kept("density-questions", name, quick, lambda n=name: compared(data, n, budget, n_seeds))
        for name in names
    }
    rows = []
    for method, title in METHODS.items():
        for strategy, question in STRATEGIES.items():
            scores = {name: found[name][f"{method}-{strategy}"] for name in names}
            asked = "none" if question is None else question.__name__
            rows.append({"method": title, "questions": asked, **scores, "mean": mean(scores.values())})
    columns = {"method": "method", "questions": "questions", **{name: name for name in names}, "mean": "mean"}
    notes = [
        f"ARI after {BUDGET} right answers to the questions of each strategy, mean over {N_SEEDS} seeds; default "
        "parameters, the number of classes for PCKMeans and IGKMeans. Columns have variance 1; texts are tf-idf with "
        "cosines. The answers go to the method as pairs, as in the survey, which has no ConstrainedDensity."
    ]
    return Report("density-questions", TITLE, columns, rows, notes)


def compared(data: Any, name: str, budget: int, n_seeds: int) -> dict[str, float]:
    """Mean ARI of each method without answers, and with those to each kind of questions."""
    X, y = rows_of(data, name)
    scores: dict[str, list[float]] = {}
    for seed in range(n_seeds):
        for strategy, question in STRATEGIES.items():
            known = None if question is None else _answers(question, X, y, budget, seed)
            for method in METHODS:
                labels = _model(method, name, len(np.unique(y)), seed).fit(X, constraints=known).labels_
                scores.setdefault(f"{method}-{strategy}", []).append(adjusted_rand_score(y, labels))
    return {key: mean(values) for key, values in scores.items()}


def _answers(strategy: Any, X: Any, y: NDArray[np.int64], budget: int, seed: int) -> clew.Constraints:
    questions = Questions(X, strategy(), n_clusters=len(np.unique(y)), random_state=seed)
    answered(questions, Oracle(y), budget)
    return questions.constraints


def _model(method: str, name: str, n_clusters: int, seed: int) -> Any:
    metric = "cosine" if name.startswith("news") else "euclidean"
    if method == "pck":
        return clew.PCKMeans(n_clusters, metric=metric, random_state=seed)
    if method == "ig":
        return clew.IGKMeans(n_clusters, random_state=seed)
    if method == "dbscan":
        return clew.ConstrainedDBSCAN(metric=metric)
    return clew.ConstrainedDensity("dbscan", metric=metric)
