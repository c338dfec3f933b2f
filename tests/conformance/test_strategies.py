"""Laws that every query strategy keeps, on every kind of data, knowledge, person and history."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from clew import Constraints, COPKMeans, PCKMeans
from clew._base import Capabilities
from clew.active import DIFFERENT, SAME, UNSURE, Oracle, Pair, Questions
from clew.evaluation import same_partition
from clew.exceptions import ParameterError
from tests.conformance.scenarios import SCENARIOS, build
from tests.conformance.strategies import (
    EXAMPLES,
    ask,
    assert_alike,
    each_strategy,
    key,
    needs_k,
    never_sure,
    run,
    run_out,
    said,
    state,
)  # fmt: skip
from tests.reference import constraints as reference

K = 3
# What `build` asks of an estimator.
ANY = SimpleNamespace(n_clusters=K, capabilities=Capabilities("ignored", "ignored", "ignored"))


def blobs(seed, n=18, spread=1.0):
    rng = np.random.default_rng(seed)
    y = np.resize(np.arange(K), n)
    return np.array([(1.0, 1.0), (9.0, 2.0), (4.0, 9.0)])[y] + spread * rng.normal(size=(n, 2)), y


def asking(strategy, X, n_clusters=K, seed=0, **rest):
    """A driver; where the strategy cannot do without the number of clusters, with it.

    One start of the clusterer is enough for most laws; a strategy with clusters of its own keeps them.
    """
    if n_clusters is None and needs_k(strategy):
        n_clusters = min(K, X.shape[0])
    if n_clusters is not None and not hasattr(strategy, "labels"):
        rest.setdefault("clusterer", PCKMeans(n_init=1, random_state=0))
    return Questions(X, strategy, n_clusters=n_clusters, random_state=seed, **rest)


def resumed(questions, log=None):
    """A driver made afresh that reads the log."""
    fresh = Questions(
        questions.X,
        questions.strategy,
        questions.n_clusters,
        questions.clusterer,
        questions.prior,
        random_state=questions._seed,
    )
    fresh.replay(questions.answers if log is None else log)
    return fresh


def any_oracle(seed, y):
    """Somebody who errs and doubts now and then."""
    return Oracle(y, noise=0.1, unsure=0.2, random_state=seed)


def test_there_are_strategies():
    assert len({type(example) for example in EXAMPLES}) >= 11


# -- data and knowledge ----------------------------------------------------------------------------------------------


@pytest.mark.sampled(10, slow=1)
@each_strategy
@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one[0] == "blobs" or one[1] == "mixed"], ids="-".join)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_right_answers_to_the_end_teach_only_what_is_right(strategy, scenario, seed):
    case = build(scenario, ANY, seed)
    before = case.X.copy()
    case.X.setflags(write=False)
    questions = asking(strategy, case.X, constraints=case.constraints, seed=seed)
    run_out(questions, Oracle(case.hidden))
    np.testing.assert_array_equal(case.X, before)
    assert questions.conflicts == []
    known = questions.view.knowledge
    for row in range(len(case.X)):
        together = np.isin(np.arange(len(case.X)), known.rows(row))
        assert (case.hidden[together] == case.hidden[row]).all()
        open_ones = np.isin(np.arange(len(case.X)), known.open_rows(row))
        assert (case.hidden[~together & ~open_ones] != case.hidden[row]).all()
    assert len(questions.labels()) == len(case.X)


@pytest.mark.sampled(2, slow=1)
@each_strategy
def test_right_answers_to_the_end_recover_separated_classes(strategy, seed):
    X, y = blobs(seed, spread=0.3)
    questions = asking(strategy, X, seed=seed, clusterer=None)
    run_out(questions, Oracle(y))
    assert same_partition(questions.labels(), y)


@pytest.mark.sampled(10, slow=1)
@each_strategy
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("answer", [SAME, DIFFERENT, UNSURE])
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_hardly_any_rows(strategy, n, answer):
    for n_clusters in (None, *range(1, n + 1)):
        questions = asking(strategy, np.arange(1.0, n + 1)[:, None], n_clusters)
        labels = [0, 0] if answer is SAME else [0, 1]
        oracle = never_sure if answer is UNSURE else Oracle(labels[:n])
        assert len(run_out(questions, oracle)) <= n - 1
        assert len(questions.labels()) == n


@pytest.mark.sampled(10, slow=1)
@each_strategy
@pytest.mark.parametrize("n_clusters", [1, 6, None])
@pytest.mark.parametrize("answer", ["same", "different", "truth"])
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_equal_and_repeated_rows_and_extreme_numbers_of_clusters(strategy, n_clusters, answer):
    for X in (np.zeros((6, 2)), np.repeat(np.arange(3.0), 2)[:, None]):
        questions = asking(strategy, X, n_clusters)
        hidden = {"same": np.zeros(6), "different": np.arange(6), "truth": X[:, 0]}[answer]
        run_out(questions, Oracle(hidden))
        assert questions.conflicts == []
        assert len(questions.labels()) == 6


@pytest.mark.sampled(2, slow=1)
@each_strategy
def test_without_the_number_of_clusters_it_works_or_says_what_it_needs(strategy, seed):
    X, y = blobs(seed)
    questions = Questions(X, strategy, random_state=seed)
    if needs_k(strategy):
        for _ in range(2):
            with pytest.raises(ParameterError, match=f"{type(strategy).__name__} needs n_clusters"):
                questions.ask()
        assert questions.answers == [] and questions.pending == []
        assert len(questions.labels()) == len(X)
    else:
        run_out(questions, Oracle(y))


@pytest.mark.sampled(2, slow=1)
@each_strategy
def test_where_all_is_decided_beforehand_nothing_is_asked(strategy):
    X, y = blobs(0)
    n = len(y)
    for decided in ({"labels": y}, {"cannot_groups": np.zeros(n, int)}, {"must_groups": np.zeros(n, int)}):
        questions = asking(strategy, X, None, constraints=Constraints(**decided))
        assert run_out(questions, never_sure) == []
        assert len(questions.labels()) == n


@pytest.mark.sampled(7, slow=1)
@each_strategy
@pytest.mark.parametrize("form", [sparse.csr_array, np.float32])
def test_forms_of_data(strategy, form, seed):
    X, y = blobs(seed)
    dense, other = (asking(strategy, rows, seed=seed) for rows in (X, form(X)))
    assert other.X.dtype == form(X).dtype and sparse.issparse(other.X) == sparse.issparse(form(X))
    for questions in (dense, other):  # rounding may break ties otherwise, and so lead to other questions
        run_out(questions, Oracle(y))
    assert same_partition(other.labels(), dense.labels())


# -- people ----------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(3, slow=1)
@each_strategy
@pytest.mark.parametrize("n_clusters", [K, None])
def test_somebody_who_is_never_sure_is_left_alone_in_the_end(strategy, n_clusters, seed):
    X, _ = blobs(seed, n=9)
    questions = asking(strategy, X, n_clusters, seed)
    assert run_out(questions, never_sure)
    assert questions.view.neighbourhoods == [] and questions.constraints.must_link.size == 0
    progress = questions.progress()
    assert (progress.asked, progress.unsure, progress.implied) == (len(questions.answers), len(questions.answers), 0)


@pytest.mark.sampled(7, slow=1)
@each_strategy
@pytest.mark.parametrize("noise, unsure", [(0.0, 0.5), (0.1, 0.0), (0.5, 0.0), (0.3, 0.3)])
def test_doubts_and_errors_are_survived(strategy, noise, unsure, seed):
    X, y = blobs(seed)
    prior = Constraints([(0, 3)], [(0, 1)], cannot_groups=np.where(np.arange(len(y)) // 3 == 4, 0, -1))
    questions = asking(strategy, X, seed=seed, constraints=prior)
    run_out(questions, Oracle(y, noise=noise, unsure=unsure, random_state=seed))
    wrong = [entry for entry in questions.answers if entry.conflict]
    assert questions.progress().conflicts == len(wrong) == len(questions.conflicts)
    for entry, conflict in zip(wrong, questions.conflicts, strict=True):
        assert {conflict.chain[0], conflict.chain[-1]} == set(conflict.rows)
        # An answer "same" to a check question may stand in the middle of the chain.
        assert set(conflict.chain) & {row for pair, _ in said(entry) for row in pair.key}
    together, apart = reference.entailed(questions.constraints)
    assert not together & apart
    assert len(questions.labels()) == len(X)


@pytest.mark.sampled(2, slow=1)
@each_strategy
def test_a_contradiction_in_the_log_is_kept_out_of_use(strategy):
    X, y = blobs(1)
    questions = asking(strategy, X)
    questions.replay([((0, 3), SAME), ((3, 6), SAME), ((0, 6), DIFFERENT), ((1, 4), UNSURE)])
    run_out(questions, Oracle(y))
    (conflict,) = questions.conflicts
    assert (conflict.chain[0], conflict.chain[-1]) == (0, 6)  # through row 3, or through a row of a second opinion
    stated = {frozenset(pair) for pair in questions.stated.must_link.tolist()}
    assert all(frozenset(step) in stated for step in pairwise(conflict.chain))
    assert questions.view.knowledge.relation(0, 6) is SAME


@pytest.mark.sampled(2, slow=1)
@each_strategy
def test_progress_counts_and_never_falls(strategy, seed):
    X, y = blobs(seed)
    questions, oracle = asking(strategy, X, seed=seed), Oracle(y)
    before = questions.progress()
    assert (before.asked, before.implied, before.conflicts) == (0, 0, 0)
    while (question := ask(questions)) is not None:
        questions.tell(question, oracle(question))
        now = questions.progress()
        assert now.asked == before.asked + 1
        assert now.implied >= before.implied and now.neighbourhoods >= before.neighbourhoods
        assert now.reason and now.reason.endswith(".")
        before = now
    together, apart = reference.entailed(questions.constraints)
    told = {pair.key for entry in questions.answers for pair, _ in said(entry)}
    touched = {row for pair in told for row in pair} | {row for pair in questions.view.deduced for row in pair}
    touched = {row for one in touched for row in questions.view.knowledge.rows(one).tolist()}
    decided = {pair for pair in together | apart if set(pair) <= touched}
    assert before.implied == len({pair for pair in decided if pair[0] < pair[1]} - told)


# -- histories -------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(7, slow=1)
@each_strategy
@pytest.mark.parametrize("n_clusters, knowledge", [(K, "mixed"), (None, "none")])
def test_a_run_that_is_resumed_asks_what_one_that_goes_on_asks(strategy, n_clusters, knowledge, seed):
    case = build(("blobs", knowledge), ANY, seed)
    rows = slice(0, 18)
    X, hidden, known = case.X[rows], case.hidden[rows], case.constraints.restrict(np.arange(18))
    questions = asking(strategy, X, n_clusters, seed, constraints=known)
    oracle = any_oracle(seed, hidden)
    for step in range(20):
        other = resumed(questions)
        if step % 6 == 2:  # at times somebody looks at the labels
            assert_alike(questions, other, ask_too=False)
        question, again = questions.ask(), other.ask()
        assert (question is None) == (again is None)
        if question is None:
            break
        assert key(question) == key(again) and question.why == again.why
        questions.tell(question, oracle(question))
    assert_alike(questions, resumed(questions))


@pytest.mark.sampled(5, slow=1)
@each_strategy
def test_undo_leaves_nothing_behind(strategy, seed):
    X, y = blobs(seed, spread=4.0)
    questions, oracle = asking(strategy, X, seed=seed), any_oracle(seed, y)
    run(questions, oracle, 8)
    assert questions.answers
    questions.labels()
    for _ in range(3):
        log = questions.answers
        assert questions.undo() == (log[-1] if log else None)
        assert_alike(questions, resumed(questions, log[:-1]), ask_too=False)
    fresh = resumed(questions)
    assert_alike(questions, fresh)
    while questions.undo() is not None:
        pass
    assert questions.answers == [] and questions.undo() is None


@pytest.mark.sampled(5, slow=1)
@each_strategy
def test_a_revised_answer_is_as_if_given_so(strategy, seed):
    X, y = blobs(seed, spread=4.0)
    questions, oracle = asking(strategy, X, seed=seed), Oracle(y, noise=0.3, random_state=seed)
    run(questions, oracle, 8)
    for place in (0, len(questions.answers) // 2):
        log = questions.answers
        questions.revise(log[place].question, UNSURE)
        log[place] = replace(log[place], answer=UNSURE)
        assert_alike(questions, resumed(questions, log), ask_too=False)
    assert_alike(questions, resumed(questions))


@pytest.mark.sampled(2, slow=1)
@each_strategy
def test_several_people_answer_in_any_order(strategy, seed):
    X, y = blobs(seed)
    questions, oracle, rng = asking(strategy, X, seed=seed), any_oracle(seed, y), np.random.default_rng(seed)
    for turn in range(100):
        batch = ask(questions, 5)
        assert len({key(question) for question in batch}) == len(batch)
        waiting = questions.pending
        if not waiting:
            break
        n_answered = len(waiting) if not batch else int(rng.integers(1, len(waiting) + 1))
        for place in rng.permutation(len(waiting))[:n_answered]:
            questions.tell(waiting[place], oracle(waiting[place]))
        if turn % 4 == 3:
            questions.undo()
    assert questions.pending == [] and questions.ask() is None
    again = resumed(questions)
    assert again.ask() is None and state(again) == state(questions)


@pytest.mark.sampled(2, slow=1)
@each_strategy
def test_a_batch_repeats_itself(strategy, seed):
    X, y = blobs(seed)
    one, two = (asking(strategy, X, seed=seed) for _ in range(2))
    for questions in (one, two):
        run(questions, Oracle(y), 4)
        questions.labels()
    assert [key(question) for question in one.ask(5)] == [key(question) for question in two.ask(5)]


@pytest.mark.sampled(2, slow=1)
@each_strategy
def test_a_hard_clusterer_keeps_every_answer_whatever_is_guessed(strategy, seed):
    X, _ = blobs(seed, spread=4.0)
    y = np.random.default_rng(seed).integers(K, size=len(X))  # classes that the rows say nothing about
    questions = asking(strategy, X, seed=seed, clusterer=COPKMeans(random_state=0))
    for budget in (3, 4, 5):
        run(questions, Oracle(y), budget)
        labels, known = questions.labels(), questions.constraints
        assert (labels[known.must_link[:, 0]] == labels[known.must_link[:, 1]]).all()
        assert (labels[known.cannot_link[:, 0]] != labels[known.cannot_link[:, 1]]).all()
        assert not (known | questions.guesses).conflicts()


@each_strategy
def test_a_bad_answer_changes_nothing(strategy):
    X, _ = blobs(0, spread=4.0)
    questions = asking(strategy, X)
    question = questions.ask()
    before = state(questions)
    for asked, answer in ((question, "perhaps"), ((0, 99), SAME), (Pair(2, 2), SAME)):
        with pytest.raises(ParameterError):
            questions.tell(asked, answer)
    assert state(questions) == before and questions.answers == [] and questions.pending == [question]
