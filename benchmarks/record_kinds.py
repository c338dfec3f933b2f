"""Ten more kinds of made-up things with duplicates.

Parts, crashes, branches, contacts, species and faces, with another seed, took part in the choice of the questions of
`UncertainMatches`; the others did not.

They differ from `record_tables` in what makes them hard: families of things that differ by one number, several
branches of one company, texts instead of columns, invoices of one customer, and vectors.
"""

from __future__ import annotations

import numpy as np

from benchmarks.record_tables import (
    KEYS,
    Kind,
    RecordTable,
    Words,
    abbreviated,
    digits,
    draw_table,
    initial,
    reordered,
    typo,
    word,
    word_dropped,
)

_STREETS = ("street", "avenue", "road", "boulevard", "lane", "drive")
_MODULES = ("net", "io", "db", "ui", "core", "auth", "cache", "queue", "json", "log")
_CALLS = ("read", "write", "open", "close", "parse", "send", "receive", "lock", "flush", "get", "set", "init", "run")
_FAULTS = ("null pointer", "index out of range", "timeout", "out of memory", "permission denied", "key not found")
_TRADES = ("preschool", "pharmacy", "bakery", "garage", "clinic", "hotel")
_JOURNALS = ("journal of data", "annals of statistics", "machine learning", "bioinformatics", "nature methods")


def _part(rng, words):
    """A product of a family: its siblings differ in the size or the colour alone."""
    family = int(rng.integers(400))
    of_family = np.random.default_rng(family)
    maker, thing = (str(of_family.choice(one.words)) for one in words[:2])
    model = f"{KEYS[of_family.integers(26)]}{KEYS[of_family.integers(26)]}{of_family.integers(10, 99)}"
    size = int(rng.choice([16, 32, 64, 128, 256, 512]))
    colour = str(rng.choice(["black", "white", "silver", "blue", "red", "green", "gold", "grey"]))
    return {
        "title": f"{maker} {thing} {model} {size} gb {colour}", "maker": maker,
        "price": f"{of_family.uniform(50, 900) * (1 + size / 500):.2f}",
    }  # fmt: skip


def _flat(rng, words):
    """An address whose house has several flats."""
    house = int(rng.integers(400))
    of_house = np.random.default_rng(house)
    street = f"{of_house.integers(1, 300)} {of_house.choice(words[2].words)} {of_house.choice(_STREETS)}"
    return {
        "address": f"{street} apt {rng.integers(1, 40)}", "city": str(of_house.choice(words[3].words[:15])),
        "postcode": str(of_house.integers(10000, 99999)),
    }  # fmt: skip


def _paper(rng, words):
    """A publication; the same authors write several."""
    group = int(rng.integers(120))
    of_group = np.random.default_rng(group)
    names = [f"{word(of_group)} {of_group.choice(words[1].words)}" for _ in range(int(of_group.integers(2, 6)))]
    return {
        "authors": " ".join(names),
        "title": " ".join(words[0].draw(rng) for _ in range(int(rng.integers(4, 9)))),
        "journal": str(rng.choice(_JOURNALS)), "year": str(rng.integers(1995, 2026)),
        "pages": f"{(first := int(rng.integers(1, 900)))} {first + rng.integers(5, 30)}",
    }  # fmt: skip


def _citation(rng, words):
    """A reference as one string."""
    paper = _paper(rng, words)
    return {"reference": f"{paper['authors']} {paper['year']} {paper['title']} {paper['journal']} {paper['pages']}"}


def _crash(rng, words):
    """A crash report: an error and the calls that led to it. Bugs of one module share most of their calls."""
    module = int(rng.integers(40))
    of_module = np.random.default_rng(module)
    calls = [f"{of_module.choice(_MODULES)} {of_module.choice(_CALLS)} {of_module.integers(9)}" for _ in range(8)]
    start = int(rng.integers(0, 4))
    own = [f"{rng.choice(_MODULES)} {words[0].draw(rng)}" for _ in range(2)]
    return {
        "error": f"{rng.choice(_FAULTS)} {own[0]}", "stack": " ".join([*own, *calls[start : start + 5]]),
        "version": f"{rng.integers(1, 4)}.{rng.integers(10)}", "device": words[3].words[int(rng.integers(12))],
    }  # fmt: skip


def _branch(rng, words):
    """A branch of a chain: the name says the chain, and the street says the branch."""
    chain = int(rng.integers(60))
    of_chain = np.random.default_rng(chain)
    name = f"{of_chain.choice(words[0].words)} {of_chain.choice(words[1].words)} {of_chain.choice(_TRADES)}"
    return {
        "name": f"{name} {words[2].draw(rng)}" if rng.random() < 0.5 else name,
        "street": f"{rng.integers(1, 9000)} {rng.choice(['n', 's', 'w'])} {rng.choice(words[2].words[:80])} street",
        "zip": str(60600 + rng.integers(40)), "phone": f"{of_chain.integers(200, 999)}{rng.integers(1000, 9999)}",
    }  # fmt: skip


def _invoice(rng, words):
    """An invoice: the customers are few, and numbers and dates tell their invoices apart."""
    return {
        "customer": f"{words[0].words[int(rng.integers(40))]} {words[1].words[int(rng.integers(40))]}",
        "date": f"2025-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
        "amount": f"{np.exp(rng.normal(5, 1)):.2f}", "reference": f"{rng.integers(2020, 2026)} {digits(rng, 5)}",
    }  # fmt: skip


def _contact(rng, words):
    first, last, firm = (words[place].draw(rng) for place in range(3))
    return {
        "name": f"{first} {last}", "mail": f"{first[0]}.{last}@{firm}.com" if rng.random() < 0.8 else "",
        "firm": firm, "title": str(rng.choice(["manager", "engineer", "buyer", "director", "sales"])),
    }  # fmt: skip


def _species(rng, words):
    """A name of a species with its author and year; species of one genus look alike."""
    genus = words[0].words[int(rng.integers(60))]
    return {
        "name": f"{genus} {words[1].draw(rng)}", "author": words[2].draw(rng), "year": str(rng.integers(1758, 2020)),
    }  # fmt: skip


_EVERY = (typo, typo, abbreviated, word_dropped, reordered, initial)
_KINDS = {
    "parts": Kind(_part, (typo, word_dropped, reordered), 0.3, 0.1, 0.0, (4, 3, 2, 1), replaced=0.0),
    "flats": Kind(_flat, (typo, abbreviated), 0.3, 0.1, 0.0, (3, 3, 2, 1), replaced=0.0),
    "papers": Kind(_paper, _EVERY, 0.4, 0.15, 0.0, (3, 3, 2, 1, 1, 1), replaced=0.05),
    "citations": Kind(_citation, _EVERY, 0.7, 0.0, 0.0, (3, 3, 2, 1, 1, 1), replaced=0.0),
    "crashes": Kind(_crash, (word_dropped, typo), 0.4, 0.05, 0.0, (3, 2, 1, 1, 1, 1, 1, 1, 1, 1), replaced=0.2),
    "branches": Kind(_branch, _EVERY, 0.35, 0.15, 0.0, (2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1), replaced=0.08),
    "invoices": Kind(_invoice, (typo, initial), 0.2, 0.1, 0.0, (8, 3, 1), replaced=0.05),
    "contacts": Kind(_contact, (typo, initial, word_dropped), 0.3, 0.2, 0.05, (3, 3, 2, 1), replaced=0.15),
    "species": Kind(_species, (typo, abbreviated, initial), 0.35, 0.15, 0.0, (3, 3, 2, 1), replaced=0.05),
}
NAMES = tuple(_KINDS)


def record_table(name: str, n_rows: int, seed: int = 0) -> RecordTable:
    """A table of about this many rows; the same seed gives the same table."""
    rng = np.random.default_rng([seed, 100 + NAMES.index(name)])
    words = [Words(rng, max(20, n_rows // 4)) for _ in range(4)]
    return draw_table(rng, n_rows, words, _KINDS[name])


def faces(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of 64 numbers in groups of 1 to 12 rows, and the group of each row; some people look alike."""
    rng = np.random.default_rng([seed, 200])
    sizes = rng.integers(1, 13, size=n_rows)
    person = np.repeat(np.arange(n_rows), sizes)[:n_rows]
    centres = rng.normal(size=(n_rows, 64))
    alike = rng.random(n_rows) < 0.2
    centres[alike] = np.roll(centres, 1, axis=0)[alike] + 0.45 * rng.normal(size=(int(alike.sum()), 64))
    spread = rng.uniform(0.2, 0.6, size=(n_rows, 1))
    X = centres[person] + spread * rng.normal(size=(n_rows, 64))
    order = rng.permutation(n_rows)
    return X[order], np.unique(person, return_inverse=True)[1][order]
