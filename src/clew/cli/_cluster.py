"""`clew cluster`: read a table and write the cluster of each row."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from clew import Constraints
from clew._base import Role, own_probability
from clew._registry import by_method_name
from clew.cli import _exits, _render
from clew.cli._methods import chosen_method
from clew.cli._parameters import flag_of, parse_value, signature_of, split_arguments
from clew.cli._progress import progress
from clew.cli._reading import STDIN, FileOfAnswers, InputRows, Reading, check_n_clusters
from clew.cli._unlike import known_clusters
from clew.datasets import Table, check_writable, golden_records, write_table
from clew.datasets._read import checked_sources
from clew.evaluation import constraint_satisfaction
from clew.exceptions import DataError, FileError, ParameterError

_KINDS = {
    "must_link": "must-link",
    "cannot_link": "cannot-link",
    "labels": "pairs of labels",
    "must_groups": "must-groups",
    "cannot_groups": "cannot-groups",
}
# The summary counts the clusters of each size if there are at least this many of them, for the smallest six sizes.
_MANY_CLUSTERS, _MOST_SIZES = 50, 6


@dataclass(frozen=True)
class ClusterRequest:
    """Flags of `clew cluster`."""

    arguments: Sequence[str]
    reading: Reading
    n_clusters: str | None
    constraints: Path | None
    groups: str | None
    method: str
    unlike: Path | None
    source: str | None
    golden: str | None
    output: str | None
    label_column: str | None
    dissimilarity: Path | None
    json: bool
    quiet: bool
    stream: bool | None = None


@dataclass(frozen=True)
class KnownConstraints:
    """The constraints, the user's names of the classes in them, and the number of answers "unsure"."""

    constraints: Constraints | None
    class_names: list[str]
    n_unsure: int = 0


def run(request: ClusterRequest, own_flags: Iterable[str]) -> None:
    """Read the data, fit the method, write the labels and print a summary."""
    from clew.cli import _streamed

    estimator, reading, has_metric = _estimator(request, own_flags)
    output = _output(request, reading.data)
    if reading.data != STDIN and _streamed.is_streamed(request, estimator, reading.data):
        _streamed.run(request, reading, estimator, output)
        return
    golden = None if request.golden is None else _golden_file(request, reading.data, output)
    with progress(f"reading {reading.name}", quiet=request.quiet):
        table = reading.table(request.label_column)
        rows_as = _rows(request, reading, table, estimator)
        ids = None if reading.id_column is None else table.ids(reading.id_column)
        knowledge = _knowledge(request, table, ids)
        given = {}
        if request.unlike is not None:
            given["given"] = known_clusters(request.unlike, table, ids, reading.id_column)
    check_n_clusters(getattr(estimator, "n_clusters", None), table)
    if request.dissimilarity is not None:
        estimator.set_params(metric="precomputed")
    by_texts = not has_metric and rows_as.metric == "cosine" and _takes_metric(estimator, "cosine")
    if by_texts:
        estimator.set_params(metric="cosine")
    started = time.perf_counter()
    with progress(type(estimator).__name__, quiet=request.quiet):
        estimator.fit(rows_as.X, constraints=knowledge.constraints, **given)
    elapsed = time.perf_counter() - started

    names = cluster_names(estimator, knowledge.class_names)
    rows = np.arange(table.n_rows) if ids is None else ids
    key = "row" if ids is None else "id" if reading.id_column in ("cluster", "probability") else reading.id_column
    clusters = estimator.labels_
    if knowledge.class_names:
        clusters = np.array([names[label] for label in clusters.tolist()], dtype=object)
    columns, probability = {str(key): rows, "cluster": clusters}, own_probability(estimator)
    if probability is not None:
        columns["probability"] = probability
    write_table(sys.stdout if output is None else output, columns)
    if output is not None:
        _exits.written.append(output)
    if golden is not None:
        _write_golden(golden, table, reading.id_column, clusters)
    result = summary(request.method, estimator, knowledge, rows, names, elapsed, output)
    if request.source is not None:
        result["source"] = request.source
    if golden is not None:
        result["golden"] = str(golden)
    if rows_as.words is not None and hasattr(estimator, "cluster_words"):
        result |= _words(estimator, rows_as.words, names)
    if request.unlike is not None:
        result["unlike"] = {
            "file": str(request.unlike),
            "clusters": int(estimator.given_.max()) + 1,
            "normalized_mutual_info": estimator.normalized_mutual_info_,
            "variation_of_information": estimator.variation_of_information_,
        }
    if request.json:
        _render.print_json(result | {"columns": rows_as.columns})
    elif not request.quiet:
        print_summary(result, _render.console(stderr=output is None), by_texts=by_texts)
    if not request.quiet:
        rows_as.tell()


def _estimator(request: ClusterRequest, own_flags: Iterable[str]) -> tuple[Any, Reading, bool]:
    """Give the estimator built from the flags, the data file to read, and whether --metric was given."""
    kind = _kind(request)
    defaults = signature_of(kind)
    words, parameters = split_arguments(request.arguments, request.method, defaults, own_flags)
    if len(words) != 1:
        found = " ".join(words) or "none"
        raise ParameterError(f"clew cluster takes one data file ({found} given): clew cluster data.csv -k 3.")
    if "random_state" in defaults:
        parameters["random_state"] = request.reading.random_state
    if request.groups == "small" and request.unlike is not None:
        raise ParameterError("--groups small and --unlike: leave out one of them.")
    if request.groups == "small" and not kind._capabilities.tables:
        raise ParameterError(f"--groups small: {request.method} makes large groups. Leave out -m.")
    if request.n_clusters is None and kind().capabilities.needs_n_clusters:
        small = (
            "" if request.unlike else " For very many groups of few rows, such as duplicates: --groups small, no -m."
        )
        raise ParameterError(f"{request.method} needs the number of clusters: add -k, for example -k 3.{small}")
    if request.n_clusters is not None:
        if "n_clusters" not in defaults:
            raise ParameterError(f"{request.method} determines the number of clusters itself: leave out -k.")
        parameters["n_clusters"] = parse_value(request.n_clusters)
    _check(kind, parameters)
    if request.dissimilarity is not None:
        _check_dissimilarity(request.method, kind, parameters)
    return kind(**parameters), replace(request.reading, data=words[0]), "metric" in parameters


def _kind(request: ClusterRequest) -> Any:
    """Give the class of the method; with --unlike it is an alternative clusterer."""
    role: Role = "clusterer" if request.unlike is None else "alternative clusterer"
    try:
        return by_method_name(role)[chosen_method(request.method, role)]
    except ParameterError as error:
        if request.unlike is None and "is an alternative clusterer" in str(error):
            raise ParameterError(f"{error} To find clusters unlike known ones, add --unlike FILE.") from None
        raise


def _check(kind: Any, parameters: dict[str, Any]) -> None:
    """Raise if the method does not allow a value; the message names the flag."""
    for name, value in parameters.items():
        allowed = kind._parameters[name]
        if not allowed.accepts(value):
            flag = "-k" if name == "n_clusters" else flag_of(name)
            raise ParameterError(f"{flag} {value}: expected {allowed.what}.")


def _check_dissimilarity(method: str, kind: Any, parameters: dict[str, Any]) -> None:
    """Raise if the method takes no matrix, or if another metric is given as well."""
    allowed = kind._parameters.get("metric")
    if allowed is None or not allowed.accepts("precomputed"):
        takers = [
            name
            for name, one in sorted(by_method_name("clusterer").items())
            if "metric" in one._parameters and one._parameters["metric"].accepts("precomputed")
        ]
        raise ParameterError(f"{method} cannot use --dissimilarity. Use one of {', '.join(takers)}.")
    if parameters.get("metric", "precomputed") != "precomputed":
        raise ParameterError(f"--metric {parameters['metric']} and --dissimilarity: leave out one of them.")


def _rows(request: ClusterRequest, reading: Reading, table: Table, estimator: Any) -> InputRows:
    """Return the columns of the table as vectors, the counts of words, or the matrix of dissimilarities."""
    if estimator.capabilities.counts:
        counts, words = reading.counts(table, request.label_column)
        return InputRows(counts, None, words)
    if request.dissimilarity is None and estimator.capabilities.tables:
        records = reading.records(table, request.label_column, request.source)
        if records is not None:
            return InputRows(records, None)
    if request.dissimilarity is None:
        return reading.vectors(table, request.label_column, request.source)
    path = request.dissimilarity
    try:
        matrix = np.load(path, allow_pickle=False)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}. Check the path.") from None
    except (ValueError, EOFError):
        matrix = None
    if not isinstance(matrix, np.ndarray) or matrix.dtype.kind not in "fiu":
        raise FileError(f"{path} holds no matrix of numbers. Write one with numpy.save.")
    if matrix.shape != (table.n_rows, table.n_rows):
        raise DataError(
            f"The matrix in {path} has shape {matrix.shape}, but {table.source} has {table.n_rows} rows. Give a row "
            "and a column for each row of the table."
        )
    return InputRows(matrix, None)


def _takes_metric(estimator: Any, metric: str) -> bool:
    allowed = estimator._parameters.get("metric")
    return allowed is not None and estimator.metric == "euclidean" and allowed.accepts(metric)


def _output(request: ClusterRequest, data: str) -> Path | None:
    """Return the file to write, None for stdout. Raise if the file is an input or cannot be written."""
    if request.output == "-" or (request.output is None and data == STDIN):
        if request.json:
            raise ParameterError("The labels and --json cannot both go to stdout. Write the labels to a file with -o.")
        return None
    ending = "labels" if request.unlike is None else "other-labels"
    output = Path(request.output) if request.output else Path(f"{Path(data).stem}-{ending}.csv")
    for given in (Path(data), request.constraints, request.unlike):
        if given is not None and output.exists() and given.exists() and output.samefile(given):
            raise ParameterError(f"-o {output} would overwrite an input. Choose another name.")
    check_writable(output)
    return output


def _golden_file(request: ClusterRequest, data: str, output: Path | None) -> Path:
    """Return the file for golden records. Raise if it is an input or the file of labels."""
    path = Path(str(request.golden))
    for given in (Path(data), request.constraints, request.unlike, output):
        if given is not None and path.resolve() == given.resolve():
            raise ParameterError(f"--golden {path} would overwrite another file of this command. Choose another name.")
    check_writable(path)
    return path


def _write_golden(path: Path, table: Table, id_column: str | None, clusters: NDArray[Any]) -> None:
    """Write one merged row per cluster, after its name and its number of rows."""
    names, sizes = np.unique(clusters, return_counts=True)
    found: dict[str, Any] = {"cluster": names, "n_rows": sizes}
    values = table.only(name for name, column in table.values.items() if name != id_column and column.ndim == 1)
    golden = golden_records(values, clusters).values
    write_table(path, found | {name if name not in found else f"{name} of the record": golden[name] for name in golden})
    _exits.written.append(path)


def _knowledge(request: ClusterRequest, table: Table, ids: NDArray[Any] | None) -> KnownConstraints:
    known: Constraints | None = None
    class_names: list[str] = []
    n_unsure = 0
    if request.label_column is not None:
        codes, class_names = known_labels(table, request.label_column)
        known = Constraints(labels=codes, n_samples=table.n_rows, ids=ids)
    if request.constraints is not None:
        file = FileOfAnswers.read(request.constraints, table, ids)
        pairs, n_unsure = file.constraints, file.n_unsure
        if pairs.labels is not None and request.label_column is not None:
            raise ParameterError(
                f"{request.constraints} and --label-column {request.label_column} both contain classes. Leave out "
                "one of them."
            )
        if pairs.classes is not None:
            class_names = pairs.classes.tolist()
        known = pairs.numbered() if known is None else known | pairs
    if request.source is not None:
        apart = Constraints(cannot_groups=checked_sources(table, request.source), n_samples=table.n_rows)
        known = apart if known is None else known | apart
    return KnownConstraints(known, class_names, n_unsure)


def known_labels(table: Table, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return the class of each row, -1 if the cell is empty or -1, and the names of the classes.

    Classes that are whole numbers keep their numbers, and the list of names is empty. Other classes are numbered in
    sorted order.
    """
    words = [_word(value) for value in table.column(name).tolist()]
    classes = sorted(set(words) - {""})
    if not classes:
        raise ParameterError(f'Column "{name}" of {table.source} contains no class: every cell is empty or -1.')
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
    """Name each cluster label: by its class, else new-1, new-2, ...; by its number if classes have no names."""
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
    knowledge: KnownConstraints,
    rows: NDArray[Any],
    names: dict[int, str],
    elapsed: float,
    output: Path | None,
) -> dict[str, Any]:
    """Collect the results that `--json` prints and the terminal shows."""
    labels = estimator.labels_
    counts = dict(zip(*(found.tolist() for found in np.unique(labels, return_counts=True)), strict=True))
    sizes = {label: counts.get(label, 0) for label in names}
    named = bool(knowledge.class_names)
    result: dict[str, Any] = {
        "method": method,
        "parameters": estimator.get_params(deep=False),
        "rows": len(labels),
        "clusters": [
            {"cluster": name if named else label, "rows": sizes[label]} for label, name in names.items() if label >= 0
        ],
    }
    if len(getattr(estimator, "columns_", ())):
        result["compared"] = dict(zip(estimator.columns_.tolist(), estimator.column_kinds_.tolist(), strict=True))
    if hasattr(estimator, "medoid_indices_"):
        medoids = dict(zip(estimator.cluster_labels_.tolist(), rows[estimator.medoid_indices_].tolist(), strict=True))
        for entry, label in zip(result["clusters"], (label for label in names if label >= 0), strict=True):
            entry["medoid"] = medoids.get(label)
        if hasattr(estimator, "lower_bound_"):
            result["lower_bound"] = estimator.lower_bound_
    if estimator.capabilities.noise:
        result["noise"] = int((labels < 0).sum())
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
        result["unsure"] = knowledge.n_unsure
        result["contradictory"] = bool(constraints.conflicts(limit=1))
        if constraints.labels is not None:
            known = constraints.labels >= 0
            moved = np.flatnonzero(known & (labels != constraints.labels))
            result["relabelled"] = {"count": len(moved), "of": int(known.sum()), "rows": rows[moved]}
    if isinstance(estimator.get_params(deep=False).get("n_clusters"), str):
        result["n_clusters"] = estimator.n_clusters_
    for key, attribute in (("objective", "objective_"), ("inertia", "inertia_"), ("rounds", "n_iter_")):
        if hasattr(estimator, attribute):
            result[key] = getattr(estimator, attribute)
    return result | {"seconds": round(elapsed, 6), "output": None if output is None else str(output)}


def _words(estimator: Any, words: Sequence[Any], names: dict[int, str]) -> dict[str, Any]:
    """Collect the words of each cluster, and the words whose weight feedback has raised."""
    numbers = {name: label for label, name in enumerate(getattr(estimator, "classes_", ()))}
    return {
        "words": {names[numbers.get(label, label)]: of for label, of in estimator.cluster_words(words).items()},
        "important_words": [
            {"word": one.word, "weight": one.weight, "cluster": names[numbers.get(one.cluster, one.cluster)]}
            for one in estimator.important_words(words)
        ],
    }


def _about_auto(n_clusters: int) -> str:
    """A sentence about the reliability of a number of clusters that the method has chosen."""
    around = f"-k {n_clusters - 1} and -k {n_clusters + 1}" if n_clusters > 2 else f"-k {n_clusters + 1}"
    return (
        f"{n_clusters} is a guess: the best fit by a criterion that assumes round clusters of equal spread. "
        f"Compare with {around}, or collect answers: clew advise says which number they support and how sure that is."
    )


def _small_clusters(sizes: list[int]) -> list[tuple[str, str]]:
    """Say how many clusters there are of each size, if there are very many small ones."""
    if len(sizes) < _MANY_CLUSTERS or max(sizes) > len(sizes) / 10:
        return []
    counts = sorted(Counter(sizes).items())
    more = sum(n for _, n in counts[_MOST_SIZES:])
    named = [f"{n:,} of {_render.counted(size, 'row')}" for size, n in counts[:_MOST_SIZES]]
    return [("sizes", ", ".join(named) + (f", {more:,} larger" if more else ""))]


def print_summary(result: dict[str, Any], console: Console, *, by_texts: bool) -> None:
    """Print the cluster sizes, the violated constraints and the path of the labels."""
    clusters = result["clusters"]
    n_rows, n_clusters = result["rows"], sum(entry["rows"] > 0 for entry in clusters)
    heading = f"{_render.counted(n_rows, 'row')} in {_render.counted(n_clusters, 'cluster')}"
    console.print(f"[bold]{heading}[/bold] by {result['method']}")
    sizes = [(str(entry["cluster"]), entry["rows"]) for entry in clusters]
    if result.get("noise"):
        sizes.append(("noise", result["noise"]))
    lines = _small_clusters([n for _, n in sizes if n])
    if not lines:  # of many small clusters, the largest are no larger than many others
        console.print(_render.sizes_table([name for name, _ in sizes], [n for _, n in sizes]))
    if compared := result.get("compared"):
        told = [column if kind == "text" else f"{column} (as {kind}s)" for column, kind in compared.items()]
        lines.append(("compared", ", ".join(told)))
    for kind, pairs in result.get("violated", {}).items():
        if kind == "cannot_groups" and "source" in result and not pairs["count"]:
            lines.append(("one per", f"{result['source']}: no cluster has two rows of one {result['source']}"))
            continue
        line = f"{pairs['count']:,} of {pairs['of']:,} violated"
        named = result.get(f"violated_{kind}", [])
        lines.append((_KINDS[kind], f"{line}: {_render.pair_names(named)}" if named and pairs["count"] else line))
    if "unlike" in result:
        unlike = result["unlike"]
        lines.append(("unlike", f"{unlike['file']}, {_render.counted(unlike['clusters'], 'cluster')}"))
        likeness = unlike["normalized_mutual_info"]
        lines.append(("similarity", f"{likeness:.2f} (0: independent of the known clusters, 1: the same clusters)"))
    medoids = [f"{entry['medoid']} ({entry['cluster']})" for entry in clusters if entry.get("medoid") is not None]
    if medoids:
        more = f" and {len(medoids) - 10} more" if len(medoids) > 10 else ""
        lines.append(("medoids", f"{', '.join(medoids[:10])}{more}; rows that represent their clusters"))
    for name, words in result.get("words", {}).items():
        lines.append((f"words of {name}", ", ".join(map(str, words))))
    if raised := result.get("important_words"):
        lines.append(("important", ", ".join(f"{one['word']} ({one['weight']:.1f})" for one in raised[:10])))
    if "n_clusters" in result:
        lines.append(("-k auto", _about_auto(result["n_clusters"])))
    if result.get("unsure"):
        lines.append(("unsure", f"{_render.counted(result['unsure'], 'answer')}, which constrain nothing"))
    if result.get("contradictory"):
        lines.append(("note", "the answers contradict each other; clew check shows how"))
    if "relabelled" in result:
        moved = result["relabelled"]
        lines.append(("classes", f"{moved['of'] - moved['count']:,} of {moved['of']:,} labelled rows kept theirs"))
    if by_texts:
        lines.append(("distance", "cosine, since texts have most of the weight (to change it: --metric euclidean)"))
    if "objective" in result:
        line = _render.number(result["objective"])
        if "lower_bound" in result:
            bound = result["lower_bound"]
            line += ", proven optimal" if bound == result["objective"] else f", at least {_render.number(bound)}"
        lines.append(("objective", line))
    if "rounds" in result:
        lines.append(("time", f"{_render.seconds(result['seconds'])}, {_render.counted(result['rounds'], 'round')}"))
    if result["output"] is not None:
        lines.append(("written", result["output"]))
    if "golden" in result:
        lines.append(("golden records", result["golden"]))
    console.print()
    console.print(_render.facts(lines))
