"""Do learned distances help? K-means without and with them, and the survey's comparisons, from 50 random answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import mean
from typing import Any

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import Report
from benchmarks._published import not_run, published_data, rows_of
from clew import (
    BoostCluster,
    ConstrainedGaussianMixture,
    Constraints,
    COPKMeans,
    DistBoost,
    HMRFKMeans,
    MahalanobisLearner,
)

SETS = ("wine", "iris", "ionosphere", "seeds")
N_ANSWERS = 50


def run(*, quick: bool) -> Report:
    title = "Does a learned distance help k-means?"
    data = published_data()
    if data is None:
        return not_run("learned-distances", title)
    n_draws = 1 if quick else 20
    rows = []
    for name in SETS[1:2] if quick else SETS:
        X, y = rows_of(data, name)
        rows.append(scores(f"{name}, as given", X, y, n_draws))
        rows.append(scores(f"{name}, standardised", StandardScaler().fit_transform(X), y, n_draws))
    columns = {
        "data": "rows", "plain": "plain", "full": "full", "diagonal": "diagonal", "boosted": "DistBoost",
        "worst": "worst full", "worst boosted": "worst DistBoost",
    }  # fmt: skip
    notes = [
        f"ARI of k-means with the right number of clusters, mean over {n_draws} draws of {N_ANSWERS} answers about",
        "random pairs, on rows as given and after `MahalanobisLearner` (full, diagonal) and `DistBoost`. `worst`: the",
        "lowest ARI of all draws.",
    ]
    return Report("learned-distances", title, columns, rows, notes)


def scores(name: str, X: Any, y: Any, n_draws: int) -> dict[str, Any]:
    """Mean ARI of plain k-means and of k-means after each learner."""
    n_clusters = len(np.unique(y))
    learners: dict[str, Any] = {
        "plain": None,
        "full": MahalanobisLearner(),
        "diagonal": MahalanobisLearner(metric="diagonal"),
        "boosted": DistBoost(n_clusters),
    }
    found: dict[str, list[float]] = {word: [] for word in learners}
    for seed in range(n_draws):
        known = Constraints.sample(y, N_ANSWERS, random_state=seed)
        for word, learner in learners.items():
            if word == "boosted":
                learner.set_params(random_state=seed)
            rows = X if learner is None else learner.fit_transform(X, constraints=known)
            labels = KMeans(n_clusters, n_init=5, random_state=seed).fit_predict(rows)
            found[word].append(adjusted_rand_score(y, labels))
    worst = {"worst": min(found["full"]), "worst boosted": min(found["boosted"])}
    return {"data": name, **{word: mean(ari) for word, ari in found.items()}, **worst}


# What the survey says, section 3.3: the first beats each of the others.
CLAIMS = [
    ("DistBoost", ("Xing", "mixture", "COP")),
    ("boosted k-means", ("HMRF",)),
    ("boosted spectral", ("HMRF",)),
    ("boosted single link", ("HMRF",)),
]
COMPARED = ("wine", "iris", "ionosphere", "seeds", "balance_scale", "breast_wdbc")


def run_comparisons(*, quick: bool) -> Report:
    """The survey's comparisons of methods that learn a distance with methods that do not."""
    title = "Learned distances against other methods: what the survey says, and what we measure"
    data = published_data()
    if data is None:
        return not_run("distance-methods", title)
    n_draws = 1 if quick else 10
    rows = []
    for name in COMPARED[1:2] if quick else COMPARED:
        X, y = rows_of(data, name)
        rows.append({"data": name, **compared(StandardScaler().fit_transform(X), y, n_draws)})
    methods = list(clusterings(2, 0))
    columns = {"data": "rows", **{name: name for name in methods}, "seconds": "DistBoost (s)"}
    notes = [
        f"ARI, mean over {n_draws} draws of {N_ANSWERS} answers about random pairs, standardised columns. Xing:",
        "k-means after `MahalanobisLearner`. DistBoost: average linkage on `pairwise`. Boosted: `BoostCluster` around",
        "k-means, spectral clustering and single linkage. The survey's claims, and on how many tables they hold here:",
        *[
            f"{first} above {other}: {sum(row[first] > row[other] for row in rows)} of {len(rows)}."
            for first, others in CLAIMS
            for other in others
        ],
    ]
    return Report("distance-methods", title, columns, rows, notes)


def clusterings(n_clusters: int, seed: int) -> dict[str, Callable[[Any, Constraints], Any]]:
    """Labels by each method, from rows and constraints."""
    options = {"n_clusters": n_clusters, "random_state": seed}

    def boosted(clusterer: Any) -> Callable[[Any, Constraints], Any]:
        return lambda X, known: BoostCluster(**options, clusterer=clusterer).fit(X, constraints=known).labels_

    def by_distance(X: Any, known: Constraints) -> Any:
        distances = DistBoost(**options).fit(X, constraints=known).pairwise(X)
        return AgglomerativeClustering(n_clusters, metric="precomputed", linkage="average").fit_predict(distances)

    def xing(X: Any, known: Constraints) -> Any:
        return KMeans(n_init=5, **options).fit_predict(MahalanobisLearner().fit_transform(X, constraints=known))

    return {
        "COP": lambda X, known: COPKMeans(**options).fit(X, constraints=known).labels_,
        "Xing": xing,
        "mixture": lambda X, known: ConstrainedGaussianMixture(reg_covar=1e-3, **options).fit_predict(
            X, constraints=known
        ),
        "DistBoost": by_distance,
        "HMRF": lambda X, known: HMRFKMeans(**options).fit(X, constraints=known).labels_,
        "boosted k-means": boosted(None),
        "boosted spectral": boosted(SpectralClustering(n_clusters, random_state=seed)),
        "boosted single link": boosted(AgglomerativeClustering(n_clusters, linkage="single")),
    }


def compared(X: Any, y: Any, n_draws: int) -> dict[str, float]:
    """Mean ARI of every method, and the processor seconds of DistBoost with its linkage."""
    found: dict[str, list[float]] = {}
    for seed in range(n_draws):
        known = Constraints.sample(y, N_ANSWERS, random_state=seed)
        for name, labels_of in clusterings(len(np.unique(y)), seed).items():
            started = time.process_time()
            found.setdefault(name, []).append(adjusted_rand_score(y, labels_of(X, known)))
            if name == "DistBoost":
                found.setdefault("seconds", []).append(time.process_time() - started)
    return {name: mean(values) for name, values in found.items()}
