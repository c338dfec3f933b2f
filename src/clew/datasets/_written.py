"""Parse numbers and dates in columns of mixed formats.

A cell has up to two readings. ``1,234`` is 1234 if a comma groups thousands, and 1.234 if it is the decimal sign.
``03/04/2024`` is in March if the month comes first, and in April if the day comes first. The whole column decides: the
reading that more cells allow is used, except for cells that only allow the other one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew._words import counted
from clew.datasets._read import MISSING

# Words for "no value". They are missing values in columns of numbers and dates, but not in categories.
PLACEHOLDERS = frozenset(
    {"-", "--", "---", "–", "—", ".", "..", "...", "x", "xx", "xxx", "unknown", "unk", "tbd", "tba", "tbc", "missing",
     "nil", "n.a.", "n.a", "na.", "n.d.", "nd", "not available", "not applicable", "no data", "pending", "undefined",
     "#n/a", "#na", "#value!", "#div/0!", "#ref!", "#num!", "#name?", "#null!", "<na>", "nat", "k.a.", "k. a.",
     "unbekannt", "keine angabe", "offen"}
)  # fmt: skip

# Placeholders that are no value of a record's text either. Words such as "x", "nil" and "pending" may be values.
NO_VALUES = MISSING | frozenset(
    {"-", "--", "---", "–", "—", ".", "..", "...", "??", "???", "xxx", "unknown", "tbd", "tba", "tbc", "n.a.", "n.a",
     "na.", "n.d.", "not available", "not applicable", "no data", "undefined", "#n/a", "#na", "#value!", "#div/0!",
     "#ref!", "#num!", "#name?", "#null!", "<na>", "k.a.", "k. a.", "unbekannt", "keine angabe"}
)  # fmt: skip

# Forms of dates that name more than a day.
_PERIODS = frozenset({"year and month", "year and quarter"})
# Number of cells that are tried first, because most text columns are neither numbers nor dates.
_TRIED = 200


def is_missing(value: object) -> bool:
    """Whether a cell is empty, not a number, or a word for "no value" such as "unknown" and "-"."""
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in NO_VALUES)


def date_key(value: object) -> str | None:
    """The same text for the same date in any format, such as 2001-07-28 and 28.07.2001. None if a cell is no date.

    03/04/2001 is a day in March or in April, so that its key is neither that of 2001-03-04 nor that of 2001-04-03. A
    month or a quarter is no day.
    """
    found = _date(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    period = found.form if found.form in _PERIODS else "day"
    return f"{period} {_chosen(found, False)} {_chosen(found, True)}"


class Readings(NamedTuple):
    """The value of a cell in the first and in the second convention, its unit, and its format."""

    first: float | None
    second: float | None
    unit: str = ""
    form: str = ""


@dataclass(frozen=True)
class Written:
    """A column of numbers or dates.

    Attributes
    ----------
    values : array of floats
        NaN for missing and unreadable cells.
    note : str
        The conventions that were found or assumed.
    unreadable : dict of str to int
        Cells that are not a number, a date or a known word for a missing value, and the number of rows of each.
    placeholders : dict of str to int
        Cells such as ``unknown`` and ``-``, and the number of rows of each.
    """

    values: NDArray[np.float64]
    note: str
    unreadable: dict[str, int] = field(default_factory=dict)
    placeholders: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Share of readable cells, among those that are neither missing nor placeholders."""
        read = int((~np.isnan(self.values)).sum())
        return read / max(1, read + sum(self.unreadable.values()))


def written_numbers(cells: Sequence[str]) -> Written | None:
    """Read a column as numbers; None if less than half of the cells are numbers. Empty cells are missing."""
    if (durations := _durations(cells)) is not None:
        return _column(durations, cells, second=False, note="durations, in seconds")
    found = _readings(cells, _number)
    if found is None:
        return None
    found, unit = _one_unit(found, cells)
    point, comma = _exclusive(found, cells)
    decimal_comma = comma > point
    grouped = any("," in cell and reading.first is not None for cell, reading in found.items())
    notes = []
    if decimal_comma:
        notes.append("decimal comma")
    elif grouped:
        notes.append("a comma groups thousands")
    if min(point, comma):
        other = "point" if decimal_comma else "comma"
        notes.append(f"{counted(min(point, comma), 'cell')} with a decimal {other}")
    if unit:
        notes.append("seconds of h:mm" if unit == "h:mm" else f"in {unit}")
    return _column(found, cells, decimal_comma, ", ".join(notes))


def written_dates(cells: Sequence[str]) -> Written | None:
    """Read a column as dates, in seconds since 1970; None if less than half of the cells are dates."""
    found = _readings(cells, _date)
    if found is None:
        return None
    month_first, day_first = _exclusive(found, cells)
    forms = Counter(reading.form for reading in found.values())
    # With dots the day always comes first, so it does with slashes in the same column too.
    by_day = day_first > month_first or (day_first == month_first and "day.month.year" in forms)
    unclear = [cell for cell in cells if cell in found and _is_ambiguous(found[cell])]
    notes = [form for form, _ in forms.most_common() if form not in ("iso", "slashes")]
    if "slashes" in forms:
        notes.append("day/month/year" if by_day else "month/day/year")
    if min(day_first, month_first):
        notes.append(f"{counted(min(day_first, month_first), 'cell')} the other way round")
    if unclear and not max(day_first, month_first):
        notes.append(f"{'day' if by_day else 'month'} first is assumed, because every cell is ambiguous")
    elif unclear and day_first and month_first:
        notes.append(f"{'day' if by_day else 'month'} first is assumed for {unclear[0]} and cells like it")
    return _column(found, cells, by_day, ", ".join(notes))


def _readings(cells: Sequence[str], read: Callable[[str], Readings | None]) -> dict[str, Readings] | None:
    """The readings of each distinct cell that can be read."""
    distinct = [cell for cell in dict.fromkeys(cells) if cell and cell.lower() not in PLACEHOLDERS]
    tried = distinct[:: max(1, len(distinct) // _TRIED)]
    if 2 * sum(read(cell) is not None for cell in tried) < len(tried) or not tried:
        return None
    found = {cell: reading for cell in distinct if (reading := read(cell)) is not None}
    known = [cell for cell in cells if cell and cell.lower() not in PLACEHOLDERS]
    return found if 2 * sum(cell in found for cell in known) >= len(known) else None


def _exclusive(found: dict[str, Readings], cells: Sequence[str]) -> tuple[int, int]:
    """Number of cells that allow only the first reading, and only the second."""
    read = [found[cell] for cell in cells if cell in found]
    return sum(reading.second is None for reading in read), sum(reading.first is None for reading in read)


def _is_ambiguous(reading: Readings) -> bool:
    return reading.first is not None and reading.second is not None and reading.first != reading.second


def _column(found: dict[str, Readings], cells: Sequence[str], second: bool, note: str) -> Written:
    values = {cell: _chosen(reading, second) for cell, reading in found.items()}
    others = Counter(cell for cell in cells if cell and cell not in found)
    return Written(
        np.array([values.get(cell, np.nan) for cell in cells], dtype=np.float64),
        note,
        {cell: count for cell, count in others.most_common() if cell.lower() not in PLACEHOLDERS},
        {cell: count for cell, count in others.most_common() if cell.lower() in PLACEHOLDERS},
    )


def _chosen(reading: Readings, second: bool) -> float:
    value, other = (reading.second, reading.first) if second else (reading.first, reading.second)
    chosen = other if value is None else value
    return np.nan if chosen is None else chosen


# -- numbers -----------------------------------------------------------------------------------------------------------

_CURRENCIES = {
    "€": "€", "eur": "€", "$": "$", "usd": "$", "us$": "$", "£": "£", "gbp": "£", "¥": "¥", "jpy": "¥", "chf": "CHF",
    "fr.": "CHF", "kr": "kr", "kr.": "kr", "sek": "SEK", "nok": "NOK", "dkk": "DKK", "zł": "PLN", "pln": "PLN",
    "czk": "CZK", "kč": "CZK", "huf": "HUF", "₹": "₹", "inr": "₹", "₩": "₩", "krw": "₩", "₽": "₽", "rub": "₽",
    "cny": "CNY", "aud": "AUD", "cad": "CAD", "brl": "BRL", "r$": "BRL",
}  # fmt: skip
_NUMBER = re.compile(r"^([\d.,'’\s]*\d[.,]?)([eE][+-]?\d{1,3})?([^\d]{0,15})$")
_UNIT = re.compile(r"^(?:[°µ]?[^\W\d_]{1,10}(?:/[^\W\d_]{1,10})?[²³]?|°|%|‰)$")
_CLOCK = re.compile(r"^(\d{1,4}):([0-5]\d)(?::([0-5]\d(?:[.,]\d{1,9})?))?$")
_GROUPING = (" ", "\u00a0", "\u202f", "\u2009", "'", "’")


def _number(cell: str) -> Readings | None:
    if match := _CLOCK.fullmatch(cell):
        seconds = 3600.0 * int(match[1]) + 60.0 * int(match[2]) + float((match[3] or "0").replace(",", "."))
        return Readings(seconds, seconds, "h:mm")
    negative = cell.startswith("(") and cell.endswith(")")
    cell = (cell[1:-1] if negative else cell).replace("−", "-").strip()
    if cell[:1] in ("-", "+"):
        negative, cell = negative != (cell[0] == "-"), cell[1:].lstrip()
    prefix = next((sign for sign in (cell[:3], cell[:2], cell[:1]) if sign.lower() in _CURRENCIES), "")
    cell = cell[len(prefix) :].lstrip()
    if cell[:1] in ("-", "+"):
        negative, cell = negative != (cell[0] == "-"), cell[1:].lstrip()
    match = _NUMBER.fullmatch(cell)
    if match is None:
        return None
    suffix = match[3].strip()
    if suffix.endswith("-"):  # accounting writes 12,50- for -12.50
        negative, suffix = not negative, suffix[:-1].rstrip()
    unit = _CURRENCIES.get((prefix or suffix).lower(), suffix)
    is_currency = unit in _CURRENCIES.values()
    if (prefix and suffix) or (unit and not is_currency and _UNIT.fullmatch(unit) is None):
        return None
    sign, body, exponent = "-" if negative else "", match[1].strip(), match[2] or ""
    first, second = (_decimal(sign, body, exponent, point, grouping) for point, grouping in (".,", ",."))
    return None if first is None and second is None else Readings(first, second, unit)


def _decimal(sign: str, body: str, exponent: str, point: str, grouping: str) -> float | None:
    """Parse a number with this decimal sign, perhaps with grouped thousands; None if that fails."""
    whole, mark, fraction = body.partition(point)
    if (mark and fraction and not fraction.isdecimal()) or not (whole or fraction):
        return None
    used = [mark for mark in (grouping, *_GROUPING) if mark in whole]
    if len(used) > 1:
        return None
    if used:
        groups = whole.split(used[0])
        if not 1 <= len(groups[0]) <= 3 or groups[0].startswith("0") or any(len(group) != 3 for group in groups[1:]):
            return None
        whole = "".join(groups)
    if whole and not whole.isdecimal():
        return None
    return float(f"{sign}{whole or 0}.{fraction or 0}{exponent}")


_TIME_UNITS = {
    name: seconds
    for seconds, names in (
        (604800.0, "w week weeks woche wochen"), (86400.0, "d day days tag tage"),
        (3600.0, "h hr hrs hour hours std stunde stunden"), (60.0, "m min mins minute minutes minuten"),
        (1.0, "s sec secs second seconds sek sekunde sekunden"), (0.001, "ms msec"),
    )
    for name in names.split()
}  # fmt: skip
# A column with more than this share of one unit is in that unit: 5m, 6m and a single 2h may be metres.
_ONE_UNIT = 0.9
_PART = re.compile(r"(\d{1,9}(?:[.,]\d{1,9})?)\s?([a-z]{1,9})\.?(?:,?\s|\s?,|(?=\d)|$)")
_ISO_DURATION = re.compile(r"p(?=.)((?:\d+w)?(?:\d+d)?)(?:t((?:\d+h)?(?:\d+m)?(?:\d+(?:[.,]\d+)?s)?))?")


def _durations(cells: Sequence[str]) -> dict[str, Readings] | None:
    """Read a column as durations; None if no cell has several parts, as ``3h 5m``, and nearly all have one unit."""
    found = _readings(cells, _duration)
    if found is None:
        return None
    forms = Counter(found[cell].form for cell in cells if cell in found and found[cell].form != "h:mm")
    is_mixed = forms and max(forms.values()) <= _ONE_UNIT * sum(forms.values())
    return found if forms["parts"] or is_mixed else None


def _duration(cell: str) -> Readings | None:
    """Parse ``3h 5m``, ``2 days 3 hours``, ``PT3H5M`` and ``45 min`` as seconds; `form` is "parts" or the one unit."""
    if match := _CLOCK.fullmatch(cell):
        return _number(cell)._replace(form="h:mm")  # type: ignore[union-attr]
    if len(cell) > 60:
        return None
    text = cell.replace("−", "-").lower()
    sign, text = (-1.0, text[1:].lstrip()) if text.startswith("-") else (1.0, text)
    is_iso = False
    if match := _ISO_DURATION.fullmatch(text):
        is_iso, text = True, (match[1] or "") + (match[2] or "")
    place, last, total, unit = 0, np.inf, 0.0, ""
    while place < len(text):
        part = _PART.match(text, place)
        seconds = _TIME_UNITS.get(part[2]) if part else None
        if part is None or seconds is None or seconds >= last:  # from the largest unit down, each once
            return None
        unit = "parts" if unit or is_iso else str(seconds)
        total += seconds * float(part[1].replace(",", "."))
        place, last = part.end(), seconds
    return Readings(sign * total, sign * total, form=unit) if unit else None


def _one_unit(found: dict[str, Readings], cells: Sequence[str]) -> tuple[dict[str, Readings], str]:
    """Drop cells in another unit than the most common one; also return that unit. Numbers without a unit stay."""
    units = Counter(found[cell].unit for cell in cells if cell in found)
    plain = units.pop("", 0)
    if not units:
        return found, ""
    unit, count = units.most_common(1)[0]
    # A letter after only few of the numbers is not a unit, as in the house numbers 12a, 14, 16.
    is_unit = unit in _CURRENCIES.values() or unit in "%‰" or count >= plain
    unit = unit if is_unit else ""
    return {cell: reading for cell, reading in found.items() if reading.unit in ("", unit)}, unit


# -- dates -------------------------------------------------------------------------------------------------------------

_MONTHS = {
    name: month
    for month, names in enumerate(
        ("jan january januar jän jänner", "feb february februar", "mar march mär märz mrz", "apr april", "may mai",
         "jun june juni", "jul july juli", "aug august", "sep sept september", "oct october okt oktober",
         "nov november", "dec december dez dezember"), start=1)
    for name in names.split()
}  # fmt: skip
_DIGITS = re.compile(r"^(\d{1,4})([-/.])\s?(\d{1,2})\2\s?(\d{1,4})$")
_NAMED = re.compile(r"^(\d{1,2})(?:st|nd|rd|th)?[.\s-]{0,2}([^\W\d_]{3,9})[.,]{0,2}[\s-]?(\d{2,4})$")
_NAMED_FIRST = re.compile(r"^([^\W\d_]{3,9})[.]?\s(\d{1,2})(?:st|nd|rd|th)?,?\s(\d{4})$")
_MONTH = re.compile(r"^(?:(\d{4})[-/](\d{1,2})|(\d{1,2})[-/](\d{4}))$")
_MONTH_NAMED = re.compile(r"^([^\W\d_]{3,9})(?:[.,]{0,2}[\s-](\d{4})|-(\d{2})|\s['’](\d{2}))$")
_QUARTER = re.compile(r"^(?:(\d{4})[\s-]?[qQ]([1-4])|[qQ]([1-4])[\s/-](\d{4}))$")
_TIME = re.compile(r"^(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?\s?([AaPp]\.?[Mm]\.?)?(?:\s?(?:Z|UTC|GMT|Uhr))?$")


def _date(cell: str) -> Readings | None:
    """The two readings of a date: month first, and day first."""
    if len(cell) > 40 or len(cell) < 6 or not any(sign.isdecimal() for sign in cell):
        return None
    if cell[4:5] == "-" and len(cell) >= 8:
        try:
            moment = datetime.fromisoformat(cell)
        except ValueError:
            pass
        else:
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            return Readings(seconds, seconds, form="iso")
    day, clock = _without_time(cell)
    return None if clock is None else _day(day, clock)


def _without_time(cell: str) -> tuple[str, float | None]:
    """Split a cell into the day and the seconds of its time; None if the time cannot be read."""
    place = cell.find(":")
    if place < 0:
        return cell, 0.0
    start = max(cell.rfind(" ", 0, place), cell.rfind("T", 0, place))
    match = _TIME.fullmatch(cell[start + 1 :].strip())
    if match is None or start < 0:
        return cell, None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if match[4]:
        if not 1 <= hour <= 12:
            return cell, None
        hour = hour % 12 + (12 if match[4].lower().startswith("p") else 0)
    if hour > 23 or minute > 59 or second > 60:
        return cell, None
    return cell[:start].rstrip(" ,"), 3600.0 * hour + 60.0 * minute + second


def _day(text: str, clock: float) -> Readings | None:
    if match := _DIGITS.fullmatch(text):
        first, sign, middle, last = match.groups()
        if len(first) == 4:
            seconds = _seconds(first, middle, last, clock) if len(last) <= 2 else None
            form = "iso" if sign == "-" else f"year{sign}month{sign}day"
            return None if seconds is None else Readings(seconds, seconds, form=form)
        if len(first) > 2 or len(last) == 3:
            return None
        by_day = _seconds(last, middle, first, clock)
        if sign == ".":
            return None if by_day is None else Readings(by_day, by_day, form="day.month.year")
        by_month = _seconds(last, first, middle, clock)
        return None if by_day is None and by_month is None else Readings(by_month, by_day, form="slashes")
    named = ((match[3], match[2], match[1]) if (match := _NAMED.fullmatch(text)) else
             (match[3], match[1], match[2]) if (match := _NAMED_FIRST.fullmatch(text)) else None)  # fmt: skip
    if named is not None:
        month = _MONTHS.get(named[1].lower().rstrip("."))
        seconds = None if month is None else _seconds(named[0], str(month), named[2], clock)
        return None if seconds is None else Readings(seconds, seconds, form="month by name")
    if match := _MONTH.fullmatch(text):
        year, month_text = (match[1], match[2]) if match[1] else (match[4], match[3])
        seconds = _seconds(year, month_text, "1", clock) if 1000 <= int(year) < 3000 else None
        return None if seconds is None else Readings(seconds, seconds, form="year and month")
    if match := _MONTH_NAMED.fullmatch(text):
        month = _MONTHS.get(match[1].lower())
        seconds = None if month is None else _seconds(match[2] or match[3] or match[4], str(month), "1", clock)
        return None if seconds is None else Readings(seconds, seconds, form="year and month")
    if match := _QUARTER.fullmatch(text):
        quarter = int(match[2] or match[3])
        seconds = _seconds(match[1] or match[4], str(3 * quarter - 2), "1", clock)
        return None if seconds is None else Readings(seconds, seconds, form="year and quarter")
    return None


def _seconds(year: str, month: str, day: str, clock: float) -> float | None:
    number = int(year)
    if len(year) == 2:
        number += 2000 if number < 69 else 1900  # the rule of strptime
    elif len(year) != 4:
        return None
    try:
        return datetime(number, int(month), int(day), tzinfo=UTC).timestamp() + clock
    except ValueError:
        return None
