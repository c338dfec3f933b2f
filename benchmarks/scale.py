"""How cost grows with rows, columns, clusters, pairs and answers: a fit, questions, a review, and opening a project.

`make bench-scale` measures processor time and memory, prints the exponent of each beside the expected one, and draws
both. The exponent is the slope of the logarithm of the cost over the logarithm of the size that grows. Every
measurement is written to a file when it is done, and is not repeated by the next run. A size is left out if it would
take longer than `LIMIT`, by the exponent so far. `--quick` counts operations at toy sizes instead, without the
clock, and fails if they grow faster than expected.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import clew
from benchmarks._harness import RESULTS, Report, in_fresh_process, peak_megabytes, peak_resident, verdict
from clew import Session, datasets
from clew.partitional import _geometry, _ties

ROUNDS = 5
N_NEXT = 5
# Processor seconds of one measurement, set-up included. Larger sizes are estimated from the last one.
LIMIT = 240.0
# Bars for the largest fit from parquet: its time per row and round, over that of the largest fit in memory, and the
# peak of the memory of the whole process, in MB.
MOST_TIMES, MOST_MEGABYTES = 1.5, 1536
# How much larger than expected an exponent of counted operations may be: small terms matter at toy sizes.
TOLERANCE = 0.15


class Series(NamedTuple):
    """One size that grows, and the documented exponents of time and memory."""

    what: str
    grows: str
    sizes: tuple[int, ...]
    toy: tuple[int, ...]
    time: float
    memory: float


# Time of a fit O(t (n k d + m k)), memory O(n + k d + m) beyond X. Pairs are few beside the rows at these sizes. A
# question of Auto looks at the neighbours of all rows, a review at a bounded sample, and opening reads all rows and
# all answers.
SERIES = [
    Series("fit in memory", "rows", (10_000, 100_000, 1_000_000, 4_000_000), (4_000, 16_000), 1, 1),
    Series("fit in memory", "columns", (8, 32, 128), (8, 32), 1, 1),
    Series("fit in memory", "clusters", (10, 40, 160), (5, 20), 1, 0),
    Series("fit in memory", "pairs", (1_000, 10_000, 100_000), (50, 200), 0, 0),
    Series("fit from parquet", "rows", (10_000, 100_000, 1_000_000, 5_000_000, 20_000_000), (4_000, 16_000), 1, 1),
    Series("first question", "rows", (1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000), (300, 1_200), 1, 1),
    Series("first question", "columns", (8, 32, 128), (8, 32), 1, 1),
    Series("first question", "clusters", (5, 20, 80), (4, 16), 1, 1),
    Series("next question", "rows", (1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000), (300, 1_200), 1, 1),
    Series("next question", "columns", (8, 32, 128), (8, 32), 1, 1),
    Series("next question", "clusters", (5, 20, 80), (4, 16), 1, 1),
    Series("next question", "answers", (50, 200, 800), (20, 80), 0, 0),
    Series("review", "rows", (1_000, 4_000, 16_000, 64_000), (800, 3_200), 1, 1),
    Series("review", "columns", (8, 32, 128), (8, 32), 1, 1),
    Series("review", "clusters", (5, 20, 80), (4, 16), 1, 1),
    Series("review", "answers", (50, 200, 800), (20, 80), 0, 0),
    Series("open", "rows", (10_000, 100_000, 1_000_000), (500, 2_000), 1, 1),
    Series("open", "columns", (8, 32, 128), (8, 32), 1, 1),
    Series("open", "answers", (500, 5_000, 50_000), (200, 800), 1, 1),
]
FIT_BASE = {"rows": 200_000, "columns": 16, "clusters": 10, "pairs": 10_000}
BASE = {"rows": 4_000, "columns": 16, "clusters": 10, "answers": 100}
TOY_FIT_BASE = {"rows": 8_000, "columns": 8, "clusters": 5, "pairs": 50}
TOY_BASE = {"rows": 300, "columns": 8, "clusters": 4, "answers": 20}


def base_of(what: str, *, toy: bool) -> dict[str, int]:
    """The sizes from which one grows."""
    if what.startswith("fit"):
        return TOY_FIT_BASE if toy else FIT_BASE
    return TOY_BASE if toy else BASE


def run(cells: Path) -> Report:
    """Measure what is not in the file `cells` yet, and report everything."""
    known = _read(cells)
    rows: list[dict[str, Any]] = []
    for series in SERIES:
        sizes, found = [], []
        for size in series.sizes:
            arguments = {"what": series.what, **base_of(series.what, toy=False), series.grows: size}
            key = json.dumps(arguments, sort_keys=True)
            if key not in known:
                if found and found[-1]["whole"] * (size / sizes[-1]) ** max(_slope(sizes, found, "whole"), 1) > LIMIT:
                    print(f"{series.what}: {series.grows} = {size:,} is left out, it would take too long", flush=True)
                    break
                known[key] = in_fresh_process(measure, **arguments)
                cells.parent.mkdir(parents=True, exist_ok=True)
                cells.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
            sizes.append(size)
            found.append(known[key])
            print(f"{series.what}: {series.grows} = {size:,}: {found[-1]['seconds']:.3g} s", flush=True)
        for size, one in zip(sizes, found, strict=True):
            rows.append({
                "what": series.what, "grows": series.grows, "size": size, **one,
                "time_exponent": _slope(sizes, found, "seconds"), "expected": series.time,
                "memory_exponent": _slope(sizes, found, "megabytes"), "expected_memory": series.memory,
            })  # fmt: skip
    columns = {
        "what": "what", "grows": "what grows", "size": "to", "seconds": "CPU, s",
        "megabytes": "peak beyond the data, MB",
        "time_exponent": "exponent of time", "expected": "expected", "memory_exponent": "exponent of memory",
        "expected_memory": "expected ",
    }  # fmt: skip
    notes = [
        f"From {FIT_BASE} for a fit of {ROUNDS} rounds of PCKMeans, its start included, and {BASE} for a session with "
        f"Auto. A next question is the mean of {N_NEXT}, each with its answer. One thread, single runs.",
        *bars(rows),
    ]
    return Report("scale", "How cost grows", columns, rows, notes)


def bars(rows: list[dict[str, Any]]) -> list[str]:
    """The bars of a fit outside memory, each in a sentence with its verdict. Empty before both fits are measured."""
    largest = {
        what: max(
            (row for row in rows if (row["what"], row["grows"]) == (what, "rows")),
            key=lambda row: row["size"],
            default=None,
        )
        for what in ("fit in memory", "fit from parquet")
    }
    inside, outside = largest["fit in memory"], largest["fit from parquet"]
    if inside is None or outside is None:
        return []
    ours, theirs = (1e9 * row["seconds"] / (row["size"] * ROUNDS) for row in (outside, inside))
    times, resident = ours / theirs, outside["resident"]
    return [
        f"From parquet, {outside['size']:,} rows take {ours:.0f} ns per row and round, with the copy, and "
        f"{inside['size']:,} rows in memory {theirs:.0f}: {times:.2f} times, bar {MOST_TIMES} "
        f"{verdict(times, MOST_TIMES)}.",
        f"The whole process takes at most {resident:,.0f} MB meanwhile, bar {MOST_MEGABYTES:,} "
        f"{verdict(resident, MOST_MEGABYTES)}.",
    ]


def _slope(sizes: list[int], found: list[dict[str, float]], key: str) -> float:
    return exponent(sizes, [one[key] for one in found]) if len(sizes) > 1 else float("nan")


def exponent(sizes: list[int] | tuple[int, ...], costs: list[float]) -> float:
    """Slope of log cost over log size."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(costs, 1e-6)), 1)[0])


def _read(path: Path) -> dict[str, dict[str, float]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


# -- what is measured --------------------------------------------------------------------------------------------------


def measure(what: str, **sizes: int) -> dict[str, float]:
    """Processor seconds and megabytes of one operation, and the seconds of everything with its set-up."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # few rounds are enough
    began = time.process_time()
    with prepared(what, sizes) as work:
        started = time.process_time()
        megabytes = peak_megabytes(work)
        seconds = time.process_time() - started
        resident = peak_resident()
    repeats = N_NEXT if what == "next question" else 1
    whole = time.process_time() - began
    return {"seconds": seconds / repeats, "megabytes": megabytes, "resident": resident, "whole": whole}


@contextmanager
def prepared(what: str, sizes: Mapping[str, int]) -> Iterator[Callable[[], Any]]:
    """The operation, with everything it needs ready."""
    with tempfile.TemporaryDirectory() as folder:
        if what.startswith("fit"):
            yield _fit(what, Path(folder), **sizes)
            return
        X, y = _groups(sizes["rows"], sizes["columns"], sizes["clusters"])
        table, project = Path(folder, "rows.parquet"), Path(folder, "project.clew")
        datasets.write_table(table, {f"c{column}": X[:, column] for column in range(X.shape[1])})
        # Opening is measured alone: clusters of a million rows are made elsewhere.
        session = Session.create(project, table, n_clusters=sizes["clusters"])
        if what != "first question":
            session.import_answers(_answers(y, sizes["answers"]), annotator="ann")
        if what == "open":
            session.close()
            opened: list[Session] = []
            yield lambda: opened.append(Session.open(project))
            opened[0].close()
            return
        if what == "review":
            session.fit()
        if what == "next question":
            session.ask()  # the first question builds the kernels
        work = {"first question": session.ask, "next question": lambda: _asked(session, y), "review": session.review}
        yield work[what]
        session.close()


def _fit(what: str, folder: Path, rows: int, columns: int, clusters: int, pairs: int) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    known = clew.Constraints.sample(rng.integers(0, clusters, rows), pairs, balance=0.5, random_state=0)
    first = rng.random((clusters, columns), dtype=np.float32)
    model = clew.PCKMeans(clusters, init=first, n_init=1, max_iter=ROUNDS, tol=0, random_state=0)
    if what == "fit in memory":
        X = rng.random((rows, columns), dtype=np.float32)
        return lambda: model.fit(X, constraints=known)
    source = folder / "rows.parquet"
    _write_noise(source, rows, columns, rng)
    return lambda: model.fit(source, constraints=known)


def _write_noise(path: Path, rows: int, columns: int, rng: np.random.Generator) -> None:
    """Write a parquet file by the batch, so that it may be larger than memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"c{column}" for column in range(columns)]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float32()) for name in names])) as writer:
        for start in range(0, rows, 2**18):
            part = rng.random((min(2**18, rows - start), columns), dtype=np.float32)
            writer.write_table(pa.table(dict(zip(names, part.T.copy(), strict=True))))


def _groups(rows: int, columns: int, clusters: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, clusters, rows)
    centers = rng.normal(0, 3, (clusters, columns))
    return (centers[y] + rng.normal(size=(rows, columns))).astype(np.float32), y


def _answers(y: np.ndarray[Any, Any], n_answers: int) -> list[tuple[int, int, str]]:
    """Right answers about random pairs, each pair once."""
    rng = np.random.default_rng(1)
    pairs = np.sort(rng.integers(0, len(y), (3 * n_answers, 2)), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    chosen = rng.permutation(pairs)[:n_answers].tolist()
    return [(a, b, "same" if y[a] == y[b] else "different") for a, b in chosen]


def _asked(session: Session, y: np.ndarray[Any, Any]) -> None:
    for _ in range(N_NEXT):
        question = session.ask()
        assert question is not None
        session.tell(question, "same" if y[question.left] == y[question.right] else "different")


# -- operations --------------------------------------------------------------------------------------------------------


def operations(what: str, **sizes: int) -> dict[str, float]:
    """Counts that the clock has no part in.

    `steps` are lines of Python that were run and calls of functions, so that loops over rows count. `bytes` are the
    peak of all arrays and objects. For a fit, `products` are those of rows with centres, and visits to pairs, by
    round.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with prepared(what, sizes) as work, counted() as products, steps_counted() as steps:
            result = work()
        with prepared(what, sizes) as work:
            tracemalloc.start()
            work()
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    of_rounds = {"products": sum(products) / result.n_iter_} if what.startswith("fit") else {}
    return {"steps": float(sum(steps.values())), "bytes": float(peak), **of_rounds}


@contextmanager
def steps_counted() -> Iterator[Counter[str]]:
    """Count lines of Python, and calls of functions in Python and in C."""
    count: Counter[str] = Counter()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        count[event] += 1
        return trace

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "c_call":
            count[event] += 1

    before = sys.gettrace(), sys.getprofile()
    sys.setprofile(profile)
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])


@contextmanager
def counted() -> Iterator[list[float]]:
    """Count the products of rows with centres, and the visits to units times clusters."""
    count: list[float] = []
    score, sweep = _geometry.Scoring.__call__, _ties.TiedAssignment.sweep

    def scoring(self: Any, rows: Any, out: Any = None) -> Any:
        count.append(float(rows.shape[0]) * self.directions.size)
        return score(self, rows, out)

    def sweeping(self: Any, problem: Any, units: Any, centers: Any, *others: Any) -> float:
        count.append(float(len(units)) * len(centers))
        return sweep(self, problem, units, centers, *others)

    with (
        mock.patch.object(_geometry.Scoring, "__call__", scoring),
        mock.patch.object(_ties.TiedAssignment, "sweep", sweeping),
    ):
        yield count


def worse(series: Series) -> list[str]:
    """How the counts of a series grow faster than documented, in sentences. Empty if they do not."""
    toy = base_of(series.what, toy=True)
    operations(series.what, **toy)  # what is loaded at the first use is not counted
    counts = [operations(series.what, **{**toy, series.grows: size}) for size in series.toy]
    found = []
    for name in counts[0]:
        expected = series.memory if name == "bytes" else series.time
        slope = exponent(series.toy, [one[name] for one in counts])
        print(
            f"{series.what}: {name} grow with {series.grows} to the power {slope:.2f}, expected {expected:g}",
            flush=True,
        )
        if slope > expected + TOLERANCE:
            found.append(
                f"{series.what}: {name} grow with {series.grows} to the power {slope:.2f}, above {expected:g}."
            )
    return found


# -- the command -------------------------------------------------------------------------------------------------------


def draw(report: Report, path: Path) -> None:
    """Draw time and memory over the sizes, on logarithmic axes: a column for each size that grows."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["grows"] for row in report.rows))
    figure, axes = plt.subplots(2, len(names), figsize=(3.4 * len(names), 6.4), squeeze=False)
    for column, name in enumerate(names):
        for line, key in enumerate(("seconds", "megabytes")):
            ax = axes[line, column]
            for what in dict.fromkeys(row["what"] for row in report.rows if row["grows"] == name):
                rows = [row for row in report.rows if (row["grows"], row["what"]) == (name, what)]
                slope = rows[0]["time_exponent" if key == "seconds" else "memory_exponent"]
                costs = [max(row[key], 1e-3) for row in rows]
                ax.loglog([row["size"] for row in rows], costs, "o-", label=f"{what}: {slope:.2f}")
            ax.set_xlabel(name)
            ax.set_ylabel({"seconds": "processor seconds", "megabytes": "MB beyond the data"}[key])
            ax.legend(fontsize=7, title="exponent", title_fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="How cost grows.")
    parser.add_argument(
        "--quick", action="store_true", help="count operations at toy sizes; exit 1 if they grow too fast"
    )
    parser.add_argument("--again", action="store_true", help="forget earlier measurements")
    options = parser.parse_args()
    if options.quick:
        problems = [problem for series in SERIES for problem in worse(series)]
        sys.exit("\n".join(problems) if problems else 0)
    cells = RESULTS / "scale-cells.json"
    if options.again:
        cells.unlink(missing_ok=True)
    report = run(cells)
    print("\n".join([f"\n{report.title}\n\n{report.table()}\n", *report.notes]))
    print(f"written: {report.write(RESULTS, 'make bench-scale')}")
    draw(report, RESULTS / "scale.png")
    print(f"written: {RESULTS / 'scale.png'}")


if __name__ == "__main__":
    from benchmarks import scale  # fresh processes import their work by the name of its module

    scale.main()
