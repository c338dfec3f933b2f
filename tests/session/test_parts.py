"""The parts of a session, each tested alone: log, clusters, known answers, leases, reviews."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import clew.session
from clew.active import DIFFERENT, SAME, Pair
from clew.datasets import Table
from clew.session._conflicts import Conflicts
from clew.session._effects import Effects
from clew.session._events import Event
from clew.session._known import Known
from clew.session._labelling import Labelling, packed_labels
from clew.session._leases import Leases, payload_of
from clew.session._ledger import Ledger
from clew.session._planning import Planner
from clew.session._review import Reviews
from clew.session._store import Lease
from clew.session._table import ProjectRows, packed_rows, row_hashes

SETTINGS = {
    "id_column": None, "table_columns": ["x"], "columns": None, "scale": "none", "text": "none", "metric": "auto",
    "random_state": 0, "n_clusters": 2, "strategy": None, "check_share": None, "overlap": 1, "method": None,
    "lease_seconds": 600.0,
}  # fmt: skip
X = np.array([0.0, 0.1, 5.0, 5.1, 5.2])
TABLE = Table("toy", {"x": X}, ("x",), len(X))


@pytest.fixture
def log():
    """A log to which events can be appended, and the rows of its first event."""
    body = packed_rows(range(len(X)), row_hashes(TABLE, ["x"]), TABLE)
    ledger = Ledger()
    ledger.apply(Event(1, "create", "now", "", {"settings": SETTINGS, "data": None, "prior": None}, body))
    return ledger, ProjectRows(ledger.settings, TABLE, ledger.rows())


def append(ledger, kind, payload, body=None):
    event = Event(ledger.version + 1, kind, "now", "ann", payload, body)
    ledger.apply(event)
    return event


def answer(ledger, left, right, says, **more):
    return append(
        ledger, "answer", {"kind": "pair", "left": left, "right": right, "answer": says, "confidence": 1.0, **more}
    )


def fit(ledger, labels, **more):
    payload = {"version": ledger.version, "next_cluster": max(labels) + 1, "notes": [], **more}
    return append(ledger, "fit", payload, packed_labels(np.array(labels)))


def move(ledger, row, before, after):
    payload = {
        "kind": "move", "stars": [], "links": [], "about": [[row]], "changes": [[[row], before, after]],
        "more_clusters": 0, "conflict": False,
    }  # fmt: skip
    return append(ledger, "correction", payload)


# -- the log -----------------------------------------------------------------------------------------------------------


def test_settings_follow_the_log(log):
    ledger, _ = log
    append(ledger, "setting", {"settings": {"n_clusters": 3}})
    append(ledger, "setting", {"settings": {"overlap": 2}})
    assert (ledger.settings["n_clusters"], ledger.settings["overlap"], ledger.counted) == (3, 2, 2)
    undo = append(ledger, "undo", {"undoes": 2})
    assert (ledger.settings["n_clusters"], ledger.settings["overlap"], ledger.counted) == (2, 2, 1)
    assert ledger.target(undo) is ledger.event(2)


def test_clusters_are_stale_after_an_answer_until_the_next_fit(log):
    ledger, _ = log
    assert ledger.is_stale
    fit(ledger, [0, 0, 1, 1, 1])
    assert not ledger.is_stale
    append(ledger, "name", {"cluster": 0, "name": "low"})
    assert not ledger.is_stale
    answer(ledger, 0, 1, "same")
    assert (ledger.is_stale, ledger.fitted_version, ledger.said_version) == (True, 1, 4)


# -- the clusters ------------------------------------------------------------------------------------------------------


def test_a_correction_moves_rows_and_sets_the_base_of_later_fits(log):
    ledger, rows = log
    labelling = Labelling(ledger, rows)
    for event, labels, base in (
        (fit(ledger, [0, 0, 1, 1, -1]), [0, 0, 1, 1, -1], [0, 0, 1, 1, -1]),
        (move(ledger, 1, 0, 1), [0, 1, 1, 1, -1], [0, 1, 1, 1, -1]),
        (fit(ledger, [0, 1, 1, 1, 0], kept=True), [0, 1, 1, 1, 0], [0, 1, 1, 1, -1]),
        (append(ledger, "undo", {"undoes": 3}), [0, 0, 1, 1, 0], [0, 0, 1, 1, 0]),
    ):
        labelling.apply(event)
        assert (labelling.labels.tolist(), labelling.base.tolist()) == (labels, base)
    again = Labelling(ledger, rows)
    assert again.labels.tolist() == labelling.labels.tolist()
    assert (again.next_cluster, again.base_version) == (labelling.next_cluster, labelling.base_version)


def test_clusters_are_outdated_by_a_setting_that_makes_them(log):
    ledger, rows = log
    labelling = Labelling(ledger, rows)
    for event, is_outdated in (
        (fit(ledger, [0, 0, 1, 1, 1]), False),
        (append(ledger, "setting", {"settings": {"overlap": 2}}), False),
        (append(ledger, "setting", {"settings": {"n_clusters": 3}}), True),
        (fit(ledger, [0, 0, 1, 1, 2]), False),
    ):
        labelling.apply(event)
        assert labelling.is_outdated is is_outdated


# -- what is known -----------------------------------------------------------------------------------------------------


def test_answers_about_one_pair_are_one_entry_of_the_driver(log):
    ledger, rows = log
    known = Known(ledger, rows)
    assert known.add(ledger.records[answer(ledger, 0, 1, "same", confidence=0.5).seq])
    assert not known.add(ledger.records[answer(ledger, 1, 0, "same", confidence=0.8).seq])  # the driver starts afresh
    assert [(entry.question, entry.answer, entry.confidence) for entry in known.driver.answers] == [
        (Pair(0, 1), SAME, 0.8)
    ]
    assert (known.places, known.sources) == ([2], [("answer", (2, 3))])
    assert Known(ledger, rows).sources == known.sources


def test_opposite_answers_of_two_people_are_disputed_and_not_used(log):
    ledger, rows = log
    answer(ledger, 0, 1, "same")
    answer(ledger, 0, 1, "different")
    known = Known(ledger, rows)
    assert (list(known.disputed), known.n_conflicts, known.conflicting) == ([(0, 1)], 1, {2, 3})
    assert not known.constraints()
    assert Conflicts(ledger, rows, known).all()[0].kind == "disagreement"


def test_a_contradicting_answer_waits_and_returns_when_the_other_is_undone(log):
    ledger, rows = log
    for left, right, says in ((0, 1, "same"), (1, 2, "same"), (0, 2, "different")):
        answer(ledger, left, right, says)
    known = Known(ledger, rows)
    assert known.waiting == {4: ("answer", (4,))}
    append(ledger, "undo", {"undoes": 2})
    known.update(ledger.touched(ledger.event(5)))
    assert not known.waiting
    assert known.constraints().cannot_link.tolist() == [[0, 2]]


def test_a_trial_of_corrections_leaves_everything_as_it_was(log):
    ledger, rows = log
    answer(ledger, 0, 1, "different")
    fit(ledger, [0, 1, 1, 1, 1])
    known, labelling = Known(ledger, rows), Labelling(ledger, rows)
    proposed = labelling.clusters.merge(0, 1)
    assert Effects(ledger, rows, known, labelling).of_correction(proposed) == (proposed, True)
    assert (known.places, known.waiting, known.quarantined) == ([2], {}, set())
    assert known.driver.view.known(0, 1) is DIFFERENT


def test_a_plan_holds_what_is_known_and_a_correction_makes_it_late(log):
    ledger, rows = log
    answer(ledger, 0, 1, "different")
    known, labelling = Known(ledger, rows), Labelling(ledger, rows)
    planner = Planner(ledger, rows, known, labelling)
    result = planner.plan().run()
    assert result.labels[0] != result.labels[1]
    assert not planner.is_late(result)
    move(ledger, 1, 0, 1)
    assert planner.is_late(result)


def test_a_quick_review_lists_what_the_clusters_violate(log):
    ledger, rows = log
    wrong = answer(ledger, 0, 4, "same")
    answer(ledger, 0, 1, "same")
    fit(ledger, [0, 0, 1, 1, 1])
    items = Reviews(ledger, rows, Known(ledger, rows), Labelling(ledger, rows)).quick()
    assert [item.answer_id for item in items] == [wrong.seq]
    assert items[0].likely == "different"


# -- the leases --------------------------------------------------------------------------------------------------------


def lease(rows, number, first, second, annotator="ann", expires=10.0):
    return Lease(number, payload_of(Pair(first, second), rows), annotator, expires, None, True)


def test_the_driver_asks_nothing_that_is_leased(log):
    ledger, rows = log
    known, leases = Known(ledger, rows), Leases([lease(rows, 1, 0, 1), lease(rows, 2, 2, 3)])
    leases.bind(ledger, rows, known)
    assert known.driver.view.pending == {(0, 1), (2, 3)}
    leases.drop(leases.get(1))
    assert known.driver.view.pending == {(2, 3)}
    leases.replace([lease(rows, 3, 0, 4)])
    assert ([one.id for one in leases], known.driver.view.pending) == ([3], {(0, 4)})


def test_a_lease_that_is_opened_again_is_in_its_old_place():
    def one(number, is_open=True):
        return Lease(number, {}, "ann", 0.0, None, is_open)

    leases = Leases([one(1), one(2), one(3)])
    leases.change([one(2, is_open=False)])
    assert [each.id for each in leases] == [1, 3]
    leases.change([one(2)])
    assert [each.id for each in leases] == [1, 2, 3]
    assert leases.get("2") is None


def test_an_expired_question_goes_to_the_next_person_if_it_is_still_open(log):
    ledger, rows = log
    answer(ledger, 0, 1, "same")
    leases = Leases([lease(rows, 1, 0, 1), lease(rows, 2, 2, 3), lease(rows, 3, 3, 4, expires=99.0)])
    leases.bind(ledger, rows, Known(ledger, rows))
    again, useless = leases.expired("bob", now=20.0)
    assert (again.id, [one.id for one in useless]) == (2, [1])
    assert leases.expired("bob", now=5.0) == (None, [])


# -- who may see whose names -------------------------------------------------------------------------------------------


def private_names(tree):
    """Private methods and attributes of the classes in a module."""
    names = set()
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        names |= {node.name for node in cls.body if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(cls):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def test_no_part_uses_a_private_name_of_another():
    files = sorted(Path(clew.session.__file__).parent.glob("*.py"))
    trees = {file.name: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    own = {name: private_names(tree) for name, tree in trees.items()}
    assert "_compiled" in own["_known.py"]
    wrong = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
        if node.attr not in own[name] and any(node.attr in others for others in own.values())
    ]
    assert not wrong


def test_no_part_inherits_from_another():
    parts = (Conflicts, Effects, Known, Labelling, Leases, Ledger, Planner, Reviews, ProjectRows, clew.session.Session)
    assert all(part.__bases__ == (object,) for part in parts)
