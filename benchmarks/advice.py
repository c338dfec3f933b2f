"""How often is the advised number of clusters right, and how often is it wrong while sure? On public sets and on
mixtures of our own. Needs the published benchmark data beside the project; parts that are done are kept and not run
again."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import Report
from benchmarks._published import kept, not_run, published_data
from clew import Constraints
from clew.audit import advise_n_clusters, impact

TITLE = "Advice on the number of clusters"
PUBLIC = (
    "iris", "wine", "seeds", "breast_wdbc", "digits", "glass", "ionosphere", "image_segmentation", "yeast",
    "soybean_small",
)  # fmt: skip
# Kind and number of classes of the mixtures.
OWN = (
    ("blobs", 2), ("blobs", 5), ("blobs", 8), ("overlapping", 4), ("overlapping", 7), ("anisotropic", 3),
    ("unbalanced", 5), ("noise columns", 4), ("two modes", 3), ("no clusters", 3),
)  # fmt: skip
ANSWERS, N_SEEDS, MOST_ROWS, NUMBERS = (50, 200), 2, 600, range(2, 11)


def run(*, quick: bool) -> Report:
    data = published_data()
    if data is None:
        return not_run("advice", TITLE)
    seeds = range(1 if quick else N_SEEDS)
    parts: list[tuple[str, Any, Any]] = [(name, *_public(data, name)) for name in (PUBLIC[:1] if quick else PUBLIC)]
    rows = []
    for n_answers in ANSWERS[:1] if quick else ANSWERS:
        found = []
        for name, X, y in parts:
            part = f"{name}-{n_answers}"
            found.append(kept("advice", part, quick, lambda n=name, X=X, y=y, m=n_answers: _row(n, X, y, m, seeds)))
        rows += [*found, _total("all public sets", n_answers, found)]
        own = [
            kept("advice", f"{kind}-{k}-{n_answers}", quick, lambda q=kind, k=k, m=n_answers: _mixture(q, k, m, seeds))
            for kind, k in (OWN[:1] if quick else OWN)
        ]
        rows += [*own, _total("all mixtures", n_answers, own)]
    columns = {
        "set": "set", "answers": "answers", "classes": "classes", "before": "right before", "right": "right",
        "near": "within 1", "unsure": "cannot tell", "sure_right": "sure and right", "sure_wrong": "sure and wrong",
        "plausible": "truth among plausible", "seconds": "processor seconds",
    }  # fmt: skip
    notes = [
        f"Shares of {N_SEEDS} draws of right answers about random pairs; numbers from 2 to 10; up to {MOST_ROWS} rows,",
        "columns of variance 1. `right before`: the number with which the most answers cost nothing, as before.",
        "Before, the advice never said that the answers cannot tell. Its constants were chosen on these sets,",
        "so that other data may fare worse.",
    ]
    return Report("advice", TITLE, columns, rows, notes)


def _public(data: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X, y = load_digits(return_X_y=True) if name == "digits" else data.load(name)
    chosen = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    return StandardScaler().fit_transform(np.asarray(X, dtype=float)[chosen]), y[chosen]


def _mixture(kind: str, k: int, n_answers: int, seeds: range) -> dict[str, Any]:
    rng = np.random.default_rng(zlib.crc32(f"{kind}-{k}".encode()))
    n, y = 300, rng.integers(0, k, 300)
    if kind == "unbalanced":  # every class has half the rows of the one before
        y = rng.choice(k, n, p=(odds := 0.5 ** np.arange(k)) / odds.sum())
    parts = 2 * y + rng.integers(0, 2, n) if kind == "two modes" else y
    spread = {"blobs": 6.0, "overlapping": 2.0, "no clusters": 0.0}.get(kind, 4.0)
    X = rng.normal(0, spread, (2 * k, 3))[parts] + rng.normal(size=(n, 3))
    if kind == "anisotropic":
        X[:, 0] += 3 * rng.normal(size=n)
    if kind == "noise columns":
        X = np.column_stack([X, rng.normal(0, X.std(), (n, 9))])
    return _row(f"{kind}, {k}", StandardScaler().fit_transform(X), y, n_answers, seeds)


def _row(name: str, X: NDArray[np.float64], y: NDArray[np.int64], n_answers: int, seeds: range) -> dict[str, Any]:
    true, found = len(np.unique(y)), []
    for seed in seeds:
        known = Constraints.sample(y, n_answers, random_state=seed)
        advice = advise_n_clusters(X, known, NUMBERS)
        right = advice.best == true
        free = [impact(X, known, k).fraction_free for k in NUMBERS]
        found.append(
            {
                "before": NUMBERS[int(np.argmax(free))] == true, "right": right, "near": abs(advice.best - true) <= 1,
                "unsure": not advice.sure, "sure_right": advice.sure and right, "sure_wrong": advice.sure and not right,
                "plausible": true in advice.plausible,
            }
        )  # fmt: skip
    shares = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    return {"set": name, "answers": n_answers, "classes": true, **shares}


def _total(name: str, n_answers: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    keys = ("before", "right", "near", "unsure", "sure_right", "sure_wrong", "plausible")
    means = {key: float(np.mean([row[key] for row in rows])) for key in keys}
    return {"set": name, "answers": n_answers, "classes": "-", **means, "seconds": sum(row["seconds"] for row in rows)}
