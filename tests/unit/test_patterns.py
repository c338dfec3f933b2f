"""Every regular expression of the package takes time that grows with the text, not with its square or worse."""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]

import pytest

import clew
from clew.datasets import encode

ROOT = Path(clew.__file__).parent
LENGTH = 40_000
# Seconds: a linear pattern needs a tenth of this for all strings below, a quadratic one minutes.
PATIENCE = 2.0
_FUNCTIONS = {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"}


@cache
def patterns() -> list[tuple[str, str]]:
    """Each pattern in the source, by the file that holds it: arguments of `re` and token patterns of vectorisers."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "import re" in text or "token_pattern" in text else ():
            if not isinstance(node, ast.Dict | ast.Call):
                continue
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            if isinstance(node, ast.Dict):
                entries = zip(node.keys, node.values, strict=True)
                found += [(where, value.value) for key, value in entries
                          if isinstance(key, ast.Constant) and key.value == "token_pattern"
                          and isinstance(value, ast.Constant)]  # fmt: skip
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if of_re and node.func.attr in _FUNCTIONS:
                assert isinstance(node.args[0], ast.Constant), f"{where}: write the pattern where it is used"
                found.append((where, node.args[0].value))
    return found


def _letters(parsed: object) -> set[str]:
    """Characters that the parts of a pattern accept."""
    kinds = {
        _constants.CATEGORY_DIGIT: "0", _constants.CATEGORY_WORD: "a", _constants.CATEGORY_SPACE: " ",
        _constants.CATEGORY_NOT_DIGIT: "x", _constants.CATEGORY_NOT_SPACE: "x", _constants.CATEGORY_NOT_WORD: "-",
    }  # fmt: skip
    letters: set[str] = set()
    stack = [parsed]
    while stack:
        part = stack.pop()
        if isinstance(part, tuple) and part and part[0] in (_constants.LITERAL, _constants.NOT_LITERAL):
            letters.add(chr(part[1]))
        elif isinstance(part, tuple) and part and part[0] is _constants.RANGE:
            letters |= {chr(end) for end in part[1]}
        elif isinstance(part, tuple) and part and part[0] is _constants.CATEGORY:
            letters.add(kinds[part[1]])
        elif isinstance(part, tuple | list | _parser.SubPattern):
            stack += list(part)
    return letters


def adversarial(pattern: str) -> list[str]:
    """Long repetitions of what the pattern accepts, with something at the end that it does not."""
    letters = sorted(_letters(_parser.parse(pattern)))[:8] or ["a"]
    units = [*letters, *(first + second for first, second in product(letters, repeat=2) if first != second)]
    texts = [start + unit * (LENGTH // len(unit)) for unit in units for start in ("", "x")]
    return [text + end for text in texts for end in ("", "\x00")]


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop the block after so many seconds of its own processor time, however busy the machine is."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("pattern", [pytest.param(pattern, id=where) for where, pattern in patterns()])
def test_a_pattern_is_linear(pattern):
    assert_linear(pattern, PATIENCE)


def assert_linear(pattern, seconds):
    compiled = re.compile(pattern, re.IGNORECASE)
    texts = adversarial(pattern)
    with limited(seconds):
        for text in texts:
            compiled.match(text), compiled.search(text)


@pytest.mark.parametrize("pattern", [r"^[0-9a-f]{8,}(?:-?[0-9a-f]+)*$", r"\s*[€$%]$", r"//.*@"])
def test_the_strings_find_patterns_that_are_not_linear(pattern):
    with pytest.raises(TimeoutError):
        assert_linear(pattern, PATIENCE / 5)


def test_the_walk_finds_the_patterns_of_columns():
    assert {where.partition(":")[0] for where, _ in patterns()} >= {"datasets/_columns.py", "cli/_methods.py"}
    assert re.search(r"token_pattern", (ROOT / "datasets/_text.py").read_text(encoding="utf-8"))
    assert any(where.startswith("datasets/_text.py") for where, _ in patterns())


@pytest.mark.parametrize(
    "cell",
    [
        "da39a3ee5e6b4b0d3255bfef95601890afd80709{}.wav",
        "{:08x}" + "-0a" * 5_000 + "x",
        "€{}" + " " * 20_000 + "x",
        "{}" + ",000" * 5_000 + "x",
        "{}" + ".000" * 5_000 + "x",
        "2024-01-0{}" + "T" * 20_000,
        "[" * 20_000 + "{}",
    ],
)
def test_columns_of_adversarial_cells_are_read_at_once(cell):
    rows = [{"name": cell.format(place), "size": float(place)} for place in range(30)]
    assert encode(rows).X.shape[0] == 30
