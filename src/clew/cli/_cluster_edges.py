"""`clew cluster-edges`: read scored pairs, write the cluster of each id, and list the pairs to check next."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table as RichTable
from rich.text import Text

from clew import Constraints, cluster_edges
from clew.cli import _exits, _render
from clew.cli._progress import progress
from clew.cli._reading import STDIN, Reading
from clew.datasets import check_writable, write_table
from clew.exceptions import ParameterError
from clew.graph._cluster_edges import TEXT_COLUMNS, EdgeClusters

# Number of pairs to check that the terminal shows. The file has all of them.
_MOST_SHOWN = 10


@dataclass(frozen=True)
class EdgesRequest:
    """Flags of `clew cluster-edges`."""

    edges: str
    output: str | None
    constraints: Path | None
    records: Path | None
    id_column: str | None
    source: str | None
    one_per_source: bool
    score: str | None
    threshold: float | None
    missing: float | None
    review: Path | None
    most: int
    sep: str | None
    encoding: str | None
    random_state: int
    json: bool
    quiet: bool


def run(request: EdgesRequest) -> None:
    """Read the edges, cluster the ids, write the clusters and the pairs to check, and print a summary."""
    output = _output(request)
    with progress("reading", quiet=request.quiet):
        table = Reading(request.edges, sep=request.sep, encoding=request.encoding).table(*TEXT_COLUMNS)
        ids, groups = _records(request)
        known = _constraints(request, ids, groups)
    started = time.perf_counter()
    with progress("cluster_edges", quiet=request.quiet):
        found = cluster_edges(
            table,
            ids=ids,
            constraints=known,
            score=request.score,
            threshold=request.threshold,
            missing=request.missing,
            one_per_source=request.one_per_source,
            random_state=request.random_state,
        )
    elapsed = time.perf_counter() - started
    write_table(sys.stdout if output is None else output, {"id": found.ids, "cluster": found.labels})
    review = found.review(request.most) if request.review is not None or request.json else []
    if request.review is not None:
        names = ("id_1", "id_2", "score", "together", "margin", "rows", "worth")
        write_table(request.review, {name: [row[name] for row in review] for name in names})
    _exits.written.extend(path for path in (output, request.review) if path is not None)
    facts = {
        "edges": table.n_rows,
        "ids": len(found.ids),
        "clusters": found.n_clusters,
        "largest": int(np.bincount(np.unique(found.labels, return_inverse=True)[1]).max()),
        "objective": found.objective,
        "lower_bound": found.lower_bound,
        "seconds": round(elapsed, 6),
        "output": None if output is None else str(output),
    }
    if request.json:
        _render.print_json(facts | {"review": review})
    elif not request.quiet:
        _tell(request, found, facts, review, stderr=output is None)


def _output(request: EdgesRequest) -> Path | None:
    if request.output == "-" or (request.output is None and request.edges == STDIN):
        if request.json:
            raise ParameterError("The clusters and --json cannot both go to stdout. Write them to a file with -o.")
        output = None
    else:
        output = Path(request.output) if request.output else Path(f"{Path(request.edges).stem}-clusters.csv")
    written = [path for path in (output, request.review) if path is not None]
    for path in written:
        for given in (Path(request.edges), request.constraints, request.records):
            if given is not None and path.exists() and given.exists() and path.samefile(given):
                raise ParameterError(f"{path} is an input, which would be overwritten. Choose another name.")
        check_writable(path)
    if len(written) == 2 and written[0].absolute() == written[1].absolute():
        raise ParameterError(f"-o and --review both name {output}. Choose two names.")
    return output


def _records(request: EdgesRequest) -> tuple[Any, Any]:
    """The ids of all records and the number of each record's source, if there is a table of records."""
    if request.records is None:
        for flag, value in (("--id", request.id_column), ("--source", request.source)):
            if value is not None:
                raise ParameterError(f"{flag} {value} names a column of the records: add --records FILE.")
        return None, None
    if request.id_column is None:
        raise ParameterError("--records needs the column with the ids: add --id COLUMN.")
    table = Reading(str(request.records), id_column=request.id_column).table(request.source)
    ids = table.ids(request.id_column)
    if request.source is None:
        return ids, None
    sources = [str(value).strip() for value in table.column(request.source).tolist()]
    numbers = np.unique(sources, return_inverse=True)[1]
    return ids, np.where(np.array(sources) == "", -1, numbers)


def _constraints(request: EdgesRequest, ids: Any, groups: Any) -> Any:
    """The constraints in a form that `cluster_edges` takes: the file itself if it uses the ids of the edges."""
    if groups is None:
        return request.constraints
    known = Constraints(cannot_groups=groups, ids=ids)
    return known if request.constraints is None else known | Constraints.from_file(request.constraints, ids=ids)


def _tell(
    request: EdgesRequest, found: EdgeClusters, facts: dict[str, Any], review: list[dict[str, Any]], *, stderr: bool
) -> None:
    console = _render.console(stderr=stderr)
    ids, clusters = _render.counted(facts["ids"], "id"), _render.counted(facts["clusters"], "cluster")
    console.print(f"[bold]{ids} in {clusters}[/bold] by {_render.counted(facts['edges'], 'scored pair')}")
    share = (found.objective - found.lower_bound) / found.objective if found.objective else 0.0
    distance = "which is the lowest possible" if share < 1e-6 else f"at most {share:.1%} above the lowest possible"
    lines = [
        ("largest", _render.counted(facts["largest"], "id")),
        ("disagreements", f"{_render.number(found.objective)}, {distance}"),
        ("time", _render.seconds(facts["seconds"])),
    ]
    if facts["output"] is not None:
        lines.append(("written", facts["output"]))
    console.print(_render.facts(lines))
    if request.review is None:
        return
    if not review:
        console.print("\nNo pair is left to check: constraints decide all of them.")
        return
    console.print(f"\n[bold]Pairs to check next[/bold], all {len(review)} in {request.review}")
    table = RichTable(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for heading in ("id_1", "id_2", "score", "now", "would move"):
        table.add_column(heading)
    for row in review[:_MOST_SHOWN]:
        now = "together" if row["together"] else "apart"
        moved = _render.counted(row["rows"], "id")
        table.add_row(Text(str(row["id_1"])), Text(str(row["id_2"])), f"{row['score']:.3g}", now, moved)
    console.print(table)
    console.print("Answer them in a file with the columns id_1, id_2 and answer (same or different), and add -c FILE.")
