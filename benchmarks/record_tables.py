"""Made-up tables of records with duplicates: ten kinds of things, with the errors that people and machines make."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_SYLLABLES = [
    "an",
    "ar",
    "bel",
    "bren",
    "cal",
    "cor",
    "da",
    "del",
    "dor",
    "el",
    "er",
    "fan",
    "fer",
    "gar",
    "gil",
    "hal",
    "han",
    "in",
    "is",
    "jo",
    "kar",
    "kel",
    "la",
    "lan",
    "len",
    "lor",
    "ma",
    "mar",
    "mel",
    "mi",
    "mor",
    "na",
    "nel",
    "no",
    "or",
    "pa",
    "per",
    "ra",
    "ren",
    "ri",
    "ro",
    "sa",
    "sel",
    "shi",
    "so",
    "ta",
    "tan",
    "ter",
    "tho",
    "ti",
    "ul",
    "va",
    "ver",
    "vin",
    "wen",
    "wil",
    "ya",
    "yor",
    "za",
    "zel",
]
_STREETS = ("street", "avenue", "road", "lane", "drive", "court", "place", "boulevard")
_ABBREVIATIONS = {
    "street": "st", "avenue": "ave", "road": "rd", "lane": "ln", "drive": "dr", "court": "ct", "place": "pl",
    "boulevard": "blvd", "incorporated": "inc", "limited": "ltd", "corporation": "corp", "company": "co",
    "international": "intl", "journal": "j", "proceedings": "proc", "conference": "conf", "university": "univ",
    "association": "assoc", "north": "n", "south": "s", "west": "w", "east": "e", "saint": "st", "professor": "prof",
}  # fmt: skip
_FORMS = ("incorporated", "limited", "corporation", "company", "holdings", "partners", "group")
_TRADES = ("steel", "foods", "software", "logistics", "textiles", "energy", "media", "bank", "insurance", "travel")
_THINGS = ("camera", "printer", "monitor", "router", "speaker", "laptop", "phone", "drill", "kettle", "mixer")
_COLOURS = ("black", "white", "silver", "red", "blue")
_TOPICS = [
    "clustering",
    "constraints",
    "learning",
    "kernels",
    "graphs",
    "queries",
    "databases",
    "inference",
    "networks",
    "privacy",
    "sampling",
    "ranking",
    "indexing",
    "matching",
    "streams",
    "vision",
    "speech",
    "planning",
    "search",
    "agents",
    "logic",
    "markets",
    "games",
    "proteins",
    "genes",
]
_VENUES = (
    "journal of machine learning", "proceedings of the conference on data engineering",
    "international conference on databases", "journal of the statistical association",
    "proceedings of the conference on knowledge discovery", "university press",
)  # fmt: skip
KEYS = "abcdefghijklmnopqrstuvwxyz"


class RecordTable(NamedTuple):
    """A table of records, the entity of each row, and the source of each row (-1: no sources)."""

    columns: dict[str, list[str]]
    entity: np.ndarray
    source: np.ndarray


def word(rng, low=2, high=4):
    return "".join(rng.choice(_SYLLABLES, size=int(rng.integers(low, high))))


class Words:
    """A vocabulary with a few frequent words and many rare ones."""

    def __init__(self, rng, n):
        self.words = [word(rng) for _ in range(n)]
        shares = 1 / np.arange(1, n + 1) ** 0.7
        self.cumulative = np.cumsum(shares / shares.sum())
        self.cumulative /= self.cumulative[-1]

    def draw(self, rng):
        # The same words as ``rng.choice(self.words, p=shares)``, which would take time in the number of words.
        return str(self.words[int(self.cumulative.searchsorted(rng.random(), side="right"))])


def typo(rng, text):
    if len(text) < 2:
        return text
    place, letter = int(rng.integers(len(text) - 1)), str(rng.choice(list(KEYS)))
    if text[place].isdigit():
        letter = str(rng.integers(10))
    return [
        text[:place] + text[place + 1 :],
        text[:place] + letter + text[place:],
        text[:place] + letter + text[place + 1 :],
        text[:place] + text[place + 1] + text[place] + text[place + 2 :],
    ][int(rng.integers(4))]


def abbreviated(rng, text):
    return " ".join(_ABBREVIATIONS.get(word, word) for word in text.split())


def word_dropped(rng, text):
    words = text.split()
    if len(words) > 1:
        del words[int(rng.integers(len(words)))]
    return " ".join(words)


def reordered(rng, text):
    words = text.split()
    return " ".join(words[1:] + words[:1])


def initial(rng, text):
    words = text.split()
    return " ".join([words[0][:1], *words[1:]])


def digits(rng, n):
    return "".join(map(str, rng.integers(10, size=n)))


def _person(rng, words):
    return {
        "first_name": words[0].draw(rng), "last_name": words[1].draw(rng),
        "birth_date": f"{rng.integers(1930, 2006)}-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
        "street": f"{rng.integers(1, 200)} {words[2].draw(rng)} {rng.choice(_STREETS)}",
        "city": words[3].words[int(rng.integers(30))], "phone": digits(rng, 9),
    }  # fmt: skip


def _patient(rng, words):
    person = _person(rng, words)
    return {name: person[name] for name in ("first_name", "last_name", "birth_date", "city")} | {
        "sex": str(rng.choice(["m", "f"])), "weight": f"{rng.normal(75, 15):.1f}",
    }  # fmt: skip


def _company(rng, words):
    return {
        "company": f"{words[0].draw(rng)} {words[1].draw(rng)} {rng.choice(_TRADES)} {rng.choice(_FORMS)}",
        "street": f"{rng.integers(1, 400)} {rng.choice(['north', 'south', 'west', 'east'])} {words[2].draw(rng)} "
        f"{rng.choice(_STREETS)}",
        "city": words[3].words[int(rng.integers(40))], "website": f"{words[0].draw(rng)}{word(rng)}.com",
        "employees": str(int(np.exp(rng.normal(4, 1.5)))),
    }  # fmt: skip


def _product(rng, words):
    return {
        "title": f"{words[0].words[int(rng.integers(15))]} {rng.choice(_THINGS)} {KEYS[rng.integers(26)]}"
        f"{KEYS[rng.integers(26)]}{rng.integers(100, 999)} {rng.choice(_COLOURS)}",
        "maker": words[0].words[int(rng.integers(15))], "price": f"{np.exp(rng.normal(4, 0.8)):.2f}",
        "description": " ".join(words[1].draw(rng) for _ in range(int(rng.integers(8, 16)))),
    }  # fmt: skip


def _publication(rng, words):
    authors = [f"{word(rng)[:1]} {words[1].draw(rng)}" for _ in range(int(rng.integers(1, 5)))]
    return {
        "title": " ".join(str(rng.choice(_TOPICS)) for _ in range(int(rng.integers(4, 8)))),
        "authors": " ".join(authors), "venue": str(rng.choice(_VENUES)), "year": str(rng.integers(1990, 2026)),
    }  # fmt: skip


def _address(rng, words):
    return {
        "street": f"{rng.integers(1, 120)} {words[2].words[int(rng.integers(60))]} {rng.choice(_STREETS)}",
        "unit": str(rng.integers(1, 30)) if rng.random() < 0.4 else "",
        "city": words[3].words[int(rng.integers(20))], "postcode": digits(rng, 1) + "1" + digits(rng, 2),
    }  # fmt: skip


def _song(rng, words):
    return {
        "artist": f"{words[0].draw(rng)} {words[1].draw(rng)}", "album": f"{words[2].draw(rng)} {words[3].draw(rng)}",
        "title": " ".join(words[2].draw(rng) for _ in range(int(rng.integers(1, 5)))),
        "seconds": str(int(rng.normal(220, 50))),
    }  # fmt: skip


def _name_only(rng, words):
    return {"name": f"{words[0].draw(rng)} {words[1].draw(rng)} {words[2].draw(rng)}"}


_TYPOS, _SHORTER, _ORDER = (typo, typo), (abbreviated, word_dropped), (reordered, initial)
_EVERY = (*_TYPOS, *_SHORTER, *_ORDER)


class Kind(NamedTuple):
    """How to draw things, and the errors of their copies."""

    make: Callable
    errors: tuple
    rate: float  # errors per cell
    missing: float
    swapped: float  # share of copies in which two cells change places
    sizes: tuple  # weights of groups of 1, 2, … rows
    n_sources: int = 0
    replaced: float = 0.0  # share of cells of a copy that are new values: people move


_KINDS = {
    "people": Kind(_person, _TYPOS, 0.15, 0.05, 0.05, (4, 4, 1, 1)),
    "people_dirty": Kind(_person, _EVERY, 0.4, 0.15, 0.15, (3, 3, 2, 1, 1), replaced=0.1),
    "patients": Kind(_patient, _TYPOS, 0.2, 0.08, 0.05, (5, 2, 1, 1, 1, 1, 1, 1, 1, 1)),
    "companies": Kind(_company, _EVERY, 0.35, 0.15, 0.0, (4, 4, 2)),
    "companies_sources": Kind(_company, _EVERY, 0.35, 0.1, 0.0, (3, 3, 2, 2), n_sources=4),
    "products": Kind(_product, (typo, word_dropped, reordered), 0.5, 0.15, 0.0, (6, 3, 1), n_sources=3),
    "publications": Kind(_publication, _EVERY, 0.4, 0.1, 0.0, (4, 3, 2, 1, 1, 1, 1, 1)),
    "addresses": Kind(_address, (typo, abbreviated), 0.3, 0.1, 0.0, (3, 3, 2, 1)),
    "songs": Kind(_song, _EVERY, 0.4, 0.15, 0.1, (6, 3, 1, 1, 1)),
    "names": Kind(_name_only, (*_TYPOS, *_ORDER), 0.6, 0.0, 0.0, (4, 3, 2)),
}
NAMES = tuple(_KINDS)


def record_table(name: str, n_rows: int, seed: int = 0) -> RecordTable:
    """A table of about this many rows; the same seed gives the same table."""
    kind = _KINDS[name]
    rng = np.random.default_rng([seed, NAMES.index(name)])
    words = [Words(rng, max(20, n_rows // 4)) for _ in range(4)]
    return draw_table(rng, n_rows, words, kind)


def draw_table(rng, n_rows: int, words: list[Words], kind: Kind) -> RecordTable:
    """Draw things of a kind, and copies of them with errors, until there are this many rows."""
    shares = np.array(kind.sizes) / sum(kind.sizes)
    rows, entities, sources, n_things = [], [], [], 0
    while len(rows) < n_rows:
        thing = kind.make(rng, words)
        size = int(rng.choice(len(shares), p=shares)) + 1
        from_sources = rng.permutation(kind.n_sources)[:size] if kind.n_sources else np.full(size, -1)
        for copy, source in enumerate(from_sources.tolist()):
            rows.append(thing if copy == 0 else _with_errors(rng, kind, thing, kind.make(rng, words)))
            entities.append(n_things)
            sources.append(source)
        n_things += 1
    order = rng.permutation(len(rows))
    columns = {column: [rows[row][column] for row in order.tolist()] for column in rows[0]}
    return RecordTable(columns, np.array(entities)[order], np.array(sources)[order])


def _with_errors(rng, kind, thing, other):
    copy = dict(thing)
    for column in copy:
        if rng.random() < kind.replaced:
            copy[column] = other[column]
        while copy[column] and rng.random() < kind.rate:
            copy[column] = kind.errors[int(rng.integers(len(kind.errors)))](rng, copy[column])
        if rng.random() < kind.missing:
            copy[column] = ""
    if rng.random() < kind.swapped:
        one, two = rng.choice(list(copy), size=2, replace=False).tolist()
        copy[one], copy[two] = copy[two], copy[one]
    return copy
