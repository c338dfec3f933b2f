"""Answers as evidence: the posterior, error rates of annotators, second opinions, and certain knowledge."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import logsumexp
from threadpoolctl import threadpool_info, threadpool_limits

from clew import Constraints
from clew.active import DIFFERENT, SAME, Auto, Oracle, Pair, Questions, _posterior, _second_opinions
from clew.active._annotators import CERTAIN, AnswerArrays, count_errors, estimate_rates, log_evidence, log_odds
from clew.active._posterior import State, _together_without, average_linkage, greedy_contraction, last_search
from clew.active._questions import run
from clew.evaluation import adjusted_rand_score
from clew.exceptions import ParameterError
from clew.graph._gaussian_process import KernelWeights, prior_weights
from clew.graph._kernels import build_kernels, graph_of_columns


def blobs(seed, n=120, k=3, spread=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(0, spread, (n, 2)) + 6 * np.column_stack([np.cos(2 * y), np.sin(2 * y)]), y


def arrays(said):
    """Answers from tuples of two rows, sign, annotator, and perhaps confidence."""
    columns = np.array([one[:4] for one in said], dtype=np.int64).reshape(-1, 4)
    return AnswerArrays.of(columns, np.array([one[4] if len(one) > 4 else 1.0 for one in said]))


# -- error rates -----------------------------------------------------------------------------------------------------


def test_rates_are_posterior_means_under_beta_priors():
    """Ten answers about rows of one group, two of them "different". The prior is worth ten at the common rate."""
    answers = arrays([(0, 1, 1, 0)] * 8 + [(0, 1, -1, 0)] * 2)
    rates = estimate_rates(answers, np.ones(10), None)
    common = (2 + 0.1 * 50) / (10 + 50)
    assert rates[0] == pytest.approx(((2 + common * 10) / 20, common))


def test_an_answer_does_not_confirm_itself():
    """Beliefs that come from one answer alone are even without that answer; a second answer about the row counts."""
    answers = arrays([(0, 1, 1, 0), (0, 2, 1, 0), (0, 2, -1, 0), (0, 2, 1, 0)])
    odds = log_odds(answers, {0: (0.2, 0.2)})
    beliefs = np.array([[1.0, 0.0], [0.8, 0.2], [0.8, 0.2]])  # log-odds 0 + 1.39 = 1.39
    state = State(np.arange(3), beliefs, KernelWeights(np.ones(1), 1.0), {0: (0.2, 0.2)}, 0.0, 0.0, 4)
    assert odds[1:].sum() == pytest.approx(odds[0])
    assert _together_without(answers, state) == pytest.approx([0.5, 0.5, 16 / 17, 0.5])
    later = _together_without(answers, state._replace(n_answers=3))  # the beliefs do not contain the last answer yet
    assert later[3] == pytest.approx(0.8)


def test_uninformative_beliefs_leave_the_rates_of_all_at_the_prior():
    answers = arrays([(0, row, 1 - 2 * (row % 2), 0) for row in range(1, 31)])
    assert estimate_rates(answers, np.full(30, 0.5), 0.2)[0] == pytest.approx((0.2, 0.2))


def test_a_careful_and_a_careless_annotator_are_told_apart():
    rng = np.random.default_rng(0)
    together = rng.random(400) < 0.5
    who = np.arange(400) % 2
    wrong = rng.random(400) < np.where(who, 0.3, 0.02)
    said = [(0, 1, 1 if same != flipped else -1, one) for same, flipped, one in zip(together, wrong, who, strict=True)]
    rates = estimate_rates(arrays(said), together.astype(float), None)
    assert max(rates[0]) < 0.06 and min(rates[1]) > 0.2
    found = count_errors(arrays(said), np.where(wrong, 0.01, 0.99), ["Ann", "Bob"])
    assert found["ann"].looks_wrong == wrong[who == 0].sum()
    assert found["bob"].error_rate > 0.2 > found["ann"].error_rate


def test_bias_counts_one_sided_errors_one_sidedly():
    """Somebody who often says "different" about rows of one group, and never the reverse, is believed in a "same"."""
    said = [(0, 1, 1, 0)] * 10 + [(0, 1, -1, 0)] * 10 + [(0, 2, -1, 0)] * 20
    rates = estimate_rates(arrays(said), np.repeat([1.0, 0.0], 20), None)
    odds = log_odds(arrays([(0, 1, 1, 0), (0, 1, -1, 0)]), rates)
    assert odds[0] > 1.5 > -odds[1] > 0


def test_log_odds_of_certain_and_of_doubtful_answers():
    answers = arrays([(0, 1, 1, CERTAIN), (0, 1, -1, 0), (0, 1, 1, 0, 0.5), (0, 1, 1, 0, 0.75)])
    odds = log_odds(answers, {0: (0.1, 0.1)})
    assert odds == pytest.approx([15, -np.log(9), 0, np.log(0.7 / 0.3)])


# -- correlation clustering ------------------------------------------------------------------------------------------


def test_contraction_finds_every_partition_that_consistent_answers_describe():
    for labels in product(range(3), repeat=5):
        one, two = np.triu_indices(5, 1)
        odds = np.where(np.array(labels)[one] == np.array(labels)[two], 1.0, -1.0)
        assert adjusted_rand_score(labels, greedy_contraction(5, one, two, odds)) == 1.0


def test_contraction_outvotes_a_wrong_answer():
    one, two = np.array([0, 0, 1, 0]), np.array([1, 2, 2, 3])
    found = greedy_contraction(4, one, two, np.array([2.0, 2.0, -2.0, -2.0]))
    assert found[0] in (found[1], found[2]) and found[3] != found[0]
    assert len(set(greedy_contraction(3, one[:3], two[:3], np.array([2.0, 2.0, -1.0])).tolist())) == 1


def test_parts_are_joined_by_their_mean_similarity_unless_answers_separate_them():
    similar = np.array([[1.0, 0.9, 0.8, 0.1], [0.9, 1.0, 0.7, 0.1], [0.8, 0.7, 1.0, 0.2], [0.1, 0.1, 0.2, 1.0]])
    odds, one = np.zeros((4, 4)), np.ones(4, dtype=np.int64)
    assert average_linkage(similar, odds, one, 3).tolist() == [0, 0, 2, 3]
    assert average_linkage(similar, odds, one, 2).tolist() == [0, 0, 0, 3]
    odds[0, 1] = odds[1, 0] = -1
    assert average_linkage(similar, odds, one, 2).tolist() == [0, 1, 0, 0]
    odds[[0, 2, 1, 3, 2, 3], [3, 3, 3, 1, 0, 2]] = odds[[3, 3, 3, 1, 0, 2], [0, 2, 1, 3, 2, 3]] = -1
    assert average_linkage(similar, odds, one, 2).tolist() == [0, 1, 1, 3]  # nothing else may be joined
    sizes = np.array([2, 1, 1, 1])
    by_rows = similar * np.outer(sizes, sizes)
    assert average_linkage(by_rows, np.zeros((4, 4)), sizes, 2).tolist() == [0, 0, 0, 3]


def test_rows_that_answers_join_move_together_out_of_a_wrong_group(seed):
    """Half of the first group is with the second one, and no answer is about these two."""
    X, y = blobs(seed, n=240, spread=0.5)
    kernels = build_kernels(graph_of_columns(X, 10, 0), 3, 0)
    kernels = replace(kernels, partitions=np.zeros_like(kernels.partitions))
    zero, one, two = (np.flatnonzero(y == group) for group in range(3))
    chains = [zero[:30], zero[30:60], one[:20], two[:30]]
    same = [(i, j, 1, 0) for chain in chains for i, j in pairwise(chain)]
    apart = [(i, j, -1, 0) for a, b in ((0, 3), (1, 3), (0, 2)) for i, j in zip(chains[a], chains[b], strict=False)]
    answers = arrays(same + apart)
    named = _posterior._Named(kernels, answers, log_odds(answers, {0: (0.05, 0.05)}), 3)
    wrong = np.where(np.isin(named.rows, chains[1]), 1, y[named.rows])
    beliefs = np.where(np.arange(3) == wrong[:, None], 0.98, 0.01)
    state = State(named.rows, beliefs, prior_weights(kernels), {}, 0.0, 0.0, len(answers.first))
    assert adjusted_rand_score(y[named.rows], named.search(state).beliefs.argmax(axis=1)) == 1.0


# -- questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [-0.1, 0.5, 1, float("nan"), "often", True])
def test_rates_outside_the_range_are_refused(wrong):
    with pytest.raises(ParameterError, match=r"error_rate=.*expected a number from 0 to below 0\.5"):
        Questions(np.zeros((4, 1)), error_rate=wrong)


def test_wrong_answers_wash_out():
    X, y = blobs(0)
    questions = Questions(X, n_clusters=3, random_state=0, error_rate=0.2)
    oracle = Oracle(y, noise=0.2, random_state=0)
    scores = []
    for budget in (50, 100):
        run(questions, oracle, budget - len(questions.answers))
        scores.append(adjusted_rand_score(y, questions.labels()))
    assert scores[0] > 0.85
    assert scores[1] >= 0.95


def test_second_opinions_are_put_to_another_member_and_no_pair_is_repeated():
    X, y = blobs(1)
    questions = Questions(X, n_clusters=3, random_state=1, error_rate=0.2)
    run(questions, Oracle(y, noise=0.2, random_state=1), 80)
    keys = [entry.question.key for entry in questions.answers]
    assert len(set(keys)) == len(keys)
    assert any(entry.question.why == "A second opinion" for entry in questions.answers)


def test_an_error_rate_of_zero_means_facts():
    X, y = blobs(2)
    first, second = (Questions(X, n_clusters=3, random_state=0, error_rate=rate) for rate in (None, 0.0))
    for questions in (first, second):
        run(questions, Oracle(y), 30)
    assert [entry.question for entry in first.answers] == [entry.question for entry in second.answers]


def test_a_resumed_log_asks_and_labels_the_same_and_undo_leads_back():
    X, y = blobs(3)
    questions = Questions(X, n_clusters=3, random_state=0, error_rate=0.1)
    run(questions, Oracle(y, noise=0.1, random_state=0), 47)
    again = Questions(X, n_clusters=3, random_state=0, error_rate=0.1)
    again.replay(questions.answers)
    assert again.ask() == questions.ask()
    assert (again.labels() == questions.labels()).all()
    labels, last = questions.labels(), questions.undo()
    questions.replay([last])
    assert (questions.labels() == labels).all()


def test_certain_knowledge_stays_hard_whatever_answers_say():
    X, y = blobs(4)
    known = Constraints([(0, 3), (3, 6)], [(0, 1)])
    questions = Questions(X, n_clusters=3, constraints=known, random_state=0, error_rate=0.3)
    questions.replay([((0, 3), DIFFERENT), ((0, 1), SAME), ((6, 9), SAME)])
    labels = questions.labels()
    assert labels[0] == labels[3] == labels[6] != labels[1]
    classes = Constraints(labels=np.where(np.arange(len(y)) < 9, y + 5, -1))
    questions = Questions(X, n_clusters=3, constraints=classes, random_state=0, error_rate=0.3)
    run(questions, Oracle(y, noise=0.3, random_state=0), 30)
    assert (questions.labels()[:9] == y[:9] + 5).all()


def test_the_number_of_groups_may_be_unknown():
    y = np.arange(120) % 4
    X = np.random.default_rng(5).normal(size=(120, 2)) + 6 * np.column_stack([y // 2, y % 2])
    questions = Questions(X, random_state=0, error_rate=0.1)
    run(questions, Oracle(y, noise=0.1, random_state=0), 80)
    assert adjusted_rand_score(y, questions.labels()) > 0.9


def people_run(X, y, rates, budget, seed=0, error_rate=0.15):
    questions = Questions(X, n_clusters=3, random_state=seed, error_rate=error_rate)
    oracles = {
        name: Oracle(y, noise=rate, random_state=seed + place) for place, (name, rate) in enumerate(rates.items())
    }
    names = list(rates)
    for place in range(budget):
        pair = questions.ask()
        if pair is None:
            break
        name = names[place % len(names)]
        questions.tell(pair, oracles[name](pair), annotator=name)
    return questions


def test_careless_people_are_found_and_count_less():
    X, y = blobs(6)
    questions = people_run(X, y, {"Ann": 0.0, "Bob": 0.0, "Eve": 0.4}, 60)
    errors = Auto().annotator_errors(questions.view)
    assert errors["eve"].error_rate > 2 * max(errors["ann"].error_rate, errors["bob"].error_rate)
    assert adjusted_rand_score(y, questions.labels()) > 0.95


def test_one_person_who_contradicts_everybody_does_not_win():
    X, y = blobs(7)
    questions = people_run(X, y, {"Ann": 0.0, "Bob": 0.0, "Eve": 1.0}, 60)
    log = questions.answers
    assert adjusted_rand_score(y, questions.labels()) > 0.95
    assert Auto().annotator_errors(questions.view)["eve"].looks_wrong > 10
    assert questions.answers == log


@pytest.mark.sampled(2, slow=1)
@pytest.mark.parametrize("careful", [("Ann",), ("Ann", "Bob")])
def test_one_person_who_contradicts_everybody_does_not_win_if_no_rate_is_given(careful):
    """Beliefs that follow Eve are consistent, too, but the rows around speak against them."""
    y = np.arange(90) % 3
    X = np.random.default_rng(0).normal(0, 1.6, (90, 2)) + 4 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    questions = people_run(X, y, dict.fromkeys(careful, 0.0) | {"Eve": 1.0}, 90, error_rate=None)
    errors = Auto().annotator_errors(questions.view)
    assert errors["eve"].error_rate > 0.6
    assert all(errors[name.lower()].looks_wrong < 5 for name in careful)
    assert adjusted_rand_score(y, questions.labels()) > 0.75


def test_the_evidence_of_rates_and_the_odds_of_answers_that_hold_make_the_log_probability():
    answers = arrays([(0, 1, 1, 0), (0, 2, -1, 0), (1, 2, 1, 1), (0, 3, -1, 1, 0.8)])
    rates = {0: (0.1, 0.2), 1: (0.3, 0.05)}
    holds = np.array([True, False, False, True])
    doubtful = 0.5 - (0.5 - 0.05) * 0.6  # confidence 0.8: 0.6 of the way from 1/2 to the rate
    each = [0.9, 0.1, 0.05, 1 - doubtful]
    total = log_evidence(answers, rates) + np.abs(log_odds(answers, rates))[holds].sum()
    assert total == pytest.approx(np.log(each).sum())


def test_the_bound_of_a_state_is_a_lower_bound_on_the_log_probability_of_the_answers():
    """Equal to it where rows are independent; references sum over all groups of all rows."""
    rng = np.random.default_rng(0)
    X, _ = blobs(0, n=60)
    kernels = build_kernels(graph_of_columns(X, 10, 0), 3, 0)
    answers = arrays([(0, 1, 1, 0), (1, 2, -1, 0), (2, 3, 1, 0), (0, 3, -1, 0)])
    for odds in (log_odds(answers, {0: (0.1, 0.2)}), np.zeros(4)):
        named = _posterior._Named(kernels, answers, odds, 3)
        unary, beliefs = (np.log(rng.dirichlet(np.ones(3), 4)) for _ in range(2))
        frequency = rng.dirichlet(np.ones(3))
        ratio = unary - np.log(0.9 * frequency + 0.1 / 3)
        every = np.array(list(product(range(3), repeat=4)))
        holds = (every[:, named.one] == every[:, named.two]) == (odds > 0)
        exact = logsumexp(ratio[np.arange(4), every].sum(axis=1) + holds @ np.abs(odds))
        best = np.exp(ratio) / np.exp(ratio).sum(axis=1, keepdims=True)
        bounds = [
            named._scored(one, unary, frequency, KernelWeights(np.ones(1), 1.0)).bound
            for one in (np.exp(beliefs), best)
        ]
        assert max(bounds) <= exact + 1e-9
        assert odds.any() or bounds[1] == pytest.approx(exact)


def test_answers_of_somebody_new_are_no_facts_until_the_next_search():
    X, _ = blobs(6)
    questions = Questions(X, n_clusters=3, random_state=0, error_rate=0.1)
    for place in range(4):
        questions.tell(questions.ask(), SAME, annotator=f"person {place}")
    auto = Auto()
    rates = auto._beliefs(auto._model(questions.view)).state.rates
    assert rates == dict.fromkeys(range(4), (0.1, 0.1))


def test_beliefs_that_follow_every_answer_are_given_up_if_the_rows_say_otherwise():
    """Each row has one answer, one of five is wrong, and the beliefs at the last search called all of them right."""
    X, y = blobs(0, n=640, k=2)
    rng = np.random.default_rng(0)
    others, wrong = np.arange(2, 502), rng.random(500) < 0.2
    holds = (y[others] == y[others % 2]) != wrong
    answers = arrays([(row, row % 2, 1 if one else -1, 0) for row, one in zip(others, holds, strict=True)])
    kernels = build_kernels(graph_of_columns(X, 10, 0), 2, 0)
    rows, followed = np.arange(502), np.append([0, 1], np.where(holds, others % 2, 1 - others % 2))
    before = State(rows, np.eye(2)[followed], KernelWeights(np.ones(len(kernels.each(rows))), 3.0), {}, 0.0, 0.0, 500)
    before = before._replace(beliefs=0.98 * before.beliefs + 0.01, rates={0: (0.02, 0.02)})
    found = _posterior._step(kernels, answers, 2, None, before, search=True)
    assert min(found.rates[0]) > 0.1
    assert adjusted_rand_score(y[rows], found.beliefs.argmax(axis=1)) > 0.9


def test_a_single_person_without_overlap_has_a_rate_from_the_model():
    X, y = blobs(8)
    questions = people_run(X, y, {"Ann": 0.15}, 80)
    rate = Auto().annotator_errors(questions.view)["ann"].error_rate
    assert 0.03 < rate < 0.3


def test_small_groups_that_the_data_show_have_no_error_rates_of_annotators(seed):
    """The posterior is about large groups."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(60, 4)), 2, axis=0) + 0.01 * rng.normal(size=(120, 4))
    questions = Questions(X, error_rate=0.1)
    for answer in ("same", "different"):
        questions.tell(questions.ask(), answer, annotator="Ann")
    assert questions.strategy.has_small_groups(questions.view)
    assert questions.strategy.annotator_errors(questions.view) == {}
    assert questions.strategy.answer_doubts(questions.view) is questions.strategy.pair_beliefs(questions.view) is None


def test_a_name_that_changes_case_is_one_person():
    questions = Questions(np.arange(6.0)[:, None], n_clusters=2, error_rate=0.1)
    for name in ("Ann", "ann ", "ANN"):
        questions.tell(questions.ask(), "same", annotator=name)
    assert questions.view.annotators == ["Ann"]
    assert set(questions.view.answer_arrays.annotator.tolist()) == {0}


def test_disagreeing_votes_about_one_pair_are_both_evidence():
    from clew.active import UNSURE
    from clew.active._questions import Answered

    questions = Questions(np.arange(6.0)[:, None], n_clusters=2)
    questions.add(Answered(Pair(0, 1), UNSURE, votes=(("ann", SAME, 1.0), ("bob", DIFFERENT, 1.0))))
    assert questions.view.expects_errors
    assert questions.view.answer_arrays.sign.tolist() == [1, -1]
    questions.undo()
    assert not questions.view.expects_errors
    assert not len(questions.view.answer_arrays.sign)


def test_under_a_crowd_the_posterior_of_questions_is_computed_once_per_search(monkeypatch):
    made = []
    fit = _second_opinions.fit_posterior
    monkeypatch.setattr(_second_opinions, "fit_posterior", lambda *args: made.append(1) or fit(*args))
    X, y = blobs(0, n=400, spread=2.5)
    questions, oracle = Questions(X, n_clusters=3, error_rate=0.1, random_state=0), Oracle(y, noise=0.1, random_state=0)
    rng, held, asked = np.random.default_rng(0), questions.ask(20), []
    for _ in range(60):  # people answer in any order, and each asks again at once
        question = held.pop(int(rng.integers(len(held))))
        questions.tell(question, oracle(question))
        busy = {row for one in held for row in one.key}
        late = {row for said in questions.view.told[last_search(questions.view.n_answers) :] for row in said[0][0].key}
        held.append(questions.ask())
        asked.append(held[-1])
        if not asked[-1].why.startswith("Are"):  # members of groups are compared with several rows
            assert asked[-1].first not in busy | late
    assert len({one.key for one in asked} | {one.question.key for one in questions.answers}) == 80
    assert len(made) <= 60 / 5 + 1
    resumed = Questions(X, n_clusters=3, error_rate=0.1, random_state=0)
    resumed.replay(questions.answers)
    resumed.wait_for(held)
    assert resumed.ask() == questions.ask()


def test_the_posterior_uses_one_blas_thread(monkeypatch):
    def n_threads():
        return max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

    found, step, propagate = [], _posterior._step, _posterior.propagate
    monkeypatch.setattr(_posterior, "_step", lambda *a, **b: found.append(n_threads()) or step(*a, **b))
    monkeypatch.setattr(_posterior, "propagate", lambda *a, **b: found.append(n_threads()) or propagate(*a, **b))
    X, y = blobs(0)
    with threadpool_limits(2, user_api="blas"):
        run(Questions(X, n_clusters=3, error_rate=0.1, random_state=0), Oracle(y), 10)
        assert n_threads() == 2
    assert len(found) > 10 and set(found) == {1}
