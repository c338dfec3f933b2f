"""Processor seconds per call in a session with a long log: does a call take longer when more answers came before it?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from benchmarks._harness import Report
from clew import Session

TITLE = "Processor seconds per call in a long log"
SIZES, QUICK_SIZES = (5_000, 50_000), (200, 400)
N_ROWS, QUICK_ROWS, N_CLUSTERS = 10_000, 200, 10
N_CONFLICTS, REPEATS = 45, 3


def run(*, quick: bool) -> Report:
    sizes, n_rows = (QUICK_SIZES, QUICK_ROWS) if quick else (SIZES, N_ROWS)
    found = {size: _seconds(n_rows, size) for size in sizes}
    rows = [{"call": call} | {str(size): found[size][call] for size in sizes} for call in found[sizes[0]]]
    columns = {"call": "call"} | {str(size): f"{size:,} answers" for size in sizes}
    notes = [
        f"{n_rows:,} rows, {N_CLUSTERS} clusters, their number given; fastest of {REPEATS} calls, processor seconds.",
        f"Conflicts: {N_CONFLICTS} answers that contradict others and wait. An answer: ask, tell and progress.",
    ]
    return Report("long-log", TITLE, columns, rows, notes)


def _seconds(n_rows: int, n_answers: int) -> dict[str, float]:
    """Seconds of each call after so many answers."""
    X, y = make_blobs(n_rows, 8, centers=N_CLUSTERS, cluster_std=0.5, random_state=0)
    with (
        tempfile.TemporaryDirectory() as folder,
        Session.create(Path(folder) / "long.clew", X, n_clusters=N_CLUSTERS) as session,
    ):
        session.import_answers(_answers(y, n_answers), annotator="ann")
        session.fit()
        found = {"an answer": _fastest(lambda: _answer(session, y))}
        for name, call in _calls(session, y).items():
            made, undone = zip(*((_timed(call), _timed(session.undo)) for _ in range(REPEATS)), strict=True)
            found |= {name: min(made), f"{name}, undone": min(undone)}
        session.import_answers(_contradictions(y), annotator="bob")
        return found | {f"an answer with {N_CONFLICTS} conflicts": _fastest(lambda: _answer(session, y))}


def _answers(y: NDArray[np.int64], n_answers: int) -> list[tuple[int, int, str]]:
    """Right answers about different random pairs.

    None compares the first two groups, so that they can be merged, or names the first rows of a group, so that these
    can be split off. Some rows are said to be together one by one, so that wrong answers contradict them.
    """
    rng = np.random.default_rng(0)
    named = np.flatnonzero(~np.isin(np.arange(len(y)), [row for one in range(N_CLUSTERS) for row in _spared(y, one)]))
    pairs = np.sort(rng.choice(named, (3 * n_answers, 2)), axis=1)
    pairs = np.unique(pairs[(pairs[:, 0] != pairs[:, 1]) & (np.sort(y[pairs], axis=1) != (0, 1)).any(axis=1)], axis=0)
    chosen = [*pairwise(_chain(y)), *rng.permutation(pairs).tolist()]
    return [(a, b, _truth(y, a, b)) for a, b in dict.fromkeys(map(tuple, chosen))][:n_answers]


def _spared(y: NDArray[np.int64], group: int) -> list[int]:
    """The rows of a group that no answer names."""
    return np.flatnonzero(y == group)[:2].tolist()


def _chain(y: NDArray[np.int64]) -> list[int]:
    """Rows of the last group that are said to be together one by one."""
    return np.flatnonzero(y == N_CLUSTERS - 1)[2 : N_CONFLICTS + 4].tolist()


def _contradictions(y: NDArray[np.int64]) -> list[tuple[int, int, str]]:
    """Wrong answers about pairs that follow from the chain."""
    first, _, *rest = _chain(y)
    return [(first, row, "different") for row in rest]


def _truth(y: NDArray[np.int64], first: Any, second: Any) -> str:
    return "same" if y[first] == y[second] else "different"


def _answer(session: Session, y: NDArray[np.int64]) -> None:
    question = session.ask()
    session.tell(question, _truth(y, question.left, question.right))
    session.progress()


def _calls(session: Session, y: NDArray[np.int64]) -> dict[str, Callable[[], Any]]:
    labels = session.labels(refit=False)
    (row, *_), (other, *_) = _spared(y, 0), _spared(y, 1)
    clusters = [labels[row], labels[other]]
    return {
        "split": lambda: session.split(clusters[0], _spared(y, 0)),
        "merge": lambda: session.merge(*clusters),
        "move": lambda: session.move(row, clusters[1]),
        "never, rows": lambda: session.never(rows=[row, other]),
        "never, clusters": lambda: session.never(clusters=clusters),
    }


def _fastest(call: Callable[[], Any]) -> float:
    return min(_timed(call) for _ in range(REPEATS))


def _timed(call: Callable[[], Any]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started
