"""Show rows on the terminal, side by side, with the differences marked."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from clew.cli import _render
from clew.datasets._written import date_key, is_missing

# Longest text, in characters, that is shown in full: it fits a screen of two columns.
MOST_CHARACTERS = 600
# Number of words shown around each difference when a long text is shortened to its differences.
_AROUND = 6
# Largest number of equal fields that are shown; more are only counted.
MOST_EQUAL = 12
# Number of entries of a vector that are shown.
MOST_NUMBERS = 6
# Number of characters of each row that are shown in a list of rows.
_LINE = 240
# Lowest share of common words at which differences between two texts are marked word by word.
_LEAST_SHARED = 0.4
# In texts of at most this many letters that share at least this part of them, single letters are marked.
_MOST_LETTERS, _LEAST_SHARED_LETTERS = 60, 0.75

# Unicode characters that reverse the direction of all following text, even after the end of a value.
_BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

_DIFFERS = "bold yellow"


def shown(value: Any) -> str:
    """Return a value as text that is safe on a terminal: control characters are replaced by visible signs."""
    if value is None or value == "":
        return "–"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list):
        numbers = ", ".join(shown(one) for one in value[:MOST_NUMBERS])
        more = len(value) - MOST_NUMBERS
        return f"{numbers} and {_render.counted(more, 'more number')}" if more > 0 else numbers
    return "".join(map(_safe, str(value).strip()))


def _safe(one: str) -> str:
    if one == "\n":
        return one
    if one.isspace():
        return " "
    return "�" if unicodedata.category(one) in ("Cc", "Cs") or one in _BIDI else one


def _cut(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    return f"{text[:most].rstrip()} … ({len(text) - most:,} more characters; V shows them)"


def pair_card(names: Sequence[Any], rows: Sequence[Mapping[str, Any]], console: Console, *, full: bool) -> Table:
    """Return two rows side by side, one line per field, with the differing fields marked.

    A field is not marked if one of the rows has no value for it.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1), expand=True, header_style="bold cyan")
    table.add_column("", width=1, style=_DIFFERS)
    table.add_column("", max_width=max(console.width // 4, 8), overflow="fold")
    for name in names:
        table.add_column(Text(shown(name)), ratio=1, overflow="fold")
    fields = _fields(names, rows)
    if not fields:
        table.add_row("", "", *(Text("no fields to show", "dim") for _ in names))
    equal = [field for field in fields if _same(rows, field)]
    hidden = set() if full or len(equal) <= MOST_EQUAL else set(equal)
    most = None if full else MOST_CHARACTERS
    for field in fields:
        if field in hidden:
            continue
        texts = [shown(row.get(field)) for row in rows]
        if field in equal:
            table.add_row("", Text(shown(field), "dim"), *(Text(_cut(text, most), "dim") for text in texts))
        elif any(missing := [is_missing(row.get(field)) for row in rows]):
            cells = zip(texts, missing, strict=True)
            table.add_row("", Text(shown(field)), *(Text(_cut(text, most), "dim" if no else "") for text, no in cells))
        else:
            plain = console.color_system is None
            left, right = marked_letters(*texts, plain=plain) or marked(*texts, plain=plain, most=most)
            right.append(_difference(*(row.get(field) for row in rows)), "dim")
            table.add_row("≠", Text(shown(field)), left, right)
    if hidden:
        table.caption = Text(f"{_render.counted(len(hidden), 'field is', 'fields are')} equal; V shows all", "dim")
        table.caption_justify = "left"
    return table


def _fields(names: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields of two rows, without the field that only repeats their ids."""
    fields = list(dict.fromkeys(field for row in rows for field in row))
    ids = [str(name) for name in names]
    return [field for field in fields if [str(row.get(field)) for row in rows] != ids]


def _same(rows: Sequence[Mapping[str, Any]], field: str) -> bool:
    first, second = (row.get(field) for row in rows)
    return first == second or (date_key(first) is not None and date_key(first) == date_key(second))


def _difference(left: Any, right: Any) -> str:
    """Return the difference between two numbers, right minus left."""
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (left, right)]
    return f"  ({right - left:+.4g})" if all(numbers) else ""


def marked_letters(left: str, right: str, *, plain: bool) -> tuple[Text, Text] | None:
    """Mark the letters that occur in only one of two short texts. None if the texts are long, or share few letters."""
    if max(len(left), len(right)) > _MOST_LETTERS:
        return None
    matcher = difflib.SequenceMatcher(None, left.casefold(), right.casefold(), autojunk=False)
    same_length = len(left.casefold()) == len(left) and len(right.casefold()) == len(right)
    if not same_length or not _LEAST_SHARED_LETTERS <= matcher.ratio() < 1:
        return None
    texts = (Text(), Text())
    for kind, *ends in matcher.get_opcodes():
        for text, whole, (start, end) in zip(texts, (left, right), (ends[:2], ends[2:]), strict=True):
            part = whole[start:end]
            is_marked = kind != "equal" and bool(part)
            text.append(f"*{part}*" if is_marked and plain else part, _DIFFERS if is_marked else None)
    return texts


def marked(left: str, right: str, *, plain: bool, most: int | None = None) -> tuple[Text, Text]:
    """Mark the words that occur in only one of two texts: by style, or by asterisks on a plain terminal.

    Texts longer than `most` are shortened to the surroundings of the marked words.
    """
    parts = [re.split(r"(\s+)", text) for text in (left, right)]
    words = [[word.casefold().strip(".,;:!?\"'()") for word in part[::2]] for part in parts]
    matcher = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    if min(map(len, words)) < 2 or matcher.ratio() < _LEAST_SHARED:
        return Text(_cut(left, most)), Text(_cut(right, most))
    shared = [set[int](), set[int]()]
    for block in matcher.get_matching_blocks():
        shared[0].update(range(block.a, block.a + block.size))
        shared[1].update(range(block.b, block.b + block.size))
    first, second = (
        _styled(part, set(range(len(word))) - known, plain, cut=most is not None and len(text) > most)
        for part, word, known, text in zip(parts, words, shared, (left, right), strict=True)
    )
    return first, second


def _styled(parts: list[str], unique: set[int], plain: bool, *, cut: bool) -> Text:
    """Join words and spaces into one text; adjacent marked words share one mark."""
    near = {place + step for place in unique for step in range(-_AROUND, _AROUND + 1)}
    text = Text()
    for place, part in enumerate(parts):
        word, is_space = place // 2, bool(place % 2)
        if cut and word not in near:
            text.append("" if text.plain.endswith("… ") else "… ")
            continue
        inside = word in unique and (not is_space or word + 1 in unique)
        starts = inside and not is_space and word - 1 not in unique
        ends = inside and not is_space and word + 1 not in unique
        if plain:
            text.append(f"{'*' if starts else ''}{part}{'*' if ends else ''}")
        else:
            text.append(part, _DIFFERS if inside else None)
    return text


def list_card(marks: Sequence[str], names: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return rows one below the other, each with its number and id."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(style="bold", no_wrap=True, justify="right")
    table.add_column(style="cyan", overflow="fold")
    table.add_column(overflow="fold")
    for mark, name, row in zip(marks, names, rows, strict=True):
        table.add_row(mark, Text(shown(name)), Text(summary(name, row)))
    return table


def groups_card(names: Sequence[Sequence[Any]], rows: Sequence[Sequence[Mapping[str, Any]]]) -> Table:
    """Return some rows of two clusters, one cluster beside the other."""
    table = Table(box=None, pad_edge=False, padding=(0, 2), expand=True, header_style="bold cyan")
    cells: list[RenderableType] = []
    for place, (some, values) in enumerate(zip(names, rows, strict=True)):
        table.add_column(f"{('one', 'other')[place]} cluster, some of its rows", ratio=1)
        cells.append(list_card(["•"] * len(some), some, values))
    table.add_row(*cells)
    return table


def summary(name: Any, row: Mapping[str, Any]) -> str:
    """Return a row on one line: texts alone, numbers with the names of their columns."""
    parts = []
    for field, value in row.items():
        if value is None or value == "" or str(value) == str(name):
            continue
        is_text = isinstance(value, str)
        parts.append(shown(value).replace("\n", " ") if is_text else f"{shown(field)} {shown(value)}")
    line = " · ".join(parts)
    return line if len(line) <= _LINE else f"{line[:_LINE].rstrip()} …"
