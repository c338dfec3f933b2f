"""Approximate nearest neighbours: processor time, and the share of the true neighbours that are found."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from benchmarks._harness import Report
from clew._neighbours import _neighbours_by_cells, _neighbours_by_graph

N_NEIGHBORS, N_CHECKED, N_COLUMNS = 10, 300, 10
KINDS = {"one Gaussian": (1, 1.0), "50 Gaussians": (50, 0.3), "groups of about four rows": (0, 0.1)}


def run(*, quick: bool) -> Report:
    rows = []
    for kind in KINDS:
        rows.append(measure(kind, 1_000 if quick else 50_000, N_COLUMNS))
        print(rows[-1], flush=True)
    columns = {
        "kind": "rows are drawn from", "columns": "columns", "cells_found": "found, cells", "cells_cpu": "cells (s)",
        "graph_found": "found, graph", "graph_cpu": "graph (s)",
    }  # fmt: skip
    notes = [
        f"{N_NEIGHBORS} neighbours of each of 50,000 rows.",
        f"Found: share of the true neighbours of {N_CHECKED} random rows.",
        "Processor seconds, one thread. Cells: the built-in search. Graph: usearch (extra `ann`).",
    ]
    return Report("neighbours", "Nearest neighbours", columns, rows, notes)


def measure(kind: str, n_rows: int, n_columns: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    n_centres, spread = KINDS[kind]
    n_centres = n_centres or n_rows // 4
    X = rng.normal(size=(n_centres, n_columns))[rng.integers(n_centres, size=n_rows)]
    X = X + spread * rng.normal(size=X.shape)
    checked = rng.choice(n_rows, size=N_CHECKED, replace=False)
    index = NearestNeighbors(n_neighbors=N_NEIGHBORS + 1, algorithm="brute").fit(X)
    exact = index.kneighbors(X[checked], return_distance=False)[:, 1:]
    found: dict[str, Any] = {"kind": kind, "columns": n_columns}
    searches = {
        "cells": lambda: _neighbours_by_cells(X, N_NEIGHBORS)[1],
        "graph": lambda: _neighbours_by_graph(X, N_NEIGHBORS),
    }
    for name, search in searches.items():
        started = time.process_time()
        neighbours = search()
        found[f"{name}_cpu"] = time.process_time() - started
        found[f"{name}_found"] = float((neighbours[checked][:, :, None] == exact[:, None, :]).any(axis=2).mean())
    return found
