"""Random sequences of asking, answering, undoing, correcting and reopening: acknowledged events are stored once."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from clew import Session
from clew.exceptions import ClewError
from tests.helpers import examples
from tests.session.helpers import everything, reopened

X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [20.0], [21.0], [22.0]])
ROWS = st.integers(0, len(X) - 1)
ANSWERS = st.sampled_from(["same", "same", "different", "different", "unsure"])
PEOPLE = st.sampled_from(["ann", "bob"])


class Project(RuleBasedStateMachine):
    """A project that several people use, with a list of what was acknowledged."""

    @initialize(k=st.none() | st.integers(2, 4), overlap=st.integers(1, 2), which=st.booleans())
    def create(self, k, overlap, which):
        memory = Path("/dev/shm")  # hundreds of projects: no need for each to reach a disk
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.path = str(self.folder / "project.clew")
        strategy = {"name": "dense-min-max", "parameters": {"n_neighbors": 2, "ask": "label"}} if which else None
        self.session = Session.create(self.path, X, n_clusters=k, overlap=overlap, strategy=strategy)
        self.acknowledged = {}
        self.open = []

    def teardown(self):
        if hasattr(self, "session"):
            self.reopen()
            self.session.close()
            shutil.rmtree(self.folder)

    @rule(person=PEOPLE)
    def ask(self, person):
        question = self.session.ask(person)
        if question is not None:
            assert question.id not in {one.id for one in self.open}
            self.open.append(question)

    @precondition(lambda self: self.open)
    @rule(place=st.integers(0, 9), answer=ANSWERS, confidence=st.sampled_from([1.0, 1.0, 0.6]))
    def tell(self, place, answer, confidence):
        question = self.open.pop(place % len(self.open))
        if question.kind == "which":
            answer = question.candidates[0] if answer == "same" else answer
        told = self.session.tell(question, answer, confidence=confidence)
        assert self.session.tell(question.id, answer) == told  # again: the same, and recorded once
        self.acknowledged[told.id] = question.id

    @rule(person=st.none() | PEOPLE)
    def undo(self, person):
        event = self.session.undo(person)
        if event is not None and event.payload.get("question") is not None:
            self.open += [one for one in self.session.pending() if one.id == event.payload["question"]]

    @precondition(lambda self: self.session.answers())
    @rule(place=st.integers(0, 9), answer=ANSWERS)
    def revise(self, place, answer):
        records = [record for record in self.session.answers() if record.kind == "pair"]
        if records:
            self.session.revise(records[place % len(records)].id, answer)

    @rule(first=ROWS, second=ROWS, answer=ANSWERS, person=PEOPLE)
    def import_one(self, first, second, answer, person):
        if first != second:
            self.session.import_answers([(first, second, answer)], annotator=person)

    @rule(kind=st.sampled_from(["merge", "split", "move", "out", "never", "apart"]), data=st.data())
    def correct(self, kind, data):
        labels = self.session.labels()
        clusters = sorted(set(labels.values()))
        one, two = data.draw(st.sampled_from(clusters)), data.draw(st.sampled_from(clusters))
        rows = [row for row in labels if labels[row] == one]
        try:
            if kind == "merge":
                self.session.merge(one, two)
            elif kind == "split":
                self.session.split(one, rows[: len(rows) // 2])
            elif kind == "move":
                self.session.move(rows[0], two)
            elif kind == "out":
                self.session.move(rows[0])
            elif kind == "never":
                self.session.never(clusters=[one, two])
            else:
                self.session.never(rows=[rows[0], rows[-1]])
        except ClewError:
            pass  # one cluster with itself, all rows or none: refused, and nothing is written

    @precondition(lambda self: self.session.conflicts())
    @rule(how=st.sampled_from(["soft", "unsure"]))
    def resolve(self, how):
        conflict = self.session.conflicts()[0]
        left = self.session.resolve(conflict, how if conflict.answers else "unsure")
        assert conflict.id not in {one.id for one in left} or how == "soft"

    @rule(k=st.none() | st.integers(1, 5))
    def set(self, k):
        self.session.set(n_clusters=k)

    @rule()
    def fit(self):
        labels = self.session.fit()
        assert sorted(labels) == list(range(len(X)))
        certain = self.session.constraints.at_least(1.0)
        clusters = np.array([labels[row] for row in range(len(X))])
        assert [len(broken) for broken in certain.violations(clusters)] == [0, 0]

    @rule()
    def reopen(self):
        before, question = everything(self.session), self.session._state.known.driver._look_ahead()
        self.session = reopened(self.session, self.path)
        assert everything(self.session) == before
        assert self.session._state.known.driver._look_ahead() == question

    @invariant()
    def everything_acknowledged_is_in_the_log_once(self):
        if hasattr(self, "session"):
            found = [
                (event.seq, event.payload.get("question")) for event in self.session.history() if event.kind == "answer"
            ]
            asked = {seq: question for seq, question in found if question is not None}
            assert asked == self.acknowledged


Project.TestCase.settings = examples(25, stateful_step_count=20, deadline=None, phases=[Phase.generate])
TestProject = Project.TestCase
