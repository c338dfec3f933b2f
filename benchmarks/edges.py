"""A million scored pairs: time of `cluster_edges` beside reading them from a csv file, and peak memory per pair."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._harness import Report, in_fresh_process, judged, peak_megabytes
from clew import cluster_edges
from clew.datasets import read_table, write_table
from clew.evaluation import adjusted_rand_score
from clew.graph._cluster_edges import TEXT_COLUMNS

TITLE = "Scored pairs"
# Clustering takes at most this many times as long as reading the file.
TIME_LIMIT = 10.0


def run(*, quick: bool) -> Report:
    rows = []
    for n_pairs in (2_000,) if quick else (100_000, 1_000_000):
        for one_per_source in (False, True):
            found = in_fresh_process(measure, n_pairs=n_pairs, one_per_source=one_per_source)
            ratio = found["cluster"] / found["read"]
            rows.append(found | {"ratio": ratio, **judged(ratio, None if quick else TIME_LIMIT)})
    columns = {
        "n_pairs": "pairs", "one_per_source": "one per source", "read": "read (s)", "cluster": "cluster (s)",
        "ratio": "ratio", "gap": "above bound at most", "ari": "ARI", "peak": "peak (MB)",
        "bar": "bar", "verdict": "verdict",
    }  # fmt: skip
    notes = [
        "Records of entities of 2.7 records on average; pairs of records near each other in a list sorted by entity, "
        "with probabilities drawn from Beta(6, 1.5) for the same entity and Beta(1.2, 5) for two entities.",
        "Peak memory is that of a second run with two starts.",
        "`read` is `read_table` of the csv file, and `cluster` starts from the table that it gives.",
    ]
    return Report("edges", TITLE, columns, rows, notes)


def measure(n_pairs: int, *, one_per_source: bool) -> dict[str, Any]:
    columns, entity_of = scored_pairs(n_pairs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "edges.csv")
        write_table(path, columns)
        started = time.perf_counter()
        table = read_table(path, text=TEXT_COLUMNS)
        read = time.perf_counter() - started
    started = time.perf_counter()
    found = cluster_edges(table, one_per_source=one_per_source)
    seconds = time.perf_counter() - started
    peak = peak_megabytes(lambda: cluster_edges(table, one_per_source=one_per_source, n_init=2))
    truth = np.array([entity_of[int(one.removeprefix("r"))] for one in found.ids.tolist()])
    return {
        "n_pairs": n_pairs,
        "one_per_source": one_per_source,
        "read": read,
        "cluster": seconds,
        "gap": f"{(found.objective - found.lower_bound) / found.objective:.1%}",
        "ari": adjusted_rand_score(truth, found.labels),
        "peak": peak,
    }


def scored_pairs(n_pairs: int) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """A table of pairs of records that are near each other in a list sorted by entity."""
    rng = np.random.default_rng(0)
    n_records = 2 * n_pairs // 5
    entity_of = rng.integers(0, 3 * n_records // 8, size=n_records)
    order = np.argsort(entity_of, kind="stable")
    first, second = (np.concatenate(parts) for parts in zip(*((order[:-s], order[s:]) for s in (1, 2, 3)), strict=True))
    chosen = np.sort(rng.permutation(len(first))[:n_pairs])
    first, second = first[chosen], second[chosen]
    same = entity_of[first] == entity_of[second]
    score = np.where(same, rng.beta(6, 1.5, n_pairs), rng.beta(1.2, 5, n_pairs)).round(6)
    source = rng.integers(0, 20, size=n_records)
    columns = {
        "id_1": [f"r{row}" for row in first], "id_2": [f"r{row}" for row in second], "score": score,
        "source_1": [f"list {one}" for one in source[first]], "source_2": [f"list {one}" for one in source[second]],
    }  # fmt: skip
    return columns, entity_of
