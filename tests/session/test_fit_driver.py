"""A fit takes in the answers since the last one, and finds the clusters that a replay of the whole log finds."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Session
from clew.active import Auto, _questions
from tests.session.helpers import blobs, told

X, Y = blobs(n=60, k=4, gap=3.0)


@pytest.fixture
def session(tmp_path):
    with Session.create(tmp_path / "one.clew", X, n_clusters=4) as session:
        told(session, Y, 30)
        session.fit()
        yield session


def replayed(session):
    """The labels of a plan whose driver has replayed the whole log."""
    session._state.known._fit_driver._driver = None
    return session.plan_fit().run().labels


def test_a_fit_takes_in_only_answers_since_the_last_fit(session, monkeypatch):
    taken = []
    take = _questions._take
    monkeypatch.setattr(_questions, "_take", lambda view, entry: taken.append(entry) or take(view, entry))
    told(session, Y, 3)
    taken.clear()
    found = session.plan_fit().run().labels
    assert len(taken) == 3
    np.testing.assert_array_equal(found, replayed(session))


CHANGES = [
    lambda session: session.undo(),
    lambda session: session.revise(session.answers()[4].id, "unsure"),
    lambda session: session.revise(session.answers()[9].id, "different"),
    lambda session: session.set(n_clusters=5),
    lambda session: session.set(error_rate=0.1),
    lambda session: (session.never(rows=[0, 1]), session.undo()),
]


@pytest.mark.parametrize("change", CHANGES, ids=["undo", "revise", "conflict", "k", "errors", "never and undo"])
def test_after_a_change_of_the_log_a_fit_is_that_of_the_whole_log(session, change):
    told(session, Y, 2)
    change(session)
    told(session, Y, 3)
    np.testing.assert_array_equal(session.plan_fit().run().labels, replayed(session))


def test_after_a_failed_fit_the_next_one_starts_from_the_beginning(session):
    told(session, Y, 2)
    plan = session.plan_fit()
    lent = session._state.known.copier(Auto())()
    assert len(lent.__enter__().answers) == 32
    assert not lent.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert session._state.known._fit_driver._driver is None
    np.testing.assert_array_equal(plan.run().labels, replayed(session))
