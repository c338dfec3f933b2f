"""Values that no schema generates: the server refuses invalid bodies, addresses and files in a sentence."""

import io
import json
import re
from datetime import datetime
from decimal import Decimal

import pytest

from clew.web import create_app

DIGITS = "9" * 5000  # more than Python reads as an integer
DEEP = "[" * 50_000
# As JSON text: json.dumps cannot write all of them.
NASTY = {
    "many digits": DIGITS,
    "negative digits": f"-{DIGITS}",
    "a large integer": str(2**64),
    "a large float": "1e400",
    "not a number": "NaN",
    "infinity": "-Infinity",
    "a lone surrogate": '"\\ud800"',
    "the character 0": '"\\u0000"',
    "text of digits": f'"{DIGITS}"',
    "blank": '" "',
    "deep": DEEP + "]" * 50_000,
    "unfinished": DEEP,
    "a surrogate as a name": '{"\\udfff": 1}',
    "a list": "[1, [2], null]",
    "true": "true",
    "null": "null",
}
EXAMPLES = {
    "Next": {"annotator": "ann", "n": 1, "holding": [1]},
    "Held": {"questions": [1]},
    "Visit": {"annotator": "ann", "browser": "b"},
    "AnswerBody": {
        "question": 1, "answer": "same", "annotator": "ann", "seconds": 1, "confidence": 1, "comment": "c",
        "flag": False, "about": ["a", "b"],
    },
    "Revised": {"answer": "same", "annotator": "ann", "confidence": 1, "comment": "c"},
    "Confirmed": {"annotator": "ann"},
    "Undo": {"annotator": "ann"},
    "Resolved": {"how": "soft", "answer_id": 1, "answer": "same", "annotator": "ann"},
    "Named": {"name": "n", "annotator": "ann"},
    "NewGrouping": {"name": "n", "n_clusters": 2, "annotator": "ann"},
    "GroupingName": {"name": "n", "annotator": "ann"},
    "CorrectionBody": {"kind": "split", "cluster": 0, "rows": ["a"], "annotator": "ann"},
    "Settings": {
        "n_clusters": 3, "method": None, "strategy": None, "metric": "euclidean", "columns": ["x"], "scale": "auto",
        "text": "auto", "overlap": 1, "lease_seconds": 60, "check_share": 0, "random_state": 0, "annotator": "ann",
    },
}  # fmt: skip
DOCUMENT = create_app(None, token="a-token").openapi()


def bodies():
    """Each route that takes JSON, with the name of what it takes."""
    for path, methods in DOCUMENT["paths"].items():
        for method, route in methods.items():
            schema = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if schema is not None:
                yield method, path, re.search(r"schemas/([\w-]+)", json.dumps(schema))[1]


def parameters():
    """Each route with an address that varies."""
    for path, methods in DOCUMENT["paths"].items():
        for method, route in methods.items():
            if route.get("parameters"):
                yield method, path, route["parameters"]


def with_value(example, field, value):
    """An example as JSON text, one field of which holds this."""
    whole = json.dumps(example | {field: "<here>"})
    assert '"<here>"' in whole
    return whole.replace('"<here>"', value)


def check(response, *about):
    assert response.status_code < 500, (*about, response.text)
    if response.status_code >= 400:
        assert response.json()["error"], about


@pytest.mark.parametrize(("method", "path", "kind"), list(bodies()))
def test_bodies(client, method, path, kind):
    path = re.sub(r"\{\w+\}", "1", path)
    assert set(EXAMPLES[kind]) <= set(DOCUMENT["components"]["schemas"][kind]["properties"])
    headers = {"Content-Type": "application/json"}
    for name, value in NASTY.items():
        for field in EXAMPLES[kind]:
            sent = with_value(EXAMPLES[kind], field, value)
            check(client.request(method, path, content=sent, headers=headers), field, name)
        check(client.request(method, path, content=value, headers=headers), name)
    for content in (b"\xff\xfe", b"", b'{"annotator": "\xff"}', b"\xef\xbb\xbf{}"):
        check(client.request(method, path, content=content, headers=headers), content)


WORDS = (DIGITS, f"-{DIGITS}", "1e400", "nan", "%ED%A0%80", "%00", "%ff", "", "2147483648", "../..", "%F0%9F%98%80")


@pytest.mark.parametrize(("method", "path", "needed"), list(parameters()))
def test_addresses(client, method, path, needed):
    usual = {"name": "a.csv", "ids": "a", "id": "a", "column": "x", "what": "labels"}
    for word in WORDS:
        for varied in needed:
            values = {one["name"]: usual.get(one["name"], "1") for one in needed if one["required"]}
            values[varied["name"]] = word
            where = path
            for one in needed:
                if one["in"] == "path":
                    where = where.replace(f"{{{one['name']}}}", values.pop(one["name"]) or "-")
            query = "&".join(f"{name}={value}" for name, value in values.items())
            check(client.request(method, f"{where}?{query}"), varied["name"], word)


def parquet(columns):
    pyarrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    stream = io.BytesIO()
    writer.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


def files():
    """Names and contents of files that are not what they seem."""
    fields = {
        "/api/answers/import": {"id_1": "a", "id_2": "b", "answer": "same", "confidence": 1, "seconds": 1, "time": "t",
                                "annotator": "ann", "comment": "c"},
        "/api/rows": {"name": "m", "x": 1, "y": 1, "note": "n"},
    }  # fmt: skip
    for path, example in fields.items():
        for name, value in NASTY.items():
            for field in example:
                line = with_value(example, field, value)
                for ending, content in (("jsonl", line), ("json", f"[{line}]")):
                    yield pytest.param(path, f"a.{ending}", content, id=f"{path} {ending} {field}: {name}")
            yield pytest.param(path, "a.json", value, id=f"{path} json: {name}")
            cells = json.dumps(list(example.values()))[1:-1].replace('"', "")
            first = value.strip('"')[:6000]
            csv = ",".join(example) + "\n" + first + cells[cells.index(",") :].replace(" ", "") + "\n"
            yield pytest.param(path, "a.csv", csv, id=f"{path} csv: {name}")
        yield pytest.param(path, "a.csv", b"\xff\xfe\x00", id=f"{path} csv: not UTF-8")
        yield pytest.param(path, "a.csv", "\x00\n\x00", id=f"{path} csv: zeros")
        yield pytest.param(path, "a.csv", ",".join(example) + '\n"', id=f"{path} csv: unfinished")
    for word in ("match", "distinct", "unsure"):
        for name, value in NASTY.items():
            yield pytest.param("/api/answers/import", "a.json", f'{{"{word}": {value}}}', id=f"dedupe {word}: {name}")
            pair = f'{{"{word}": [[{{"name": "a"}}, {value}]], "distinct": [[{{"name": "a"}}, {{"name": "b"}}]]}}'
            yield pytest.param("/api/answers/import", "a.json", pair, id=f"dedupe pair {word}: {name}")
            coded = f'{{"{word}": [{{"__class__": "tuple", "__value__": {value}}}]}}'
            yield pytest.param("/api/answers/import", "a.json", coded, id=f"dedupe tuple {word}: {name}")


def test_files(client):
    for case in files():
        path, name, content = case.values
        check(client.post(path, params={"name": name}, content=content), case.id)


@pytest.mark.parametrize("path", ["/api/answers/import", "/api/rows"])
def test_cells_that_are_vectors(client, path):
    names = ("id_1", "id_2", "answer", "confidence") if path.endswith("import") else ("name", "x", "y", "note")
    usual = ("a", "b", "same", 1.0) if path.endswith("import") else ("m", 1.0, 1.0, "n")
    odd = ([1.0, 2.0], [], [None], {"a": 1}, b"\xff", None, datetime.max, Decimal("1e30"), True)
    for field in names:
        for value in odd:
            columns = {name: [value if name == field else one] for name, one in zip(names, usual, strict=True)}
            check(client.post(path, params={"name": "a.parquet"}, content=parquet(columns)), field, value)
