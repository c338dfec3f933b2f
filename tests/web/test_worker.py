"""Calls that are recorded together, fits in the background, and questions prepared in advance."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
import sqlalchemy as sa

from clew import Session
from clew.exceptions import NotFoundError, StorageError
from clew.web import _worker as worker_module
from clew.web import create_app
from clew.web._views import status
from clew.web._worker import Worker
from tests.session.helpers import blobs, everything
from tests.web.conftest import TOKEN, truth


@pytest.fixture
def worker(session):
    worker = Worker(session)
    yield worker
    worker.close()


def held_up(worker):
    """A first call that takes until it is let go, so that others queue up behind it."""
    begun, go_on = threading.Event(), threading.Event()
    first = worker.writer.submit(lambda: begun.set() or go_on.wait(60))
    assert begun.wait(60)
    return first, go_on


def test_calls_that_wait_share_a_transaction(worker, session):
    questions = session.ask("ann", n=5)
    commits = []
    sa.event.listen(session._project.store._engine, "commit", lambda _: commits.append(session.version))
    first, go_on = held_up(worker)
    told = [worker.writer.submit(partial(session.tell, one, truth(one.left, one.right))) for one in questions]
    refused = worker.writer.submit(partial(session.tell, 99, "same"))
    go_on.set()
    assert first.result(60) is True
    assert [one.result(60).id for one in told] == [2, 3, 4, 5, 6]
    with pytest.raises(NotFoundError, match="99"):
        refused.result(60)
    assert len(commits) == 2


def test_nobody_is_told_of_what_was_not_recorded(worker, session):
    questions = session.ask("ann", n=3)
    worker.ahead.fill("bob")
    _, go_on = held_up(worker)
    told = [worker.writer.submit(partial(session.tell, one, "unsure")) for one in questions]
    worker.draw_ahead("cyd")

    def fail(_):
        raise sa.exc.OperationalError("COMMIT", {}, Exception("database or disk is full"))

    sa.event.listen(session._project.store._engine, "commit", fail)
    go_on.set()
    for one in told:
        with pytest.raises(StorageError, match="disk is full"):
            one.result(60)
    sa.event.remove(session._project.store._engine, "commit", fail)
    assert session.answers() == [] and not worker.ahead._ready
    (again,) = worker.ahead.take("cyd", 1, None)
    assert again.annotator == "cyd" and session.worth_asking(again)
    assert worker.writer.submit(partial(session.tell, questions[0], "same")).result(60).id == 2


def test_calls_under_way_are_finished_when_the_server_stops(session):
    worker = Worker(session)
    questions = session.ask("ann", n=3)
    told = [worker.writer.submit(partial(session.tell, one, "unsure")) for one in questions]
    worker.close()
    assert all(one.done() for one in told) and len(session.answers()) == 3


def test_people_answer_while_a_fit_runs(worker, session, monkeypatch):
    fitting, go_on = threading.Event(), threading.Event()
    plan = type(session.plan_fit())
    run = plan.run

    def slowly(self, report):
        fitting.set()
        assert go_on.wait(60)
        return run(self, report)

    monkeypatch.setattr(plan, "run", slowly)
    thread = threading.Thread(target=worker.fits.fresh)
    thread.start()
    assert fitting.wait(60) and worker.fits.running
    (question,) = worker.ahead.take("ann", 1, None)
    told = worker.writer.submit(partial(session.tell, question, truth(question.left, question.right))).result(60)
    go_on.set()
    thread.join(60)
    assert not worker.fits.running and worker.fits.count == 1
    assert session.is_stale and [one.id for one in session.answers()] == [told.id]


def test_many_who_wait_for_clusters_hold_up_nobody_else(worker, session, monkeypatch):
    fitting, go_on = threading.Event(), threading.Event()
    plan = type(session.plan_fit())
    run = plan.run

    def slowly(self, report):
        fitting.set()
        assert go_on.wait(60)
        return run(self, report)

    monkeypatch.setattr(plan, "run", slowly)

    async def crowd():
        waiting = [asyncio.create_task(worker.fresh()) for _ in range(20)]
        while not fitting.is_set():
            await asyncio.sleep(0)
        rows = await worker.slow(lambda: session.ids)
        go_on.set()
        await asyncio.gather(*waiting)
        return rows

    assert asyncio.run(crowd()) == list("abcdefghijkl")
    assert worker.fits.count == 1


def test_the_training_of_a_network_is_reported_and_given_up_if_the_method_changes(worker, session, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(worker_module, "_REPORT_EVERY", 0.0)
    session.set(method="deep-constrained-clustering")
    told, reports = [], []
    report = worker.fits._report

    def change_of_mind(plan, now):
        if now.n_iter == 3:
            session.set(method="pck-means")
        goes_on = report(plan, now)
        told.append(status(worker).training)
        reports.append(goes_on)
        return goes_on

    monkeypatch.setattr(worker.fits, "_report", change_of_mind)
    worker.fits.fresh()
    assert [(one.step, one.n_steps, one.round, one.most_rounds) for one in told[:4]] == [
        (1, 2, place, 50) for place in (0, 1, 2, 3)
    ]
    assert told[0].seconds_left is None and all(one.seconds_left >= 0 for one in told[1:])
    # The first stage ends, and so does the second one, after a round.
    assert reports == [True, True, True, False, False]
    assert session.settings["method"] == "pck-means" and not session.is_stale
    assert status(worker).training is None and not status(worker).fitting


def test_whoever_waits_for_clusters_shares_a_fit(worker, session):
    worker.fits.fresh()
    worker.fits.fresh()
    assert worker.fits.count == 1
    session.import_answers([("a", "e", "same")])
    worker.fits.fresh()
    assert worker.fits.count == 2 and session.cluster_of("a") == session.cluster_of("e")
    worker.fits.keep_up()
    assert worker.fits.count == 2


def test_a_fit_is_followed_by_a_rest(worker, session):
    worker.fits.keep_up()
    session.import_answers([("a", "e", "same")])
    worker.fits.keep_up()
    assert worker.fits.count == 1 and session.is_stale
    worker.fits._rest_until = 0.0
    worker.fits.keep_up()
    assert worker.fits.count == 2


def test_a_question_drawn_ahead_is_the_next_one(worker, session):
    worker.ahead.fill("ann")
    worker.ahead.fill("ann")
    (ahead,) = session.pending()
    assert [one.id for one in worker.ahead.take("ann", 1, None)] == [ahead.id]
    assert [one.id for one in worker.ahead.take("ann", 2, [])] == [ahead.id, ahead.id + 1]


def test_a_question_drawn_ahead_whose_time_is_over_is_not_given(worker, session):
    session.set(lease_seconds=0)
    worker.ahead.fill("ann")
    (ahead,) = session.pending()
    session.set(lease_seconds=600)
    (question,) = worker.ahead.take("bob", 1, None)
    assert question.id == ahead.id  # it went to somebody else meanwhile
    assert worker.ahead.take("ann", 1, None)[0].id != ahead.id


def test_whoever_stays_away_longest_is_forgotten(worker, monkeypatch):
    monkeypatch.setattr("clew.web._worker._MOST_PEOPLE", 2)
    for person in ("ann", "bob", "cyd"):
        worker.ahead.fill(person)
    assert list(worker.ahead._ready) == ["bob", "cyd"]


def test_a_pool_drops_calls_that_have_not_begun_and_gives_up_one_that_does_not_end(session):
    worker = Worker(session)
    begun, go_on = threading.Event(), threading.Event()

    async def crowd():
        calls = [lambda: begun.set() or go_on.wait(60), lambda: "never made"]
        waiting = [asyncio.create_task(worker.take_in(call)) for call in calls]
        await asyncio.to_thread(begun.wait, 60)
        start = time.monotonic()
        await asyncio.to_thread(worker.close, 0.2)
        took = time.monotonic() - start
        with pytest.raises(asyncio.CancelledError):
            await waiting[1]
        go_on.set()
        return took, await waiting[0]

    took, value = asyncio.run(crowd())
    assert took < 10 and value is True
    with pytest.raises(RuntimeError, match="have ended"):
        asyncio.run(worker.quick(lambda: None))


def test_a_call_that_fails_tells_whoever_waits_and_the_thread_goes_on(worker):
    def fail():
        raise KeyError("nothing")

    async def calls():
        with pytest.raises(KeyError):
            await worker.take_in(fail)
        return await worker.take_in(lambda: 1)

    assert asyncio.run(calls()) == 1


def test_a_fault_in_one_call_leaves_the_others_recorded(worker, session):
    questions = session.ask("ann", n=3)
    _, go_on = held_up(worker)

    def fail():
        raise ZeroDivisionError

    submit = worker.writer.submit
    told = [submit(partial(session.tell, questions[0], "unsure")), submit(fail)]
    told.append(submit(partial(session.tell, questions[1], "unsure")))
    go_on.set()
    assert [told[place].result(60).id for place in (0, 2)] == [one.id for one in session.answers()]
    with pytest.raises(ZeroDivisionError):
        told[1].result(60)


def test_a_crowd_that_answers_takes_back_and_lets_questions_expire_loses_nothing(tmp_path):
    X, y = blobs(n=80, k=4, gap=4.0)
    path, told, undone, errors = tmp_path / "crowd.clew", {}, set(), []
    with Session.create(path, X, n_clusters=4, lease_seconds=0.05) as session:
        worker = Worker(session)

        def person(name, rng):
            try:
                for turn in range(6):
                    for question in worker.writer.submit(partial(worker.ahead.take, name, 1, None)).result():
                        worker.writer.submit(partial(worker.ahead.fill, name))
                        time.sleep(0.06 * (rng.random() < 0.2))  # long enough for the question to go to somebody else
                        said = "same" if y[question.left] == y[question.right] else "different"
                        call = partial(session.tell, question.id, said, annotator=name)
                        told[worker.writer.submit(call).result().id] = frozenset((question.left, question.right))
                        if turn == 3 and (event := worker.writer.submit(partial(session.undo, name)).result()):
                            undone.add(event.seq)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=person, args=(f"p{n}", np.random.default_rng(n))) for n in range(8)]
        for thread in threads:
            thread.start()
        worker.fits.fresh()
        for thread in threads:
            thread.join()
        worker.close()
        assert errors == []
        kept = {answer: pair for answer, pair in told.items() if answer not in undone}
        assert {one.id: frozenset((one.left, one.right)) for one in session.answers()} == kept
        assert len(set(kept.values())) == len(kept)
        before = everything(session)
    with Session.open(path) as again:
        assert everything(again) == before


def test_the_server_leaves_what_exists_out_of_collections_while_it_runs(session):
    app = create_app(session, token=TOKEN)

    async def run():
        async with app.router.lifespan_context(app):
            return gc.get_freeze_count()

    assert asyncio.run(run()) > 10_000
    assert gc.get_freeze_count() == 0


BLAS_THREADS = """
import asyncio, sys
from threadpoolctl import threadpool_info
from clew import Session
from clew.web import create_app

def count():
    return max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

async def run(app):
    async with app.router.lifespan_context(app):
        return await asyncio.to_thread(count)

with Session.open(sys.argv[1]) as session:
    print(count(), asyncio.run(run(create_app(session, token="a-token-for-tests"))), count())
"""


def test_the_server_uses_one_blas_thread_while_it_runs(session, tmp_path):
    # In a process of its own, because only the first thread that limits BLAS can do so.
    n_cores = min(2, os.cpu_count() or 1)
    command = [sys.executable, "-c", BLAS_THREADS, tmp_path / "toy.clew"]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(n_cores)}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [str(n_cores), "1", str(n_cores)]
