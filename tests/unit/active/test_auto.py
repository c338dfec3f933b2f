"""Auto asks little, restarts anywhere, and gets along with people who err or hesitate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score

from clew import Constraints
from clew.active import DIFFERENT, SAME, UNSURE, Auto, Oracle, Pair, Questions
from clew.active._answer_errors import n_used, placed_rows
from clew.active._auto import region_uncertainty
from clew.active._questions import run
from clew.exceptions import ParameterError
from clew.graph._kernels import build_kernels, build_neighbor_graph


def blobs(seed, n=40, k=3):
    return make_blobs(n, 2, centers=k, cluster_std=0.5, center_box=(-20, 20), random_state=seed)


def test_thirty_questions_find_nearly_all_of_iris():
    X, y = load_iris(return_X_y=True)
    questions = Questions(X, Auto(), n_clusters=3)
    run(questions, Oracle(y), 30)
    assert adjusted_rand_score(y, questions.labels()) > 0.94


def test_a_group_is_not_lost_while_only_the_other_one_is_known():
    """The first answers are all "same": most rows are of one group, also the medoid of the other base cluster."""
    rng = np.random.default_rng(211)
    y = np.repeat([0, 1], [110, 40])
    X = rng.normal(size=(150, 4)) * np.array([[1, 1, 1, 1], [0.4, 2, 1, 0.6]])[y] + 1.1 * y[:, None]
    questions = Questions(X, Auto(), n_clusters=2)
    plain = adjusted_rand_score(y, questions.labels())
    run(questions, Oracle(y), 20)
    assert adjusted_rand_score(y, questions.labels()) > plain + 0.2  # all rows were one cluster


@pytest.mark.parametrize("n_clusters", [3, None])
def test_all_answers_give_the_classes(n_clusters, seed):
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    questions = Questions(X, Auto(), n_clusters=n_clusters, random_state=seed)
    n_asked = run(questions, Oracle(y), 1000)
    assert questions.ask() is None
    assert n_asked < (45 if n_clusters else 70)  # 30 rows: little more than one question a row
    assert adjusted_rand_score(y, questions.labels()) == 1.0


def test_before_any_answer_there_is_a_base_partition(seed):
    X, y = blobs(seed, n=90)
    assert adjusted_rand_score(y, Questions(X, Auto(), n_clusters=3).labels()) > 0.5


def test_answers_hold_as_long_as_nothing_contradicts(seed):
    X, y = blobs(seed, n=60, k=4)
    y = np.random.default_rng(seed).permutation(y)  # what the data say is of no use
    questions = Questions(X, Auto(), n_clusters=4, random_state=seed)
    run(questions, Oracle(y), 60)
    labels = questions.labels()
    assert not questions.conflicts
    for entry in questions.answers:
        assert (labels[entry.question.first] == labels[entry.question.second]) == (entry.answer is SAME)


@settings(max_examples=5)
@given(st.integers(0, 10_000), st.sampled_from([None, 2, 3]), st.data())
def test_a_resumed_log_meets_the_same_question(number, n_clusters, data):
    X, _ = blobs(number, n=12)
    questions = Questions(X, Auto(n_neighbors=3), n_clusters=n_clusters, random_state=1)
    for _ in range(8):
        question = questions.ask()
        resumed = Questions(X, Auto(n_neighbors=3), n_clusters=n_clusters, random_state=1)
        resumed.replay(questions.answers)
        assert resumed.ask() == question
        if question is None:
            break
        questions.tell(question, data.draw(st.sampled_from([SAME, DIFFERENT, UNSURE])))
        assert len(questions.labels()) == 12


def test_undo_leads_back(seed):
    X, y = blobs(seed)
    questions = Questions(X, Auto(), n_clusters=3, random_state=seed)
    run(questions, Oracle(y), 6)
    before = questions.ask()
    questions.tell(before, DIFFERENT)
    questions.ask()
    questions.undo()
    assert questions.ask() in (before, *questions.pending)


def test_questions_of_a_batch_are_about_different_rows(seed):
    X, y = blobs(seed)
    questions = Questions(X, Auto(), n_clusters=3, random_state=seed)
    run(questions, Oracle(y), 5)
    batch = questions.ask(5)
    rows = [pair.first for pair in batch]
    assert len(set(rows)) == len(batch) == 5


def test_somebody_who_never_knows_is_asked_to_the_end():
    X, _ = blobs(0, n=8)
    questions = Questions(X, Auto(), n_clusters=3)
    asked = set()
    while (pair := questions.ask()) is not None:
        assert pair.key not in asked
        asked.add(pair.key)
        questions.tell(pair, UNSURE)
    assert len(asked) >= 7
    assert len(questions.labels()) == 8


def test_doubts_cost_little(seed):
    X, y = load_iris(return_X_y=True)
    questions = Questions(X, Auto(), n_clusters=3, random_state=seed)
    run(questions, Oracle(y, unsure=0.2, random_state=seed), 50)
    assert questions.progress().unsure > 3
    assert adjusted_rand_score(y, questions.labels()) > 0.93


def test_what_is_known_beforehand_is_used_and_kept(seed):
    X, y = blobs(seed, n=60)
    known = Constraints(labels=np.where(np.arange(60) < 12, y, -1))
    questions = Questions(X, Auto(), n_clusters=3, constraints=known, random_state=seed)
    run(questions, Oracle(y), 10)
    assert adjusted_rand_score(y, questions.labels()) == 1.0
    assert all(max(entry.question.key) >= 12 for entry in questions.answers)


def test_classes_known_beforehand_keep_their_numbers_whatever_these_are(seed):
    X, y = blobs(seed, n=60)
    known = Constraints(labels=np.where(np.arange(60) < 12, 5 * y + 2, -1))
    for n_clusters in (3, None):
        questions = Questions(X, Auto(), n_clusters=n_clusters, constraints=known, random_state=seed)
        run(questions, Oracle(y), 10)
        assert questions.labels().tolist() == (5 * y + 2).tolist()


@pytest.mark.parametrize("kind", ["must_link", "cannot_link", "cannot_groups"])
def test_what_was_known_beforehand_holds_when_answers_are_doubted(kind, seed):
    X, y = blobs(seed, n=40)
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(40) for j in range(i) if (y[i] == y[j]) == (kind == "must_link")])
    one_of_each = np.full(40, -1)
    one_of_each[[np.flatnonzero(y == one)[-1] for one in np.unique(y)]] = 0
    known = {kind: one_of_each if kind == "cannot_groups" else pairs[rng.choice(len(pairs), 8, replace=False)]}
    questions = Questions(X, Auto(), n_clusters=2, constraints=Constraints(n_samples=40, **known), random_state=seed)
    oracle = Oracle(y, noise=0.2, random_state=seed)
    for _ in range(12):  # two clusters are too few for what is said: somebody errs
        run(questions, oracle, 3)
        assert not any(map(len, questions.prior.violations(questions.labels())))


def test_knowledge_that_needs_more_clusters_than_were_told_gets_them():
    X = np.arange(6.0)[:, None]
    clique = Constraints(cannot_link=[(0, 1), (1, 2), (0, 2)], n_samples=6)
    labels = Questions(X, Auto(), n_clusters=2, constraints=clique).labels()
    assert len({int(labels[row]) for row in range(3)}) == 3


def test_sparse_rows_are_like_dense_ones(seed):
    X, y = blobs(seed)
    dense, csr = (Questions(form, Auto(), n_clusters=3) for form in (X, sparse.csr_array(X)))
    for _ in range(10):
        question = dense.ask()
        assert csr.ask() == question
        answer = Oracle(y)(question)
        dense.tell(question, answer)
        csr.tell(question, answer)
    assert (dense.labels() == csr.labels()).all()


def test_doubt_is_highest_between_the_groups():
    X = np.linspace(0, 10, 41)[:, None]
    kernels = build_kernels(build_neighbor_graph(X, 4, 0), 2, 0)
    right = np.clip(X[:, 0] / 10, 0.01, 0.99)
    assert abs(region_uncertainty(kernels, np.column_stack([1 - right, right])).argmax() - 20) <= 1


# -- wrong answers ---------------------------------------------------------------------------------------------------


def noisy_session(seed, noise=0.1, budget=60):
    X, y = blobs(seed, n=120)
    questions = Questions(X, Auto(), n_clusters=3, random_state=seed)
    run(questions, Oracle(y, noise=noise, random_state=seed), budget)
    return X, y, questions


def test_without_contradictions_nobody_is_doubted(seed):
    _, _, questions = noisy_session(seed, noise=0.0)
    assert not questions.view.expects_errors
    checks = [entry for entry in questions.answers if entry.check]
    assert len(checks) <= 0.05 * len(questions.answers)


@pytest.mark.parametrize(("number", "n_found", "share_believed"), [(0, 6, 1.0), (6, 3, 0.95)])
def test_wrong_answers_are_found_and_do_not_spread(number, n_found, share_believed):
    """Sessions in which wrong answers come early: six and seven of sixty."""
    _, y, questions = noisy_session(number)
    wrong = np.array(
        [(entry.answer is SAME) != (y[entry.question.first] == y[entry.question.second]) for entry in questions.answers]
    )
    assert wrong.sum() >= 5
    assert questions.view.expects_errors
    assert adjusted_rand_score(y, questions.labels()) > 0.95
    auto = Auto()
    agreement = auto._beliefs(auto._model(questions.view)).agreement
    assert (agreement[wrong] < 0.5).sum() >= n_found
    assert (agreement[~wrong] > 0.5).mean() >= share_believed


def test_before_the_first_contradiction_checks_are_few_and_about_what_is_implied():
    _, _, questions = noisy_session(0)
    first = next(place for place, entry in enumerate(questions.answers) if entry.conflict)
    checks = [entry.question for entry in questions.answers[: first + 1] if entry.question.check]
    assert len(checks) <= max(0.05 * (first + 1), 1)
    assert all(pair.why == "Is this right?" for pair in checks)


@pytest.mark.parametrize("number", [1, 3])
def test_an_early_wrong_answer_is_found_by_a_check_question_before_its_turn(number):
    """The second of all answers is wrong. Once it is found, labels follow the rows rather than this answer."""
    X, y = make_blobs(90, 2, centers=3, cluster_std=0.5, center_box=(-20, 20), random_state=number)
    questions = Questions(X, n_clusters=3, random_state=0)
    for place in range(12):
        pair = questions.ask()
        questions.tell(pair, SAME if (y[pair.first] == y[pair.second]) != (place == 1) else DIFFERENT)
    first = next(place for place, entry in enumerate(questions.answers) if entry.conflict)
    assert first < 10
    assert questions.answers[first].question.check
    assert adjusted_rand_score(y, questions.labels()) == 1


@pytest.mark.parametrize("wrong", [(3, 11, 19), ()])
def test_a_row_in_the_only_group_that_is_left_for_it_is_checked_if_it_is_far_from_that_group(wrong):
    """The number of clusters is not trusted: nothing is implied about this row, and nobody asks about it again."""
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 2)) + 4 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    questions = Questions(X, n_clusters=3, random_state=0, trust_n_clusters=False)
    for place in range(30):
        pair = questions.ask()
        questions.tell(pair, SAME if (y[pair.first] == y[pair.second]) != (place in wrong) else DIFFERENT)
    assert questions.view.expects_errors == bool(wrong)
    assert adjusted_rand_score(y, questions.labels()) == 1
    assert wrong or not any(entry.check for entry in questions.answers)


@pytest.mark.parametrize("check_share", [0.0, 0.05])
def test_if_right_answers_look_wrong_there_is_one_more_check_question(check_share):
    """The classes are stripes across the blobs, so answers contradict what the rows show."""
    X, y = make_blobs(120, 2, centers=3, cluster_std=0.5, center_box=(-20, 20), random_state=3)
    stripes = (y + (X[:, 0] > np.array([np.median(X[y == one, 0]) for one in range(3)])[y])) % 3
    questions = Questions(X, n_clusters=3, random_state=0, check_share=check_share)
    is_suspected = []
    for n in range(1, 61):
        run(questions, Oracle(stripes), 1)
        is_suspected.append(Auto().suspects_errors(questions.view))
        n_checks = sum(entry.check for entry in questions.answers)
        assert n_checks <= check_share * n + bool(check_share)
    assert any(is_suspected) == bool(check_share)
    assert not questions.view.expects_errors
    again = Questions(X, n_clusters=3, random_state=0, check_share=check_share)
    again.replay(questions.answers[:20])
    assert Auto().suspects_errors(again.view) == is_suspected[19]


def test_while_a_check_question_waits_a_driver_that_reads_the_log_asks_the_same():
    X, y = make_blobs(90, 2, centers=3, cluster_std=0.5, center_box=(-20, 20), random_state=1)
    log, questions, again = (Questions(X, n_clusters=3, random_state=0, check_share=share) for share in (0, 0.05, 0.05))
    for place in range(22):
        pair = log.ask()
        log.tell(pair, SAME if (y[pair.first] == y[pair.second]) != (place == 1) else DIFFERENT)
    questions.replay(log.answers)
    again.replay(log.answers)
    assert questions.ask().check
    again.wait_for(questions.pending)
    assert again.ask() == questions.ask()


def test_parameters_are_checked():
    for wrong in ({"n_neighbors": 0}, {"random_state": -1}):
        with pytest.raises(ParameterError, match="in Auto: expected an integer"):
            Auto(**wrong)


def test_pairs_of_one_row_or_two():
    assert Questions([[0.0]], Auto(), n_clusters=1).ask() is None
    assert Questions([[0.0], [1.0]], Auto(), n_clusters=2).ask() == Pair(0, 1)


def test_it_is_the_default():
    assert isinstance(Questions([[0.0], [1.0]]).strategy, Auto)


def test_people_at_once_are_asked_about_different_rows_and_answers_in_any_order_count(seed):
    """Questions that wait are not asked again, and a log told in another order leads to the same groups."""
    X, y = blobs(seed, n=60)
    questions, oracle = Questions(X, n_clusters=3, random_state=seed), Oracle(y)
    waiting = questions.ask(4)
    for _ in range(20):
        question = waiting.pop(int(seed) % 2)
        questions.tell(question, oracle(question))
        waiting.append(questions.ask())
        assert len({pair.first for pair in waiting}) == 4
    assert adjusted_rand_score(y, questions.labels()) == 1.0


def test_many_rows_known_beforehand_are_thinned_but_every_group_has_a_row_that_stands_for_it(monkeypatch):
    from clew.active import _answer_errors

    monkeypatch.setattr(_answer_errors, "_MOST_PLACED", 5)
    X, y = blobs(0, n=90)
    known = Constraints(labels=np.where(np.arange(90) < 60, y, -1))
    questions = Questions(X, n_clusters=3, constraints=known, random_state=0)
    run(questions, Oracle(y), 5)
    assert adjusted_rand_score(y, questions.labels()) == 1.0
    placed = placed_rows(questions.view)
    assert len(placed.rows) <= 5 + 3
    assert {one.member for one in questions.view.neighbourhoods} <= set(placed.rows.tolist())


def test_of_many_answers_the_latest_few_wait_and_a_resumed_run_asks_the_same():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 100)
    X = rng.normal(size=(400, 2)) + 3 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y]
    log = [((100 * one, 100 * two), "different") for two in range(4) for one in range(two)]
    log += [((100 * one, 100 * one + row), "same") for row in range(1, 76) for one in range(4)]
    questions = Questions(X, n_clusters=4, random_state=0, check_share=0)
    questions.replay(log[:304])
    assert n_used(questions.view) == 304
    run(questions, Oracle(y), 3)
    view = questions.view
    assert n_used(view) == 304
    late = {row for said in view.told[304:] for pair, _ in said for row in pair.key} - {0, 100, 200, 300}
    assert late and not late & set(placed_rows(view).rows.tolist())
    resumed = Questions(X, n_clusters=4, random_state=0, check_share=0)
    resumed.replay(questions.answers)
    assert resumed.ask() == questions.ask()


def test_under_a_crowd_the_model_is_updated_once_per_several_answers(monkeypatch):
    made = []
    new = Auto._new_posterior
    monkeypatch.setattr(Auto, "_new_posterior", lambda *args: made.append(1) or new(*args))
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 100)
    X = rng.normal(size=(400, 2)) + 3 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y]
    questions, oracle = Questions(X, n_clusters=4, random_state=0), Oracle(y)
    held = questions.ask(40)
    for _ in range(240):  # people answer in any order, and each asks again at once
        question = held.pop(int(rng.integers(len(held))))
        questions.tell(question, oracle(question))
        held.append(questions.ask())
    assert len({one.key for one in held}) == 40
    assert len(made) <= 240 / 8 + 4  # one per eight answers, and one for each neighbourhood found in between
    resumed = Questions(X, n_clusters=4, random_state=0)
    resumed.replay(questions.answers)
    resumed.wait_for(held)
    assert resumed.ask() == questions.ask()


@pytest.mark.parametrize("n_clusters", [3, None])
def test_a_revised_answer_changes_what_is_kept_between_questions(n_clusters, seed):
    X = np.random.default_rng(seed).normal(size=(40, 2))
    questions = Questions(X, n_clusters=n_clusters, random_state=0)
    for place in range(12):
        pair = questions.ask()
        questions.tell(pair, SAME)
        questions.labels()  # the class probabilities are kept for the next question
        questions.revise(pair, SAME if place % 3 == 0 else DIFFERENT)
        again = Questions(X, n_clusters=n_clusters, random_state=0)
        again.replay(questions.answers)
        assert again.ask() == questions._look_ahead()
