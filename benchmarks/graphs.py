"""Spectral and kernel methods: what pairs are worth on ten graphs, and the time beside scikit-learn's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_moons
from sklearn.neighbors import kneighbors_graph

from benchmarks._harness import Report, in_fresh_process, judged
from clew import ConstrainedSpectral, Constraints, SemiSupervisedKernelKMeans
from clew.evaluation import adjusted_rand_score

FloatArray = NDArray[np.float64]
Labelled = tuple[Any, NDArray[np.int64]]

PAIRS = (0, 20, 50, 100)
TIME_LIMIT = 3.0


def run(*, quick: bool) -> Report:
    """ARI without pairs and with random right pairs."""
    rows = []
    for name, make in list(TABLES.items())[:1] if quick else TABLES.items():
        for method in METHODS:
            draws = [scores(make, method, seed) for seed in range(1 if quick else 3)]
            mean = np.mean(draws, axis=0)
            fall = float(min(min(one[1:] - one[0]) for one in draws))
            row = {"what": name, "method": method} | dict(zip(map(str, PAIRS), map(float, mean), strict=True))
            rows.append(row | {"worst": fall})
    if not quick:
        for method in METHODS:
            some = [row for row in rows if row["method"] == method]
            mean_row = {str(n): float(np.mean([row[str(n)] for row in some])) for n in PAIRS}
            worst = min(row["worst"] for row in some)
            rows.append({"what": "all", "method": method, **mean_row, "worst": worst})
    columns = {"what": "graph", "method": "method"} | {str(n): f"{n} pairs" for n in PAIRS}
    notes = [
        "ARI, mean over three draws of rows and of random right pairs; default parameters, the true number of",
        "clusters.",
        "Worst change: the lowest difference to the same draw without pairs.",
    ]
    return Report("graphs", "Pairs on graphs", columns | {"worst": "worst change"}, rows, notes)


METHODS = ("affinity", "cut", "kernel")


def scores(make: Callable[[np.random.Generator], Labelled], method: str, seed: int) -> FloatArray:
    """ARI for each number of pairs."""
    X, y = make(np.random.default_rng([seed, 7]))
    k, is_graph = len(np.unique(y)), sparse.issparse(X)
    model: Any
    if method == "kernel":
        model = SemiSupervisedKernelKMeans(k, kernel="precomputed" if is_graph else "rbf", random_state=seed)
        X = normalised_kernel(X) if is_graph else X
    else:
        affinity = "precomputed" if is_graph else "nearest_neighbors"
        model = ConstrainedSpectral(k, affinity=affinity, embedding=method, random_state=seed)
    found = []
    for n in PAIRS:
        known = Constraints.sample(y, n, random_state=seed) if n else Constraints(n_samples=len(y))
        found.append(adjusted_rand_score(y, model.fit(X, constraints=known).labels_))
    return np.array(found)


def normalised_kernel(graph: Any) -> FloatArray:
    """D^-1/2 (A + D) D^-1/2, a kernel whose k-means minimises normalised cuts; no eigenvalue is negative."""
    degrees = np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12)
    kernel = graph.toarray() / np.sqrt(np.outer(degrees, degrees))
    return np.asarray(kernel + np.eye(len(degrees)))


def blocks(rng: np.random.Generator, sizes: list[int], inside: float, outside: float, activity: float) -> Labelled:
    """A stochastic block model; `activity` is the spread of the rows' degrees (on a log scale)."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    degree = np.exp(activity * rng.normal(size=len(y)))
    chance = np.where(y[:, None] == y, inside, outside) * np.outer(degree, degree) / np.mean(degree) ** 2
    edges = np.triu(rng.random(chance.shape) < chance, 1)
    return sparse.csr_array((edges | edges.T).astype(float)), y


def spirals(rng: np.random.Generator) -> Labelled:
    y = np.repeat(np.arange(3), 130)
    angle = np.tile(np.linspace(0.6, 4.5, 130), 3)
    turn = angle + y * 2 * np.pi / 3
    return np.column_stack([angle * np.cos(turn), angle * np.sin(turn)]) + rng.normal(scale=0.2, size=(390, 2)), y


def linked_rings(rng: np.random.Generator) -> Labelled:
    y, angle = np.repeat([0, 1], 180), rng.uniform(0, 2 * np.pi, 360)
    first = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    second = np.column_stack([1 + np.cos(angle), 0 * angle, np.sin(angle)])
    return np.where(y[:, None] == 0, first, second) + rng.normal(scale=0.15, size=(360, 3)), y


def bridged(rng: np.random.Generator) -> Labelled:
    """Two long groups with a bridge of rows between them."""
    y = np.repeat([0, 1], 170)
    X = rng.normal(size=(340, 2)) * [3.0, 0.4] + np.where(y[:, None] == 0, [0, 1.5], [0, -1.5])
    X[:20, :] = np.column_stack([rng.normal(scale=0.1, size=20), np.linspace(0, 1.4, 20)])
    X[-20:, :] = np.column_stack([rng.normal(scale=0.1, size=20), np.linspace(-1.4, 0, 20)])
    return X, y


def densities(rng: np.random.Generator) -> Labelled:
    """Three groups of different density among uniform rows, which belong to the nearest group."""
    centers, scales = np.array([[0, 0], [4, 0], [2, 5.0]]), np.array([0.2, 0.6, 1.4])
    y = np.repeat(np.arange(3), 100)
    X = np.concatenate([centers[y] + rng.normal(size=(300, 2)) * scales[y, None], rng.uniform(-3, 8, (60, 2))])
    return X, np.concatenate([y, np.linalg.norm(X[300:, None] - centers, axis=2).argmin(axis=1)])


def lattice(rng: np.random.Generator) -> Labelled:
    """A square grid without gaps, split by a diagonal line that only the pairs know."""
    grid = np.stack(np.meshgrid(np.arange(20), np.arange(20)), axis=-1).reshape(-1, 2)
    return grid + rng.normal(scale=0.1, size=(400, 2)), (grid.sum(axis=1) > 19).astype(np.int64)


def weaker_split(rng: np.random.Generator) -> Labelled:
    """Four groups; the classes are the pairs of groups that lie farther apart."""
    part = rng.integers(4, size=320)
    return np.array([[0, 0], [0, 3], [4.5, 0], [4.5, 3.0]])[part] + rng.normal(size=(320, 2)), part % 2


def many_columns(rng: np.random.Generator) -> Labelled:
    y = np.repeat(np.arange(5), 70)
    return rng.normal(size=(5, 50))[y] * 0.8 + rng.normal(size=(350, 50)), y


def islands(rng: np.random.Generator) -> Labelled:
    """Twelve islands without edges between them, in three classes."""
    graph, island = blocks(rng, [25] * 12, 0.4, 0.0, 0.0)
    return graph, island % 3


TABLES: dict[str, Callable[[np.random.Generator], Labelled]] = {
    "four blocks": lambda rng: blocks(rng, [80] * 4, 0.12, 0.03, 0.0),
    "uneven blocks, uneven degrees": lambda rng: blocks(rng, [180, 90, 40, 20], 0.12, 0.02, 0.7),
    "three spirals": spirals,
    "linked rings": linked_rings,
    "bridged": bridged,
    "different densities": densities,
    "lattice, no gap": lattice,
    "weaker split": weaker_split,
    "fifty columns": many_columns,
    "islands": islands,
}


def run_speed(*, quick: bool) -> Report:
    """Time of a fit on a sparse graph beside scikit-learn's SpectralClustering on the same graph."""
    rows = []
    for shape in ("blobs", "overlapping", "moons", "uniform"):
        found = in_fresh_process(measure, shape=shape, n_rows=500 if quick else 20_000)
        theirs, their_ari = found.pop("scikit-learn")
        for embedding, (seconds, ari) in found.items():
            row = {"what": shape, "embedding": embedding, "clew": seconds, "scikit-learn": theirs}
            row |= {"ratio": seconds / theirs, "ari": ari, "their ari": their_ari}
            rows.append(row | judged(seconds / theirs, None if quick else TIME_LIMIT))
    columns = {
        "what": "rows", "embedding": "embedding", "clew": "clew (s)", "scikit-learn": "scikit-learn (s)",
        "ratio": "ratio", "bar": "bar", "verdict": "", "ari": "ARI", "their ari": "ARI of scikit-learn",
    }  # fmt: skip
    notes = [
        "20,000 rows, a given graph of 10 nearest neighbours, 200 random pairs (scikit-learn has none), one thread.",
        "Processor seconds of one fit each.",
    ]
    return Report("graph-speed", "Spectral clustering of a large graph", columns, rows, notes)


def measure(shape: str, n_rows: int) -> dict[str, tuple[float, float]]:
    """Processor seconds and ARI of scikit-learn and of both embeddings."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=n_rows)
    if shape == "moons":
        X, y = make_moons(n_rows, noise=0.08, random_state=0)
    elif shape == "uniform":
        X = rng.random((n_rows, 2))
        y = (X[:, 0] > 0.5).astype(np.int64)
    else:
        X = rng.normal(size=(5, 8))[y] * (3.0 if shape == "blobs" else 1.2) + rng.normal(size=(n_rows, 8))
    graph = kneighbors_graph(X, 10)
    graph = sparse.csr_array(0.5 * (graph + graph.T))
    k, known = len(np.unique(y)), Constraints.sample(y, min(200, n_rows // 10), random_state=0)
    models: dict[str, Any] = {"scikit-learn": SpectralClustering(k, affinity="precomputed", random_state=0)}
    for embedding in ("affinity", "cut"):
        models[embedding] = ConstrainedSpectral(k, affinity="precomputed", embedding=embedding, random_state=0)
    found = {}
    for name, model in models.items():
        given = {} if name == "scikit-learn" else {"constraints": known}
        started = time.process_time()
        model.fit(graph, **given)
        found[name] = (time.process_time() - started, adjusted_rand_score(y, model.labels_))
    return found
