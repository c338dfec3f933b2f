"""What questions are worth (ARI), for every strategy on ten data sets; and how long one waits for the next.

`python -m benchmarks.questions [--quick] [--sets iris,wine] [--strategies MinMax,…] [--seeds N] [--fresh] [--speed]
[--publish]`

Each finished cell (set, strategy, seed) is a line of questions.csv and is not computed again, so a run can be stopped
and continued, and a part of the table can be made first. With `--noise`, the same cells with right answers are computed
too, if they are not there, and the table has the efficiency.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from statistics import mean, median
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

import clew
import clew.active
from benchmarks._harness import (
    PAGE,
    RESULTS,
    ROOT,
    Report,
    environment,
    in_fresh_process,
    peak_megabytes,
    publish,
    verdict,
)
from clew.active import Oracle, Questions
from clew.active._learning_curve import learning_curve
from clew.datasets import load

SHARED = ROOT.parent / "shared" / "data"
BUNDLED = ("iris", "wine", "breast_cancer", "digits")
PUBLISHED = ("glass", "ionosphere", "yeast", "segment", "optical", "seeds")
SETS = BUNDLED + PUBLISHED
RAW = ("iris", "digits", "optical")  # columns of one unit; the others are standardised
BUDGETS = (10, 25, 50, 100, 200)
N_SEEDS = 5

# Strategies whose answers also go to a clusterer that learns a metric.
WITH_METRIC = ("ExploreConsolidate", "MinMax", "PointUncertainty")

# Mean area over the ten sets of existing packages (and of k-means), for orientation.
ELSEWHERE = {
    "elsewhere: explore-consolidate + PCKMeans": 0.573,
    "elsewhere: min-max + PCKMeans": 0.577,
    "elsewhere: NPU + PCKMeans": 0.579,
    "elsewhere: explore-consolidate + MPCKMeans": 0.557,
    "elsewhere: min-max + MPCKMeans": 0.557,
    "elsewhere: NPU + MPCKMeans": 0.561,
    "elsewhere: COBRAS": 0.557,
    "elsewhere: k-means without questions": 0.536,
}

# The best of 20 combinations of existing packages and of plain k-means, chosen with hindsight for every set and budget.
ENVELOPE = {
    "iris": (0.886, 0.937, 0.960, 1.000, 1.000),
    "wine": (0.922, 0.955, 0.970, 1.000, 1.000),
    "breast_cancer": (0.727, 0.739, 0.772, 0.899, 0.982),
    "digits": (0.667, 0.667, 0.667, 0.694, 0.749),
    "glass": (0.214, 0.214, 0.284, 0.363, 0.514),
    "ionosphere": (0.443, 0.493, 0.560, 0.616, 0.721),
    "yeast": (0.178, 0.177, 0.180, 0.183, 0.190),
    "segment": (0.501, 0.529, 0.506, 0.512, 0.671),
    "optical": (0.683, 0.671, 0.675, 0.678, 0.758),
    "seeds": (0.803, 0.847, 0.895, 0.963, 1.000),
}

# Auto without one ingredient: constants that are replaced, where they are used.
ABLATION: dict[str, dict[str, Any]] = {
    "Auto": {},
    "without the graph": {"graph._kernels._PRIOR": (1e-6, 0.15, 0.2, 1.0)},
    "without distance": {"graph._kernels._PRIOR": (0.4, 1e-6, 0.2, 1.0)},
    "without columns": {"graph._kernels._PRIOR": (0.4, 0.15, 1e-6, 1.0)},
    "without base partitions": {"graph._kernels._PRIOR": (0.4, 0.15, 0.2, 1e-6)},
    "without learned weights": {"graph._gaussian_process._WEIGHT_SPREAD": 1e-3},
    "without medoids": {"active._auto._EXPLORE_EVERY": 10**9},
    "without shared uncertainty": {"active._auto._STEPS": 0},
    "without checks": {"active._answer_errors._SUSPICIOUS": 0.0},
}

# Strategies that fit a model again between questions may take longer.
REFITS = ("Auto", "ClusterPairs", "Committee", "InformationGain", "PointUncertainty")
AT_100_000 = ("Auto", "ExploreConsolidate", "MinMax", "AbilityToSeparate", "SuperInstances")
N_TIMED = 50


# -- what is compared ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """A strategy with its natural clusterer; None stands for what `Questions` uses by itself."""

    make: Callable[[], Any]
    clusterer: Callable[[], Any] | None = None
    knows_k: bool = True
    seeded: bool = False  # takes the seed itself
    replaced: Mapping[str, Any] = field(default_factory=dict)  # constants of clew, for an ablation


def ablation() -> dict[str, Contender]:
    return {name: Contender(clew.active.Auto, seeded=True, replaced=constants) for name, constants in ABLATION.items()}


def contenders() -> dict[str, Contender]:
    """No questions at all, every strategy that `clew.active` exports, and Explore alone."""
    found = {"no questions": Contender(lambda: no_questions)}
    for name in clew.active.__all__:
        value = getattr(clew.active, name)
        if is_strategy(value):
            found[name] = natural(name, value)
    found["Explore"] = Contender(lambda: clew.active.ExploreConsolidate(consolidate=False))
    for name in WITH_METRIC:
        found[f"{name} + MPCKMeans"] = Contender(getattr(clew.active, name), clew.MPCKMeans)
    return found


def no_questions(view: Any, rng: Any) -> Iterator[Any]:
    return iter(())


def is_strategy(value: Any) -> bool:
    """A class that can be made without arguments, is called with a view and a generator, and asks by itself."""
    if not isinstance(value, type) or getattr(value, "_is_protocol", False) or "__call__" not in vars(value):
        return False
    called_with = list(inspect.signature(value.__call__).parameters)
    return called_with == ["self", "view", "rng"] and not getattr(value, "passive", False)


def natural(name: str, cls: type) -> Contender:
    if name == "InformationGain" and hasattr(clew, "IGKMeans"):
        return Contender(cls, clew.IGKMeans)
    if name == "Auto":
        return Contender(cls, seeded=True)
    # Clusters of its own, whose number it finds.
    return Contender(cls, knows_k=not cls.has_labels)


@cache
def data(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A set as the table uses it: raw or standardised."""
    if name in BUNDLED:
        bundled = load(name)
        X, y = bundled.X, bundled.y
    else:
        X, y = published(name)
    return (X if name in RAW else StandardScaler().fit_transform(X)), y


def published(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    script = SHARED / "load.py"
    if not script.exists():
        raise FileNotFoundError(f"{name} is one of the published sets, which are not at {SHARED}.")
    spec = importlib.util.spec_from_file_location("published_data", script)
    assert spec is not None and spec.loader is not None
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    return reader.load(name)


# -- the table -------------------------------------------------------------------------------------------------------

Cell = tuple[str, str, int]


class Results:
    """Finished cells, kept in a CSV file that grows by a line for each."""

    def __init__(self, path: Path, budgets: Sequence[int]) -> None:
        self.path, self.budgets = path, tuple(budgets)
        self.header = ["set", "strategy", "seed", *(f"ari_{budget}" for budget in budgets), "asked", "seconds"]
        self.cells: dict[Cell, list[float]] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        with self.path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames != self.header:
                sys.exit(f"{self.path} has other columns than {', '.join(self.header)}. Move it away.")
            for line in reader:
                if None in line.values():  # a line cut short when a run was killed
                    continue
                values = [float(line[f"ari_{budget}"]) for budget in self.budgets]
                self.cells[line["set"], line["strategy"], int(line["seed"])] = values

    def add(self, cell: Cell, values: Sequence[float], asked: float, seconds: float) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(self.header)
            writer.writerow([*cell, *(f"{value:.6f}" for value in values), int(asked), f"{seconds:.2f}"])
        self.cells[cell] = list(values)

    def curve(self, name: str, strategy: str, seeds: Sequence[int]) -> NDArray[np.float64] | None:
        """Mean ARI at each budget over the seeds that are there; None when there is none."""
        found = [self.cells[name, strategy, seed] for seed in seeds if (name, strategy, seed) in self.cells]
        return np.mean(found, axis=0) if found else None


def area(curve: NDArray[np.float64], budgets: Sequence[int]) -> float:
    """Area under ARI over log(questions), divided by its width."""
    width = np.log(budgets)
    return float(np.sum(np.diff(width) * (curve[1:] + curve[:-1]) / 2) / (width[-1] - width[0]))


def efficiency(ari: float, n: int, wrong: float, right: NDArray[np.float64], budgets: Sequence[int]) -> float:
    """Number of right answers that reach the same ARI, over n (1 - H(wrong)).

    `right` is the ARI after `budgets` right answers. It is interpolated; without answers it counts as 0.
    """
    curve = np.maximum.accumulate(right) + 1e-9 * np.arange(len(right))
    worth = float(np.interp(ari, np.append(0.0, curve), np.append(0, budgets)))
    shares = np.array([wrong, 1 - wrong]) if wrong else np.array([1.0])
    return worth / (n * (1 + float((shares * np.log2(shares)).sum())))


@dataclass(frozen=True)
class People:
    """Who answers, and what they say beforehand."""

    noise: float = 0.0
    unsure: float = 0.0
    know_k: bool = True

    @property
    def suffix(self) -> str:
        """Part of the file name."""
        parts = [f"noise-{self.noise:g}"] if self.noise else []
        parts += [f"unsure-{self.unsure:g}"] if self.unsure else []
        parts += [] if self.know_k else ["unknown-k"]
        return "".join(f"-{part}" for part in parts)


def measure(
    results: Results, sets: Sequence[str], chosen: dict[str, Contender], seeds: Sequence[int], people: People
) -> list[str]:
    """Fill the cells that are missing, with a line on stderr for each; returns what failed."""
    missing = [
        (name, strategy, seed)
        for name in sets
        for seed in seeds
        for strategy in chosen
        if (name, strategy, seed) not in results.cells
    ]
    done, failed = len(sets) * len(seeds) * len(chosen) - len(missing), []
    if done:
        say(f"{done} cells are in {results.path.name} already; --fresh computes them again")
    for place, (name, strategy, seed) in enumerate(missing, start=1):
        X, y = data(name)
        contender = chosen[strategy]
        started = time.perf_counter()
        try:
            with ExitStack() as stack:
                for constant, value in contender.replaced.items():
                    stack.enter_context(mock.patch(f"clew.{constant}", value))
                curve = learning_curve(
                    X,
                    y,
                    partial(contender.make, random_state=seed) if contender.seeded else contender.make,
                    n_clusters=len(np.unique(y)) if contender.knows_k and people.know_k else None,
                    clusterer=contender.clusterer() if contender.clusterer else None,
                    budgets=results.budgets,
                    noise=people.noise,
                    unsure=people.unsure,
                    seeds=[seed],
                )
        except Exception as error:  # one strategy that fails must not cost the other cells
            failed.append(f"{strategy} on {name}, seed {seed}: {type(error).__name__}: {error}")
            say(f"[{place}/{len(missing)}] FAILED {failed[-1]}")
            continue
        seconds = time.perf_counter() - started
        results.add((name, strategy, seed), curve.mean.tolist(), curve.asked[-1, 0], seconds)
        say(f"[{place}/{len(missing)}] {name} {strategy} seed {seed}: area {curve.area:.3f} in {seconds:.1f} s")
    return failed


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def summary(
    results: Results,
    sets: Sequence[str],
    strategies: Sequence[str],
    seeds: Sequence[int],
    wrong: float = 0.0,
    right: Results | None = None,
) -> Report:
    """Mean over the sets: ARI at each budget, and the area; one column with the area on each set.

    With the results of `right` answers, the efficiency at each budget, too.
    """
    rows = []
    for strategy in strategies:
        curves = {name: results.curve(name, strategy, seeds) for name in sets}
        found = {name: curve for name, curve in curves.items() if curve is not None}
        if not found:
            continue
        total = np.mean(list(found.values()), axis=0)
        row: dict[str, Any] = {"strategy": strategy}
        row |= {f"ari_{budget}": fixed(value) for budget, value in zip(results.budgets, total, strict=True)}
        row["area"] = fixed(area(total, results.budgets))
        row |= {name: fixed(area(found[name], results.budgets)) if name in found else "-" for name in sets}
        row["efficiency"] = efficiencies(results, right, strategy, sets, seeds, wrong) if right else "-"
        row["sets"] = len(found)
        row["cells"] = sum((name, strategy, seed) in results.cells for name in sets for seed in seeds)
        rows.append(row)
    rows.sort(key=lambda row: float(row["area"]), reverse=True)
    if results.budgets == BUDGETS:
        rows.append(envelope(sets))
    rows += [{"strategy": name, "area": fixed(value)} for name, value in ELSEWHERE.items()]
    for row in rows:
        for key in ("sets", "cells", "efficiency", *sets, *(f"ari_{budget}" for budget in results.budgets)):
            row.setdefault(key, "-")
    columns = {
        "strategy": "strategy",
        **{f"ari_{budget}": str(budget) for budget in results.budgets},
        "area": "area",
        **({"efficiency": "efficiency"} if right else {}),
        **{name: name for name in sets},
    }
    notes = [
        f"Columns {results.budgets[0]} to {results.budgets[-1]}: ARI after so many questions, mean over the sets and "
        f"{len(seeds)} seeds. area: the area under it over log(questions), divided by its width, over all sets and on "
        "each.",
        f"Raw columns on {', '.join(RAW)}, standardised on the others; the number of classes is known, except to "
        "strategies with clusters of their own. Where questions run out, the last value is carried on.",
        "elsewhere: mean area of existing packages over all ten sets, for orientation; full runs only.",
    ]
    if right:
        notes.append(
            "efficiency at n answers: the number of right answers with which the strategy has the same mean ARI, at "
            f"most {right.budgets[-1]}, divided by n (1 - H(p)); H(p) is the entropy of an answer's correctness."
        )
    n_cells = len(SETS) * N_SEEDS
    partial = [f"{row['strategy']} ({row['cells']})" for row in rows if row["cells"] not in ("-", n_cells)]
    if partial:
        notes.append(f"Means over fewer than all {n_cells} cells (sets and seeds): {', '.join(partial)}.")
    return Report("questions", "ARI by the number of questions", columns, rows, notes)


def efficiencies(
    results: Results, right: Results, strategy: str, sets: Sequence[str], seeds: Sequence[int], wrong: float
) -> str:
    """Efficiency of a strategy at each budget, from the cells that both results have."""
    cells = [(name, strategy, seed) for name in sets for seed in seeds]
    both = [cell for cell in cells if cell in results.cells and cell in right.cells]
    if not both:
        return "-"
    curve, best = (np.mean([some.cells[cell] for cell in both], axis=0) for some in (results, right))
    pairs = zip(results.budgets, curve.tolist(), strict=True)
    return " / ".join(f"{efficiency(ari, n, wrong, best, right.budgets):.2f}" for n, ari in pairs)


def envelope(sets: Sequence[str]) -> dict[str, Any]:
    """The row of the best existing method for each set and budget."""
    total = np.mean([ENVELOPE[name] for name in sets], axis=0)
    row = {"strategy": "elsewhere: best of all, by hindsight", "area": fixed(area(total, BUDGETS))}
    row |= {f"ari_{budget}": fixed(value) for budget, value in zip(BUDGETS, total, strict=True)}
    return row | {name: fixed(area(np.array(ENVELOPE[name]), BUDGETS)) for name in sets}


def fixed(value: float) -> str:
    return f"{value:.3f}"


def draw(path: Path, results: Results, sets: Sequence[str], strategies: Sequence[str], seeds: Sequence[int]) -> None:
    """A panel for each set, a line for each strategy; dotted, the best of existing packages with hindsight."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    shown = [name for name in sets if any(results.curve(name, one, seeds) is not None for one in strategies)]
    if not shown:
        return
    n_columns = min(len(shown), 5)
    n_lines = -(-len(shown) // n_columns)
    figure = Figure(figsize=(3.4 * n_columns, 3 * n_lines + 0.9), dpi=120, layout="constrained")
    panels = figure.subplots(n_lines, n_columns, squeeze=False).ravel()
    colours = colormaps["tab20"].colors
    for axes, name in zip(panels, shown, strict=False):
        for place, strategy in enumerate(strategies):
            curve = results.curve(name, strategy, seeds)
            if curve is not None:
                style = "--" if strategy == "no questions" else "-"
                axes.plot(
                    results.budgets, curve, style, marker=".", color=colours[place % len(colours)], label=strategy
                )
        if results.budgets == BUDGETS:
            axes.plot(BUDGETS, ENVELOPE[name], ":", color="black", label="elsewhere, best by hindsight")
        axes.set_title(name, fontsize=10)
        axes.set_xscale("log")
        axes.set_xticks(results.budgets, [str(budget) for budget in results.budgets], fontsize=7)
        axes.set_xticks([], minor=True)
        axes.set_xlabel("questions", fontsize=8)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    for axes in panels[::n_columns]:
        axes.set_ylabel("ARI")
    lines = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        lines.values(), lines.keys(), loc="outside lower center", ncols=2 * n_columns, frameon=False, fontsize=8
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


# -- speed -----------------------------------------------------------------------------------------------------------


def speed(chosen: Sequence[str], *, quick: bool) -> Report:
    """First and next question of every strategy, each in a fresh process with one thread."""
    sizes = {1_000: tuple(chosen)} if quick else {10_000: tuple(chosen), 100_000: AT_100_000}
    rows = []
    for n_rows, names in sizes.items():
        for name in names:
            if name not in chosen:
                continue
            say(f"speed: {name}, {n_rows:,} rows")
            try:
                timed = in_fresh_process(time_questions, name=name, n_rows=n_rows)
            except RuntimeError as error:
                say(str(error))
                rows.append({"strategy": name, "rows": n_rows, "verdict": "failed"})
                continue
            first_bar, next_bar = bars(name, n_rows)
            met = {verdict(timed["first"], first_bar), verdict(timed["worst"], next_bar)}
            rows.append(
                {
                    "strategy": name,
                    "rows": n_rows,
                    **timed,
                    "first_bar": first_bar,
                    "next_bar": next_bar,
                    "verdict": "missed" if "missed" in met else met.pop(),
                }
            )
    columns = {
        "strategy": "strategy",
        "rows": "rows",
        "first": "first (s)",
        "first_bar": "bar (s)",
        "next": "next, median (s)",
        "worst": "next, worst (s)",
        "next_bar": "bar (s)",
        "memory": "memory (MB)",
        "verdict": "bars",
    }
    for row in rows:
        for key in columns:
            if row.get(key) is None:
                row[key] = "-"
    notes = [
        f"10 blobs in 16 columns, right answers. first: making `Questions` and the first question; next: telling an "
        f"answer and asking again, over {N_TIMED} answers; memory: the rise of the peak over all that.",
        f"Bars: 3 s and 50 ms at 10,000 rows (300 ms where a model is fitted again: {', '.join(REFITS)}), 20 s and "
        "300 ms at 100,000 rows. The worst answer is judged.",
    ]
    return Report("questions-speed", "Waiting for a question", columns, rows, notes)


def bars(name: str, n_rows: int) -> tuple[float | None, float | None]:
    """Seconds to the first and to each next question."""
    if n_rows == 10_000:
        return 3.0, 0.3 if name in REFITS else 0.05
    return (20.0, 0.3) if n_rows == 100_000 else (None, None)


def time_questions(name: str, n_rows: int) -> dict[str, float]:
    X, y = make_blobs(n_rows, 16, centers=10, cluster_std=3.0, random_state=0)
    contender = contenders()[name]
    waits: list[float] = []

    def work() -> None:
        started = time.perf_counter()
        questions = Questions(
            X,
            contender.make(),
            n_clusters=10 if contender.knows_k else None,
            clusterer=contender.clusterer() if contender.clusterer else None,
            random_state=0,
        )
        oracle, question = Oracle(y), questions.ask()
        waits.append(time.perf_counter() - started)
        while question is not None and len(waits) <= N_TIMED:
            answer = oracle(question)
            started = time.perf_counter()
            questions.tell(question, answer)
            question = questions.ask()
            waits.append(time.perf_counter() - started)

    memory = peak_megabytes(work)
    rest = waits[1:] or [0.0]
    return {
        "first": waits[0],
        "next": median(rest),
        "mean": mean(rest),
        "worst": max(rest),
        "memory": memory,
        "answers": len(waits) - 1,
    }


# -- the command -----------------------------------------------------------------------------------------------------


def main() -> int:
    known = contenders()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description="What questions are worth.")
    parser.add_argument(
        "--quick", action="store_true", help="two small sets, one seed, few questions: shows that it runs"
    )
    parser.add_argument("--sets", type=names, metavar="A,B", help=f"some of {', '.join(SETS)}")
    parser.add_argument("--strategies", type=names, metavar="A,B", help=f"some of {', '.join(known)}")
    parser.add_argument("--seeds", type=int, metavar="N", help=f"number of seeds, {N_SEEDS} unless given")
    parser.add_argument("--fresh", action="store_true", help="forget the chosen cells of earlier runs")
    parser.add_argument("--speed", action="store_true", help="measure waiting times instead of agreement")
    parser.add_argument("--noise", type=float, default=0.0, metavar="P", help="share of wrong answers")
    parser.add_argument("--unsure", type=float, default=0.0, metavar="P", help='share of "don\'t know"')
    parser.add_argument("--unknown-k", action="store_true", help="the number of clusters is not told")
    parser.add_argument("--ablation", action="store_true", help="Auto without one ingredient at a time")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIRECTORY", help="where the files go")
    parser.add_argument("--publish", action="store_true", help="put the table and the picture into docs/benchmarks.md")
    options = parser.parse_args()
    if not 0 <= options.noise < 0.5:
        parser.error(f"--noise {options.noise:g}: expected a share from 0 to below 0.5")
    people = People(options.noise, options.unsure, not options.unknown_k)
    if options.ablation:
        known = ablation()
    sets = options.sets or (("iris", "wine") if options.quick else SETS)
    strategies = options.strategies or list(known)
    for given, all_names in ((sets, SETS), (strategies, known)):
        unknown = sorted(set(given) - set(all_names))
        if unknown:
            parser.error(f"there is no {unknown[0]!r}; there are {', '.join(all_names)}")
    seeds = range(options.seeds or (1 if options.quick else N_SEEDS))
    command = " ".join(["python -m benchmarks.questions", *sys.argv[1:]])
    print(", ".join(f"{key} {value}" for key, value in environment().items()))

    failed: list[str] = []
    if options.speed:
        report = speed([name for name in strategies if name != "no questions"], quick=options.quick)
        failed = [f"{row['strategy']} at {row['rows']:,} rows" for row in report.rows if row["verdict"] == "failed"]
    else:
        stem, right_stem = (
            f"questions{'-ablation' if options.ablation else ''}{one.suffix}{'-quick' if options.quick else ''}"
            for one in (people, replace(people, noise=0.0))
        )
        budgets, right = BUDGETS[:2] if options.quick else BUDGETS, None
        results, chosen = Results(options.out / f"{stem}.csv", budgets), {name: known[name] for name in strategies}
        if options.fresh:
            forget(results, sets, strategies, seeds)
        failed = measure(results, sets, chosen, seeds, people)
        if people.noise:
            right = Results(options.out / f"{right_stem}.csv", budgets)
            failed += measure(right, sets, chosen, seeds, replace(people, noise=0.0))
        report = summary(results, sets, strategies, seeds, people.noise, right)
        report.name = stem.removesuffix("-quick")
        draw(options.out / f"{stem}.png", results, sets, strategies, seeds)
        if options.publish:
            draw(PAGE.parent / "images" / "questions.png", results, sets, strategies, seeds)
        print(f"written: {results.path} and {stem}.png")
    if options.quick:
        report.name += "-quick"
    path = report.write(options.out, command)
    if options.publish:
        publish(report)
    print(f"\n{report.title}\n\n{report.table()}\n")
    for note in report.notes:
        print(note)
    for line in failed:
        print(f"failed: {line}")
    print(f"written: {path}", flush=True)
    return 1 if failed else 0


def forget(results: Results, sets: Sequence[str], strategies: Sequence[str], seeds: Sequence[int]) -> None:
    """Take the chosen cells out of the file; the others stay."""
    if not results.path.exists():
        return
    with results.path.open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    wanted = {(name, strategy, str(seed)) for name in sets for strategy in strategies for seed in seeds}
    kept = [line for line in lines if tuple(line[:3]) not in wanted]
    with results.path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *kept])
    results.cells = {cell: values for cell, values in results.cells.items() if (*cell[:2], str(cell[2])) not in wanted}


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


if __name__ == "__main__":
    # Under its own name, so that fresh processes find the functions of this module.
    from benchmarks.questions import main as run

    raise SystemExit(run())
