"""A picture of each method on a toy table, and one of all methods for each of four shapes of clusters.

`python examples/gallery.py [DIRECTORY]` writes the PNGs that docs/gallery.md shows. Needs matplotlib.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import euclidean_distances

from clew import (
    BoostCluster,
    CondEns,
    ConstrainedAgglomerative,
    ConstrainedDensity,
    ConstrainedKMedoids,
    ConstrainedSpectral,
    Constraints,
    CoordinatedConditionalIB,
    DeepConstrainedClustering,
    DistBoost,
    GeometryPreservingLearner,
    MahalanobisLearner,
    MatchClustering,
    SemiSupervisedKernelKMeans,
)
from clew._registry import all_estimators, method_name
from clew.evaluation import adjusted_rand_score
from clew.exceptions import ClewWarning

COLOURS = np.array(["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"])
NOISE = "#bbbbbb"


def toy() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Constraints]:
    """Two flat stripes, one above the other, a round group above them, and answers about thirty pairs of rows."""
    rng = np.random.default_rng(3)
    stripes = [np.column_stack([rng.uniform(2.75, 7.25, 50), rng.normal(height, 0.25, 50)]) for height in (2.0, 3.8)]
    X = np.concatenate([*stripes, rng.normal([5, 7.1], 0.5, size=(40, 2))])
    y = np.repeat([0, 1, 2], [50, 50, 40])
    return X, y, Constraints.sample(y, 30, balance=0.5, random_state=1)


def documents() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Constraints]:
    """Counts of sixteen words: eight for two subjects, eight for two styles, and pairs of rows told by the subject."""
    rng = np.random.default_rng(3)
    subject, style = rng.integers(2, size=(2, 140))
    half = np.repeat([0, 1], 4)
    rates = np.where(subject[:, None] == half, 2.0, 0.5), np.where(style[:, None] == half, 4.0, 0.8)
    counts = rng.poisson(np.column_stack(rates)).astype(float)
    return counts, subject, Constraints.sample(subject, 30, balance=0.5, random_state=1)


def shares(counts: Any) -> Any:
    """Where documents are drawn: across by their words for the subject, upwards by their words for the style."""
    sums = counts.reshape(len(counts), 4, 4).sum(axis=2) + 0.5
    return np.column_stack([sums[:, 1] / sums[:, :2].sum(axis=1), sums[:, 3] / sums[:, 2:].sum(axis=1)])


def circles() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Constraints]:
    """Two circles, one within the other, and answers about eighty pairs of rows."""
    X, y = make_circles(200, factor=0.4, noise=0.05, random_state=0)
    return X, y, Constraints.sample(y, 80, balance=0.5, random_state=0)


def moons() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Constraints]:
    """Two half circles that reach into each other, and answers about forty pairs of rows."""
    X, y = make_moons(240, noise=0.11, random_state=0)
    return X, y, Constraints.sample(y, 40, balance=0.5, random_state=0)


def duplicates() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Constraints]:
    """Forty places with one to four rows each, near the place, and answers about near pairs of rows."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), rng.integers(1, 5, size=40))
    X = rng.uniform(size=(40, 2))[y] + rng.normal(scale=0.02, size=(len(y), 2))
    gaps = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    near = np.argwhere(np.triu((gaps > 0.02) & (gaps < 0.08), 1))
    asked = near[rng.choice(len(near), 30, replace=False)]
    same = y[asked[:, 0]] == y[asked[:, 1]]
    return X, y, Constraints(asked[same], asked[~same], n_samples=len(y))


# Methods that the toy table does not suit.
TABLES = {SemiSupervisedKernelKMeans: circles, ConstrainedSpectral: moons, MatchClustering: duplicates}
# A network that suits some hundred rows in two columns.
OPTIONS: dict[Any, dict[str, Any]] = {
    DeepConstrainedClustering: {"layers": 64, "n_components": 2, "batch_size": 32, "learning_rate": 0.01, "tol": 0}
}


def shapes() -> dict[str, tuple[Any, Any]]:
    """Rows and classes: round groups, two shapes that are not round, and groups of different density."""
    n = 240
    return {
        "blobs": make_blobs(n, centers=[[0, 0], [4, 0], [2, 3.5]], cluster_std=0.8, random_state=0),
        "moons": moons()[:2],
        "circles": make_circles(n, factor=0.5, noise=0.06, random_state=0),
        "densities": make_blobs(n, centers=[[0, 0], [3, 0], [2, 6]], cluster_std=[0.3, 0.6, 1.9], random_state=0),
    }


def taken(cls: Any, **options: Any) -> dict[str, Any]:
    """Those of the options that an estimator has a parameter for."""
    return {name: value for name, value in options.items() if name in cls().get_params()}


def weights(X: Any) -> Any:
    """Rows as a signed graph: 1.5 minus the distance, for pairs within a distance of 3."""
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    return np.where(distances < 3, 1.5 - distances, 0.0)


def draw(axes: Any, X: Any, labels: Any, known: Constraints | None, title: str, fontsize: int = 9) -> None:
    """Rows in the colours of their clusters, noise in grey; must-links as lines, cannot-links dotted."""
    for kind, style in (("must_link", "-"), ("cannot_link", ":")):
        for pair in () if known is None else getattr(known, kind):
            axes.plot(*X[pair].T, style, color="#555555", linewidth=0.8, zorder=1)
    axes.scatter(*X.T, s=12, c=np.where(labels < 0, NOISE, COLOURS[labels % len(COLOURS)]), linewidths=0, zorder=2)
    axes.set_title(title, fontsize=fontsize)
    axes.set_xticks([])
    axes.set_yticks([])


def draw_methods(directory: Path) -> None:
    """Fit every method twice, print what the constraints changed, and write a picture of each."""
    for cls in all_estimators("clusterer"):
        if not cls._is_installed():
            print(f"{cls.__name__:26} needs pip install 'clew[{cls._capabilities.extra}]'")
            continue
        can = cls._capabilities
        X, y, known = documents() if can.counts else TABLES.get(cls, toy)()
        rows = weights(X) if can.pairwise is not None else X
        places = shares(X) if can.counts else X
        figure = Figure(figsize=(6, 2.6), dpi=80, layout="constrained")
        scores = []
        for axes, given in zip(figure.subplots(1, 2), (None, known), strict=True):
            # The tolerance is that of sizes: up to 10 % from the mean.
            model = cls(
                **taken(cls, n_clusters=len(np.unique(y)), random_state=0, tolerance=0.1, **OPTIONS.get(cls, {}))
            )
            model.fit(rows, constraints=given)
            scores.append(round(adjusted_rand_score(y, model.labels_), 2) + 0.0)  # no -0.00
            word = "without" if given is None else "with"
            sizes = f", sizes {', '.join(map(str, model.cluster_sizes_))}" if hasattr(model, "tolerance") else ""
            if hasattr(model, "medoid_indices_"):
                axes.scatter(*places[model.medoid_indices_].T, s=60, facecolors="none", edgecolors="black", zorder=3)
            draw(axes, places, model.labels_, given, f"{word} constraints: ARI {scores[-1]:.2f}{sizes}")
        figure.suptitle(cls.__name__, fontsize=10)
        figure.savefig(directory / f"{method_name(cls)}.png")
        print(f"{cls.__name__:26} {scores[0]:5.2f} -> {scores[1]:5.2f}")


def draw_shapes(directory: Path, n_beside: int = 3) -> None:
    """Fit every method twice to each shape, print what the constraints changed, and write a picture of each shape."""
    warnings.simplefilter("ignore", ClewWarning)  # a dead end is part of the picture
    methods: dict[str, Any] = {
        cls.__name__: cls
        for cls in all_estimators("clusterer")
        # Few clusters, of too few rows for a network.
        if cls._capabilities.vectors and not cls._capabilities.tables and not cls._capabilities.embeds
    }
    methods["single linkage"] = partial(ConstrainedAgglomerative, linkage="single")
    methods["around DBSCAN"] = partial(ConstrainedDensity, "dbscan")
    for shape, (X, y) in shapes().items():
        known = Constraints.sample(y, 40, balance=0.5, random_state=0)
        n_lines = -(-len(methods) // n_beside)
        figure = Figure(figsize=(3.6 * n_beside, 1.75 * n_lines), dpi=80, layout="constrained", facecolor="white")
        panels = figure.subplots(n_lines, 2 * n_beside).reshape(-1, 2)
        for (name, make), pair in zip(methods.items(), panels, strict=False):
            scores = []
            for axes, given in zip(pair, (None, known), strict=True):
                model = make(**taken(make, n_clusters=len(np.unique(y)), random_state=0)).fit(X, constraints=given)
                scores.append(round(adjusted_rand_score(y, model.labels_), 2) + 0.0)  # no -0.00
                draw(axes, X, model.labels_, given, f"{'with' if given else name}: {scores[-1]:.2f}", fontsize=8)
            print(f"{shape:10} {name:26} {scores[0]:5.2f} -> {scores[1]:5.2f}")
        for axes in panels[len(methods) :].ravel():
            axes.set_axis_off()
        figure.savefig(directory / f"shape-{shape}.png")


def draw_learned_distance(directory: Path) -> None:
    """K-means clusters before and after a distance is learned from the answers, each in its own space."""
    X, y, known = toy()
    figure = Figure(figsize=(6, 2.6), dpi=80, layout="constrained")
    learned = MahalanobisLearner().fit_transform(X, constraints=known)
    for axes, rows, word in zip(figure.subplots(1, 2), (X, learned), ("before", "after"), strict=True):
        labels = KMeans(3, n_init=10, random_state=0).fit_predict(rows)
        draw(axes, rows, labels, known, f"k-means {word}: ARI {adjusted_rand_score(y, labels):.2f}")
        axes.set_aspect("equal", adjustable="datalim")
    figure.suptitle("MahalanobisLearner", fontsize=10)
    figure.savefig(directory / "mahalanobis-learner.png")


def draw_boosted(directory: Path) -> None:
    """Clusters of plain k-means, and of k-means that BoostCluster runs on the directions that the answers lead to."""
    X, y, known = toy()
    figure = Figure(figsize=(6, 2.6), dpi=80, layout="constrained")
    for axes, given, word in zip(figure.subplots(1, 2), (None, known), ("without", "with"), strict=True):
        labels = BoostCluster(3, random_state=0).fit(X, constraints=given).labels_
        draw(axes, X, labels, given, f"{word} constraints: ARI {adjusted_rand_score(y, labels):.2f}")
    figure.suptitle("BoostCluster around k-means", fontsize=10)
    figure.savefig(directory / "boost-cluster.png")


def draw_boosted_distance(directory: Path) -> None:
    """Clusters around medoids by Euclidean distance, and by the distance that DistBoost learns from the answers."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 80)
    long, short = rng.normal(scale=2.2, size=160), rng.normal(scale=0.35, size=160)
    X = np.column_stack([np.where(y, long, short), np.where(y, short, long)])  # two groups that cross each other
    known = Constraints.sample(y, 30, balance=0.5, random_state=0)
    distances = {
        "Euclidean": euclidean_distances(X),
        "DistBoost": DistBoost(2, random_state=0).fit(X, constraints=known).pairwise(X),
    }
    figure = Figure(figsize=(6, 2.6), dpi=80, layout="constrained")
    for axes, (name, matrix) in zip(figure.subplots(1, 2), distances.items(), strict=True):
        labels = ConstrainedKMedoids(2, metric="precomputed", random_state=0).fit(matrix).labels_
        draw(axes, X, labels, known, f"{name}: ARI {adjusted_rand_score(y, labels):.2f}")
    figure.suptitle("Medoids by plain and by learned distance", fontsize=10)
    figure.savefig(directory / "dist-boost.png")


def draw_alternatives(directory: Path) -> None:
    """Given clusters of one table, and the other clusters that both alternative clusterers find."""
    rng = np.random.default_rng(3)
    wide, high = rng.integers(2, size=140), rng.integers(3, size=140)
    X = np.column_stack([9 * wide, 3 * high]) + rng.normal(scale=0.6, size=(140, 2))
    given = KMeans(2, n_init=5, random_state=0).fit_predict(X)
    answers = {"given": given}
    for cls in (CondEns, CoordinatedConditionalIB):
        answers[cls.__name__] = cls(3, random_state=0).fit(X, given=given).labels_
    figure = Figure(figsize=(9, 2.6), dpi=80, layout="constrained")
    for axes, (name, labels) in zip(figure.subplots(1, 3), answers.items(), strict=True):
        draw(axes, X, labels, None, name)
    figure.savefig(directory / "alternatives.png")


def draw_moved_rows(directory: Path) -> None:
    """K-means clusters before and after rows are moved, and the way of each moved row."""
    X, y = make_blobs(120, centers=[[0, 0], [4, 0], [2, 3.5]], cluster_std=1.3, random_state=3)
    first = GeometryPreservingLearner(3, random_state=0).fit(X).labels_  # nothing is known, so nothing moves
    pairs = np.column_stack(np.triu_indices(len(X), 1))
    same, joined = (of[pairs[:, 0]] == of[pairs[:, 1]] for of in (y, first))
    asked = np.random.default_rng(0).choice(np.flatnonzero(same != joined), 12, replace=False)
    known = Constraints(pairs[asked][same[asked]], pairs[asked][~same[asked]], n_samples=len(X))
    model = GeometryPreservingLearner(3, random_state=0).fit(X, constraints=known)
    figure = Figure(figsize=(8, 3.6), dpi=80, layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    draw(left, X, first, known, f"k-means before: ARI {adjusted_rand_score(y, first):.2f}")
    draw(
        right, model.embedding_, model.labels_, None, f"k-means after: ARI {adjusted_rand_score(y, model.labels_):.2f}"
    )
    for row in np.flatnonzero(model.distances_moved_):
        way = {"arrowstyle": "->", "color": "black", "linewidth": 1.0}
        right.annotate("", model.embedding_[row], X[row], arrowprops=way)
    figure.suptitle("GeometryPreservingLearner", fontsize=10)
    figure.savefig(directory / "geometry-preserving-learner.png")


def main(directory: Path) -> None:
    """Draw all galleries."""
    directory.mkdir(parents=True, exist_ok=True)
    draw_learned_distance(directory)
    draw_moved_rows(directory)
    draw_boosted(directory)
    draw_boosted_distance(directory)
    draw_alternatives(directory)
    draw_methods(directory)
    draw_shapes(directory)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "gallery"))
