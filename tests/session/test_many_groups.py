"""Projects over vectors in many groups whose number nobody knows."""

from __future__ import annotations

import shutil

import numpy as np
from sklearn.metrics import adjusted_rand_score

from clew import Session
from tests.unit.active.test_group_sizes import groups


def drawn(seed):
    X, y = groups(seed, np.full(80, 6), n_columns=8)
    return [{"id": f"r{row}"} | {f"v{j}": float(v) for j, v in enumerate(x)} for row, x in enumerate(X)], y


def answer(session, y, n):
    for _ in range(n):
        question = session.ask()
        one, two = (int(row[1:]) for row in (question.left, question.right))
        told = session.tell(question, "same" if y[one] == y[two] else "different")
        assert told.note is None  # no other strategy takes over


def test_answers_and_corrections_hold_and_the_next_question_survives_a_restart(seed, sqlite_url):
    rows, y = drawn(seed)
    with Session.create(sqlite_url, rows, id_column="id") as session:
        answer(session, y, 50)
        labels = session.labels()
    assert adjusted_rand_score(y, [labels[row["id"]] for row in rows]) > 0.6
    asked = []
    for opened in range(2):  # the question is leased, so a copy of the project is asked for it again
        copied = shutil.copy(sqlite_url, f"{sqlite_url}.{opened}")
        with Session.open(copied) as session:
            assert session.labels() == labels
            question = session.ask()
            asked.append((question.left, question.right, question.why))
    assert asked[0] == asked[1]
    assert asked[0][2] == "Are these two groups one?"
    with Session.open(sqlite_url) as session:
        largest = max(labels.values(), key=list(labels.values()).count)
        members = [row for row in labels if labels[row] == largest]
        assert session.move(members[0]).conflict is None  # to a cluster of its own
        answer(session, y, 5)
        session.fit()
        moved = session.labels()
    assert moved[members[0]] not in {moved[row] for row in members[1:]}
