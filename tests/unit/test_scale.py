"""Cost grows as documented: operations are counted, the clock plays no part."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import scale
from clew.partitional._reduction import RowLabels

FITS = [series for series in scale.SERIES if series.what.startswith("fit")]


@pytest.mark.parametrize("series", FITS, ids=lambda series: f"{series.what}-{series.grows}")
def test_operations_of_a_round_grow_as_documented(series):
    assert scale.worse(series) == []


def test_a_cost_that_grows_too_fast_is_found(monkeypatch):
    monkeypatch.setattr(scale, "operations", lambda what, rows, **others: {"operations": rows**2.0})
    series = next(series for series in scale.SERIES if series.grows == "rows")
    assert scale.worse(series) == [f"{series.what}: operations grow with rows to the power 2.00, above 1."]


def _loop(n_rows):
    for row in range(n_rows):
        for _ in range(0, n_rows, 200):
            row += 1


@pytest.mark.parametrize(
    ("count", "quadratic"), [("steps", _loop), ("bytes", lambda n_rows: np.zeros((n_rows, n_rows), dtype=np.int8))]
)
def test_a_quadratic_line_in_a_round_is_found(monkeypatch, count, quadratic):
    assign = RowLabels.assign

    def slower(self, problem, *others):
        quadratic(problem.n_rows)
        return assign(self, problem, *others)

    monkeypatch.setattr(RowLabels, "assign", slower)
    found = scale.worse(FITS[0]._replace(toy=(500, 2_000)))
    assert len(found) == 1 and f"{FITS[0].what}: {count} grow with rows to the power" in found[0]


def test_measurements_are_not_repeated_and_sizes_that_take_too_long_are_left_out(monkeypatch, tmp_path):
    made = []

    def measured(function, what, rows, **others):
        made.append(rows)
        return {"seconds": rows / 1000, "megabytes": 1.0, "whole": rows / 1000}

    monkeypatch.setattr(scale, "in_fresh_process", measured)
    monkeypatch.setattr(scale, "SERIES", [scale.Series("open", "rows", (10_000, 100_000, 1_000_000), (), 1, 1)])
    report = scale.run(tmp_path / "cells.json")
    assert made == [10_000, 100_000] and [row["size"] for row in report.rows] == made
    assert report.rows[0]["time_exponent"] == pytest.approx(1.0)
    scale.run(tmp_path / "cells.json")
    assert made == [10_000, 100_000]
    scale.draw(report, tmp_path / "scale.png")
    assert (tmp_path / "scale.png").stat().st_size > 0


def test_the_bars_of_a_fit_outside_memory_compare_the_largest_fits():
    def fit(what, size, seconds, resident):
        return {"what": what, "grows": "rows", "size": size, "seconds": seconds, "resident": resident}

    rows = [
        fit("fit in memory", 100, 9.0, 10),
        fit("fit in memory", 1_000, 1e-3 * scale.ROUNDS, 10),
        fit("fit from parquet", 20_000, 2e-2 * scale.ROUNDS, 2_000),
    ]
    times, megabytes = scale.bars(rows)
    assert "1000 ns per row and round" in times and "1.00 times, bar 1.5 met" in times
    assert "at most 2,000 MB meanwhile, bar 1,536 missed" in megabytes
    assert scale.bars(rows[:2]) == []


def test_an_exponent_is_the_slope_of_the_logarithms():
    assert scale.exponent([1, 10, 100], [3.0, 300.0, 30_000.0]) == pytest.approx(2.0)
