"""`UncertainMatches` on tables of records."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.record_tables import record_table
from clew import Constraints
from clew.active import Auto, Oracle, Questions, UncertainMatches
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
