"""`clew correct`: merge, split, move, separate or name clusters; change or confirm an answer; resolve; undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from clew.cli import _exits, _render
from clew.cli._cards import shown
from clew.cli._conflict import chain_table
from clew.cli._progress import progress
from clew.cli._project import opened
from clew.cli._words import conflict_heading, event_words
from clew.exceptions import ParameterError

if TYPE_CHECKING:
    from clew import Session
    from clew.session import Cluster, Conflict, Corrected

# Largest number of rows that are listed; the rest is only counted.
MOST_ROWS = 20
# Largest number of clusters that a message names.
_MOST_NAMED = 20

# For each kind of correction: the arguments in the usage line, and their smallest and largest number.
USAGE: dict[str, tuple[str, int, int | None]] = {
    "merge": ("CLUSTER CLUSTER", 2, 2),
    "split": ("CLUSTER ROW ...", 2, None),
    "move": ("ROW CLUSTER|none", 2, 2),
    "never": ("CLUSTER CLUSTER, or with --rows ROW ROW", 2, 2),
    "name": ("CLUSTER NAME", 2, None),
    "answer": ("NUMBER same|different|unsure", 2, 2),
    "keep": ("NUMBER", 1, 1),
    "resolve": ("NUMBER soft|unsure|change [ANSWER [same|different|unsure]]|withdraw [CORRECTION]", 2, 4),
    "undo": ("", 0, 0),
}


def run(
    project: str, kind: str, words: Sequence[str], *, rows: bool, preview: bool, name: str | None, data: str | None,
    annotator: str, as_json: bool,
) -> None:  # fmt: skip
    """Make one correction, or with `preview` only print its effect."""
    _check_usage(kind, words, rows=rows, preview=preview)
    with opened(project, name, data) as session, progress(f"clusters of {session.name}"):
        if kind in _CLUSTER_KINDS:
            session.labels()
        told = _DO[kind](session, Words(kind, words, annotator, rows, preview))
    if as_json:
        _render.print_json({"kind": kind, "preview": preview} | told["json"])
    else:
        told["tell"]()
    raise typer.Exit(_exits.NO if told["json"].get("conflict") else 0)


class Words:
    """The arguments of one correction, with methods that parse them."""

    def __init__(self, kind: str, words: Sequence[str], annotator: str, rows: bool, preview: bool) -> None:
        self.kind, self.words, self.annotator, self.rows, self.preview = kind, list(words), annotator, rows, preview

    def _cure(self, session: Session, word: str, clusters: Sequence[Cluster]) -> str:
        """Say which cluster a row is in, if the word is the id of a row, or else which clusters there are."""
        cluster_of = {str(row): cluster for row, cluster in session.labels(refit=False).items()}
        if word in cluster_of:
            return f"{word} is a row of cluster {cluster_of[word]}: give the number of the cluster."
        names = [_render.cluster_name(cluster.id, cluster.name) for cluster in clusters]
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        return f"Give the number of one: {', '.join(names[:_MOST_NAMED])}{more}."

    def cluster(self, session: Session, place: int) -> int:
        """Return the id of the cluster that a word names by id or by name."""
        word = self.words[place]
        if word.lstrip("-").isdecimal():
            return int(word)
        clusters = session.clusters(refit=False)
        found = [cluster.id for cluster in clusters if (cluster.name or "").casefold() == word.casefold()]
        if len(found) != 1:
            problem = "several clusters are" if found else "no cluster is"
            raise ParameterError(f"{self.kind}: {problem} called {word!r}. {self._cure(session, word, clusters)}")
        return found[0]

    def number(self, place: int, what: str) -> int:
        """Return a word as a number; `what` says in the message which kind of number is expected."""
        word = self.words[place]
        if not word.isdecimal():
            raise ParameterError(
                f"{self.kind}: {word!r} is not the number of {what}. clew review PROJECT lists the numbers."
            )
        return int(word)


def _check_usage(kind: str, words: Sequence[str], *, rows: bool, preview: bool) -> None:
    if kind not in USAGE:
        raise ParameterError(f"There is no correction {kind!r}. Use one of {', '.join(USAGE)}.")
    usage, least, most = USAGE[kind]
    if len(words) < least or (most is not None and len(words) > most):
        raise ParameterError(f"Expected: clew correct PROJECT {kind} {usage}".rstrip() + ".")
    if rows and kind != "never":
        raise ParameterError("--rows works only with never: clew correct PROJECT never --rows ROW ROW.")
    if preview and kind not in _CLUSTER_KINDS[:-1]:
        raise ParameterError(
            f"--preview works only with {', '.join(_CLUSTER_KINDS[:-1])}: {kind} changes no cluster directly."
        )


def _arguments(session: Session, given: Words) -> dict[str, Any]:
    """Return the arguments for `Session.merge`, `split`, `move` or `never`."""
    words = given.words
    if given.kind == "merge":
        return {"cluster": given.cluster(session, 0), "other": given.cluster(session, 1)}
    if given.kind == "split":
        return {"cluster": given.cluster(session, 0), "rows": words[1:]}
    if given.kind == "move":
        return {"row": words[0], "cluster": None if words[1].casefold() == "none" else given.cluster(session, 1)}
    if given.rows:
        return {"rows": words}
    return {"clusters": [given.cluster(session, 0), given.cluster(session, 1)]}


def _correct(session: Session, given: Words) -> dict[str, Any]:
    arguments = _arguments(session, given)
    names = {cluster.id: cluster.name for cluster in session.clusters(refit=False)}
    if given.preview:
        done: Corrected = session.preview(given.kind, **arguments)
    else:
        done = getattr(session, given.kind)(**arguments, annotator=given.annotator)
    return {"json": asdict(done), "tell": lambda: _tell_corrected(done, given, names)}


def _name(session: Session, given: Words) -> dict[str, Any]:
    cluster, name = given.cluster(session, 0), " ".join(given.words[1:])
    session.name_cluster(cluster, name, annotator=given.annotator)
    sentence = f"Cluster {cluster} is called {name}." if name else f"Cluster {cluster} has no name now."
    return _said({"cluster": cluster, "name": name}, sentence)


def _answer(session: Session, given: Words) -> dict[str, Any]:
    number = given.number(0, "an answer")
    told = session.revise(number, given.words[1], annotator=given.annotator)
    found = next(record for record in session.answers() if record.id == number)
    sentence = f"Answer {number} is {found.answer} now."
    return _said(asdict(told), sentence, told.conflict)


def _keep(session: Session, given: Words) -> dict[str, Any]:
    record = session.confirm(given.number(0, "an answer"), annotator=given.annotator)
    return _said(asdict(record), f"Answer {record.id} stays {record.answer}. clew review does not list it any more.")


def _resolve(session: Session, given: Words) -> dict[str, Any]:
    number, how = given.number(0, "a conflict"), given.words[1].casefold()
    named = given.number(2, "a correction" if how == "withdraw" else "an answer") if len(given.words) > 2 else None
    answer = given.words[3] if len(given.words) > 3 else None
    which = {"correction": named} if how == "withdraw" else {"answer_id": named, "answer": answer}
    left = session.resolve(number, how, **which, annotator=given.annotator)
    rest = next((one for one in left if one.id == number), None)
    sentence = f"Conflict {number} is resolved; {_render.counted(len(left), 'conflict')} left."
    if rest is not None:
        sentence = f"Your choice for conflict {number} is recorded, but a contradiction remains."
    return _said({"left": [one.id for one in left]}, sentence, rest)


def _undo(session: Session, given: Words) -> dict[str, Any]:
    undone = session.undo()
    if undone is None:
        return _said({"undone": None}, "There is nothing to undo.")
    words = event_words(undone)
    return _said({"undone": undone.seq, "what": words, "annotator": undone.annotator}, f"Undone: {words}.")


_CLUSTER_KINDS = ("merge", "split", "move", "never", "name")
_DO: dict[str, Callable[[Any, Words], dict[str, Any]]] = {
    "merge": _correct,
    "split": _correct,
    "move": _correct,
    "never": _correct,
    "name": _name,
    "answer": _answer,
    "keep": _keep,
    "resolve": _resolve,
    "undo": _undo,
}


def _said(told: dict[str, Any], sentence: str, conflict: Conflict | None = None) -> dict[str, Any]:
    def tell() -> None:
        _render.console().print(Text(sentence, "bold"))
        if conflict is not None:
            _tell_conflict(conflict)

    return {"json": told | {"conflict": None if conflict is None else asdict(conflict)}, "tell": tell}


def _tell_conflict(conflict: Conflict) -> None:
    console = _render.console()
    heading = (
        conflict_heading(conflict) if conflict.id else "This correction contradicts earlier answers or corrections:"
    )
    console.print(Text(heading, "bold red"))
    console.print(chain_table(conflict, numbered=False))


def _tell_corrected(done: Corrected, given: Words, names: dict[int, str | None]) -> None:
    console = _render.console()
    if done.conflict is not None:
        _tell_conflict(done.conflict)
        end = (
            "Nothing was recorded."
            if given.preview
            else "The correction is recorded, but not used until the conflict is resolved."
        )
        console.print(Text(end, "yellow"))
        return
    count = _render.counted(len(done.changed), "row") if done.changed else "no row"
    heading = (
        f"{given.kind} would change {count}"
        if given.preview
        else f"Correction {done.id}: {given.kind}, {count} changed"
    )
    console.print(Text(f"{heading}.", "bold"))
    if given.kind == "never":
        console.print("No later fit joins them.")
    moves: dict[tuple[int, int], list[str]] = {}
    for row, change in done.changed.items():
        moves.setdefault(change, []).append(shown(row))
    console.print(_render.facts([(_move(change, names), _named(rows)) for change, rows in moves.items()]))


def _move(change: tuple[int, int], names: dict[int, str | None]) -> str:
    before, after = (_render.cluster_name(cluster, names.get(cluster)) for cluster in change)
    return f"{before} → {after}"


def _named(rows: list[str]) -> str:
    more = len(rows) - MOST_ROWS
    return ", ".join(rows[:MOST_ROWS]) + (f" and {more:,} more" if more > 0 else "")
