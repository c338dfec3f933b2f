"""Laws of input: tables as vectors, answers from files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from clew.constraints import AnswerRecord, read_answers, write_answers
from clew.constraints.formats import NAMES
from clew.datasets import encode
from clew.exceptions import ClewError
from tests.helpers import examples

# What a csv cell can hold and give back: no NUL, no lone surrogates, no spaces around it that ids lose anyway.
words = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).map(str.strip).filter(bool)
records = st.builds(
    AnswerRecord,
    words,
    words,
    st.sampled_from(["same", "different", "unsure"]),
    st.floats(0.01, 1),
    st.none() | words,
    st.none() | words,
    st.none() | st.floats(0, 1e6),
    st.none() | words,
    st.none() | words,
)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
@given(given_records=st.lists(records, max_size=5))
def test_answers_survive_a_file(ending, given_records):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"answers.{ending}")
        write_answers(path, given_records)
        assert list(read_answers(path)) == given_records


keys = st.sampled_from(
    ["id", "id_1", "id_2", "answer", "data", "annotations", "result", "choices", "value", "type", "fields", "responses",
     "z_cluster", "z_isMatch", "match", "distinct", "__class__", "__value__", "constraint_type", "_task_hash", "accept",
     "annotation_id", "lead_time", "unique_id_l", "unique_id_r", "clerical_match_score", "meta", "status", "options"]
)  # fmt: skip
leaves = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["same", "accept", "choices", "MUST_LINK", ""])
)

shapes = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5))


@examples(300)
@given(content=shapes, format=st.none() | st.sampled_from(NAMES))
def test_any_json_is_read_or_refused_in_words(content, format):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.json")
        path.write_text(json.dumps(content))
        said = "a.json"
        try:
            answers = read_answers(path, format=format, table={1: {"id": 2}})
        except ClewError as error:
            answers, said = [], str(error)
        assert "a.json" in said
        assert all(record.answer in ("same", "different", "unsure") for record in answers)


@st.composite
def tables(draw):
    n_rows = draw(st.integers(4, 8))

    def column(cells):
        return st.lists(cells, min_size=n_rows, max_size=n_rows)

    return pd.DataFrame(
        {
            "number": draw(column(st.integers(-5, 5) | st.none())),
            "word": draw(column(st.sampled_from(["red", "blue", ""]))),
            "day": draw(column(st.dates().map(str))),
            "size": list(range(n_rows)),
        }
    )


@given(frame=tables(), data=st.data())
def test_order_of_rows_does_not_matter(frame, data):
    order = data.draw(st.permutations(range(len(frame))))
    straight, shuffled = encode(frame), encode(frame.iloc[order])
    assert straight.kinds == shuffled.kinds
    # Sums run in another order.
    assert_allclose(shuffled.X, straight.X[order], atol=1e-9)


@given(frame=tables())
def test_weights_add_up_and_every_column_without_gaps_weighs_the_same(frame):
    encoded = encode(frame)
    used = [column for column in encoded.columns if column.kind != "left out"]
    weights = [column.weight for column in used]
    assert_allclose(sum(weights), 1)
    whole = [column.weight for column in used if not (frame[column.name].isna() | (frame[column.name] == "")).any()]
    assert_allclose(whole, max(weights))  # columns with gaps weigh less
    assert encoded.X.shape == (len(frame), sum(column.n_features for column in encoded.columns))
    assert np.isfinite(encoded.X).all()
