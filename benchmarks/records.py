"""Duplicate records: pairwise F of `UncertainMatches` after some answers, on made-up and on published tables."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks import _published
from benchmarks._harness import Report
from benchmarks.record_tables import NAMES, record_table
from clew import Constraints
from clew.active import Oracle, Questions, UncertainMatches
from clew.datasets import as_table, read_table
from clew.evaluation import pairwise_scores

TITLE = "Duplicate records"
PUBLISHED = ("febrl1", "febrl3", "restaurant", "childcare")
BUDGETS = (0, 20, 50, 100)


def run(*, quick: bool) -> Report:
    rows = []
    tables: dict[str, Any] = {name: (lambda name=name: _made(name, 120 if quick else 1000)) for name in NAMES}
    if quick:
        tables = dict(list(tables.items())[:2])
    elif (folder := _published.SHARED / "records").exists():
        tables |= {name: (lambda path=folder / f"{name}.csv": _read(path)) for name in PUBLISHED}
    budgets = (0, 5) if quick else BUDGETS
    for name, make in tables.items():
        table, entity = make()
        for noise in (0.0,) if quick else (0.0, 0.1):
            rows.append({"table": name, "rows": table.n_rows, "wrong": noise, **measure(table, entity, budgets, noise)})
    columns = {
        "table": "table", "rows": "rows", "wrong": "wrong answers",
        **{f"f{budget}": f"F at {budget}" for budget in budgets}, "recall": "true pairs among candidates",
        "next": "next question (s)",
    }  # fmt: skip
    notes = ["Pairwise F after so many answers; next question: the median time of `ask`."]
    return Report("records", TITLE, columns, rows, notes)


def measure(table: Any, entity: np.ndarray, budgets: tuple[int, ...], noise: float) -> dict[str, Any]:
    questions = Questions(np.zeros((table.n_rows, 1)), UncertainMatches(), random_state=0, records=table)
    oracle = Oracle(entity, noise=noise, random_state=0)
    none, found, seconds = Constraints(n_samples=len(entity)), {}, []
    for n_answers in range(max(budgets) + 1):
        if n_answers in budgets:
            found[f"f{n_answers}"] = pairwise_scores(entity, questions.labels(), none).f
        started = time.perf_counter()
        pair = questions.ask()
        seconds.append(time.perf_counter() - started)
        if pair is not None and n_answers < max(budgets):
            questions.tell(pair, oracle(pair))
    return found | {"recall": _recall(questions, entity), "next": float(np.median(seconds))}


def _recall(questions: Questions, entity: np.ndarray) -> float:
    """Share of the pairs of records of one entity that are candidates."""
    pairs = UncertainMatches().candidate_pairs(questions.view)
    sizes = np.bincount(entity)
    return float((entity[pairs[:, 0]] == entity[pairs[:, 1]]).sum() / max((sizes * (sizes - 1) // 2).sum(), 1))


def _made(name: str, n_rows: int) -> tuple[Any, np.ndarray]:
    found = record_table(name, n_rows)
    return as_table(found.columns), found.entity


def _read(path: Any) -> tuple[Any, np.ndarray]:
    """A published table without its ids and its truth."""
    table = read_table(path)
    entity = np.unique(table.column("entity").astype(str), return_inverse=True)[1]
    kept = {name: values for name, values in table.values.items() if name not in ("entity", "id", "source")}
    return as_table(type(table)(table.source, kept, tuple(kept), table.n_rows)), entity
