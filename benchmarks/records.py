"""Duplicate records: pairwise F of `UncertainMatches` after some answers, on made-up and on published tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import _published, record_kinds, record_tables
from benchmarks._harness import Report
from clew import Constraints
from clew.active import Oracle, Questions, UncertainMatches
from clew.datasets import as_table, read_table
from clew.evaluation import pairwise_scores

TITLE = "Duplicate records"
PUBLISHED = ("febrl1", "febrl3", "restaurant", "childcare")
BUDGETS = (0, 20, 50, 100)
# Share of wrong answers, and the seeds of the oracles that give them.
NOISE, NOISE_SEEDS = 0.1, (0, 1, 2)
# A table, or vectors, and the entity of each row.
Rows = tuple[Any, np.ndarray]


def run(*, quick: bool) -> Report:
    rows = []
    budgets, seeds = ((0, 5), NOISE_SEEDS[:1]) if quick else (BUDGETS, NOISE_SEEDS)
    for name, make in tables(quick=quick).items():
        data, entity = make()
        right = measure(data, entity, budgets)
        last = f"f{max(budgets)}"
        wrong = float(np.mean([measure(data, entity, budgets[-1:], NOISE, seed)[last] for seed in seeds]))
        rows.append({"table": name, "rows": len(entity), **right, "wrong": wrong, "loss": right[last] - wrong})
        print(rows[-1], flush=True)
    columns = {
        "table": "table", "rows": "rows", **{f"f{budget}": f"F at {budget}" for budget in budgets},
        "wrong": f"F at {max(budgets)}, 10 % wrong", "loss": "loss", "recall": "true pairs among candidates",
        "next": "next question (s)",
    }  # fmt: skip
    notes = [
        f"Pairwise F after so many answers. 10 % wrong: one answer in ten is wrong, mean of {len(seeds)} oracles; "
        "loss: how much less than with right answers. Next question: the median processor time of `ask`."
    ]
    return Report("records", TITLE, columns, rows, notes)


def tables(*, quick: bool) -> dict[str, Callable[[], Rows]]:
    """Made-up tables of two modules, made-up vectors, and the published tables if they are there."""
    n_rows = 120 if quick else 1000
    found: dict[str, Callable[[], Rows]] = {}
    for module in (record_tables, record_kinds):
        for name in module.NAMES[:1] if quick else module.NAMES:
            found[name] = lambda module=module, name=name: _made(module.record_table(name, n_rows))
    if not quick:
        found["faces"] = lambda: record_kinds.faces(n_rows)
        found |= published()
    return found


def published() -> dict[str, Callable[[], Rows]]:
    """The published tables, without their ids and their truth. Empty if they are not there."""
    folder = _published.SHARED / "records"
    names = PUBLISHED if folder.exists() else ()
    return {name: lambda path=folder / f"{name}.csv": _read(path) for name in names}


def measure(
    data: Any, entity: np.ndarray, budgets: tuple[int, ...], noise: float = 0.0, seed: int = 0
) -> dict[str, Any]:
    """Pairwise F after each number of answers, and the median time of a question."""
    questions = questions_about(data)
    oracle = Oracle(entity, noise=noise, random_state=seed)
    none, found, seconds = Constraints(n_samples=len(entity)), {}, []
    for n_answers in range(max(budgets) + 1):
        if n_answers in budgets:
            found[f"f{n_answers}"] = pairwise_scores(entity, questions.labels(), none).f
        started = time.process_time()
        pair = questions.ask()
        seconds.append(time.process_time() - started)
        if pair is not None and n_answers < max(budgets):
            questions.tell(pair, oracle(pair))
    return found | {"recall": candidate_recall(questions, entity)[1], "next": float(np.median(seconds))}


def questions_about(data: Any) -> Questions:
    """Questions about the records of a table, or about vectors."""
    if isinstance(data, np.ndarray):
        return Questions(data, UncertainMatches(), random_state=0)
    return Questions(np.zeros((data.n_rows, 1)), UncertainMatches(), random_state=0, records=data)


def candidate_recall(questions: Questions, entity: np.ndarray) -> tuple[int, float]:
    """Number of candidates, and the share of the pairs of records of one entity that are candidates."""
    pairs = UncertainMatches().candidate_pairs(questions.view)
    sizes = np.bincount(entity)
    n_found = int((entity[pairs[:, 0]] == entity[pairs[:, 1]]).sum())
    return len(pairs), n_found / max(int((sizes * (sizes - 1) // 2).sum()), 1)


def _made(found: record_tables.RecordTable) -> Rows:
    return as_table(found.columns), found.entity


def _read(path: Any) -> Rows:
    table = read_table(path)
    entity = np.unique(table.column("entity").astype(str), return_inverse=True)[1]
    kept = {name: values for name, values in table.values.items() if name not in ("entity", "id", "source")}
    return as_table(type(table)(table.source, kept, tuple(kept), table.n_rows)), entity
