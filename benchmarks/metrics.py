"""Does the fitness of a metric say which one leads to the right clusters? Thesis section 6.4: its four constructions,
its tables and texts. Real data are the published ones beside the project; parts that are done are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks._harness import Report
from benchmarks._published import kept, published_data, rows_of
from clew import Constraints
from clew._distances import distance_matrix
from clew.audit import advise_metric
from clew.audit._impact import impact_of
from clew.audit._models import prepare
from clew.evaluation import adjusted_rand_score

VECTORS = ("euclidean", "manhattan", "chebyshev", "mahalanobis")
ALL = (*VECTORS, "cosine")
TEXTS = ("news_diff3", "news_sim3", "news_rel3")
N_DRAWS, N_SETS, N_ANSWERS = 12, 30, 100
SCIPY_NAMES = {"euclidean": "euclidean", "manhattan": "cityblock", "chebyshev": "chebyshev"}


def construction(metric: str, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Section 6.4.1: 200 rows in three clusters that are regions of one metric."""
    rng = np.random.default_rng(seed)
    if metric == "mahalanobis":
        y = np.arange(200) % 3
        return np.column_stack([rng.uniform(0, 100, 200), 5 * y + rng.uniform(-0.1, 0.1, 200)]), y

    def distances(a: Any, b: Any) -> NDArray[np.float64]:
        return cdist(np.atleast_2d(a), np.atleast_2d(b), SCIPY_NAMES[metric])

    largest = max(distances(a, b)[0, 0] for a, b in rng.normal(10, 1, (1000, 2, 2)))
    apart = 0.0
    while apart < largest / 3:
        centers = rng.normal(10, 1, (3, 2))
        apart = distances(centers, centers)[np.triu_indices(3, 1)].min()
    rows: list[NDArray[np.float64]] = []
    labels: list[int] = []
    while len(rows) < 200:
        point = rng.normal(10, 1, 2)
        cluster = int(distances(point, centers).argmin())
        if labels.count(cluster) < 67:
            rows.append(point)
            labels.append(cluster)
    return np.array(rows), np.array(labels)


def run(*, quick: bool) -> Report:
    rows = []
    n_draws, n_sets = (1, 3) if quick else (N_DRAWS, N_SETS)
    for metric in VECTORS[:1] if quick else VECTORS:
        rows.append(kept("metrics", metric, quick, lambda m=metric: constructed(m, n_draws, n_sets)))
    for name, X, y, segments in [] if quick else real_data():
        rows.append(kept("metrics", name, quick, lambda n=name, x=X, c=y, s=segments: fitted(n, x, c, s)))
    columns = {"what": "rows"} | {metric: metric for metric in ALL}
    columns |= {"agree": "fitness finds best ARI", "own": "where that is its own", "few": "from 100 answers"}
    notes = [
        "Constructions: how often the metric has the best fitness (and the best ARI of k-medoids) over draws of the",
        f"data, and how often the two agree. Real data: fitness (and ARI). Fitness is a mean over {N_SETS} sets of 1",
        "to 100 right constraints as in the thesis; `from 100 answers`: what `advise_metric` says with these alone.",
    ]
    return Report("metrics", "Which metric do constraints speak for?", columns, rows, notes)


def judged(
    X: Any, y: NDArray[np.int64], metrics: tuple[str, ...], n_sets: int, seed: int, segments: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Fitness and ARI of every metric, and what is advised from 100 answers."""
    rng, k = np.random.default_rng(seed), len(np.unique(y))
    sets = [Constraints.sample(y, int(rng.integers(1, 101)), random_state=rng) for _ in range(n_sets)]
    fitness, ari = [], []
    for metric in metrics:
        model = prepare(None, k, "kmedoids", distance_matrix(X, metric, segments=segments)[0], rng)
        fitness.append(np.mean([impact_of(model, known).fraction_free for known in sets]))
        ari.append(adjusted_rand_score(y, model.labels))
    answers = Constraints.sample(y, N_ANSWERS, random_state=rng)
    return np.array(fitness), np.array(ari), advise_metric(X, answers, k, metrics, segments=segments, n_bags=10).best


def constructed(metric: str, n_draws: int, n_sets: int) -> dict[str, Any]:
    found = [judged(*construction(metric, seed), VECTORS, n_sets, seed) for seed in range(n_draws)]
    fittest = [VECTORS[int(fitness.argmax())] for fitness, _, _ in found]
    # Of equal partitions, which happen, either metric is the best.
    best = [{VECTORS[place] for place in np.flatnonzero(ari == ari.max())} for _, ari, _ in found]
    own = [fit for fit, right in zip(fittest, best, strict=True) if metric in right]
    return {
        "what": f"of {metric}, {n_draws} draws", "cosine": "-",
        **{name: f"{fittest.count(name)} ({sum(name in right for right in best)})" for name in VECTORS},
        "agree": f"{sum(fit in right for fit, right in zip(fittest, best, strict=True))} of {n_draws}",
        "own": f"{own.count(metric)} of {len(own)}",
        "few": f"{sum(advice in right for (*_, advice), right in zip(found, best, strict=True))} of {n_draws}",
    }  # fmt: skip


def real_data() -> Iterator[tuple[str, Any, NDArray[np.int64], int | None]]:
    """Name, rows, classes and number of segments."""
    data = published_data()
    if data is None:
        return
    for name, segments in (("iris", None), ("wine", None), ("synthetic_control", 6)):
        yield name, *rows_of(data, name), segments
    for name in TEXTS:
        texts, y = data.load(name)
        yield name, TfidfVectorizer(max_features=10_000, norm=None).fit_transform(texts), y, None


def fitted(name: str, X: Any, y: NDArray[np.int64], segments: int | None) -> dict[str, Any]:
    metrics = ("euclidean", "cosine") if name in TEXTS else VECTORS
    fitness, ari, advice = judged(X, y, metrics, N_SETS, 0, segments)
    shown = {m: f"{fit:.3f} ({index:.3f})" for m, fit, index in zip(metrics, fitness, ari, strict=True)}
    best = {metrics[place] for place in np.flatnonzero(ari == ari.max())}
    agree = "yes" if metrics[int(fitness.argmax())] in best else "no"
    return {"what": name, **dict.fromkeys(ALL, "-"), **shown, "agree": agree, "own": "-", "few": advice}
