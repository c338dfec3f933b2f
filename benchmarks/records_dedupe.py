"""The dedupe package with the same answers: pairwise F of clew and dedupe on the published tables of records.

dedupe runs in an environment of its own, because it needs older packages (BTrees < 6, zope.index < 7)::

    python -m venv dedupe && dedupe/bin/pip install dedupe "BTrees<6" "zope.index<7"
    CLEW_DEDUPE_PYTHON=dedupe/bin/python python -m benchmarks records-dedupe
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._harness import ONE_THREAD, Report
from benchmarks.records import published, questions_about
from clew import Constraints
from clew.active import SAME, Oracle
from clew.evaluation import pairwise_scores
from clew.matching._records import as_cells

TITLE = "Duplicate records: clew and dedupe with the same answers"
# Without febrl3: the training of dedupe needs more than 7 GB for its 5,000 rows.
TABLES = ("febrl1", "restaurant", "childcare")
BUDGETS = (20, 50, 100)
PYTHON = "CLEW_DEDUPE_PYTHON"


def run(*, quick: bool) -> Report:
    rows = []
    python = os.environ.get(PYTHON)
    tables = {} if quick or python is None else published()
    for name in TABLES if tables else ():
        table, entity = tables[name]()
        pairs, ours = _answers(table, entity)
        rows.append({"table": name, "rows": len(entity), "package": "clew", **ours})
        rows.append({"table": name, "rows": len(entity), "package": "dedupe", **_dedupe(python, table, entity, pairs)})
        print(rows[-2:], flush=True)
    columns = {"table": "table", "rows": "rows", "package": "package"}
    columns |= {f"f{budget}": f"F at {budget}" for budget in BUDGETS}
    notes = ["Right answers to the questions of `UncertainMatches`. dedupe: all columns as strings, default settings."]
    if not rows:
        notes.append(f"Nothing was measured: {PYTHON} does not name a Python with dedupe, or the tables are missing.")
    return Report("records-dedupe", TITLE, columns, rows, notes)


def _answers(table: Any, entity: np.ndarray) -> tuple[list[Any], dict[str, float]]:
    """The answers, and clew's F after each budget."""
    questions, oracle, pairs, found = questions_about(table), Oracle(entity), [], {}
    while len(pairs) < max(BUDGETS) and (pair := questions.ask()) is not None:
        answer = oracle(pair)
        questions.tell(pair, answer)
        pairs.append([*pair.key, answer is SAME])
        if len(pairs) in BUDGETS:
            found[f"f{len(pairs)}"] = _score(entity, questions.labels())
    return pairs, found


def _dedupe(python: str, table: Any, entity: np.ndarray, pairs: list[Any]) -> dict[str, Any]:
    columns = {name: as_cells(table.column(name)).tolist() for name in table.features}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.json"
        path.write_text(json.dumps({"columns": columns, "pairs": pairs, "budgets": BUDGETS}), encoding="utf-8")
        script = Path(__file__).with_name("_dedupe.py")
        done = subprocess.run(
            [python, str(script), str(path)],
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(f"{python} {script} failed:\n{done.stderr}")
    groups = json.loads(done.stdout.splitlines()[-1])
    return {
        f"f{budget}": "failed" if one is None else _score(entity, np.array(one))
        for budget, one in zip(BUDGETS, groups, strict=True)
    }


def _score(entity: np.ndarray, labels: np.ndarray) -> float:
    return pairwise_scores(entity, labels, Constraints(n_samples=len(entity))).f
