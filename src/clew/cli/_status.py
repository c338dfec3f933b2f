"""`clew status`: show the progress of a project."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from clew._words import without_password
from clew.cli import _render
from clew.cli._cards import shown, summary
from clew.cli._project import opened, place_of, typed

if TYPE_CHECKING:
    from clew import Session

# Largest number of clusters that are listed; the rest is only counted.
MOST_CLUSTERS = 30


def run(project: str, name: str | None, data: str | None, as_json: bool) -> None:
    """Print the answers, the clusters, open questions and conflicts, and whether to stop asking."""
    with opened(project, name, data) as session:
        told = status(session, without_password(place_of(project)))
    if as_json:
        _render.print_json(told)
    else:
        _tell(told, typed(project, name))


def status(session: Session, place: str) -> dict[str, Any]:
    """Collect the values that `--json` prints and the terminal shows, without fitting or writing."""
    answers = session.answers()
    agreement = session.agreement()
    return {
        "project": session.name,
        "place": place,
        "data_changed": str(session.changes) if session.changes else None,
        "settings": session.settings,
        "answers": dict(Counter(record.answer for record in answers)),
        "people": [asdict(person) for person in agreement.people],
        "kappa": [
            {"between": list(people), "kappa": None if kappa is None else round(kappa, 4)}
            for people, kappa in agreement.kappa.items()
        ],
        "progress": asdict(session.progress()),
        "clusters": [
            asdict(cluster) | {"example": summary(cluster.typical[0], session.row(cluster.typical[0]))}
            for cluster in session.clusters(refit=False)
        ],
    }


def _tell(told: dict[str, Any], project: str) -> None:
    console = _render.console()
    now, settings = told["progress"], told["settings"]
    console.print(Text.assemble((told["project"], "bold"), f" in {told['place']}"))
    known_by = "answers and sources" if settings.get("source") else "the answers"
    lines: list[tuple[str, str | Text]] = [
        ("rows", f"{now['n_rows']:,}"),
        ("answers", _answers(told["answers"], now)),
        ("clusters", _counts(told["clusters"], settings["n_clusters"], now["groups"], known_by)),
        ("asked by", now["strategy"]),
    ]
    if now["seconds"] is not None:
        lines.append(("time", f"{now['seconds']:.1f} s for an answer (median)"))
    if len(told["people"]) > 1 and not _is_comparable(told["people"]):
        lines.append(("people", ", ".join(f"{one['annotator']} {one['answered']:,}" for one in told["people"])))
    kappas = [f"{' and '.join(one['between'])} {one['kappa']:.2f}" for one in told["kappa"] if one["kappa"] is not None]
    if kappas:
        lines.append(("kappa", ", ".join(kappas)))
    if now["pending"]:
        lines.append(("waiting", _render.counted(now["pending"], "question")))
    if now["conflicts"]:
        lines.append(("conflicts", Text(f"{now['conflicts']:,}: clew review {project}", "yellow")))
    lines += [("note", Text(note, "yellow")) for note in now["notes"]]
    lines.append(("next", Text(now["reason"], "green" if now["can_stop"] else "")))
    console.print(_render.facts(lines))
    console.print()
    if _is_comparable(told["people"]):
        console.print(_people_table(told["people"]))
        console.print()
    _tell_clusters(told, project)


def _tell_clusters(told: dict[str, Any], project: str) -> None:
    console = _render.console()
    clusters = told["clusters"]
    if not clusters:
        console.print(Text(f"There are no clusters yet: clew export {project} makes them.", "dim"), soft_wrap=True)
        return
    console.print(_clusters_table(clusters))
    if told["progress"]["stale"]:
        sentence = (
            f"There are new answers or corrections since the last fit: clew export {project} refits the clusters."
        )
        console.print(Text(sentence, "dim"), soft_wrap=True)


def _clusters_table(clusters: list[dict[str, Any]]) -> Table:
    """Return a table of the largest clusters with their sizes and most typical rows."""
    largest = sorted(clusters, key=lambda cluster: -cluster["size"])[:MOST_CLUSTERS]
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim", expand=True)
    names = [_render.cluster_name(cluster["id"], cluster["name"]) for cluster in largest]
    table.add_column("cluster", width=min(max(map(len, ["cluster", *names])), 24), overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("typical row", ratio=1, no_wrap=True, overflow="ellipsis")
    for cluster in sorted(largest, key=lambda cluster: cluster["id"]):
        row = Text.assemble((f"{shown(cluster['typical'][0])}  ", "cyan"), cluster["example"])
        table.add_row(Text(_render.cluster_name(cluster["id"], cluster["name"])), f"{cluster['size']:,}", row)
    rest = sum(cluster["size"] for cluster in clusters) - sum(cluster["size"] for cluster in largest)
    if rest:
        table.add_row("others", f"{rest:,}", f"in {_render.counted(len(clusters) - len(largest), 'smaller cluster')}")
    return table


def _answers(answers: dict[str, int], now: dict[str, Any]) -> str:
    parts = [f"{answers.get(word, 0):,} {word}" for word in ("same", "different", "unsure")]
    return f"{now['answered']:,}: {', '.join(parts)}; {now['implied']:,} more implied"


def _counts(clusters: list[dict[str, Any]], n_asked: int | None, n_known: int, known_by: str) -> str:
    """The number of clusters, the number that was requested, and the number that answers and sources distinguish."""
    parts = [f"{len(clusters):,} now"] if clusters else []
    parts.append("number not set" if n_asked is None else f"{n_asked:,} asked for")
    if n_known > 1:
        parts.append(f"at least {n_known:,} by {known_by}")
    return ", ".join(parts)


def _is_comparable(people: list[dict[str, Any]]) -> bool:
    """Whether anything is known about the care of the people: common pairs, corrected answers or error rates."""
    return any(one["shared"] or one["corrected"] or one["error_rate"] is not None for one in people)


def _people_table(people: list[dict[str, Any]]) -> Table:
    """Return a table of the people: their answers, their errors, and how often others agree."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("person", overflow="fold")
    for heading in ("answers", "look wrong", "error rate", "others agree", "corrected"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in people:
        rate = one["error_rate"]
        table.add_row(
            Text(one["annotator"]),
            f"{one['answered']:,}",
            "" if rate is None else f"{one['looks_wrong']:,}",
            "" if rate is None else f"{rate:.0%}",
            f"{one['agreed']:,} of {one['shared']:,}" if one["shared"] else "",
            f"{one['corrected']:,}",
        )
    return table
