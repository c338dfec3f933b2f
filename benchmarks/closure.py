"""Closure of many pairs: seconds and peak memory, each case in a process of its own."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np

from benchmarks._harness import Report, in_fresh_process, judged
from clew import Constraints


def run(*, quick: bool) -> Report:
    scale = 1000 if quick else 1
    million = 1_000_000 // scale
    cases = [
        ("random", f"{million:,} rows, {million:,} must-links, {million:,} cannot-links", {"n_rows": million}),
        ("chain", f"one chain of {million:,} must-linked rows", {"n_rows": million}),
        ("contradiction", "the same, its ends cannot-linked: closure and chain", {"n_rows": million}),
        ("stars", "two stars of 2,000 must-links joined by a cannot-link", {"n_leaves": 2_000}),
    ]  # fmt: skip
    bars = {} if quick else {"random": ("seconds", 2.0), "stars": ("peak_mb", 10.0)}
    rows = []
    for case, what, size in cases:
        measured = in_fresh_process(measure, case=case, **size)
        key, limit = bars.get(case, ("seconds", None))
        unit = " s" if key == "seconds" else " MB"
        rows.append({"what": what, **measured, **judged(measured[key], limit, unit)})
    columns = {
        "what": "case",
        "build_seconds": "reading pairs, s",
        "seconds": "closure, s",
        "cpu_seconds": "CPU, s",
        "peak_mb": "peak of both, MB",
        "result": "result",
        "bar": "bar",
        "verdict": "",
    }
    notes = ["peak: most memory held while reading the pairs and closing them (tracemalloc), beyond the given arrays."]
    return Report("closure", "Closure", columns, rows, notes)


def measure(case: str, **size: int) -> dict[str, Any]:
    """Build constraints and close them, once for the peak and three times for the clock."""
    Constraints([(0, 1)], [(1, 2)], n_samples=3).closure()
    must, cannot, n_rows = PAIRS[case](**size)
    tracemalloc.start()
    _close(case, must, cannot, n_rows)
    megabytes = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    runs = [_close(case, must, cannot, n_rows) for _ in range(3)]
    build, seconds, cpu = (min(run[place] for run in runs) for place in range(3))
    return {
        "build_seconds": build,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mb": megabytes,
        "result": runs[0][3],
    }


def _close(case: str, must: Any, cannot: Any, n_rows: int) -> tuple[float, float, float, str]:
    started = time.perf_counter()
    known = Constraints(must, cannot, n_samples=n_rows)
    built, cpu = time.perf_counter(), time.process_time()
    closed = known.closure()
    result = f"components: {closed.n_components:,}"
    if case == "contradiction":
        result = f"rows in the chain: {len(known.conflicts()[0].chain):,}"
    return built - started, time.perf_counter() - built, time.process_time() - cpu, result


def _random(n_rows: int) -> tuple[Any, Any, int]:
    planted = np.random.default_rng(0).integers(0, 10, n_rows)
    known = Constraints.sample(planted, 2 * n_rows, balance=0.5, random_state=0)
    return known.must_link, known.cannot_link, n_rows


def _chain(n_rows: int) -> tuple[Any, Any, int]:
    # In random order, so that the chain is not joined from one end to the other.
    order = np.random.default_rng(0).permutation(n_rows - 1)
    return np.column_stack([order, order + 1]), [], n_rows


def _contradiction(n_rows: int) -> tuple[Any, Any, int]:
    must, _, _ = _chain(n_rows)
    return must, [(0, n_rows - 1)], n_rows


def _stars(n_leaves: int) -> tuple[Any, Any, int]:
    leaves = np.arange(1, n_leaves + 1)
    star = np.column_stack([np.zeros_like(leaves), leaves])
    return np.concatenate([star, star + n_leaves + 1]), [(0, n_leaves + 1)], 2 * (n_leaves + 1)


PAIRS = {"random": _random, "chain": _chain, "contradiction": _contradiction, "stars": _stars}
