"""From any state that answers, imports, corrections and undo leave behind, `ask` ends: an open question, or None."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from clew import PCKMeans, Session
from clew.active import DIFFERENT, SAME, UNSURE, Answered, Feedback, Pair, Questions, Stated, Which, _questions, _view
from clew.exceptions import ClewError, StrategyError
from tests.conformance.strategies import ask, each_strategy, needs_k

WORDS = np.array([SAME, DIFFERENT, DIFFERENT, UNSURE])
N_ROWS = 7
# With two clusters row 2 is presumed to be with row 1, then known to be, then brings another one along.
PLACED = [((0, 1), DIFFERENT), ((2, 0), DIFFERENT), ((2, 1), SAME), ((2, 3), SAME)]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """A strategy may look at the rows a few times, and come upon a few decided pairs, before it asks."""
    monkeypatch.setattr(_view, "_MOST_LOOKS", 5)
    monkeypatch.setattr(_questions, "_IDLE_AT_LEAST", 0)
    monkeypatch.setattr(_questions, "_IDLE_PER_ROW", 5)


def some_rows(rng):
    """Few rows, some of them equal."""
    return rng.integers(0, 12, size=(N_ROWS, 1)).astype(float)


def some_pair(rng):
    first, second = rng.choice(N_ROWS, 2, replace=False).tolist()
    return Pair(first, second)


def some_answer(question, rng):
    if isinstance(question, Which):
        return [*question.candidates, DIFFERENT, UNSURE][rng.integers(len(question.candidates) + 2)]
    return rng.choice(WORDS)


def change(questions, rng):
    """One thing that may happen to a driver between two questions."""
    kind = rng.choice(["tell", "tell", "add", "add", "which", "state", "undo", "revise", "hold", "release"])
    waiting, log = questions.pending, [one for one in questions.answers if not isinstance(one.question, Stated)]
    if kind == "tell" and waiting:
        question = waiting[rng.integers(len(waiting))]
        questions.tell(question, some_answer(question, rng))
    elif kind == "add":
        questions.add(Answered(some_pair(rng), rng.choice(WORDS)))
    elif kind == "which":
        row, *candidates = rng.choice(N_ROWS, 4, replace=False).tolist()
        question = Which(row, tuple(candidates))
        questions.add(Answered(question, some_answer(question, rng)))
    elif kind == "state":
        said = tuple((some_pair(rng), rng.choice(WORDS[:3])) for _ in range(3))
        questions.add(Answered(Stated(said), SAME))
    elif kind == "undo":
        questions.undo()
    elif kind == "revise" and log:
        question = log[rng.integers(len(log))].question
        questions.revise(question, some_answer(question, rng))
    elif kind == "hold":
        questions.hold(some_pair(rng))
    elif kind == "release" and waiting:
        questions.release(waiting[rng.integers(len(waiting))])


def check_neighbourhoods(questions):
    """Rows are placed where their component has a neighbourhood, or where the number of clusters leaves only one."""
    view = questions.view
    members = [one.member for one in view.neighbourhoods]
    relation = view.knowledge.relation
    assert all(relation(one, two) is DIFFERENT for one, two in combinations(members, 2))
    for row in range(view.n_rows):
        found = [relation(row, member) for member in members]
        is_presumed = not questions.trust_n_clusters and len(members) == view.n_clusters and found.count(None) == 1
        if view.placed[row]:
            assert SAME in found or is_presumed
        else:
            assert not members or (SAME not in found and None in found)


@pytest.mark.parametrize("n_clusters", [None, 2, 3])
@pytest.mark.parametrize("trust", [True, False])
def test_neighbourhoods_hold_what_is_known_after_any_history(n_clusters, trust, seed):
    for run in range(40):
        rng = np.random.default_rng([seed, run])
        questions = Questions(some_rows(rng), Feedback(), n_clusters, random_state=run, trust_n_clusters=trust)
        for _ in range(24):
            change(questions, rng)
            check_neighbourhoods(questions)


@pytest.mark.sampled(10, slow=1)
@each_strategy
@pytest.mark.parametrize("n_clusters", [None, 2, 3])
@pytest.mark.parametrize("trust", [True, False])
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_the_driver_asks_or_ends(strategy, n_clusters, trust, seed):
    if n_clusters is None and needs_k(strategy):
        n_clusters = 4
    clusterer = None if hasattr(strategy, "labels") else PCKMeans(2, n_init=1, random_state=0)
    for run in range(3):
        rng = np.random.default_rng([seed, run])
        questions = Questions(some_rows(rng), strategy, n_clusters, clusterer, random_state=run, trust_n_clusters=trust)
        if not run:
            questions.replay(PLACED)
        for _ in range(16):
            change(questions, rng)
            check_neighbourhoods(questions)
            try:
                ask(questions)
            except StrategyError:
                raise AssertionError(f"after {[(one.question, one.answer) for one in questions.answers]}") from None


def change_session(session, question, rng):
    """One thing that people do to a session between two questions; what is refused changes nothing."""
    kind = rng.choice(["tell", "import", "import", "move", "merge", "never", "split", "undo", "revise"])
    if kind == "tell" and question is not None:
        session.tell(question, "unsure" if question.kind == "which" else str(rng.choice(WORDS).value))
    elif kind == "import":
        pairs = [some_pair(rng) for _ in range(3)]
        session.import_answers([(pair.first, pair.second, rng.choice(WORDS).value) for pair in pairs])
    elif kind == "undo":
        session.undo()
    elif kind == "revise" and (answers := [one for one in session.answers() if one.kind != "which"]):
        session.revise(answers[rng.integers(len(answers))].id, rng.choice(WORDS).value)
    elif kind in ("move", "merge", "never", "split"):
        correct(session, kind, rng)


def correct(session, kind, rng):
    labels = session.labels()
    clusters = sorted(set(labels.values()))
    one, other = rng.choice(clusters), rng.choice(clusters)
    row, second = some_pair(rng).key
    try:
        if kind == "move":
            session.move(row, int(one))
        elif kind == "merge":
            session.merge(int(one), int(other))
        elif kind == "never":
            session.never(rows=(row, second))
        else:
            session.split(labels[row], [row])
    except ClewError:  # one cluster merged with itself, and the like
        return


@pytest.mark.sampled(10, slow=1)
@each_strategy
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_a_session_asks_or_ends(strategy, tmp_path, seed):
    for run, n_clusters in enumerate((2, 3)):
        rng = np.random.default_rng([seed, run])
        with Session.create(
            tmp_path / f"{run}.clew", some_rows(rng), n_clusters=n_clusters, strategy=strategy, lease_seconds=1e6
        ) as session:
            for _ in range(10):
                question = session.ask()
                change_session(session, question, rng)
                check_neighbourhoods(session._state.known.driver)


@pytest.mark.parametrize("strategy", ["min-max", "dense-min-max", "explore-consolidate", "point-uncertainty", "auto"])
def test_rows_that_others_have_placed_are_not_asked_about(strategy, tmp_path):
    with Session.create(
        tmp_path / "project.clew", [[0.0], [10.0], [9.0], [8.0]], n_clusters=2, strategy=strategy
    ) as session:
        session.import_answers([(*pair, answer.value) for pair, answer in PLACED])
        assert session.ask() is None
