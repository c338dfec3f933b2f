"""`clew check`: can these answers hold together in k clusters?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.text import Text

from clew import Constraints
from clew.cli import _exits, _render
from clew.constraints import read_records
from clew.datasets import as_table
from clew.exceptions import ParameterError

# Contradictions told before the rest is only mentioned.
MOST_CONFLICTS = 10

_CODES = {"feasible": 0, "contradictory": _exits.NO, "infeasible": _exits.NO, "unknown": _exits.WORK_LIMIT}
_STYLES = {"feasible": "bold green", "unknown": "bold yellow"}


def run(answers: Path, n_clusters: int, data: Path | None, id_column: str | None, as_json: bool) -> None:
    """Read the answers, decide, tell, and exit with the code of the verdict."""
    result = verdict(_read(answers, data, id_column), n_clusters)
    if as_json:
        _render.print_json(result)
    else:
        _tell(result, str(answers))
    raise typer.Exit(_CODES[result["status"]])


def _read(answers: Path, data: Path | None, id_column: str | None) -> Constraints:
    if data is None:
        if id_column is not None:
            raise ParameterError("--id names a column of the data: give the data with --data.")
        return Constraints.from_file(answers, ids=read_records(answers).ids())
    table = as_table(data, text=[id_column] if id_column else [])
    ids = None if id_column is None else table.ids(id_column)
    return Constraints.from_file(answers, ids=ids, n_samples=table.n_rows, table=table.rows(ids))


def verdict(constraints: Constraints, n_clusters: int) -> dict[str, Any]:
    """Collect what `--json` prints and the terminal shows."""
    name = constraints.describe_row
    result: dict[str, Any] = {
        "status": "",
        "message": "",
        "n_clusters": n_clusters,
        "rows": len(constraints),
        "must_link": len(constraints.must_link),
        "cannot_link": len(constraints.cannot_link),
    }
    conflicts = constraints.conflicts(limit=MOST_CONFLICTS + 1)
    found = constraints.check(n_clusters)
    result["message"] = found.message
    if conflicts:
        told = conflicts[:MOST_CONFLICTS]
        return result | {
            "status": "contradictory",
            "conflicts": [{"message": str(conflict), "chain": list(conflict.names)} for conflict in told],
            "more_conflicts": len(conflicts) > MOST_CONFLICTS,
        }
    result["status"] = found.status
    if found.labels is not None:
        result["witness_sizes"] = np.sort(
            np.bincount(found.labels, minlength=min(n_clusters, len(constraints) + 1000))
        )[::-1]
    if found.rows is not None:
        result["proof"] = [name(row) for row in found.rows]
    return result | _implied(constraints)


def _implied(constraints: Constraints) -> dict[str, int]:
    """Count what follows from the pairs; not the cannot-links where labels or groups overlap with them."""
    closed = constraints.closure()
    sizes = closed.sizes
    given = len(np.unique(np.sort(constraints.must_link, axis=1), axis=0))
    counts = {
        "joined_groups": int((sizes > 1).sum()),
        "implied_must_link": int((sizes * (sizes - 1) // 2).sum()) - given,
    }
    if not closed.graph.cliques.size:
        source = np.repeat(np.arange(closed.n_components), np.diff(closed.graph.edge_ptr))
        apart = int((sizes[source] * sizes[closed.graph.edges]).sum()) // 2
        given = len(np.unique(np.sort(constraints.cannot_link, axis=1), axis=0))
        counts["implied_cannot_link"] = apart - given
    return counts


def _tell(result: dict[str, Any], source: str) -> None:
    console = _render.console()
    status, k = result["status"], result["n_clusters"]
    headings = {
        "feasible": f"Yes: all answers can hold in {_render.counted(k, 'cluster')}.",
        "contradictory": "No: the answers contradict each other, whatever the number of clusters.",
        "infeasible": f"No: the answers cannot all hold in {_render.counted(k, 'cluster')}.",
        "unknown": "Undecided.",
    }
    console.print(Text(headings[status], _STYLES.get(status, "bold red")))
    if status in ("infeasible", "unknown"):
        console.print(Text(result["message"]))
    for conflict in result.get("conflicts", ()):
        console.print(Text(f"• {conflict['message']}"))
    if result.get("more_conflicts"):
        console.print(f"and more; these are the first {MOST_CONFLICTS}.")
    console.print(_render.facts(_facts(result, source)))


def _facts(result: dict[str, Any], source: str) -> list[tuple[str, str | Text]]:
    lines: list[tuple[str, str | Text]] = [
        ("answers", f"{result['must_link']:,} same, {result['cannot_link']:,} different, in {source}"),
        ("rows", f"{result['rows']:,}"),
    ]
    if "joined_groups" in result:
        joined = _render.counted(result["joined_groups"], "group of rows that belong", "groups of rows that belong")
        lines[-1] = ("rows", f"{result['rows']:,}, with {joined} together")
        implied = f"{result['implied_must_link']:,} same"
        if "implied_cannot_link" in result:
            implied += f", {result['implied_cannot_link']:,} different"
        lines.append(("implied", f"{implied}, without asking"))
    if "witness_sizes" in result:
        sizes = [f"{size:,}" for size in result["witness_sizes"][: _render.MOST_CLUSTERS]]
        more = len(result["witness_sizes"]) - len(sizes)
        lines.append(("one way", f"clusters of {', '.join(sizes)}{f' and {more:,} more' if more else ''} rows"))
    return lines
