"""`clew cluster`: a table in, a cluster per row out."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from clew import Constraints
from clew.cli import _exits, _render
from clew.cli._methods import find_method
from clew.cli._parameters import parse_value, signature_of, split_arguments
from clew.cli._progress import progress
from clew.datasets import Table, as_table, check_writable, encode, scaled, write_table
from clew.datasets._columns import is_id_name
from clew.evaluation import constraint_satisfaction
from clew.exceptions import ParameterError

_KINDS = {
    "must_link": "must-link",
    "cannot_link": "cannot-link",
    "labels": "pairs of labels",
    "must_groups": "must-groups",
    "cannot_groups": "cannot-groups",
}


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    arguments: Sequence[str]
    n_clusters: str | None
    constraints: Path | None
    method: str
    output: str | None
    id_column: str | None
    columns: str | None
    label_column: str | None
    scale: str
    random_state: int
    json: bool
    quiet: bool


@dataclass(frozen=True)
class Knowledge:
    """The constraints, and what the user calls the classes among them."""

    constraints: Constraints | None
    class_names: list[str]


def run(request: Request, own_flags: Iterable[str]) -> None:
    """Read, fit, write and tell."""
    estimator, data = _estimator(request, own_flags)
    output = _output(request, data)
    with progress(f"reading {data.name}", quiet=request.quiet):
        table = as_table(data, text=[name for name in (request.id_column, request.label_column) if name])
        X, columns = matrix(
            table, request.columns, request.id_column, request.label_column, request.scale, request.random_state
        )
        ids = None if request.id_column is None else table.ids(request.id_column)
        knowledge = _knowledge(request, table, ids)
    if columns and not request.quiet:
        _exits.say("columns", f"read as\n{columns}", "bold")
    started = time.perf_counter()
    with progress(type(estimator).__name__, quiet=request.quiet):
        estimator.fit(X, constraints=knowledge.constraints)
    elapsed = time.perf_counter() - started

    names = cluster_names(estimator, knowledge.class_names)
    rows = np.arange(table.n_rows) if ids is None else ids
    key = request.id_column if request.id_column not in (None, "cluster") else "row" if ids is None else "id"
    clusters = estimator.labels_
    if knowledge.class_names:
        clusters = np.array([names[label] for label in clusters.tolist()], dtype=object)
    write_table(sys.stdout if output is None else output, {str(key): rows, "cluster": clusters})
    if output is not None:
        _exits.written.append(output)
    result = summary(request.method, estimator, knowledge, rows, names, elapsed, output)
    if request.json:
        _render.print_json(result)
    elif not request.quiet:
        print_summary(result, _render.console(stderr=output is None))


def _estimator(request: Request, own_flags: Iterable[str]) -> tuple[Any, Path]:
    """Build the estimator from the flags, and find the data file among the other words."""
    kind = find_method(request.method)
    defaults = signature_of(kind)
    words, parameters = split_arguments(request.arguments, request.method, defaults, own_flags)
    if len(words) != 1:
        found = " ".join(words) or "none"
        raise ParameterError(f"clew cluster takes one data file ({found} given): clew cluster data.csv -k 3.")
    if "random_state" in defaults:
        parameters["random_state"] = request.random_state
    if "n_clusters" in defaults:
        if request.n_clusters is None:
            raise ParameterError(f"{request.method} needs the number of clusters: add -k, for example -k 3.")
        parameters["n_clusters"] = parse_value(request.n_clusters)
    elif request.n_clusters is not None:
        raise ParameterError(f"{request.method} finds the number of clusters itself: leave out -k.")
    return kind(**parameters), Path(words[0])


def _output(request: Request, data: Path) -> Path | None:
    """Give the file to write, None for stdout; refuse what would destroy an input or cannot be written."""
    if request.output == "-":
        if request.json:
            raise ParameterError("-o - and --json both want stdout. Give -o a file.")
        return None
    output = Path(request.output) if request.output else Path(f"{data.stem}-labels.csv")
    for given in (data, request.constraints):
        if given is not None and output.exists() and given.exists() and output.samefile(given):
            raise ParameterError(f"-o {output} would overwrite an input. Choose another name.")
    check_writable(output)
    return output


def matrix(
    table: Table,
    chosen: str | None,
    id_column: str | None,
    label_column: str | None,
    scale: str,
    random_state: int,
) -> tuple[Any, str]:
    """The rows as numbers, and how the columns were read where that was not plain: some are no numbers.

    The columns are those named, or all that can be used and are neither ids nor classes.
    """
    if chosen is not None:
        columns = [name.strip() for name in chosen.split(",") if name.strip()]
    else:
        columns = [name for name in table.features if name not in (id_column, label_column)]
    if columns and any(table.column(name).dtype == object for name in columns):
        return _encoded(table, columns, chosen is None, id_column, scale, random_state)
    X = table.matrix(columns, id_column)
    for name in columns:
        if id_column is None and chosen is None and is_id_name(name):
            sentence = f'Column "{name}" is used as a measurement. If it names the rows, add --id {name}.'
            _exits.say("warning", sentence, "yellow")
    return scaled(X, "none" if scale == "auto" else scale), ""


def _encoded(
    table: Table, columns: list[str], may_leave_out: bool, id_column: str | None, scale: str, random_state: int
) -> tuple[Any, str]:
    if may_leave_out:
        # What the user did not choose may be left out: columns that name the rows, or say the same everywhere.
        table = Table(table.source, table.values, tuple(columns), table.n_rows)
    encoded = encode(
        table,
        id_column=id_column,
        columns=None if may_leave_out else columns,
        scale=scale,
        random_state=random_state,
    )
    return encoded.X, encoded.describe()


def _knowledge(request: Request, table: Table, ids: NDArray[Any] | None) -> Knowledge:
    known: Constraints | None = None
    class_names: list[str] = []
    if request.label_column is not None:
        codes, class_names = known_labels(table, request.label_column)
        known = Constraints(labels=codes, n_samples=table.n_rows, ids=ids)
    if request.constraints is not None:
        rows = table.rows(ids)
        pairs = Constraints.from_file(request.constraints, ids=ids, n_samples=table.n_rows, table=rows)
        if pairs.labels is not None and class_names:
            raise ParameterError(
                f"{request.constraints} numbers classes, --label-column {request.label_column} names them. Give the "
                "classes in one place."
            )
        known = pairs if known is None else known | pairs
    return Knowledge(known, class_names)


def known_labels(table: Table, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """Give the class of each row, -1 where the cell is empty or -1, and the names of the classes.

    Classes that are whole numbers stay what they are and need no names; others are numbered in sorted order.
    """
    words = [_word(value) for value in table.column(name).tolist()]
    classes = sorted(set(words) - {""})
    if not classes:
        raise ParameterError(f'Column "{name}" of {table.source} holds no class: each cell is empty or -1.')
    if all(word.isdecimal() and int(word) < 2**63 for word in classes):
        return np.array([int(word or -1) for word in words], dtype=np.int64), []
    code_of = {word: code for code, word in enumerate(classes)} | {"": -1}
    return np.array([code_of[word] for word in words], dtype=np.int64), classes


def _word(value: Any) -> str:
    if isinstance(value, float):
        value = "" if value != value else int(value) if value.is_integer() else value
    word = str(value).strip()
    return "" if word == "-1" else word


def cluster_names(estimator: Any, class_names: Sequence[str]) -> dict[int, str]:
    """Name the label of each cluster: by class, then new-1, new-2, ...; by number without named classes."""
    labels = getattr(estimator, "cluster_labels_", None)
    if labels is None:
        labels = np.arange(estimator.get_params(deep=False).get("n_clusters", 0))
    labels = np.union1d(labels, estimator.labels_).tolist()
    if not class_names:
        return {label: "noise" if label < 0 else str(label) for label in labels}
    fresh = (name for place in count(1) if (name := f"new-{place}") not in class_names)
    known = dict(enumerate(class_names)) | {-1: "noise"}
    return {label: known.get(label) or next(fresh) for label in labels}


def summary(
    method: str,
    estimator: Any,
    knowledge: Knowledge,
    rows: NDArray[Any],
    names: dict[int, str],
    elapsed: float,
    output: Path | None,
) -> dict[str, Any]:
    """Collect what `--json` prints and the terminal shows."""
    labels = estimator.labels_
    sizes = {label: int((labels == label).sum()) for label in names}
    named = bool(knowledge.class_names)
    result: dict[str, Any] = {
        "method": method,
        "parameters": estimator.get_params(deep=False),
        "rows": len(labels),
        "clusters": [{"cluster": name if named else label, "rows": sizes[label]} for label, name in names.items()],
    }
    constraints = knowledge.constraints
    if constraints is not None:
        kept = constraint_satisfaction(labels, constraints)._asdict()
        result["violated"] = {
            kind: {"count": pairs.total - pairs.satisfied, "of": pairs.total}
            for kind, pairs in kept.items()
            if pairs.total
        }
        for kind, broken in zip(("must_link", "cannot_link"), constraints.violations(labels), strict=True):
            result[f"violated_{kind}"] = [[rows[first], rows[second]] for first, second in broken]
        if constraints.labels is not None:
            known = constraints.labels >= 0
            moved = np.flatnonzero(known & (labels != constraints.labels))
            result["relabelled"] = {"count": len(moved), "of": int(known.sum()), "rows": rows[moved]}
    for key, attribute in (("objective", "objective_"), ("inertia", "inertia_"), ("rounds", "n_iter_")):
        if hasattr(estimator, attribute):
            result[key] = getattr(estimator, attribute)
    return result | {"seconds": round(elapsed, 6), "output": None if output is None else str(output)}


def print_summary(result: dict[str, Any], console: Console) -> None:
    """Show the sizes, what was violated, and where the labels are."""
    clusters = result["clusters"]
    n_rows, n_clusters = result["rows"], len(clusters)
    heading = f"{_render.counted(n_rows, 'row')} in {_render.counted(n_clusters, 'cluster')}"
    console.print(f"[bold]{heading}[/bold] by {result['method']}")
    console.print(
        _render.sizes_table([str(entry["cluster"]) for entry in clusters], [entry["rows"] for entry in clusters])
    )
    lines = []
    for kind, pairs in result.get("violated", {}).items():
        line = f"{pairs['count']:,} of {pairs['of']:,} violated"
        named = result.get(f"violated_{kind}", [])
        lines.append((_KINDS[kind], f"{line}: {_render.pair_names(named)}" if named and pairs["count"] else line))
    if "relabelled" in result:
        moved = result["relabelled"]
        lines.append(("classes", f"{moved['of'] - moved['count']:,} of {moved['of']:,} labelled rows kept theirs"))
    if "objective" in result:
        lines.append(("objective", _render.number(result["objective"])))
    if "rounds" in result:
        lines.append(("time", f"{_render.seconds(result['seconds'])}, {_render.counted(result['rounds'], 'round')}"))
    if result["output"] is not None:
        lines.append(("written", result["output"]))
    console.print()
    console.print(_render.facts(lines))
