"""Does a learned distance help k-means? ARI without and with MahalanobisLearner, from 50 answers about random pairs."""

from __future__ import annotations

from statistics import mean
from typing import Any

from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import Report
from benchmarks._published import not_run, published_data, rows_of
from clew import Constraints, MahalanobisLearner

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
    columns = {"data": "rows", "plain": "plain", "full": "full", "diagonal": "diagonal", "worst": "worst full"}
    notes = [
        f"ARI of k-means with the right number of clusters, mean over {n_draws} draws of {N_ANSWERS} answers about",
        "random pairs; `worst full`: the lowest ARI of all draws.",
    ]
    return Report("learned-distances", title, columns, rows, notes)


def scores(name: str, X: Any, y: Any, n_draws: int) -> dict[str, Any]:
    """Mean ARI of plain k-means and of k-means after both learners."""
    found: dict[str, list[float]] = {"plain": [], "full": [], "diagonal": []}
    n_clusters = len(set(y.tolist()))
    for seed in range(n_draws):
        known = Constraints.sample(y, N_ANSWERS, random_state=seed)
        for word, ari in found.items():
            rows = X if word == "plain" else MahalanobisLearner(metric=word).fit_transform(X, constraints=known)
            labels = KMeans(n_clusters, n_init=5, random_state=seed).fit_predict(rows)
            ari.append(adjusted_rand_score(y, labels))
    return {"data": name, **{word: mean(ari) for word, ari in found.items()}, "worst": min(found["full"])}
