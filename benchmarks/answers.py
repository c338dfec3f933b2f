"""Answers with 10 % errors, the realistic case: how far up the list do impact scores and reviews put the wrong ones?
Needs the published benchmark data beside the project; parts that are done are kept and not run again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import Report
from benchmarks._published import f1, kept, not_run, published_data
from benchmarks.audit import by_pair
from clew import Constraints
from clew.audit import review

TITLE = "Wrong answers among 200, 10 % of them wrong"
DATA = ("iris", "wine", "seeds", "breast_wdbc", "optdigits_train", "synthetic_control")
N_ANSWERS, ERRORS, N_SEEDS = 200, 0.1, 5


def run(*, quick: bool) -> Report:
    data = published_data()
    if data is None:
        return not_run("answers", TITLE)
    rows: list[dict[str, Any]] = []
    for name in ["iris"] if quick else DATA:
        part = kept("answers", name, quick, lambda n=name: reviewed(data, n, 1 if quick else N_SEEDS))
        rows += [part["impact"], part["review"] | {"seconds": part["seconds"] / (1 if quick else N_SEEDS)}]
    columns = {
        "set": "set", "by": "by", "F1": "F1", "fifth": "wrong ones in first fifth", "ten": "wrong of first 10",
        "as many": "wrong of first 20", "auc": "ROC area", "precision": "wrong of those called wrong",
        "clean": "called wrong of 100 right", "seconds": "processor seconds",
    }  # fmt: skip
    notes = [
        f"Random pairs, columns of variance 1; mean over {N_SEEDS} seeds. The bar is 0.8 in the first fifth.",
        "`called wrong of 100 right`: the same pairs, without any error.",
        "Calling all of them wrong scores F1 0.18. A review calls wrong what it thinks is wrong rather than right.",
    ]
    return Report("answers", TITLE, columns, rows, notes)


def reviewed(data: Any, name: str, n_seeds: int) -> dict[str, Any]:
    X, y = data.load(name)
    X = StandardScaler().fit_transform(X)
    found = [_review(X, y, seed) for seed in range(n_seeds)]
    short = name.removesuffix("_train").removesuffix("_wdbc")
    return {
        by: {"set": short, "by": by, "seconds": "-"}
        | {key: float(np.mean([each[by][key] for each in found])) for key in found[0][by]}
        for by in ("impact", "review")
    }


def _review(X: NDArray[np.float64], y: NDArray[np.int64], seed: int) -> dict[str, dict[str, float]]:
    known, wrong = answers(y, seed)
    found = review(X, known, len(np.unique(y)))
    suspicion = np.empty(N_ANSWERS)
    suspicion[[doubt.index for doubt in found.doubts]] = [doubt.suspicion for doubt in found.doubts]
    suspects, prices = by_pair(found.impact)
    right, _ = answers(y, seed, 0.0)
    clean = review(X, right, len(np.unique(y)))
    called = {
        "impact": (suspects, by_pair(clean.impact)[0]),
        "review": (suspicion > 0.5, np.array([doubt.suspicion > 0.5 for doubt in clean.doubts])),
    }
    scores = {"impact": prices, "review": suspicion}
    return {
        by: {
            "F1": f1(those, wrong), **_ranking(scores[by], wrong),
            "precision": float(wrong[those].mean()) if any(those) else 1.0,
            "clean": 100 * float(falsely.mean()),
        }
        for by, (those, falsely) in called.items()
    }  # fmt: skip


def answers(y: NDArray[np.int64], seed: int, errors: float = ERRORS) -> tuple[Constraints, NDArray[np.bool_]]:
    """Answers about random pairs, and which of them are wrong, must-links first."""
    rng = np.random.default_rng(seed)
    right = Constraints.sample(y, N_ANSWERS, random_state=rng)
    pairs = np.concatenate([right.must_link, right.cannot_link])
    same = np.arange(N_ANSWERS) < len(right.must_link)
    wrong = np.zeros(N_ANSWERS, dtype=bool)
    wrong[rng.choice(N_ANSWERS, round(errors * N_ANSWERS), replace=False)] = True
    same ^= wrong
    return Constraints(pairs[same], pairs[~same], n_samples=len(y)), wrong[np.argsort(~same, kind="stable")]


def _ranking(suspicion: NDArray[np.float64], wrong: NDArray[np.bool_]) -> dict[str, float]:
    listed = wrong[np.argsort(-suspicion, kind="stable")]
    return {
        "fifth": float(listed[: len(wrong) // 5].sum() / wrong.sum()), "ten": float(listed[:10].mean()),
        "as many": float(listed[: wrong.sum()].mean()), "auc": float(roc_auc_score(wrong, suspicion)),
    }  # fmt: skip
