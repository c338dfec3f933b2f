"""`UncertainMatches` on tables of records."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.record_tables import record_table
from clew import Constraints
from clew.active import DIFFERENT, SAME, Answered, Auto, Oracle, Pair, Questions, Stated, UncertainMatches
from clew.datasets import as_table
from clew.evaluation import pairwise_scores
from clew.exceptions import DataError, ParameterError


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
