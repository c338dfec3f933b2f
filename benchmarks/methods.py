"""Every method on clean and on noisy answers about random pairs: agreement with the classes (ARI) and seconds.
Needs the published benchmark data beside the project; parts that are done are kept and not run again."""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import Report
from benchmarks._published import kept, not_run, published_data
from clew import Constraints, MPCKMeans, PCKMeans
from clew._registry import all_estimators
from clew.evaluation import adjusted_rand_score
from clew.exceptions import ClewError

TITLE = "Methods on clean and on noisy answers"
SETS = ("iris", "wine", "seeds", "breast_wdbc", "ionosphere", "digits", "news_sim3", "moons")
# Answers, share of wrong ones, and the confidence that the method is told, if any.
CASES = (
    (0, 0.0, None), (50, 0.0, None), (200, 0.0, None), (1000, 0.0, None), (1000, 0.05, None), (1000, 0.05, 0.95),
    (1000, 0.1, None), (1000, 0.1, 0.9), (1000, 0.2, None), (1000, 0.2, 0.8),
)  # fmt: skip
N_SEEDS = 2
# A method that takes longer for one fit is not run on more answers about the same set.
MOST_SECONDS = 10.0


def run(*, quick: bool) -> Report:
    data = published_data()
    if data is None:
        return not_run("methods", TITLE)
    rows: list[dict[str, Any]] = []
    n_seeds = 1 if quick else N_SEEDS
    for name in SETS[:1] if quick else SETS:
        for case in CASES[:2] if quick else CASES:
            part = f"{name}-{case[0]}-{case[1]:g}-{case[2]}"
            rows.append(kept("methods", part, quick, lambda n=name, c=case: measured(data, n, c, n_seeds)))
    columns = {"set": "set", "answers": "answers", "wrong": "wrong", "told": "confidence"}
    columns |= {method: method for method in methods()}
    notes = [
        f"ARI / seconds of one fit, mean over {N_SEEDS} seeds, default parameters and the number of classes.",
        "Columns have variance 1, but for digits; texts are tf-idf with cosines where a method has them.",
        "Seconds are of the processor, with one thread.",
        "`refused`: the method raised, because wrong answers contradict each other or cannot hold.",
    ]
    return Report("methods", TITLE, columns, rows, notes)


def methods() -> dict[str, Any]:
    """All methods with default parameters, and `PCKMeans` without entailed pairs; networks have their own benchmark."""
    found: dict[str, Any] = {
        cls.__name__: cls
        for cls in all_estimators("clusterer")
        if cls._capabilities.vectors and not cls._capabilities.embeds
    }
    return found | {"PCKMeans, entailed=False": partial(PCKMeans, entailed=False)}


def rows_of(data: Any, name: str) -> tuple[Any, NDArray[np.int64]]:
    """A set as people would cluster it."""
    if name == "digits":
        bundled = load_digits()
        return bundled.data, bundled.target
    if name.startswith("news"):
        texts, y = data.load(name)
        return TfidfVectorizer(stop_words="english", min_df=2, sublinear_tf=True).fit_transform(texts), y
    X, y = data.load("dils_moons" if name == "moons" else name)
    return StandardScaler().fit_transform(X), y


def measured(data: Any, name: str, case: tuple[int, float, float | None], n_seeds: int) -> dict[str, Any]:
    n_answers, noise, told = case
    X, y = rows_of(data, name)
    row: dict[str, Any] = {"set": name, "answers": n_answers, "wrong": f"{noise:.0%}", "told": told or "-"}
    for method, make in methods().items():
        row[method] = fits(make, name, X, y, case, n_seeds)
    return row


def fits(make: Any, name: str, X: Any, y: Any, case: tuple[int, float, float | None], n_seeds: int) -> str:
    scores, seconds = [], []
    for seed in range(n_seeds):
        model = make()
        wanted = {"n_clusters": len(np.unique(y)), "random_state": seed}
        model.set_params(**{key: value for key, value in wanted.items() if key in model.get_params()})
        if name.startswith("news") and "metric" in model.get_params():
            model.set_params(metric="cosine" if not isinstance(model, MPCKMeans) else "diagonal")
        started = time.process_time()
        try:
            with warnings.catch_warnings(action="ignore"):
                model.fit(X, constraints=_answers(y, case, seed))
        except ClewError:
            return "refused"
        seconds.append(time.process_time() - started)
        scores.append(adjusted_rand_score(y, model.labels_))
        if seconds[-1] > MOST_SECONDS:
            break
    return f"{np.mean(scores):.3f} / {np.mean(seconds):.2g}"


def _answers(y: NDArray[np.int64], case: tuple[int, float, float | None], seed: int) -> Constraints:
    n_answers, noise, told = case
    drawn = Constraints.sample(y, n_answers, noise=noise, random_state=seed)
    if told is None:
        return drawn
    sure = {f"{kind}_confidence": np.full(len(getattr(drawn, kind)), told) for kind in ("must_link", "cannot_link")}
    return Constraints(drawn.must_link, drawn.cannot_link, n_samples=len(y), **sure)
