"""The server is killed repeatedly while people answer: every acknowledged answer is stored exactly once."""

import sqlite3
import threading
from collections import Counter

import numpy as np
import pytest

from clew import Session
from tests.server import Client, GoneError, QuickServer, Server, write_table

N_GROUPS = 6
# Kills of one run, by one person and by two. With those of a crowd and of the plain command: 64. `make test` makes 10.
FEW_KILLS, MANY_KILLS = 4, 24
# Answers acknowledged between two kills, at most.
MOST_ANSWERS = 16


@pytest.fixture
def place(tmp_path):
    """Arguments of the server: a table whose six groups overlap a little, and its project."""
    rng = np.random.default_rng(0)
    group = np.arange(240) % N_GROUPS
    angle = 2 * np.pi * group / N_GROUPS
    X = 4.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(size=(240, 2))
    table = write_table(tmp_path / "data.csv", X)
    return table, "--id", "name", "-k", str(N_GROUPS), "--project", tmp_path / "kept.clew"


def truth(question):
    """What everybody answers: rows are named by their number, and that tells their group."""
    left, right = (int(question[side][1:]) % N_GROUPS for side in ("left", "right"))
    return "same" if left == right else "different"


class Book:
    """What people said, and what they know of it."""

    def __init__(self):
        self._change = threading.Condition()
        self.told = {}  # question -> (annotator, answer, number of the answer): acknowledged
        self.unknown = {}  # question -> (annotator, answer): sent, but the server was gone before it replied
        self.refused = []

    def answer(self, client, question, annotator, said):
        body = {"question": question, "answer": said, "annotator": annotator}
        try:
            status, reply = client.post("/api/answers", **body)
        except GoneError:
            self.unknown[question] = annotator, said
            raise
        with self._change:
            if status != 201:
                self.refused.append((status, reply, body))
            else:
                self.unknown.pop(question, None)
                self.told[question] = annotator, said, reply["id"]
            self._change.notify_all()

    def wait_for(self, more, threads):
        """Until so many more answers are acknowledged, or nobody is at work."""
        with self._change:
            wanted = len(self.told) + more
            while len(self.told) < wanted and any(one.is_alive() for one in threads):
                self._change.wait(0.1)


def at_work(book, host, annotator, killed):
    """Answer until nothing is left or the server is killed. A connection that ends before is made again."""
    client = Client(host)
    while not killed.is_set():
        try:
            status, question = client.post("/api/questions/next", annotator=annotator)
            assert status == 200
            if question is None:
                break
            book.answer(client, question["id"], annotator, truth(question))
        except GoneError:
            continue
    client.close()


def one_life(server, book, annotators, n_answers, n_steps):
    """People answer; after so many answers and steps the server is killed in the middle of what it does."""
    killed = threading.Event()
    threads = [threading.Thread(target=at_work, args=(book, server.host, one, killed)) for one in annotators]
    for thread in threads:
        thread.start()
    book.wait_for(n_answers, threads)
    for _ in range(n_steps):  # somewhere within the next request
        pass
    killed.set()
    server.kill()
    for thread in threads:
        thread.join()


def check(server, book, rng):
    """Everything that was acknowledged is there once; the rest at most once; telling it again changes nothing."""
    client = Client(server.host)
    records = client.get("/api/answers")
    found = {record["question"]: (record["annotator"], record["answer"], record["id"]) for record in records}
    assert len(found) == len(records), Counter(record["question"] for record in records).most_common(3)
    assert not book.refused
    for question, told in book.told.items():
        assert found[question] == told
    assert set(found) <= set(book.told) | set(book.unknown)
    pairs = [frozenset((record["left"], record["right"])) for record in records]
    assert len(set(pairs)) == len(pairs)

    again = list(book.unknown.items())
    for question, (annotator, said) in again:
        if rng.random() < 0.7:  # others never come back
            book.answer(client, question, annotator, said)
            if question in found:
                assert book.told[question] == found[question]
    for question in list(book.told)[-3:]:
        annotator, said, number = book.told[question]
        status, reply = client.post("/api/answers", question=question, answer=said, annotator=annotator)
        assert (status, reply["id"]) == (201, number)
    client.close()


def run(make_server, place, annotators, seed, n_kills):
    """Kill a server so many times; gives the book and what the log has at the end."""
    rng, book = np.random.default_rng(seed), Book()
    # Drawn before anything depends on the clock: from no answer to MOST_ANSWERS before a kill, half of it on average.
    n_answers = rng.permutation(np.linspace(0, MOST_ANSWERS, n_kills).round().astype(int)).tolist()
    for wanted in n_answers:
        with make_server(*place) as server:
            check(server, book, rng)
            one_life(server, book, annotators, wanted, int(rng.integers(20_000)))
    with make_server(*place) as server:
        check(server, book, rng)
        assert server.stop() == 0
    with sqlite3.connect(place[-1]) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()
    with Session.open(place[-1]) as session:
        assert [event.seq for event in session.history()] == list(range(1, session.version + 1))
        assert {record.id for record in session.answers()} >= {number for _, _, number in book.told.values()}
    assert len(book.told) >= sum(n_answers)
    return book


@pytest.mark.parametrize("n_kills", [FEW_KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("annotators", [["ann"], ["ann", "bob"]], ids=len)
def test_no_acknowledged_answer_is_lost_or_doubled(place, annotators, seed, n_kills):
    book = run(QuickServer, place, annotators, [seed, len(annotators), n_kills], n_kills)
    assert {annotator for annotator, _, _ in book.told.values()} == set(annotators)
    assert len(book.told) > 3 * n_kills


@pytest.mark.slow
def test_a_crowd_loses_and_doubles_nothing(place, seed):
    book = run(QuickServer, place, [f"person {number}" for number in range(12)], [seed, 12], 6)
    assert len({annotator for annotator, _, _ in book.told.values()}) > 6


@pytest.mark.slow
def test_the_command_itself_is_killed(place, seed):
    assert len(run(Server, place, ["ann", "bob"], [seed, 99], 2).told) > 2


def test_a_start_that_was_cut_short_is_begun_again(place):
    """Killed between making the file and beginning the project: an empty database stays."""
    sqlite3.connect(place[-1]).close()
    place[-1].touch()
    with QuickServer(*place) as server:
        client = Client(server.host)
        assert client.post("/api/questions/next", annotator="ann")[1]["left"].startswith("r")
        client.close()
