"""`Auto` on many rows: representatives on all rows against the exact form on 10,000 of them, and waiting times.

`python -m benchmarks many-rows` compares the ARI on MNIST and Fashion-MNIST (60,000 rows, 50 principal components) and
on six drawn tables. `python -m benchmarks many-rows-speed` measures processor seconds, memory and recall, also with
5,000 groups. `python -m benchmarks many-groups` measures questions about many groups of an unknown number.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

from benchmarks._harness import Report, in_fresh_process, peak_megabytes
from benchmarks.questions import published
from clew._neighbours import nearest_neighbours
from clew.active import Auto, Oracle, Questions
from clew.evaluation import adjusted_rand_score
from clew.graph._kernels import standard
from clew.hierarchical._average_tree import average_tree

BUDGETS = (50, 100, 200)
N_EXACT = 10_000
TABLES = ("mnist", "fashion_mnist", "overlap", "unequal", "rare", "moons", "stripes", "duplicates")
SPEED = ((100_000, 10), (1_000_000, 10), (60_000, 5_000), (200_000, 5_000))


# From so many groups on, they are of unequal size.
MANY = 1_000


def run(*, quick: bool) -> Report:
    tables = ("moons",) if quick else TABLES
    seeds, budgets = (range(1), (5,)) if quick else (range(3), BUDGETS)
    rows: list[dict[str, Any]] = []
    for name in tables:
        for form in ("exact, 10,000 rows", "representatives, all rows"):
            kept = form.startswith("exact")
            found = [in_fresh_process(curve, name=name, exact=kept, seed=seed, budgets=list(budgets)) for seed in seeds]
            ari = np.array([one["ari"] for one in found])
            cells = {
                f"ari_{budget}": f"{mean:.3f} ± {spread:.3f}"
                for budget, mean, spread in zip(budgets, ari.mean(axis=0), ari.std(axis=0), strict=True)
            }
            rows.append({"table": name, "form": form, "rows": found[0]["rows"], **cells})
            print(rows[-1], flush=True)
    columns = {"table": "table", "form": "form", "rows": "rows", **{f"ari_{b}": f"ARI at {b}" for b in budgets}}
    notes = [
        f"Means and standard deviations of {len(seeds)} seeds. Right answers, the number of clusters is known. With one"
        " seed, the exact form has the rows that the other form samples."
    ]
    return Report("many-rows", "Auto on representatives against the exact form on a sample", columns, rows, notes)


def curve(name: str, exact: bool, seed: int, budgets: list[int]) -> dict[str, Any]:
    """ARI after each number of questions."""
    X, y = table(name)
    if exact:
        kept = np.sort(np.random.default_rng(seed).choice(len(X), N_EXACT, replace=False))
        X, y = X[kept], y[kept]
    questions = Questions(X, Auto(random_state=seed), n_clusters=len(np.unique(y)), random_state=seed)
    oracle, found = Oracle(y), []
    for n_asked in range(max(budgets) + 1):
        if n_asked in budgets:
            found.append(adjusted_rand_score(y, questions.labels()))
        if (pair := questions.ask()) is not None:
            questions.tell(pair, oracle(pair))
    return {"ari": found, "rows": len(X)}


def table(name: str) -> tuple[Any, Any]:
    """Rows and classes of a named or drawn table."""
    rng = np.random.default_rng(11)
    if name in ("mnist", "fashion_mnist"):
        X, y = published(name)
        return PCA(50, random_state=0).fit_transform(X.astype(np.float32) / 255).astype(np.float64), y
    if name == "moons":
        X, y = make_moons(80_000, noise=0.12, random_state=0)
        return X, y
    if name == "stripes":
        y = rng.integers(4, size=100_000)
        return np.column_stack([rng.normal(size=100_000) * 5, y + rng.normal(size=100_000) * 0.18]), y
    if name == "unequal":  # the smallest class has 0.5 % of the rows
        return _gaussians(200_000, 8, 1.3, [0.5, 0.3, 0.15, 0.045, 0.005])
    if name == "rare":  # four classes of 0.05 % each
        return _gaussians(200_000, 8, 1.6, [0.4, 0.3, 0.2, 0.098] + [0.0005] * 4)
    if name == "overlap":
        return _gaussians(100_000, 12, 0.8, [0.1] * 10)
    X, y = _gaussians(6_000, 6, 1.1, [0.2] * 5)  # duplicates: each row ten times
    return np.repeat(X, 10, axis=0), np.repeat(y, 10)


def _gaussians(n_rows: int, n_columns: int, apart: float, shares: list[float]) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    centers = rng.normal(size=(len(shares), n_columns)) * apart
    y = rng.choice(len(shares), n_rows, p=shares)
    return centers[y] + rng.normal(size=(n_rows, n_columns)) * rng.uniform(0.6, 1.2, size=(len(shares), 1))[y], y


def run_speed(*, quick: bool) -> Report:
    sizes = ((2_000, 3),) if quick else SPEED
    rows = []
    for n_rows, k in sizes:
        rows.append({"rows": n_rows, "groups": k, **in_fresh_process(waiting, n_rows=n_rows, k=k)})
        print(rows[-1], flush=True)
    columns = {
        "rows": "rows",
        "groups": "groups",
        "first": "first question, s",
        "median": "next, median, s",
        "p95": "next, 95th percentile, s",
        "labels": "labels, s",
        "ari": "ARI",
        "megabytes": "peak beyond X, MB",
        "recall": "recall of 10 neighbours",
        "nearest": "recall of the nearest",
    }
    notes = [
        "Processor seconds, one thread, blobs in 16 columns, 100 answers. The first recall is that of the graph of"
        " sampled rows, the second that of the nearest sampled row of each row."
    ]
    return Report("many-rows-speed", "Waiting for a question about many rows", columns, rows, notes)


def waiting(n_rows: int, k: int) -> dict[str, float]:
    """Processor seconds of the first and the next questions, peak memory, and recall of the neighbour search."""
    rng = np.random.default_rng(1)
    if k < MANY:
        y, spread = rng.integers(k, size=n_rows), 1.0
    else:  # groups of unequal size
        shares, spread = rng.lognormal(size=k), 0.5
        y = rng.choice(k, n_rows, p=shares / shares.sum())
    X = (rng.normal(size=(k, 16)) * 1.5)[y] + rng.normal(size=(n_rows, 16)) * spread
    found: dict[str, float] = {}

    def work() -> None:
        started = time.process_time()
        questions, oracle, seconds = Questions(X, n_clusters=k, random_state=0), Oracle(y), []
        pair = questions.ask()
        found["first"] = time.process_time() - started
        for _ in range(100):
            questions.tell(pair, oracle(pair))
            started = time.process_time()
            pair = questions.ask()
            seconds.append(time.process_time() - started)
        found["median"], found["p95"] = float(np.median(seconds)), float(np.quantile(seconds, 0.95))
        questions.labels()
        started = time.process_time()
        questions.tell(pair, oracle(pair))
        questions.labels()
        found["labels"] = time.process_time() - started
        found["ari"] = adjusted_rand_score(y, questions.labels())
        micro = questions.strategy._micro_clusters(questions.view)
        found["recall"] = recall(micro.centers if micro is not None else X)
        if micro is not None:
            some = np.linspace(0, n_rows - 1, 2_000).astype(np.int64)
            true = pairwise_distances_argmin(micro.columns[some], micro.centers)
            found["nearest"] = float(np.mean(true == micro.of_row[some]))

    found["megabytes"] = peak_megabytes(work)
    return found


# Rows, groups, distribution of their sizes, and their standard deviation. The means have one of 1.5 in 16 columns.
GROUPS = (
    (20_000, 200, "equal", 0.8),
    (20_000, 200, "heavy-tailed", 0.8),
    (20_000, 2_000, "equal", 0.5),
    (20_000, 2_000, "heavy-tailed", 0.8),
    (60_000, 5_000, "log-normal", 0.5),
    (60_000, 5_000, "equal", 0.8),
)


def run_groups(*, quick: bool) -> Report:
    tables = ((1_500, 150, "equal", 0.5),) if quick else GROUPS
    rows = []
    for n_rows, k, sizes, spread in tables:
        found = in_fresh_process(unknown, n_rows=n_rows, k=k, sizes=sizes, spread=spread)
        rows.append({"rows": n_rows, "groups": k, "sizes": sizes, "spread": spread, **found})
        print(rows[-1], flush=True)
    columns = {
        "rows": "rows",
        "groups": "groups",
        "sizes": "sizes",
        "spread": "spread",
        "first": "first question, s",
        "longest": "longest next, s",
        **{f"ari_{budget}": f"ARI at {budget}" for budget in BUDGETS},
        "linkage": "average linkage, true k",
    }
    notes = [
        "Processor seconds, one thread, right answers, one seed, 16 columns. The number of groups is unknown to Auto."
        " The last column cuts the same tree of all rows, or of 30,000 of them, at the true number of groups."
    ]
    return Report("many-groups", "Questions about many groups of an unknown number", columns, rows, notes)


def unknown(n_rows: int, k: int, sizes: str, spread: float) -> dict[str, float]:
    """Processor seconds of questions, and the ARI after some answers, if the number of groups is unknown."""
    rng = np.random.default_rng(1)
    shares = {"equal": np.ones(k), "log-normal": rng.lognormal(size=k), "heavy-tailed": rng.pareto(1.5, size=k) + 0.2}
    y = rng.choice(k, n_rows, p=shares[sizes] / shares[sizes].sum())
    X = (rng.normal(size=(k, 16)) * 1.5)[y] + rng.normal(size=(n_rows, 16)) * spread
    questions, oracle, seconds, found = Questions(X, random_state=0), Oracle(y), [], {}
    for n_asked in range(max(BUDGETS) + 1):
        started = time.process_time()
        if n_asked in BUDGETS:
            found[f"ari_{n_asked}"] = adjusted_rand_score(y, questions.labels())
            started = time.process_time()
        if (pair := questions.ask()) is not None:
            questions.tell(pair, oracle(pair))
        seconds.append(time.process_time() - started)
    kept = np.sort(rng.choice(n_rows, min(n_rows, 30_000), replace=False))
    linkage = average_tree(standard(X[kept])).labels(len(np.unique(y[kept])))
    return {
        "first": seconds[0],
        "longest": max(seconds[1:]),
        "linkage": adjusted_rand_score(y[kept], linkage),
        **found,
    }


def recall(points: Any) -> float:
    """Share of ten true neighbours that the search finds, for 500 points."""
    some = np.linspace(0, len(points) - 1, min(len(points), 500)).astype(np.int64)
    ours = nearest_neighbours(points, 10)[1][some]
    true = NearestNeighbors(n_neighbors=11, algorithm="brute").fit(points).kneighbors(points[some])[1][:, 1:]
    return float(np.mean([len(np.intersect1d(one, two)) / 10 for one, two in zip(ours, true, strict=True)]))
