"""Many records: time, memory and quality of `UncertainMatches` on 5,000 to a million made-up records of people."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._harness import Report, in_fresh_process, peak_megabytes
from benchmarks.record_tables import record_table
from benchmarks.records import candidate_recall
from clew import Constraints
from clew.active import Oracle, Questions, UncertainMatches
from clew.datasets import as_table
from clew.evaluation import pairwise_scores

TITLE = "Many records"
SIZES = (
    ("people", 5_000),
    ("people_dirty", 5_000),
    ("people", 100_000),
    ("people_dirty", 100_000),
    ("people", 1_000_000),
)
N_QUESTIONS = 20


def run(*, quick: bool) -> Report:
    rows = []
    for name, n_rows in (("people", 500),) if quick else SIZES:
        rows.append(in_fresh_process(measure, name=name, n_rows=n_rows))
        print(rows[-1], flush=True)
    columns = {
        "table": "table", "rows": "rows", "first": "first question (s)", "next": "next question (s)",
        "slowest": "slowest (s)", "labels": "groups (s)", "memory": "peak memory (MB)", "pairs": "candidate pairs",
        "recall": "true pairs among them", "f0": "F at 0", f"f{N_QUESTIONS}": f"F at {N_QUESTIONS}",
    }  # fmt: skip
    notes = [
        "Processor seconds, one thread. First question: reading the columns, candidates, comparison and the model "
        "without answers. Next question: median and maximum of `tell` and `ask`. Peak memory: the rise while the "
        "table, which is in memory already, is compared and asked about."
    ]
    return Report("many-records", TITLE, columns, rows, notes)


def measure(name: str, n_rows: int) -> dict[str, Any]:
    """Time, memory and pairwise F of one made-up table."""
    made = record_table(name, n_rows)
    table, entity = as_table(made.columns), made.entity
    found: dict[str, Any] = {"table": name, "rows": table.n_rows}
    found["memory"] = peak_megabytes(lambda: found.update(_asked(table, entity)))
    return found


def _asked(table: Any, entity: np.ndarray) -> dict[str, Any]:
    questions = Questions(np.zeros((table.n_rows, 1)), UncertainMatches(), random_state=0, records=table)
    oracle, none, seconds = Oracle(entity), Constraints(n_samples=len(entity)), []
    pair, first = _timed(questions.ask)
    labels, for_labels = _timed(questions.labels)
    found = {"f0": pairwise_scores(entity, labels, none).f}
    for _ in range(N_QUESTIONS):
        if pair is None:
            break
        answer = oracle(pair)
        _, to_tell = _timed(lambda pair=pair, answer=answer: questions.tell(pair, answer))
        pair, to_ask = _timed(questions.ask)
        seconds.append(to_tell + to_ask)
    found[f"f{N_QUESTIONS}"] = pairwise_scores(entity, questions.labels(), none).f
    n_pairs, recall = candidate_recall(questions, entity)
    return found | {
        "first": first, "labels": for_labels, "next": float(np.median(seconds)), "slowest": max(seconds),
        "pairs": n_pairs, "recall": recall,
    }  # fmt: skip


def _timed(work: Any) -> tuple[Any, float]:
    started = time.process_time()
    return work(), time.process_time() - started
