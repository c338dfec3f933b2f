"""K-medoids under constraints: the optima of thesis Table 4.2, two circles, and the speed of swaps."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import make_circles
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks._harness import Report, judged
from benchmarks._published import kept, not_run, published_data
from clew import ConstrainedKMedoids, Constraints
from clew.dissimilarity import kernel_dissimilarity
from clew.evaluation import adjusted_rand_score
from clew.medoids._search import MedoidTies, SwapDescent

# Clusters, the printed optima of Table 4.2 (truncated), and the ARIs of Table 4.1, for both configurations.
INSTANCES: dict[str, tuple[int, tuple[float, float], tuple[float, float]]] = {
    "soybean_small": (4, (1.138047e2, 1.156629e2), (0.60, 0.62)),
    "protein_nolabels": (6, (1.269331e3, 1.262633e3), (0.25, 0.25)),
    "iris": (3, (9.835843e1, 9.962796e1), (0.75, 0.76)),
    "ionosphere": (2, (8.172423e2, 8.384550e2), (0.16, 0.15)),
    "synthetic_control": (6, (2.693438e4, 2.693937e4), (0.50, 0.51)),
    "balance_scale": (3, (1.466425e3, 1.471803e3), (0.24, 0.25)),
    "yeast": (10, (2.523202e2, 2.605097e2), (0.16, 0.17)),
}
PROVEN = ("soybean_small", "protein_nolabels", "iris", "ionosphere", "synthetic_control")
N_RUNS, N_SHAKES, SECONDS = 10, 400, 60
# Swaps may take this many times as long as those of the package kmedoids.
SWAP_LIMIT = 1.3


def instance(data: Any, name: str, configuration: int) -> tuple[Any, Any, Constraints]:
    """Distances, classes and constraints of a row of Table 4.2."""
    X, y = data.load("iris_uci" if name == "iris" else name)
    ((must, cannot),) = data.constraints(f"randel-kmedoids__{name}__{configuration}.csv").values()
    return cdist(X, X), y, Constraints(must, cannot, n_samples=len(X))


def reaches(cost: float, printed: float) -> bool:
    """Whether a cost has the printed digits, of which the last is truncated."""
    unit = 10.0 ** (np.floor(np.log10(printed)) - 6)
    return bool(cost < printed + unit * 1.001)


def run(*, quick: bool) -> Report:
    """Table 4.2: how often the optimum is found, and which optima are proven; Table 4.1's ARIs beside ours."""
    title = "Optima of constrained k-medoids"
    data = published_data()
    if data is None:
        return not_run("medoids", title)
    rows = []
    for name in ["soybean_small"] if quick else INSTANCES:
        for place in (0, 1):
            part = f"{name}-{place + 1}"
            row = kept("medoids", part, quick, lambda n=name, p=place: solved(data, n, p, 2 if quick else N_RUNS))
            rows.append(row | {"published": f"{row['published']:.7g}", "found": f"{row['found']:.9g}"})
    columns = {
        "what": "instance", "published": "published optimum", "found": "lowest cost", "hits": "runs that find it",
        "longest": "longest run (s)", "proof": "proven", "proof seconds": "proof (s)", "published ARI": "published ARI",
        "ari": "ARI", "seconds": "processor seconds",
    }  # fmt: skip
    notes = [
        f"{N_RUNS} seeded runs of {N_SHAKES} shakes each, at most {SECONDS} s a run; processor seconds. ARI: mean of",
        "the runs. The thesis truncates the digits of its optima. Protein has no public labels.",
    ]
    return Report("medoids", title, columns, rows, notes)


def solved(data: Any, name: str, place: int, n_runs: int) -> dict[str, Any]:
    k, printed, published = INSTANCES[name]
    distances, y, known = instance(data, name, place + 1)
    model = ConstrainedKMedoids(k, metric="precomputed", max_iter=N_SHAKES, time_limit=SECONDS)
    found, seconds, scores = [], [], []
    for seed in range(n_runs):
        started = time.process_time()
        model.set_params(random_state=seed).fit(distances, constraints=known)
        seconds.append(time.process_time() - started)
        found.append(model.inertia_)
        scores.append(adjusted_rand_score(y, model.labels_))
    row: dict[str, Any] = {"what": f"{name} {place + 1}", "published": printed[place], "found": min(found)}
    row["hits"] = f"{sum(reaches(cost, printed[place]) for cost in found)} of {n_runs}"
    row["longest"], row["proof"], row["proof seconds"] = max(seconds), "-", "-"
    if name in PROVEN:
        started = time.process_time()
        model.set_params(solver="exact", random_state=0, time_limit=None).fit(distances, constraints=known)
        row["proof"], row["proof seconds"] = "yes" if model.gap_ == 0 else "no", time.process_time() - started
    row["published ARI"] = published[place]
    row["ari"] = "-" if (y < 0).all() else float(np.mean(scores))
    return row


def run_circles(*, quick: bool) -> Report:
    """Thesis 4.6.3: two circles, with the constraints alone and with a kernel that carries them, too."""
    X, y = make_circles(200, factor=0.4, noise=0.05, random_state=0)
    kernel = rbf_kernel(X, gamma=4.0)
    rows = []
    for n in (20, 60) if quick else (100, 160, 220, 300, 400, 500, 600, 800, 1000, 1200):
        scores: dict[str, list[float]] = {"distances": [], "kernel": [], "kernel with constraints": []}
        for seed in range(2 if quick else 10):
            known = Constraints.sample(y, n, random_state=seed)
            matrices = (cdist(X, X), kernel_dissimilarity(kernel), kernel_dissimilarity(kernel, known))
            for key, matrix in zip(scores, matrices, strict=True):
                model = ConstrainedKMedoids(2, metric="precomputed", max_iter=5, random_state=seed)
                scores[key].append(adjusted_rand_score(y, model.fit(matrix, constraints=known).labels_))
        rows.append({"pairs": n} | {key: float(np.mean(values)) for key, values in scores.items()})
    notes = ["Mean ARI over 10 sets of pairs of 200 rows (`make_circles`); kernel exp(-4 d²), weight 1."]
    return Report("circles", "Two circles (thesis 4.6.3)", {key: key for key in rows[0]}, rows, notes)


def run_swaps(*, quick: bool) -> Report:
    """Swaps without constraints against the GPL package kmedoids, if somebody installed it, on the same matrix."""
    try:
        import kmedoids
    except ImportError:
        kmedoids = None
    rows = [
        _swapped(kmedoids, n, dtype, k, None if quick else SWAP_LIMIT)
        for n in ((200,) if quick else (2000, 5000))
        for dtype in (np.float32, np.float64)
        for k in (10, 50)
    ]
    columns = {
        "what": "rows", "ours": "clew (s)", "theirs": "fasterpam (s)", "same": "same cost", "ratio": "ratio",
        "bar": "bar", "verdict": "",
    }  # fmt: skip
    notes = ["Processor seconds, the fastest of three, from the same start; both try candidates in the order of rows."]
    return Report("swaps", "Swaps of medoids without constraints", columns, rows, notes)


def _swapped(kmedoids: Any, n: int, dtype: Any, k: int, limit: float | None) -> dict[str, Any]:
    X = np.random.default_rng(0).normal(size=(n, 10))
    distances, start = cdist(X, X).astype(dtype), np.random.default_rng(1).choice(n, k, replace=False)
    ours, cost = _fastest(lambda: SwapDescent(distances, k, MedoidTies.none())(start, np.arange(n)).cost)
    row = {"what": f"{n}, {np.dtype(dtype).name}, k={k}", "ours": ours, "theirs": "-", "ratio": "-", "same": "-"}
    row |= judged(0.0, None)
    if kmedoids is not None:
        theirs, loss = _fastest(lambda: kmedoids.fasterpam(distances, start.astype(np.uint64), n_cpu=1).loss)
        row |= {"theirs": theirs, "ratio": ours / theirs, "same": "yes" if abs(loss - cost) < 1e-6 * cost else "no"}
        row |= judged(ours / theirs, limit)
    return row


def _fastest(work: Any) -> tuple[float, float]:
    seconds = []
    for _ in range(3):
        started = time.process_time()
        result = work()
        seconds.append(time.process_time() - started)
    return min(seconds), float(result)
