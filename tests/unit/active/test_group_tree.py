"""Many groups of an unknown number: the tree, the search for its cut, and the questions about merges."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from clew.active import DIFFERENT, SAME, Answered, Auto, Oracle, Pair, Questions, Stated, _group_tree
from clew.active._group_tree import Cut, GroupTree, LargeGroups, LevelAnswers, Threshold, TreeQuestions, search_result
from clew.constraints import Constraints
from tests.unit.active.test_group_sizes import answered, groups

LINE = np.array([[0.0], [1.0], [5.0], [9.0]])


def test_the_level_of_a_pair_is_the_number_of_clusters_before_it_is_joined():
    grown = GroupTree.of(LINE)
    pairs = np.array([(0, 1), (2, 3), (1, 3)])
    assert grown.merges_of(pairs).tolist() == [0, 1, 2]
    assert grown.levels_of(pairs).tolist() == np.log([4, 3, 2]).tolist()
    assert grown.merge_of(2, 2) == -1


@pytest.mark.parametrize(
    ("must_link", "cannot_link", "expected"),
    [([], [], [0, 0, 1, 1]), ([(1, 2)], [], [0, 0, 0, 0]), ([], [(2, 3)], [0, 0, 1, 2]), ([(1, 3)], [(2, 3)], None)],
)
def test_labels_obey_constraints(must_link, cannot_link, expected):
    closed = Constraints(must_link, cannot_link, n_samples=4).closure()
    labels = GroupTree.of(LINE).labels(np.array([True, True, False]), closed, np.arange(4)).tolist()
    assert labels == ([0, 0, 1, 0] if expected is None else expected)


def test_the_posterior_of_the_threshold_follows_answers(seed):
    rng = np.random.default_rng(seed)
    levels = rng.uniform(0, 8, size=300)
    found = Threshold.of(8.0, LevelAnswers(levels, levels > 5))
    assert abs(found.median - 5) < 0.2
    assert found.deviation < 0.2
    assert (np.diff(found(np.linspace(0, 8, 50))) >= 0).all()
    nothing = Threshold.of(8.0, LevelAnswers(levels[:0], levels[:0] > 5))
    assert nothing.deviation > 2
    assert search_result(8.0, LevelAnswers(levels[:3], levels[:3] > 5), 3.0) is None


def test_later_answers_do_not_change_whether_the_threshold_was_found():
    levels, same = np.tile([3.9, 4.1], 20), np.tile([False, True], 20)
    found = search_result(8.0, LevelAnswers(levels, same), 3.0)
    assert found is not None
    later = search_result(8.0, LevelAnswers(np.append(levels, 7.0), np.append(same, False)), 3.0)
    assert later.median == found.median


def test_the_search_ends_soon_if_there_are_few_groups(seed):
    levels = np.random.default_rng(seed).uniform(0, 4, size=30)
    found = search_result(8.0, LevelAnswers(levels, levels > 1.5), 3.7)
    assert found is not None
    assert found.above(3.7) < 0.1


def test_more_answers_make_better_groups(seed):
    X, y = groups(seed, np.full(150, 8), n_columns=10, spread=0.4)
    questions = answered(Questions(X, Auto(), random_state=0), y, 50)
    before = adjusted_rand_score(y, questions.labels())
    answered(questions, y, 150)
    after = adjusted_rand_score(y, questions.labels())
    assert before > 0.6
    assert after > before
    labels = questions.labels()
    for pair, answer in ((pair, answer) for one in questions.view.told for pair, answer in one):
        assert (labels[pair.first] == labels[pair.second]) == (answer is SAME)


def test_a_sample_of_the_rows_represents_them(seed, monkeypatch):
    monkeypatch.setattr(_group_tree, "_MOST_POINTS", 600)
    monkeypatch.setattr(_group_tree, "_PREPARED", 100)
    X, y = groups(seed, np.full(150, 8), n_columns=10, spread=0.35)
    same = np.array([np.flatnonzero(y == group)[:2] for group in range(10)])  # most are not in the sample
    known = Constraints(must_link=same[:5], cannot_link=same[5:])
    questions = answered(Questions(X, Auto(), constraints=known, random_state=0), y, 60)
    assert questions.strategy.has_many_groups(questions.view)
    labels = questions.labels()
    assert adjusted_rand_score(y, labels) > 0.8
    assert (labels[same[:5, 0]] == labels[same[:5, 1]]).all()
    assert (labels[same[5:, 0]] != labels[same[5:, 1]]).all()


def test_a_resumed_log_asks_the_same_about_merges(seed):
    X, y = groups(seed, np.full(80, 6), n_columns=6)
    questions = answered(Questions(X, Auto(), random_state=0), y, 60)
    resumed = Questions(X, Auto(), random_state=0)
    resumed.replay(questions.answers)
    assert resumed.ask() == questions.ask()
    assert (resumed.labels() == questions.labels()).all()


def test_every_pair_is_decided_in_the_end(seed):
    def ask(view, rng):
        while (pair := TreeQuestions(0).next_question(view)) is not None:
            yield pair

    X, y = groups(seed, np.full(10, 3), n_columns=3, spread=0.3)
    questions, oracle = Questions(X, ask, random_state=0), Oracle(y)
    while (pair := questions.ask()) is not None:
        questions.tell(pair, oracle(pair))
    assert adjusted_rand_score(y, TreeQuestions(0).labels(questions.view)) == 1


def test_few_groups_are_not_many():
    X, y = groups(0, np.full(5, 40), n_columns=4, spread=0.2)
    view = answered(Questions(X, Auto(groups="large"), random_state=0), y, 60).view
    assert not TreeQuestions(0).has_many_groups(view, LargeGroups.of(y, 5))


def test_the_posterior_given_one_more_answer_is_that_of_all_answers(seed):
    levels = np.random.default_rng(seed).choice(np.linspace(0, 8, 500), size=30)  # rounded as in the posterior
    same = levels > 5
    first = Threshold.of(8.0, LevelAnswers(levels[:-1], same[:-1]))
    both = Threshold.of(8.0, LevelAnswers(levels, same))
    np.testing.assert_allclose(first.given(levels[-1], bool(same[-1]), 0.05).weights, both.weights, atol=1e-12)


def test_the_cut_is_the_best_of_all_cuts(seed):
    rng = np.random.default_rng(seed)
    grown = GroupTree.of(rng.normal(size=(40, 3)))
    levels = rng.uniform(0, np.log(40), size=20)
    found = Threshold.of(grown.levels[0], LevelAnswers(levels, levels > 2))
    right, n_pairs = grown.stakes * found(grown.levels), grown.stakes.sum()
    scores = [2 * right[:n].sum() / (grown.stakes[:n].sum() + right.sum()) for n in range(1, 40)]
    cut = found.cut(grown)
    assert cut.n_merges == 1 + np.argmax(scores)
    np.testing.assert_allclose(cut[1:], [part[: cut.n_merges].sum() / n_pairs for part in (right, grown.stakes)])


def test_large_groups_are_worse_if_their_rows_differ():
    large, cut = LargeGroups(10, [], 0.1), Cut(100, 0.009, 0.01)
    assert large.worse(0, 8, cut) > 0.95
    assert large.worse(6, 2, cut) < 0.05
    assert large.worse(4, 4, cut) < large.worse(2, 6, cut)


def test_large_groups_with_hardly_any_true_pair_are_worse_than_a_moderate_tree():
    """Two large groups of 5,000 overlapping ones: their pairs are always different, and the tree finds a third."""
    assert LargeGroups(2, [], 0.5).worse(0, 12, Cut(20_000, 0.00007, 0.00012)) > 0.5
    assert LargeGroups(2, [], 0.5).worse(1, 11, Cut(20_000, 0.00007, 0.00012)) < 0.2


def overlapping():
    """Sixteen Gaussians that overlap so much that the first answers speak for ten times as many groups."""
    rng = np.random.default_rng(4)
    sizes = (rng.dirichlet(np.full(16, 4)) * 900).astype(int)
    y = np.repeat(np.arange(16), sizes)
    centers = rng.normal(size=(16, 6)) * 1.5
    return centers[y] + rng.normal(size=(len(y), 6)), y


def test_a_tree_that_is_worse_than_large_groups_is_not_used():
    X, y = overlapping()
    questions = Questions(X, Auto(), random_state=0)
    without = adjusted_rand_score(y, questions.labels())
    answered(questions, y, 44)
    assert questions.ask().why == "Are the groups large or small?"
    answered(questions, y, 16)
    assert not questions.strategy.has_many_groups(questions.view)
    assert adjusted_rand_score(y, questions.labels()) > without - 0.02


def test_pairs_within_large_groups_may_wait_or_be_unsure():
    X, y = overlapping()
    questions = answered(Questions(X, Auto(), random_state=0), y, 44)
    asked = questions.ask(12)
    assert len({pair.key for pair in asked}) == 12
    for pair in asked:
        questions.tell(pair, "unsure")
    assert questions.ask() is not None
    assert len(questions.labels()) == len(y)


def test_a_question_that_waits_does_not_decide_between_the_tree_and_large_groups(monkeypatch):
    monkeypatch.setattr(_group_tree, "_SURE", 0.5)  # the first answer decides
    X, y = overlapping()
    questions = answered(Questions(X, Auto(), random_state=0), y, 44)
    waiting, unsure = questions.ask(2)
    assert waiting.why == unsure.why == "Are the groups large or small?"
    questions.tell(unsure, "unsure")
    assert not questions.strategy.has_many_groups(questions.view)
    decisive = questions.ask()
    assert decisive.why == waiting.why
    questions.tell(decisive, "different")
    assert questions.ask().why != waiting.why


def test_the_comparison_waits_for_all_answers_if_it_is_never_sure(monkeypatch):
    monkeypatch.setattr(_group_tree, "_SURE", 1.0)
    X, y = overlapping()
    questions = answered(Questions(X, Auto(), random_state=0), y, 44)
    *asked, last = questions.ask(12)
    for pair in asked:
        questions.tell(pair, "different")
    assert not questions.strategy.has_many_groups(questions.view)
    questions.tell(last, "different")
    assert questions.strategy.has_many_groups(questions.view)


@pytest.mark.slow
def test_wrong_answers_are_overruled_if_an_error_rate_is_given(seed):
    X, y = groups(seed, np.full(80, 10), n_columns=10, spread=0.3)
    found = {}
    for rate in (None, 0.1):
        questions, oracle = Questions(X, Auto(), error_rate=rate, random_state=0), Oracle(y)
        for n_asked in range(100):
            pair = questions.ask()
            is_flipped = n_asked >= 40 and n_asked % 6 == 0
            questions.tell(pair, oracle(pair) if not is_flipped else SAME if oracle(pair) is DIFFERENT else DIFFERENT)
        assert questions.strategy.has_many_groups(questions.view)
        found[rate] = adjusted_rand_score(y, questions.labels())
    assert found[0.1] > found[None]
    assert found[0.1] > 0.9


def test_corrections_hold_if_answers_may_be_wrong(seed):
    X, y = groups(seed, np.full(80, 6), n_columns=10, spread=0.3)
    questions = answered(Questions(X, Auto(), error_rate=0.1, random_state=0), y, 50)
    assert questions.strategy.has_many_groups(questions.view)
    one, two = (np.flatnonzero(y == group) for group in (0, 1))
    said = (Pair(int(one[0]), int(two[0])), SAME), (Pair(int(one[1]), int(one[2])), DIFFERENT)
    questions.add(Answered(Stated(said), SAME))
    labels = questions.labels()
    assert labels[one[0]] == labels[two[0]]
    assert labels[one[1]] != labels[one[2]]
