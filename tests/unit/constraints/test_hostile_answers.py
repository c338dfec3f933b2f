"""Files of other tools with one invalid value: they are still read, or refused in a sentence."""

import copy
import json
import math

import pytest

from clew.constraints import read_answers
from clew.exceptions import ClewError
from tests.unit.constraints.test_foreign_files import (
    DEDUPE,
    OPTIONS,
    TABLE,
    ZINGG,
    annotation,
    constraint,
    prodigy,
    task,
)

SPLINK = [{"unique_id_l": "a", "unique_id_r": "b", "clerical_match_score": 1.0}]
ARGILLA = [
    {
        "id": "r1",
        "fields": {"id_1": "a", "id_2": "b"},
        "metadata": {},
        "responses": {"verdict": [{"value": "same", "user_id": "u-1"}], "why": [{"value": "phone", "user_id": "u-1"}]},
    }
]
ARGILLA_1 = [
    {
        "fields": {"id_1": "a", "id_2": "b"},
        "responses": [{"user_id": "u1", "status": "submitted", "values": {"verdict": {"value": "distinct"}}}],
    }
]
OURS = [{"id_1": "a", "id_2": "b", "answer": "same", "confidence": 0.5, "seconds": 1, "annotator": "ann", "time": "t"}]
DOCUMENTS = {
    "splink": SPLINK,
    "zingg": ZINGG[:4],
    "dedupe": DEDUPE,
    "label-studio": [task(1, "a", "b", annotation("Same", completed_by={"id": 9, "email": "kim@example.org"}))],
    "argilla": ARGILLA,
    "argilla 1": ARGILLA_1,
    "prodigy": [prodigy(answer="accept", options=OPTIONS, accept=[2], comment="twins")],
    "cognitivefactory": {"(a,b)": constraint("a", "b", "MUST_LINK", comment="clear")},
    "clew": OURS,
}
ODD = [None, True, 0, -1, 2**70, 1e300, math.nan, math.inf, "", " ", "\x00", "\ud800", "x" * 1000, [], [[]], [None], {},
       {"\ud800": 1}, {"__class__": "tuple", "__value__": 3}, ["a", "b", "c"]]  # fmt: skip


def places(value, path=()):
    """Every place of a document, from the outside in."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, (*path, key))


def changed(document, path, value):
    """The document with another value at a place."""
    if not path:
        return value
    whole = copy.deepcopy(document)
    inside = whole
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return whole


@pytest.mark.parametrize("tool", DOCUMENTS)
def test_one_odd_value(tmp_path, tool):
    document, table = DOCUMENTS[tool], {**TABLE, "d": {"name": "Nan"}}
    failures, file = [], tmp_path / "odd.json"
    for path in places(document):
        for value in ODD:
            file.write_text(json.dumps(changed(document, path, value)))
            try:
                read_answers(file, table=table)
            except Exception as error:
                if not isinstance(error, ClewError) or "odd.json" not in str(error):
                    failures.append((path, value, repr(error)))
    assert not failures
