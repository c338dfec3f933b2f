"""`clew import`: import answers of clew or another tool into a project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from clew.cli import _render
from clew.cli._cards import shown
from clew.cli._progress import progress
from clew.cli._project import opened, typed
from clew.constraints import AnswerRecord, Answers, key_of, read_answers

if TYPE_CHECKING:
    from clew import Session

# Largest number of skipped rows that are named.
_MOST_NAMED = 3


class _Rows(Mapping[Any, Mapping[str, Any]]):
    """The rows of a session by id, built on access: only the formats that store whole records need them."""

    def __init__(self, session: Session) -> None:
        self._session, self._ids = session, session.ids

    def __getitem__(self, row: Any) -> Mapping[str, Any]:
        return self._session.row(row)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def run(
    project: str, file: Path, tool: str | None, name: str | None, data: str | None, annotator: str | None, as_json: bool
) -> None:
    """Import the answers about rows of the project, and report the number and reason of skipped answers."""
    with opened(project, name, data) as session, progress(f"reading {file.name}"):
        answers = read_answers(file, format=tool, table=_Rows(session))
        usable, skipped = _sorted_out(session, answers)
        before = len(session.conflicts())
        taken = session.import_answers(_records(usable, file.name), annotator=annotator)
        conflicts = len(session.conflicts()) - before
    told = {
        "file": str(file),
        "format": answers.format,
        "read": len(answers),
        "answers": dict(Counter(one.answer for one in answers)),
        "taken": taken,
        "known": len(usable) - taken,
        "skipped": skipped,
        "unmatched": answers.unmatched or None,
        "open": answers.n_open,
        "conflicts": max(conflicts, 0),
    }
    if as_json:
        _render.print_json(told)
    else:
        _tell(told, typed(project, name))


def _sorted_out(session: Session, answers: Answers) -> tuple[list[AnswerRecord], list[dict[str, Any]]]:
    """Split the answers into usable ones (about two rows of the project) and skipped ones with the reason."""
    rows = {key_of(row) for row in [*session.ids, *session.changes.missing]}
    usable, skipped = [], []
    for one in answers:
        strange = [row for row in (one.id_1, one.id_2) if key_of(row) not in rows]
        if strange:
            why = "about a row that the project does not have"
        elif key_of(one.id_1) == key_of(one.id_2):
            why, strange = "about one row twice", [one.id_1]
        else:
            usable.append(one)
            continue
        skipped.append({"id_1": one.id_1, "id_2": one.id_2, "answer": one.answer, "why": why, "rows": strange})
    return usable, skipped


def _records(answers: list[AnswerRecord], source: str) -> list[dict[str, Any]]:
    """Convert answers to the records of `Session.import_answers`; `source` is the default source."""
    return [asdict(one) | {"source": one.source or source} for one in answers]


def _tell(told: dict[str, Any], project: str) -> None:
    console = _render.console()
    said = ", ".join(f"{told['answers'].get(word, 0):,} {word}" for word in ("same", "different", "unsure"))
    heading = f"{_render.counted(told['read'], 'answer')} read from {told['file']} ({told['format']})"
    console.print(Text.assemble((heading, "bold"), f": {said}"))
    lines: list[tuple[str, str | Text]] = [("imported", f"{told['taken']:,}")]
    if told["known"]:
        lines.append(("known", f"{told['known']:,} already in the project"))
    for why, count in Counter(one["why"] for one in told["skipped"]).items():
        rows = dict.fromkeys(shown(row) for one in told["skipped"] if one["why"] == why for row in one["rows"])
        named = ", ".join(list(rows)[:_MOST_NAMED]) + (", ..." if len(rows) > _MOST_NAMED else "")
        lines.append(("skipped", Text(f"{count:,} {why}: {named}", "yellow")))
    if told["unmatched"]:
        lines.append(("skipped", Text(told["unmatched"], "yellow")))
    if told["open"]:
        lines.append(("open", f"{_render.counted(told['open'], 'question')} without an answer left out"))
    if told["conflicts"]:
        waits = _render.counted(told["conflicts"], "conflict")
        lines.append(("conflicts", Text(f"{waits} with other answers to resolve: clew review {project}", "yellow")))
    console.print(_render.facts(lines))
