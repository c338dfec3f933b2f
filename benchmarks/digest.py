"""A fingerprint of what clew does: labels, questions and reviews of seeded runs, one hash each.

Run it before and after a change that should leave behaviour alone, and compare the two tables:
``python -m benchmarks digest --out before``. Only public names are used, so that a renamed module changes nothing here.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import clew
from benchmarks._harness import Report
from clew import Constraints, Session, active, audit
from clew.active import Oracle, Questions
from clew.datasets import load_iris, load_wine

# Scores are compared to this many digits, since sums may be added in another order.
DIGITS = 6
N_ANSWERS = 25
STRATEGIES = (
    "AbilityToSeparate", "Auto", "Committee", "DenseMinMax", "DensityBorder", "ExploreConsolidate", "Feedback",
    "InformationGain", "MinMax", "PointUncertainty", "RandomPairs", "SuperInstances",
)  # fmt: skip
METHODS = (
    "COPKMeans", "CVQE", "ConstrainedKMeans", "GraphPropagation", "HMRFKMeans", "IGKMeans", "LCVQE", "MPCKMeans",
    "PCKMeans", "SeededKMeans",
)  # fmt: skip


def run(*, quick: bool) -> Report:
    rows = [{"run": name, "digest": _hash(result)} for name, result in _runs(quick)]
    whole = _hash([row["digest"] for row in rows])
    rows.append({"run": "all", "digest": whole})
    return Report("digest", "Fingerprints of seeded runs", {"run": "run", "digest": "digest"}, rows)


def _runs(quick: bool) -> Iterator[tuple[str, Any]]:
    iris = load_iris()
    for name in METHODS[:2] if quick else METHODS:
        yield f"labels of {name}", _labels(name, iris.X, iris.y)
    for name in STRATEGIES[:2] if quick else STRATEGIES:
        yield f"questions of {name}", _questions(name, iris.X, iris.y)
    sets = [("iris", iris)] if quick else [("iris", iris), ("wine", load_wine())]
    for name, data in sets:
        yield f"review of {name}", _review(data.X, data.y)
        yield f"session about {name}", _session(data.X, data.y, n_clusters=3)
        yield f"session about {name}, k unknown", _session(data.X, data.y, n_clusters=None)
        yield f"advice on {name}", _advice(data.X, data.y)


def _labels(name: str, X: Any, y: Any) -> Any:
    found = []
    for seed in range(3):
        known = Constraints.sample(y, 60, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = getattr(clew, name)(n_clusters=3, random_state=seed).fit(X, constraints=known)
        found.append(model.labels_.tolist())
    return found


def _questions(name: str, X: Any, y: Any) -> Any:
    questions = Questions(X, getattr(active, name)(), n_clusters=3, random_state=0)
    oracle = Oracle(y, unsure=0.1, random_state=0)
    asked = []
    for _ in range(N_ANSWERS):
        pair = questions.ask()
        if pair is None:
            break
        answer = oracle(pair)
        questions.tell(pair, answer)
        asked.append([int(pair.first), int(pair.second), answer.value])
    return [asked, np.asarray(questions.labels()).tolist()]


def _review(X: Any, y: Any) -> Any:
    known = Constraints.sample(y, 60, noise=0.1, random_state=0)
    found = audit.review(X, known, 3, random_state=0)
    return [
        [row["id_1"], row["id_2"], row["answer"], round(row["suspicion"], DIGITS), row["likely"]]
        for row in found.table()
    ]


def _advice(X: Any, y: Any) -> Any:
    known = Constraints.sample(y, 100, random_state=0)
    return [
        str(audit.advise_n_clusters(X, known, random_state=0).best),
        str(audit.advise_metric(X, known, 3, random_state=0).best),
    ]


def _session(X: Any, y: Any, n_clusters: int | None) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digest.clew"
        with Session.create(path, X, n_clusters=n_clusters) as session:
            asked = [_told(session, y) for _ in range(N_ANSWERS)]
            labels = [_plain(session.labels())]
            clusters = sorted(set(session.labels().values()))
            session.merge(clusters[0], clusters[1])
            labels.append(_plain(session.labels()))
            asked += [_told(session, y) for _ in range(5)]
        with Session.open(path) as session:
            labels.append(_plain(session.labels()))
            return [asked, labels, session.progress().answered]


def _told(session: Session, y: Any) -> Any:
    question = session.ask()
    if question is None:
        return None
    same = y[question.left] == y[question.right]
    session.tell(question, "same" if same else "different")
    return [question.left, question.right]


def _plain(labels: dict[Any, int]) -> list[list[int]]:
    return [[int(row), int(cluster)] for row, cluster in labels.items()]


def _hash(result: Any) -> str:
    return hashlib.sha256(json.dumps(result).encode()).hexdigest()[:16]
