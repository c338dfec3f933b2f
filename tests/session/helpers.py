"""Small data, people who answer, and everything a session shows."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from clew import Session


def blobs(seed=0, n=30, k=3, gap=9.0):
    """Rows in k groups far apart, and their groups."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    angle = 2 * np.pi * y / k
    return rng.normal(size=(n, 2)) + gap * np.column_stack([np.cos(angle), np.sin(angle)]), y


def told(session, y, n, annotator="me"):
    """Answer up to n questions truthfully; rows are known by their position."""
    asked = []
    for _ in range(n):
        question = session.ask(annotator)
        if question is None:
            break
        asked.append(question)
        session.tell(question, "same" if y[question.left] == y[question.right] else "different")
    return asked


def partition(labels):
    """Clusters as sets of row ids, by cluster id."""
    found = {}
    for row, cluster in labels.items():
        found.setdefault(cluster, set()).add(row)
    return found


def everything(session):
    """All that a session knows, in comparable form."""
    state = session._state
    n = len(state.rows.present)
    known = session.constraints
    return {
        "answers": session.answers(),
        "history": [(event.seq, event.kind, event.time, event.annotator, event.payload) for event in session.history()],
        "labels": session.labels(refit=False),
        "settings": session.settings,
        "names": state.ledger.names(),
        "conflicts": session.conflicts(),
        "pending": session.pending(),
        "relations": {pair: state.known.driver.view.knowledge.relation(*pair) for pair in combinations(range(n), 2)},
        "asked": set(state.known.driver.view.asked),
        "waiting": set(state.known.driver.view.pending),
        "sources": list(state.known.sources),
        "conflicting": set(state.known.conflicting),
        "below_overlap": set(state.known.below_overlap),
        "must": sorted(zip(map(tuple, known.must_link.tolist()), known.must_link_confidence.tolist(), strict=True)),
        "cannot": sorted(
            zip(map(tuple, known.cannot_link.tolist()), known.cannot_link_confidence.tolist(), strict=True)
        ),
        "clusters": state.known.driver.n_clusters,
        "next": state.labelling.next_cluster,
    }


def reopened(session, url):
    """The same project, read from its log."""
    session.close()
    return Session.open(url)
