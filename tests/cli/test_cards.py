"""Rows side by side: differences are marked, and data cannot control the terminal."""

import io

import pytest
from rich.console import Console

from clew.cli import _cards
from clew.datasets._written import date_key


def printed(card, width=80, **options):
    console = Console(width=width, record=True, file=io.StringIO(), **options)
    console.print(card)
    return console.export_text()


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "–"),
        ("", "–"),
        (3, "3"),
        (0.1 + 0.2, "0.3"),
        ("  a\tb ", "a b"),
        ("a\nb", "a\nb"),
        ("\x1b[31mred\x07", "�[31mred�"),
        ("safe\u202etxt.exe", "safe�txt.exe"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ([1.0, 2.5], "1, 2.5"),
        (list(range(8)), "0, 1, 2, 3, 4, 5 and 2 more numbers"),
    ],
)
def test_values_are_safe_on_a_terminal(value, text):
    assert _cards.shown(value) == text


def test_long_texts_that_have_little_in_common_are_cut_and_say_so():
    left, right = _cards.marked("x" * 700, "y" * 700, plain=True, most=600)
    assert left.plain == "x" * 600 + " … (100 more characters; V shows them)"
    assert right.plain == left.plain.replace("x", "y")


def test_long_texts_that_are_alike_are_cut_to_their_differences():
    words = [f"word{place}" for place in range(200)]
    other = [*words[:100], "other", *words[101:]]
    left, right = _cards.marked(" ".join(words), " ".join(other), plain=True, most=600)
    around = ["word94 word95 word96 word97 word98 word99", "word101 word102 word103 word104 word105 word106 …"]
    assert left.plain.split("*") == [f"… {around[0]} ", "word100", f" {around[1]} "]
    assert right.plain == left.plain.replace("word100", "other")
    assert "word50" in _cards.marked(" ".join(words), " ".join(other), plain=True)[0].plain


def test_words_that_differ_get_one_mark_for_neighbours():
    left, right = _cards.marked("The printer is very slow, today.", "the printer is broken today", plain=True)
    assert left.plain == "The printer is *very slow,* today."
    assert right.plain == "the printer is *broken* today"


def test_words_are_not_marked_where_nearly_all_differ():
    texts = ("Toner is empty on floor 5", "VPN was slow since Monday or so")
    assert tuple(text.plain for text in _cards.marked(*texts, plain=True)) == texts


def test_marks_are_styles_where_there_are_styles():
    left, _ = _cards.marked("a b c d", "a b c e", plain=False)
    assert left.plain == "a b c d"
    assert [left.plain[span.start : span.end] for span in left.spans] == ["d"]


def card(left, right, **options):
    console = Console(width=80, file=io.StringIO())
    names = [left.get("id", 0), right.get("id", 1)]
    return printed(_cards.pair_card(names, [left, right], console, **({"full": False} | options)))


def test_a_pair_has_a_line_per_field_and_marks_those_that_differ():
    told = card(
        {"id": "a", "text": "red car", "team": "x", "size": 1.5}, {"id": "b", "text": "red bus", "team": "x", "size": 4}
    )
    lines = [line.split() for line in told.splitlines()]
    assert lines == [
        ["a", "b"],
        ["≠", "text", "red", "*car*", "red", "*bus*"],
        ["team", "x", "x"],
        ["≠", "size", "1.5", "4", "(+2.5)"],
    ]


def test_a_field_without_a_value_in_one_of_the_rows_is_not_marked():
    told = card({"id": "a", "phone": "4711", "city": "n/a"}, {"id": "b", "phone": "unknown", "city": None})
    assert [line.split() for line in told.splitlines()] == [
        ["a", "b"],
        ["phone", "4711", "unknown"],
        ["city", "n/a", "–"],
    ]


def test_the_same_date_in_two_formats_is_equal():
    told = card(
        {"id": "a", "born": "2001-07-28", "died": "2001-07-28"}, {"id": "b", "born": "28.7.2001", "died": "29.07.2001"}
    )
    lines = [line.split() for line in told.splitlines()]
    assert lines[1] == ["born", "2001-07-28", "28.7.2001"] and lines[2][:2] == ["≠", "died"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001-07-28", "28 July 2001", True),
        ("13/04/2001", "2001-04-13", True),
        ("03/04/2001", "3/4/2001", True),
        ("03/04/2001", "2001-03-04", False),
        ("03/04/2001", "2001-04-03", False),
        ("03/04/2001", "04/03/2001", False),
        ("2001-07", "07/2001", True),
        ("2001-07", "2001-07-01", False),
        ("Q3 2001", "2001-07", False),
        ("Q3 2001", "July 2001", False),
        ("2001-07-28", "n/a", False),
        ("2001-07-28", None, False),
    ],
)
def test_only_dates_that_are_certainly_the_same_are_equal(one, other, same):
    keys = {date_key(one), date_key(other)}
    assert (len(keys) == 1 and None not in keys) == same


def test_many_equal_fields_are_counted_until_all_are_asked_for():
    left = {f"field {place}": place for place in range(20)}
    right = left | {"field 3": "other"}
    told = card(left, right)
    assert "field 3" in told and "field 4" not in told
    assert "19 fields are equal; V shows all" in told
    assert "field 4" in card(left, right, full=True)


def test_rows_of_vectors_have_nothing_to_show():
    assert card({}, {}).split() == ["0", "1", *["no", "fields", "to", "show"] * 2]


def test_markup_in_the_data_is_text():
    assert "[bold]x[/bold]" in card({"a": "[bold]x[/bold]"}, {"a": "[/]"})


def test_narrow_terminals_fold_long_values():
    console = Console(width=30, file=io.StringIO())
    rows = [{"text": "x" * 50}, {"text": "y" * 50}]
    told = printed(_cards.pair_card([0, 1], rows, console, full=False), width=30)
    assert max(map(len, told.splitlines())) <= 30
    assert told.count("y") == 50


def test_a_row_on_a_line_names_its_numbers_and_leaves_out_its_name():
    assert _cards.summary("T-1", {"id": "T-1", "text": "red\ncar", "size": 2, "gap": None}) == "red car · size 2"
    assert len(_cards.summary(0, {"text": "x" * 500})) < 250


def test_letters_that_differ_are_marked_in_short_cells():
    left, right = _cards.marked_letters("Anne Meyer", "ann meyers", plain=True)
    assert (left.plain, right.plain) == ("Ann*e* Meyer", "ann meyer*s*")
    left, _ = _cards.marked_letters("1926", "1936", plain=False)
    assert [(span.start, span.end) for span in left.spans] == [(2, 3)]
    assert _cards.marked_letters("Anne", "Robert", plain=True) is None
    assert _cards.marked_letters("ANN", "ann", plain=True) is None
