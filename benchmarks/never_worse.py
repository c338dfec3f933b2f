"""Whether right answers ever hurt: ARI after right answers against none, on drawn tables and on public sets.

`python -m benchmarks never-worse`. A finished table is kept and is not computed again, so that a run can be stopped and
continued. Deleting benchmarks/results/never-worse-parts starts anew.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_moons

from benchmarks._harness import Report
from benchmarks._published import kept
from benchmarks.questions import SETS, data
from clew import Constraints, GraphPropagation, PCKMeans
from clew.active import Auto, Oracle, Questions
from clew.active._questions import run as run_questions
from clew.evaluation import adjusted_rand_score

N_GAUSSIANS, N_MOONS, N_STRIPES = 28, 6, 6
# Number of tables of each kind on which the number of clusters is unknown.
N_UNKNOWN = 4
ANSWERS, PAIRS = (20, 50, 100, 200), (100, 400)
METHODS = (GraphPropagation, PCKMeans)
# No draw may end further below its own result without answers.
MOST_FALL = 0.02

Table = tuple[NDArray[np.float64], NDArray[np.int64]]


def gaussians(seed: int) -> Table:
    """Four to ten overlapping Gaussians of unequal sizes in 6 to 32 columns; every third draw has unequal spreads."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(4, 11)), int(rng.integers(6, 33))
    sizes = np.maximum((rng.dirichlet(np.full(k, 4.0)) * rng.integers(300, 1200)).astype(int), 12)
    centers = rng.normal(size=(k, d)) * rng.uniform(1.1, 1.6) * np.sqrt(6 / d)
    scales = rng.uniform(0.7, 1.3, size=(k, d)) if seed % 3 == 0 else np.ones((k, d))
    y = np.repeat(np.arange(k), sizes)
    return centers[y] + rng.normal(size=(len(y), d)) * scales[y], y


def moons(seed: int) -> Table:
    """Two moons with noise between 0.05 and 0.15."""
    return make_moons(300, noise=0.05 + 0.02 * seed, random_state=seed)


def stripes(seed: int) -> Table:
    """Two to four long parallel stripes, which k-means cuts across."""
    rng = np.random.default_rng(seed)
    k = 2 + seed % 3
    y = np.repeat(np.arange(k), 120)
    return np.column_stack([rng.uniform(0, 10, len(y)), 1.2 * y + rng.normal(0, 0.2, len(y))]), y


def dozens(seed: int) -> Table:
    """Fifteen to forty overlapping Gaussians of unequal sizes in 3 to 8 columns."""
    return many(seed, (15, 41), (3, 9), 900, 2.0)


def compact(seed: int) -> Table:
    """Sixty to two hundred compact Gaussians of unequal sizes in 4 to 8 columns."""
    return many(seed, (60, 201), (4, 9), 2400, 4.0)


def many(seed: int, n_groups: tuple[int, int], n_columns: tuple[int, int], n_rows: int, spread: float) -> Table:
    """Round Gaussians whose means have a standard deviation of `spread`."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(*n_groups)), int(rng.integers(*n_columns))
    sizes = np.maximum((rng.dirichlet(np.full(k, 4.0)) * n_rows).astype(int), 5)
    y = np.repeat(np.arange(k), sizes)
    return (spread * rng.normal(size=(k, d)))[y] + rng.normal(size=(len(y), d)), y


def tables(n_gaussians: int, n_moons: int, n_stripes: int, sets: tuple[str, ...]) -> dict[str, Callable[[], Table]]:
    """Every table by its name."""
    found: dict[str, Callable[[], Table]] = {}
    for kind, count in ((gaussians, n_gaussians), (moons, n_moons), (stripes, n_stripes)):
        found |= {f"{kind.__name__} {seed}": lambda kind=kind, seed=seed: kind(seed) for seed in range(count)}
    return found | {name: lambda name=name: data(name) for name in sets}


def run(*, quick: bool) -> Report:
    """The worst fall and the mean gain by kind of table: `Auto` along its questions, two methods on random pairs."""
    sets = tuple(name for name in SETS if has_data(name))
    chosen = tables(1, 1, 0, ("iris",)) if quick else tables(N_GAUSSIANS, N_MOONS, N_STRIPES, sets)
    answers, pairs = (ANSWERS[:1], PAIRS[:1]) if quick else (ANSWERS, PAIRS)
    found: dict[tuple[str, str, int], list[float]] = {}
    for name, make in chosen.items():
        kind = "public sets" if name in SETS else name.split()[0]
        row = kept("never-worse", name, quick, lambda make=make: gains(*make(), answers, pairs))
        for method, count in [("Auto", n) for n in answers] + [(m.__name__, n) for m in METHODS for n in pairs]:
            found.setdefault((kind, method, count), []).append(row[f"{method} {count}"])
    rows = [
        {
            "what": kind,
            "method": method,
            "answers": count,
            "tables": len(values),
            "gain": float(np.mean(values)),
            "worst": float(min(values)),
            "fallen": sum(value < -MOST_FALL for value in values),
        }
        for (kind, method, count), values in found.items()
    ]
    rows += unknown_number(answers, quick=quick)
    columns = {
        "what": "tables", "method": "method", "answers": "answers", "tables": "number", "gain": "mean gain",
        "worst": "worst", "fallen": f"falls beyond {MOST_FALL}",
    }  # fmt: skip
    notes = [
        "Right answers, the number of classes is known. Gain: ARI after the answers minus ARI of the method without",
        "answers. `Auto` asks its own questions; the methods get random pairs. Number unknown: the gain is that with",
        "the last number of answers, and the worst is that of all numbers of answers.",
        *goals(found),
    ]
    return Report("never-worse", "Gains and falls by right answers", columns, rows, notes)


def goals(found: dict[tuple[str, str, int], list[float]]) -> list[str]:
    """The two goals and whether they are met: no fall, and on Gaussians a mean gain at least as high as PCKMeans'."""
    judged = [value for (_, method, _), values in found.items() if method != "PCKMeans" for value in values]
    lines = [
        f"Goal: no fall beyond {MOST_FALL} of `Auto` and `GraphPropagation`. Worst {min(judged):.3f}: "
        f"{'met' if min(judged) >= -MOST_FALL else 'missed'}."
    ]
    for (kind, method, count), values in found.items():
        other = found.get((kind, "PCKMeans", count))
        if kind == "gaussians" and method != "PCKMeans" and other is not None:
            gain, least = np.mean(values), np.mean(other)
            lines.append(
                f"Goal: on Gaussians, `{method}` gains at least as much as PCKMeans. With {count} answers {gain:.3f} "
                f"against {least:.3f}: {'met' if gain >= least else 'missed'}."
            )
    return lines


def unknown_number(answers: tuple[int, ...], *, quick: bool) -> list[dict[str, object]]:
    """One line for each kind of table on which the number of classes is unknown."""
    rows: list[dict[str, object]] = []
    for make in (compact,) if quick else (gaussians, dozens, compact, moons, stripes):
        found = []
        for seed in range(1 if quick else N_UNKNOWN):
            name = f"unknown number {make.__name__} {seed}"
            row = kept("never-worse", name, quick, lambda make=make, seed=seed: auto_gains(*make(seed), None, answers))
            found.append([row[f"Auto {budget}"] for budget in answers])
        rows.append(
            {
                "what": make.__name__,
                "method": "Auto, number unknown",
                "answers": answers[-1],
                "tables": len(found),
                "gain": float(np.mean([one[-1] for one in found])),
                "worst": min(map(min, found)),
                "fallen": sum(value < -MOST_FALL for one in found for value in one),
            }
        )
    return rows


def gains(
    X: NDArray[np.float64], y: NDArray[np.int64], answers: tuple[int, ...], pairs: tuple[int, ...]
) -> dict[str, float]:
    """ARI minus that without answers, by method and number of answers."""
    k = len(np.unique(y))
    found = auto_gains(X, y, k, answers)
    for method in METHODS:
        model = method(k, random_state=0)
        without = adjusted_rand_score(y, model.fit(X).labels_)
        for count in pairs:
            known = Constraints.sample(y, count, random_state=0)
            ari = adjusted_rand_score(y, model.fit(X, constraints=known).labels_)
            found[f"{method.__name__} {count}"] = ari - without
    return found


def auto_gains(
    X: NDArray[np.float64], y: NDArray[np.int64], n_clusters: int | None, answers: tuple[int, ...]
) -> dict[str, float]:
    """ARI of `Auto` after each number of answers, minus that without answers."""
    questions, oracle = Questions(X, Auto(), n_clusters=n_clusters, random_state=0), Oracle(y)
    without = adjusted_rand_score(y, questions.labels())
    found = {}
    for budget in answers:
        run_questions(questions, oracle, budget - len(questions.answers))
        found[f"Auto {budget}"] = adjusted_rand_score(y, questions.labels()) - without
    return found


def has_data(name: str) -> bool:
    """Whether a set is bundled, or its file is there."""
    try:
        data(name)
    except FileNotFoundError:
        return False
    return True
