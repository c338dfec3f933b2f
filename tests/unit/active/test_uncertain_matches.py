"""`UncertainMatches` on tables of records."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit

from benchmarks.record_kinds import faces
from benchmarks.record_tables import record_table
from clew import Constraints
from clew.active import DIFFERENT, SAME, Answered, Auto, Oracle, Pair, Questions, Stated, UncertainMatches
from clew.active._match_groups import group_answers
from clew.active._match_stakes import clusters_around, expected_changes, judged_by_clusters
from clew.datasets import as_table, encode
from clew.evaluation import pairwise_scores
from clew.exceptions import DataError, ParameterError
from clew.matching._match_clustering import grouped
from clew.matching._pair_model import ANSWER_WEIGHT, Candidates


def f(y, labels):
    return pairwise_scores(y, labels, Constraints(n_samples=len(y))).f


def asking(name, n_rows=300, seed=0, **rest):
    found = record_table(name, n_rows, seed)
    table = as_table(found.columns)
    return Questions(np.zeros((table.n_rows, 1)), UncertainMatches(), random_state=0, records=table, **rest), found


def answer(questions, oracle, n):
    for _ in range(n):
        pair = questions.ask()
        questions.tell(pair, oracle(pair))


@pytest.mark.sampled(2, slow=1)
@pytest.mark.parametrize("name", ["addresses", "songs"])
def test_answers_find_the_duplicates_that_the_data_alone_do_not(name, seed):
    questions, found = asking(name, seed=seed)
    before = f(found.entity, questions.labels())
    answer(questions, Oracle(found.entity), 40)
    after = f(found.entity, questions.labels())
    assert after > max(before, 0.9)


def test_both_answers_occur(seed):
    questions, found = asking("publications", seed=seed)
    answer(questions, Oracle(found.entity), 30)
    said = questions.view.said[:, 2]
    assert 5 <= (said == 1).sum() <= 25


def test_one_record_per_source_is_never_asked_about(seed):
    found = record_table("companies_sources", 200, seed)
    table = as_table(found.columns)
    known = Constraints(cannot_groups=found.source)
    questions = Questions(
        np.zeros((table.n_rows, 1)), UncertainMatches(), constraints=known, random_state=0, records=table
    )
    answer(questions, Oracle(found.entity), 20)
    asked = questions.view.said[:, :2]
    assert (found.source[asked[:, 0]] != found.source[asked[:, 1]]).all()


def test_records_must_be_a_table_with_a_row_for_each_row():
    with pytest.raises(ParameterError, match="expected a table"):
        Questions([[1.0], [2.0]], UncertainMatches(), records=[[1.0], [2.0]])
    with pytest.raises(DataError, match="records has 2 rows, but X has 3"):
        Questions([[0.0], [1.0], [2.0]], UncertainMatches(), records=[{"a": "x"}, {"a": "y"}])


PEOPLE = [
    {"name": "Ann Meyer", "city": "Bonn", "phone": "4711"},
    {"name": "Anne Meyer", "city": "Bonn", "phone": "4711"},
    {"name": "Bob Smith", "city": "Rome", "phone": "1234"},
    {"name": "Bob Smyth", "city": "Rome", "phone": ""},
    {"name": "Zoe Adler", "city": "Oslo", "phone": "9999"},
]


@pytest.mark.parametrize("strategy", [UncertainMatches(), Auto(groups="small")])
def test_a_table_is_asked_about_as_it_is(strategy):
    questions = Questions(PEOPLE, strategy, random_state=0)
    assert questions.view.records.columns == ["name", "city", "phone"]
    assert questions.labels().tolist() == [0, 0, 1, 1, 2]
    answer(questions, Oracle([0, 0, 1, 1, 2]), 3)
    assert questions.labels().tolist() == [0, 0, 1, 1, 2]


def test_wrong_answers_are_overruled_by_the_model(seed):
    questions, found = asking("products", seed=seed)
    answer(questions, Oracle(found.entity, noise=0.15, random_state=seed), 60)
    said = questions.view.said
    truth = np.where(found.entity[said[:, 0]] == found.entity[said[:, 1]], 1, -1)
    labels = questions.labels()
    followed = np.where(labels[said[:, 0]] == labels[said[:, 1]], 1, -1) == said[:, 2]
    wrong = truth != said[:, 2]
    assert wrong.sum() >= 3
    assert followed[~wrong].mean() > 0.9
    assert followed[wrong].mean() < 0.5
    assert f(found.entity, labels) > 0.93


def test_right_answers_are_facts(seed):
    questions, found = asking("people", seed=seed)
    answer(questions, Oracle(found.entity), 40)
    said, labels = questions.view.said, questions.labels()
    assert ((labels[said[:, 0]] == labels[said[:, 1]]) == (said[:, 2] == 1)).all()


def test_corrections_and_prior_constraints_hold_among_wrong_answers(seed):
    found = record_table("people", 200, seed)
    table = as_table(found.columns)
    far, near = _far_and_near(found.entity)
    known = Constraints(must_link=[far[0]], cannot_link=[near[0]])
    questions = Questions(
        np.zeros((table.n_rows, 1)), UncertainMatches(), constraints=known, random_state=0, records=table
    )
    questions.add(Answered(Stated(((Pair(*far[1]), SAME), (Pair(*near[1]), DIFFERENT))), SAME))
    answer(questions, Oracle(found.entity, noise=0.3, random_state=seed), 40)
    labels = questions.labels()
    for one, two in far:
        assert labels[one] == labels[two]
    for one, two in near:
        assert labels[one] != labels[two]


def _far_and_near(entity):
    """Two pairs of different people, and two pairs of records of one person, all without a common row."""
    groups = [np.flatnonzero(entity == one) for one in range(entity.max() + 1)]
    large = [tuple(rows[:2].tolist()) for rows in groups if len(rows) == 2][:2]
    alone = [int(rows[0]) for rows in groups if len(rows) == 1][:4]
    return [(alone[0], alone[1]), (alone[2], alone[3])], large


def test_a_column_of_dates_with_many_other_cells_is_compared_as_text(seed):
    found = record_table("people_dirty", 200, seed)
    questions = Questions(as_table(found.columns), UncertainMatches(), random_state=0)
    answer(questions, Oracle(found.entity), 5)
    assert f(found.entity, questions.labels()) > 0.7


@pytest.mark.parametrize(
    ("rows", "n_groups"),
    [
        ([{"name": word} for word in ("ann", "bob", "cleo", "dave", "eve")], 5),
        ([{"name": "ann", "city": "rome"}] * 4 + [{"name": "zoe", "city": "oslo"}] * 2, 2),
        ([{"name": "ann"}, {"name": "anne"}, {"name": ""}, {"name": "bob"}], None),
    ],
)
def test_odd_tables_can_be_asked_about(rows, n_groups):
    questions = Questions(rows, UncertainMatches(), random_state=0)
    labels = questions.labels()
    assert n_groups is None or len(set(labels.tolist())) == n_groups
    while (pair := questions.ask()) is not None:
        questions.tell(pair, "different" if rows[pair.first] != rows[pair.second] else "same")
    labels = questions.labels()
    for one, two in [(0, 1), (0, 2), (2, 3)]:
        assert (labels[one] == labels[two]) == (rows[one] == rows[two])


def test_contradictory_answers_are_kept_and_used_as_evidence(seed):
    questions, found = asking("people", 160, seed)
    answer(questions, Oracle(found.entity), 10)
    group = next(rows for rows in map(np.flatnonzero, found.entity == np.arange(60)[:, None]) if len(rows) >= 3)
    for one, two, word in [(0, 1, "same"), (1, 2, "same"), (0, 2, "different")]:
        questions.add(Answered(Pair(int(group[one]), int(group[two])), word))
    assert len(questions.conflicts) == 1
    assert len(questions.answers) == 13
    assert len(set(questions.labels()[group].tolist())) <= 2


def test_doubtful_answers_get_a_second_opinion_and_no_pair_more_than_three(seed):
    questions, found = asking("people_dirty", seed=seed)
    oracle, seen, repeated = Oracle(found.entity, noise=0.25, random_state=seed), Counter(), 0
    for _ in range(60):
        pair = questions.ask()
        if seen[pair.key]:
            assert pair.check and questions.strategy.repeats_questions(questions.view)
            repeated += 1
        seen[pair.key] += 1
        questions.tell(pair, oracle(pair))
    assert repeated
    assert max(seen.values()) <= 3


def test_no_pair_is_asked_twice_if_answers_are_trusted(seed):
    found = record_table("people_dirty", 200, seed)
    questions = Questions(as_table(found.columns), UncertainMatches(), random_state=0, error_rate=0)
    oracle, seen = Oracle(found.entity, noise=0.25, random_state=seed), set()
    for _ in range(40):
        pair = questions.ask()
        assert pair.key not in seen
        seen.add(pair.key)
        questions.tell(pair, oracle(pair))


def test_expected_changes_of_a_merge_and_of_a_split():
    # Clusters {0, 1} and {2}; the candidates between them have the mean log-odds -1.
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    worth = expected_changes(pairs, np.array([3.0, 0.0, -2.0]), np.array([0, 0, 1]), np.arange(3))
    np.testing.assert_allclose(worth, [expit(-3.0), expit(-1.0) * np.sqrt(2), expit(-1.0) * np.sqrt(2)])
    # One cluster {0, 1, 2} in which answers join 0 and 1: the split takes the row 2 away from two rows.
    worth = expected_changes(pairs, np.array([3.0, 0.0, -2.0]), np.zeros(3, dtype=int), np.array([0, 0, 1]))
    np.testing.assert_allclose(worth[1:], expit(1.0) * np.sqrt(2))


def test_an_answer_counts_for_the_groups_that_it_is_about():
    # Clusters {0, 1, 2} and {3, 4}; the answer "different" about (0, 3) is also about (1, 4).
    pairs = np.array([[0, 1], [0, 3], [1, 2], [1, 4], [3, 4], [5, 6]])
    features = np.array([[4.0], [-1.0], [2.0], [-3.0], [5.0], [9.0]], dtype=np.float32)
    candidates = Candidates(pairs, features, np.zeros(6), np.empty((6, 0), dtype=np.int8), None)
    found = group_answers(candidates, np.arange(5), np.array([0, 0, 0, 1, 1, 0, 0]), np.array([[0, 3]]))
    np.testing.assert_allclose(found.features[:, 0], [3.0, -2.0, 5.0])  # within, between, within
    assert found.same.tolist() == [1, 0, 1]
    np.testing.assert_allclose(found.weights, ANSWER_WEIGHT)
    # With an answer "same" within the first cluster, only this answer counts there.
    twice = group_answers(candidates, np.arange(5), np.array([0, 0, 0, 1, 1, 0, 0]), np.array([[0, 3], [0, 1], [1, 2]]))
    np.testing.assert_allclose(twice.weights, [2 * ANSWER_WEIGHT, ANSWER_WEIGHT, ANSWER_WEIGHT])


@pytest.mark.slow
def test_right_answers_about_vectors_do_not_split_right_groups():
    X, entity = faces(500, 1)
    questions = Questions(X, UncertainMatches(), random_state=0)
    answer(questions, Oracle(entity), 100)
    assert f(entity, questions.labels()) > 0.95  # 0.83 with the asked pairs alone, 0.86 without any answer


@pytest.mark.slow
def test_wrong_answers_about_vectors_leave_evidence_about_groups():
    X, entity = faces(500, 1)
    scores = []
    for seed in range(3):
        questions = Questions(X, UncertainMatches(), random_state=0)
        answer(questions, Oracle(entity, noise=0.1, random_state=seed), 100)
        scores.append(f(entity, questions.labels()))
    assert np.mean(scores) > 0.94  # 0.93 with the asked pairs alone, 0.87 without any answer


def test_a_decision_is_judged_by_all_candidates_but_without_the_own_answer():
    # Clusters {0, 1} and {2}: the answer about (0, 2) is judged by (1, 2) and by its own left-out log-odds.
    pairs, log_odds, left_out = (
        np.array([[0, 1], [0, 2], [1, 2]]),
        np.array([3.0, 8.0, -2.0]),
        np.array([3.0, 0.0, -2.0]),
    )
    judged = judged_by_clusters(log_odds, left_out, pairs, np.array([0, 0, 1]), np.arange(3))
    np.testing.assert_allclose(judged, [3.0, (0.0 - 2.0) / 2, (8.0 - 2.0) / 2])
    # One cluster: of the rows 0 and 2, the row 2 fits worse, with the mean of 0 (left out) and -2.
    judged = judged_by_clusters(log_odds, left_out, pairs, np.zeros(3, dtype=int), np.arange(3))
    np.testing.assert_allclose(judged[1], (0.0 - 2.0) / 2)


def test_clusters_around_some_candidates_are_those_of_all_rows(seed):
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.sort(rng.integers(60, size=(70, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    log_odds = rng.normal(-0.5, 2, size=len(pairs))
    known = Constraints(must_link=[(0, 1)], cannot_link=[(2, 3)], n_samples=60)
    closed = known.closure()
    whole = grouped(pairs, log_odds, closed, -1.0, np.random.default_rng(0))
    inside, clusters = clusters_around(
        np.arange(5), pairs, log_odds, closed.component_of, known, -1.0, np.random.default_rng(0)
    )
    assert set(range(5)) <= set(inside.tolist())
    weights = np.full((60, 60), -1.0)
    weights[pairs[:, 0], pairs[:, 1]] = weights[pairs[:, 1], pairs[:, 0]] = log_odds
    np.fill_diagonal(weights, 0)
    rows = np.unique(pairs[inside])
    gains = [
        (weights[np.ix_(rows, rows)] * (labels[rows][:, None] == labels[rows])).sum() for labels in (clusters, whole)
    ]
    # Both searches end in local optima, which need not be the same.
    np.testing.assert_allclose(*gains, rtol=0.05)


@pytest.mark.parametrize("groups", ["small", "auto"])
def test_records_whose_texts_share_no_word_are_compared(groups):
    rows = [{"code": code} for code in ("qw", "er", "ty", "ui", "op")]
    questions = Questions(rows, Auto(groups=groups), random_state=0)
    assert questions.ask() is not None
    assert len(questions.labels()) == len(rows)
    with pytest.raises(DataError, match="share a word"):
        encode(rows)
