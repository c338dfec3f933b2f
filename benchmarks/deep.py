"""Deep constrained clustering with and without the filter of pairs, as in thesis Table 6.2; Auto on its embedding."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks._harness import RESULTS, Report
from benchmarks._published import is_kept, kept, not_run, published_data
from clew import Constraints, DeepConstrainedClustering
from clew.active import Auto
from clew.active._learning_curve import learning_curve
from clew.evaluation import adjusted_rand_score

TITLE = "Deep clustering with filtered constraints"
N_CLUSTERS = 10
FRACTIONS = (None, 0.0, 0.6, 0.7, 0.8, 0.9, 0.95)
# Mean ARI of thesis Table 6.2, in the order of FRACTIONS: 60,000 rows, 20 sets. Its Reuters is another collection.
THESIS = {
    "mnist": (0.9314, 0.9343, 0.9343, 0.9427, 0.9338, 0.9389, 0.9370),
    "fashion_mnist": (0.3916, 0.4012, 0.4164, 0.4132, 0.4237, 0.4115, 0.4175),
    "reuters": (0.5995, 0.5830, 0.5843, 0.5949, 0.6009, 0.6006, 0.5992),
}
# The order of the fits on all rows, the fractions that the thesis found best first.
_FIRST = (None, 0.8, 0.7, 0.0, 0.6, 0.9, 0.95)
# Rows, layers, epochs of pre-training, rounds, constraint sets. The small network makes fits of half a minute.
SUBSET: dict[str, Any] = {"n_rows": 10_000, "layers": (256, 256, 512), "epochs": 30, "max_iter": 12, "n_sets": 5}
FULL: dict[str, Any] = {"n_rows": None, "layers": (256, 256, 512), "epochs": 30, "max_iter": 30, "n_sets": 5}
QUICK: dict[str, Any] = {"n_rows": 300, "layers": (16,), "epochs": 1, "max_iter": 2, "n_sets": 1}
# Weight of a pair, chosen on the test images of MNIST. The default is lower, for answers that may be wrong.
_PENALTY = 30.0
_ASKED_ROWS, _BUDGETS = 500, (50, 100)
_DRAWN = 10


def run(*, quick: bool, full: bool = False) -> Report:
    """ARI of every fraction on three sets, beside k-means and the thesis; then questions on pixels and embedding."""
    data = published_data()
    if data is None or find_spec("torch") is None:
        return not_run("deep", TITLE)
    size = QUICK if quick else FULL if full else SUBSET
    names = ("mnist",) if quick else tuple(THESIS)
    parts = Parts(quick)
    cells = fits(parts, names, size)
    rows = [row for name in names for row in compared(name, size, cells[name])]
    if not full:
        rows += [*drawn(parts), *questions(parts, size)]
    columns = {
        "what": "set", "pairs": "pairs used", "ari": "ARI", "spread": "sd", "worst": "worst", "loss": "largest loss",
        "sets": "sets", "published": "thesis", "rounds": "rounds", "used": "used in the last round",
        "seconds": "seconds a fit",
    }  # fmt: skip
    return Report("deep-full" if full else "deep", TITLE, columns, rows, notes(size))


class Parts:
    """Runs parts of the benchmark until Ctrl-C. From then on, it only gives parts that were finished before."""

    def __init__(self, quick: bool) -> None:
        self.quick, self._stopped = quick, False

    def figures(self, name: str, work: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
        """The figures of one part, in a list that is empty if the part is not finished."""
        if self._stopped and not is_kept("deep", name):
            return []
        try:
            return [kept("deep", name, self.quick, work)]
        except KeyboardInterrupt:
            print("Stopped; the table has what is finished. The same command continues.", flush=True)
            self._stopped = True
            return []


def fits(parts: Parts, names: Sequence[str], size: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Figures of every fit by data set.

    A run may be stopped at any time, so it takes one set of constraints after another: the first set on all data sets,
    then the second one. On all rows, a data set takes an hour. There, one set of constraints is finished on a data set
    before the next data set begins, and the fractions that the thesis found best are first.
    """
    cells: dict[str, list[dict[str, Any]]] = {name: [] for name in names}

    def add(name: str, part: str, fit: Callable[[], dict[str, Any]], **about: Any) -> None:
        cells[name] += [one | about for one in parts.figures(f"{name}-{size['n_rows']}-{part}", fit)]

    def add_fit(number: int, name: str, fraction: float | None) -> None:
        if (number, fraction) == (0, None):
            add(name, "kmeans", partial(kmeans_figures, name, size), pairs="k-means on the rows")
            add(name, "none", partial(fitted, name, size, None, None), pairs="none")
        filtered = fraction or None  # a fraction of 0 is the same as no filter
        add(name, f"{number}-{filtered}", partial(fitted, name, size, number, filtered), fraction=fraction)

    for number in range(size["n_sets"]):
        if size is FULL:
            for name, fraction in product(names, _FIRST):
                add_fit(number, name, fraction)
        else:
            for fraction, name in product(FRACTIONS, names):
                add_fit(number, name, fraction)
    return cells


def notes(size: dict[str, Any]) -> list[str]:
    rows = "all rows" if size["n_rows"] is None else f"{size['n_rows']:,} rows (Reuters: all, if fewer)"
    return [
        f"{rows}, at most {size['n_sets']} sets of 10 % n right random pairs (column sets), layers {size['layers']},",
        f"{size['epochs']} epochs of pre-training (one for all fits on a set), at most {size['max_iter']} rounds",
        "(with a filter, half of them learn from all pairs first),",
        f"penalty={_PENALTY:g}. filter_fraction=0 is the same as all pairs.",
        "Seconds are processor time of one thread, without pre-training. The thesis has 60,000 rows, 20 sets and",
        "larger layers; its Reuters-10K is not public, and the ten largest topics of Reuters-21578 take its place.",
        f"Drawn tables: {_DRAWN} of 400 to 1,200 rows and 20 to 100 columns, 20 % n pairs;",
        "the largest loss is against no pairs, on one table.",
        f"Questions: the strategy Auto with right answers about {_ASKED_ROWS:,} rows, ARI after {_BUDGETS} answers.",
    ]


@cache
def table(name: str, n_rows: int | None) -> tuple[Any, NDArray[np.int64]]:
    """Rows and classes, at most `n_rows` of them."""
    data = published_data()
    if name == "reuters":
        texts, topics = data.load("reuters21578")
        largest = [topic for topic, _ in Counter(topics.tolist()).most_common(N_CLUSTERS)]
        chosen = np.flatnonzero(np.isin(topics, largest))
    else:
        X, topics = data.load(name)
        chosen = np.arange(len(X))
    if n_rows is not None and n_rows < len(chosen):
        chosen = np.sort(np.random.default_rng(0).choice(chosen, n_rows, replace=False))
    y = np.unique(topics[chosen], return_inverse=True)[1]
    if name == "reuters":
        vectors = TfidfVectorizer(max_features=2000, stop_words="english", sublinear_tf=True)
        return vectors.fit_transform([texts[place] for place in chosen]), y
    return X[chosen].astype(np.float32), y


def compared(name: str, size: dict[str, Any], cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the table for one set: k-means, no constraints, all pairs, and filtered ones."""
    about = f"{name} (n={len(table(name, size['n_rows'])[1]):,})"
    rows = [{"what": about, **one} for one in cells if "fraction" not in one]
    for fraction, published in zip(FRACTIONS, THESIS[name], strict=True):
        each = [one for one in cells if one.get("fraction", "") == fraction]
        if not each:
            continue
        scores = [one["ari"] for one in each]
        row: dict[str, Any] = {key: float(np.mean([one[key] for one in each])) for key in ("rounds", "used", "seconds")}
        row |= {"what": about, "pairs": "all" if fraction is None else f"filter_fraction={fraction:g}"}
        row |= {"ari": float(np.mean(scores)), "spread": float(np.std(scores)), "worst": min(scores)}
        rows.append(row | {"sets": len(each), "published": published})
    return rows


def kmeans_figures(name: str, size: dict[str, Any]) -> dict[str, float]:
    return {"ari": kmeans_ari(*table(name, size["n_rows"]))}


def kmeans_ari(X: Any, y: NDArray[np.int64]) -> float:
    return float(adjusted_rand_score(y, KMeans(len(np.unique(y)), n_init=3, random_state=0).fit_predict(X)))


def drawn_table(number: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Classes that are clusters in five dimensions, seen through a random nonlinear map with noise."""
    rng = np.random.default_rng(number)
    k, n_rows, n_columns = int(rng.integers(3, 9)), int(rng.integers(400, 1201)), int(rng.integers(20, 101))
    y = rng.integers(k, size=n_rows)
    hidden = 1.5 * rng.normal(size=(k, 5))[y] + rng.normal(scale=0.7, size=(n_rows, 5))
    X = np.tanh(hidden @ rng.normal(size=(5, 30)) / 2) @ rng.normal(size=(30, n_columns))
    return X + rng.normal(scale=1.5, size=X.shape), np.unique(y, return_inverse=True)[1]


def drawn(parts: Parts) -> list[dict[str, Any]]:
    """Mean ARI over small drawn tables with the default parameters, and the largest loss against no pairs."""
    found: dict[str, list[float]] = {}
    for number in range(1 if parts.quick else _DRAWN):
        for scores in parts.figures(f"drawn-{number}", partial(drawn_scores, number, parts.quick)):
            for key, score in scores.items():
                found.setdefault(key, []).append(score)
    rows = []
    for key in [key for key in found if key != "seconds"]:
        loss = max(np.subtract(found["none"], found[key]))
        row: dict[str, Any] = {
            "what": f"{len(found[key])} drawn tables",
            "pairs": key,
            "ari": float(np.mean(found[key])),
        }
        rows.append(row | {"worst": min(found[key]), "loss": float(loss)})
    return rows


def drawn_scores(number: int, quick: bool) -> dict[str, float]:
    X, y = drawn_table(number)
    k, short = len(np.unique(y)), {"max_iter": 1} if quick else {}
    start = DeepConstrainedClustering(k, pretrain_epochs=1 if quick else 50, max_iter=0, random_state=0)
    network = start.fit(X).network_

    def score(known: Constraints | None, fraction: float | None) -> float:
        model = DeepConstrainedClustering(k, pretrained=network, filter_fraction=fraction, random_state=0, **short)
        return float(adjusted_rand_score(y, model.fit(X, constraints=known).labels_))

    found = {"k-means on the rows": kmeans_ari(X, y), "none": score(None, None)}
    for word, noise in (("right", 0.0), ("10 % wrong", 0.1), ("20 % wrong", 0.2)):
        known = Constraints.sample(y, len(y) // 5, noise=noise, random_state=number)
        for fraction in (None, 0.8):
            pairs = "all" if fraction is None else f"filter_fraction={fraction:g}"
            found[f"{pairs}, {word}"] = score(known, fraction)
    return found


def pretrained(name: str, size: dict[str, Any]) -> NDArray[np.float32]:
    """The weights that all fits on a set start from; kept in a file, as pre-training takes longest."""
    path = RESULTS / "deep-parts" / f"{name}-{size['n_rows']}.npy"
    if path.exists() and size is not QUICK:
        return np.load(path)
    started = time.process_time()
    model = DeepConstrainedClustering(
        N_CLUSTERS, layers=size["layers"], pretrain_epochs=size["epochs"], max_iter=0, random_state=0
    ).fit(table(name, size["n_rows"])[0])
    print(f"{name}: pre-training, {time.process_time() - started:.0f} s", flush=True)
    if size is not QUICK:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, model.network_)
    return model.network_


def fitted(name: str, size: dict[str, Any], number: int | None, fraction: float | None) -> dict[str, float]:
    """Figures of one fit. Its seconds are without pre-training."""
    network = pretrained(name, size)
    started = time.process_time()
    model = trained(name, size, network, number, fraction)
    seconds = time.process_time() - started
    used = len(model.used_must_link_) + len(model.used_cannot_link_)
    score = float(adjusted_rand_score(table(name, size["n_rows"])[1], model.labels_))
    print(f"{name}, set {number}, filter {fraction}: {score:.3f}, {model.n_iter_} rounds, {seconds:.0f} s", flush=True)
    return {"ari": score, "rounds": model.n_iter_, "used": used, "seconds": seconds}


def trained(
    name: str, size: dict[str, Any], network: NDArray[np.float32], number: int | None, fraction: float | None
) -> DeepConstrainedClustering:
    """One fit; without the number of a set, there are no constraints.

    With a filter, half of the rounds are a second stage. So all fits have as many rounds, unless they stop earlier.
    """
    X, y = table(name, size["n_rows"])
    max_iter = size["max_iter"] // (1 if fraction is None else 2)
    known = None if number is None else Constraints.sample(y, len(y) // 10, random_state=number)
    return DeepConstrainedClustering(
        N_CLUSTERS, layers=size["layers"], pretrained=network, filter_fraction=fraction, penalty=_PENALTY,
        max_iter=max_iter, random_state=number or 0,
    ).fit(X, constraints=known)  # fmt: skip


def questions(parts: Parts, size: dict[str, Any]) -> list[dict[str, Any]]:
    """Auto on the pixels of some digits, and on their embedding after training without any constraint."""
    X, y = table("mnist", size["n_rows"])
    rows = np.random.default_rng(1).choice(len(X), 60 if parts.quick else _ASKED_ROWS, replace=False)
    budgets = (5,) if parts.quick else _BUDGETS

    def work() -> dict[str, Any]:
        embedding = trained("mnist", size, pretrained("mnist", size), None, None).transform(X[rows])
        found = [
            learning_curve(space.astype(np.float64), y[rows], Auto, n_clusters=N_CLUSTERS, budgets=budgets, seeds=(0,))
            for space in (X[rows], embedding)
        ]
        return {"pixels": found[0].mean.tolist(), "embedding": found[1].mean.tolist()}

    about = f"Auto on {len(rows):,} digits"
    table_rows = []
    for found in parts.figures(f"questions-{len(X)}-{len(rows)}", work):
        told = ["/".join(f"{score:.2f}" for score in found[space]) for space in ("pixels", "embedding")]
        table_rows.append({"what": about, "pairs": f"pixels {told[0]}; embedding {told[1]}"})
    return table_rows
