"""`clew check`: can these answers hold together in k clusters?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.text import Text

from clew import Constraints
from clew._words import counted, listed
from clew.cli import _exits, _render
from clew.constraints import Repair, read_answers, read_records, write_answers
from clew.constraints._arrays import distinct_pairs
from clew.datasets import as_table
from clew.datasets._as_table import id_column_of
from clew.exceptions import ParameterError

# Largest number of contradictions that are printed.
MOST_CONFLICTS = 10
# Largest number of dropped answers that are printed.
MOST_DROPPED = 50

_CODES = {"feasible": 0, "contradictory": _exits.NO, "infeasible": _exits.NO, "unknown": _exits.WORK_LIMIT}
_STYLES = {"feasible": "bold green", "unknown": "bold yellow"}


def run(
    answers: Path,
    n_clusters: int,
    data: Path | None,
    id_column: str | None,
    as_json: bool,
    repair: bool = False,
    output: Path | None = None,
    trust: list[str] | None = None,
) -> None:
    """Read the answers, check feasibility, print the verdict and the repair, and exit with its code."""
    if not repair and (output is not None or trust):
        raise ParameterError(f"{'--output' if output is not None else '--trust'} is for a repair: add --repair.")
    constraints = _read(answers, data, id_column)
    result = verdict(constraints, n_clusters)
    code = _CODES[result["status"]]
    if repair:
        found = constraints.repair(n_clusters, _prices(answers, trust or []))
        result["repair"] = repair_table(found)
        code = 0
        if output is not None:
            _write(answers, constraints, found, output)
            result["repair"]["output"] = str(output)
    if as_json:
        _render.print_json(result)
    else:
        _tell(result, str(answers))
    raise typer.Exit(code)


def _prices(answers: Path, trust: list[str]) -> dict[str, Any] | None:
    """Prices from `--trust NAME=NUMBER`; None if the flag was not given."""
    known: dict[str, float] = {}
    for word in trust:
        name, _, number = word.rpartition("=")
        try:
            known[name] = float(number)
        except ValueError:
            known[name] = -1.0
        if not name or not known[name] >= 0:
            raise ParameterError(f"--trust {word}: expected NAME=NUMBER with a number >= 0, like --trust ann=0.9.")
    return read_answers(answers).prices(known) if known else None


def _write(answers: Path, constraints: Constraints, found: Repair, output: Path) -> None:
    """Write the remaining answers, with annotators and comments if the file contains only answers."""
    if any(one is not None for one in (constraints.labels, constraints.must_groups, constraints.cannot_groups)):
        found.constraints.to_file(output)
        return
    gone = {(one.kind, one.index) for one in found.dropped}
    place = {"must_link": 0, "cannot_link": 0}
    kept = []
    for record in read_answers(answers):
        kind = {"same": "must_link", "different": "cannot_link"}.get(record.answer)
        if kind is not None:
            place[kind] += 1
        if kind is None or (kind, place[kind] - 1) not in gone:
            kept.append(record)
    write_answers(output, kept)


def repair_table(found: Repair) -> dict[str, Any]:
    """Collect the values that `--json` prints about a repair."""
    return {
        "message": found.message,
        "cost": found.cost,
        "lower_bound": found.lower_bound,
        "exact": found.exact,
        "dropped": [{**row, "rows": list(row["rows"])} for row in found.table()],
    }


def _read(answers: Path, data: Path | None, id_column: str | None) -> Constraints:
    if data is None:
        if id_column is not None:
            raise ParameterError("--id names a column of the data, so it needs the data: add --data FILE.")
        return Constraints.from_file(answers, ids=read_records(answers).ids())
    id_column = id_column or id_column_of(data)
    table = as_table(data, text=[id_column] if id_column else [])
    ids = None if id_column is None else table.ids(id_column)
    return Constraints.from_file(answers, ids=ids, n_samples=table.n_rows, table=table.rows(ids))


def verdict(constraints: Constraints, n_clusters: int) -> dict[str, Any]:
    """Collect the values that `--json` prints and the terminal shows."""
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
    """Count the implied pairs. Implied cannot-links are not counted if labels or groups overlap with the pairs."""
    closed = constraints.closure()
    sizes = closed.sizes
    given = len(distinct_pairs(constraints.must_link).pairs)
    counts = {
        "joined_groups": int((sizes > 1).sum()),
        "implied_must_link": int((sizes * (sizes - 1) // 2).sum()) - given,
    }
    if not closed.graph.cliques.size:
        source = np.repeat(np.arange(closed.n_components), np.diff(closed.graph.edge_ptr))
        apart = int((sizes[source] * sizes[closed.graph.edges]).sum()) // 2
        given = len(distinct_pairs(constraints.cannot_link).pairs)
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
        console.print(f"There are more contradictions; these are the first {MOST_CONFLICTS}.")
    console.print(_render.facts(_facts(result, source)))
    if "repair" in result:
        found = result["repair"]
        console.print(Text(f"Repair: {found['message']}", "bold"))
        for row in found["dropped"][:MOST_DROPPED]:
            console.print(Text(f"• drop: {row['sentence']} (price {row['price']:.4g})"))
        if len(found["dropped"]) > MOST_DROPPED:
            console.print(f"{len(found['dropped']) - MOST_DROPPED:,} more; --json lists all of them.")
        if "output" in found:
            console.print(Text(f"The repaired answers are in {found['output']}."))


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
        used = [f"{size:,}" for size in result["witness_sizes"] if size]
        more = len(used) - _render.MOST_CLUSTERS
        sizes = [*used[: _render.MOST_CLUSTERS], f"{more:,} more"] if more > 0 else used
        empty = len(result["witness_sizes"]) - len(used)
        needless = f"; {counted(empty, 'more cluster')} would be empty" if empty else ""
        lines.append(
            ("one way", f"clusters of {listed(sizes, 'and')} rows{needless}" if used else "no rows, no clusters")
        )
    return lines
