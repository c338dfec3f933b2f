"""`clew audit`: which answers look wrong? `clew advise`: how many clusters, which distance?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from clew import Constraints
from clew.audit import (
    ClusterNumberAdvice,
    MetricAdvice,
    Review,
    advise_metric,
    advise_n_clusters,
    coherence,
    difficulty,
    informativeness,
    propagation,
    review,
)
from clew.audit._distances import VECTOR_METRICS
from clew.audit._plots import panels
from clew.cli import _exits, _render
from clew.cli._cluster import matrix
from clew.cli._progress import progress
from clew.constraints import answer_kind, read_records
from clew.datasets import as_table, check_writable, write_table
from clew.exceptions import ConstraintError, ParameterError

BAR_WIDTH = 20
_PICTURES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class Request:
    """What both commands take."""

    data: Path
    constraints: Path
    id_column: str | None
    columns: str | None
    scale: str
    plot: Path | None
    random_state: int
    json: bool


def _read(request: Request) -> tuple[Any, Constraints]:
    if request.plot is not None and request.plot.suffix.lower() not in _PICTURES:
        raise ParameterError(f"--plot {request.plot}: pictures are written as {', '.join(_PICTURES)}.")
    table = as_table(request.data, text=[request.id_column] if request.id_column else [])
    X, columns = matrix(table, request.columns, request.id_column, None, request.scale, request.random_state)
    if columns and not request.json:
        _exits.say("columns", f"read as\n{columns}", "bold")
    ids = None if request.id_column is None else table.ids(request.id_column)
    known = Constraints.from_file(request.constraints, ids=ids, n_samples=table.n_rows)
    if not len(known.must_link) + len(known.cannot_link):
        raise ConstraintError(f"{request.constraints} holds no answers about pairs: same or different.")
    return X, known


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path)
    _exits.written.append(path)


def run_audit(request: Request, n_clusters: int, most: int, output: Path | None) -> None:
    """Read, review, tell."""
    if output is not None:
        check_writable(output)
    with progress(f"reading {request.data.name}", quiet=request.json):
        X, known = _read(request)
        answers = _answers(request.constraints, known)
    with progress("review", quiet=request.json):
        found = review(X, answers, n_clusters, ids=known.ids, random_state=request.random_state)
    if request.plot is not None:
        _save(found.plot(most=most), request.plot)
    if output is not None:
        rows = found.table()
        columns = [name for name in rows[0] if name not in ("index", "reasons")]
        write_table(
            output,
            {name: [row[name] for row in rows] for name in columns}
            | {"reasons": [" ".join(row["reasons"]) for row in rows]},
        )
        _exits.written.append(output)
    if request.json:
        _render.print_json(
            {
                "message": found.message,
                "error_rate": found.error_rate,
                "error_rates": found.error_rates,
                "answers": found.table(),
            }
        )
    else:
        _tell_audit(found, most)


def _answers(path: Path, known: Constraints) -> list[dict[str, Any]]:
    """Pairs in the order of `Constraints`, with who and when as the file has them."""
    columns = read_records(path).columns
    kinds = [
        answer_kind(word) for word in next(iter(columns[name] for name in ("answer", "type") if name in columns), ())
    ]
    answers = []
    for kind, pairs, certainty in (
        ("must", known.must_link, known.must_link_confidence),
        ("cannot", known.cannot_link, known.cannot_link_confidence),
    ):
        lines = [line for line, word in enumerate(kinds) if word == kind]
        told = len(lines) == len(pairs)  # scores of other tools are no words: who said them cannot be told
        for place, (pair, confidence) in enumerate(zip(pairs.tolist(), certainty.tolist(), strict=True)):
            entry = {"pair": pair, "answer": kind, "confidence": confidence}
            for name in ("annotator", "time"):
                if told and name in columns:
                    entry[name] = columns[name][lines[place]] or None
            answers.append(entry)
    return answers


def _tell_audit(found: Review, most: int) -> None:
    console = _render.console()
    console.print(Text(found.message, "bold"))
    table = RichTable(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for name in ("wrong?", "rows", "answer", "why"):
        table.add_column(name, overflow="fold", no_wrap=name in ("wrong?", "answer"))
    for doubt in found.doubts[:most]:
        style = "red" if doubt.likely != doubt.answer else ""
        names = f"{doubt.rows[0]} – {doubt.rows[1]}"
        by = f" (by {doubt.annotator})" if doubt.annotator is not None else ""
        table.add_row(
            Text(f"{doubt.suspicion:.0%}", style), Text(names), doubt.answer, Text(" ".join(doubt.reasons) + by)
        )
    console.print(table)
    if len(found) > most:
        console.print(Text(f"and {_render.counted(len(found) - most, 'answer')} less suspicious.", "dim"))


def run_advise(request: Request, n_clusters: int | None, most_clusters: int, metrics: str) -> None:
    """Read, try numbers of clusters and distances, tell."""
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    unknown = [name for name in names if name not in VECTOR_METRICS]
    if unknown or not names:
        named = unknown[0] if unknown else "''"
        raise ParameterError(f"--metrics {named}: expected some of {', '.join(VECTOR_METRICS)}.")
    with progress(f"reading {request.data.name}", quiet=request.json):
        X, known = _read(request)
    with progress("numbers of clusters", quiet=request.json):
        most = min(most_clusters, X.shape[0])
        numbers = advise_n_clusters(X, known, range(min(2, most), most + 1), random_state=request.random_state)
    k = numbers.best if n_clusters is None else n_clusters
    with progress("distances", quiet=request.json):
        distances = advise_metric(X, known, k, names, random_state=request.random_state)
    facts: dict[str, Any] = {
        "propagation": propagation(X, known).message,
        "difficulty": difficulty(known).message,
        "informativeness": informativeness(X, known, k, random_state=request.random_state),
        "coherence": coherence(X, known) if len(known.must_link) and len(known.cannot_link) else None,
    }
    if request.plot is not None:
        _save(_picture(numbers, distances), request.plot)
    if request.json:
        advice = {"n_clusters": numbers.best, "n_clusters_table": numbers.table(), "metric": distances.best}
        _render.print_json(advice | {"metric_table": distances.table()} | facts)
        return
    _tell_advice(numbers, distances, k, facts)


def _picture(numbers: ClusterNumberAdvice, distances: MetricAdvice) -> Any:
    above, below = panels(2, 8)
    numbers.plot(above)
    return distances.plot(below)


def _tell_advice(numbers: ClusterNumberAdvice, distances: MetricAdvice, k: int, facts: dict[str, Any]) -> None:
    console = _render.console()
    console.print(Text(numbers.message, "bold"))
    sizes = [(str(row["n_clusters"]), row["fitness"]) for row in numbers.table()]
    console.print(_bars("clusters", sizes, "kept at no cost"))
    console.print()
    console.print(Text(f"With {k} clusters, {distances.message}", "bold"))
    console.print(_bars("distance", [(row["metric"], row["fitness"]) for row in distances.table()], "kept at no cost"))
    console.print()
    lines: list[tuple[str, str | Text]] = [(name, facts[name]) for name in ("propagation", "difficulty")]
    lines.append(("informativeness", f"{facts['informativeness']:.0%} of the answers go against plain k-means"))
    if facts["coherence"] is not None:
        pull = f"{facts['coherence']:.0%} of the same / different pairs of answers do not pull against each other"
        lines.append(("coherence", pull))
    console.print(_render.facts(lines))


def _bars(heading: str, values: list[tuple[str, float]], what: str) -> RichTable:
    table = RichTable(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    table.add_column(heading)
    table.add_column(what, justify="right")
    table.add_column("")
    for name, value in values:
        table.add_row(Text(name), f"{value:.0%}", Text("━" * round(BAR_WIDTH * value), "cyan"))
    return table
