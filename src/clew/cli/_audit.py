"""`clew audit`: which answers look wrong? `clew advise`: how many clusters, which distance?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text
from sklearn.preprocessing import normalize

from clew._distances import VECTOR_METRICS
from clew.audit import (
    ClusterNumberAdvice,
    MetricAdvice,
    Review,
    advise_metric,
    advise_n_clusters,
    coherence,
    difficulty,
    filter_by_impact,
    impact,
    informativeness,
    propagation,
    review,
)
from clew.audit._models import fitted_model
from clew.audit._plots import panels
from clew.cli import _exits, _render
from clew.cli._progress import progress
from clew.cli._reading import FileOfAnswers, InputRows, Reading, check_n_clusters
from clew.constraints import Constraints, write_answers
from clew.datasets import check_writable, write_table
from clew.exceptions import ConstraintError, ParameterError

BAR_WIDTH = 20
_PICTURES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class AuditRequest:
    """Flags that `clew audit` and `clew advise` share."""

    reading: Reading
    constraints: Path
    plot: Path | None
    json: bool

    @property
    def random_state(self) -> int:
        """The random seed, which is also used to read the table."""
        return self.reading.random_state


@dataclass(frozen=True)
class Filtering:
    """Flags of `clew audit` about the answers to write to a file."""

    path: Path
    drop: float
    keep_free: bool

    @classmethod
    def of(cls, path: Path | None, drop: float | None, keep_free: bool) -> Filtering | None:
        """Check the flags; None without `--filtered`."""
        if path is None:
            if drop is not None or keep_free:
                flag = "--keep-free" if drop is None else "--drop"
                raise ParameterError(f"{flag} only has an effect with --filtered: add --filtered FILE.")
            return None
        return cls(path, 0.0 if drop is None else drop, keep_free)

    def check(self, request: AuditRequest, output: Path | None) -> None:
        """Refuse a file that is an input or another output, or that cannot be written."""
        if self.path.absolute() in {Path(request.reading.data).absolute(), request.constraints.absolute()}:
            raise ParameterError(
                f"--filtered {self.path} is an input, which would be overwritten. Choose another name."
            )
        if output is not None and self.path.absolute() == output.absolute():
            raise ParameterError(f"--filtered and --output both name {self.path}. Choose another name for one.")
        check_writable(self.path)

    def write(self, X: Any, given: FileOfAnswers, n_clusters: int, model: Any, random_state: int) -> dict[str, Any]:
        """Write the answers to keep, and count them. Annotators are written if the file contains only answers."""
        known = given.constraints
        prices = impact(X, known, n_clusters, "kmeans" if model is None else model, random_state=random_state)
        kept = filter_by_impact(prices, self.drop, keep_free=self.keep_free)
        others = (known.labels, known.must_groups, known.cannot_groups, known.soft_groups, known.triplets)
        if any(one is not None and one.shape[0] for one in others):
            kept.to_file(self.path)
        else:
            left = set(_pairs_in_order(kept))
            write_answers(
                self.path,
                [one for one, pair in zip(given.answers, _pairs_in_order(known), strict=True) if pair in left],
            )
        _exits.written.append(self.path)
        return {
            "output": str(self.path),
            "kept": len(kept.must_link) + len(kept.cannot_link),
            "answers": len(known.must_link) + len(known.cannot_link),
        }


def _pairs_in_order(known: Constraints) -> list[tuple[str, int, int]]:
    """Kind and rows of each pair, must-links first."""
    named = (("same", known.must_link), ("different", known.cannot_link))
    return [(answer, *sorted(pair)) for answer, pairs in named for pair in pairs.tolist()]


def _read(request: AuditRequest, n_clusters: int | None) -> tuple[InputRows, FileOfAnswers]:
    if request.plot is not None and request.plot.suffix.lower() not in _PICTURES:
        raise ParameterError(f"--plot {request.plot}: pictures are written as {', '.join(_PICTURES)}.")
    reading = request.reading
    table = reading.table()
    check_n_clusters(n_clusters, table)
    vectors = reading.vectors(table)
    if not request.json:
        vectors.tell()
    ids = None if reading.id_column is None else table.ids(reading.id_column)
    found = FileOfAnswers.read(request.constraints, table, ids)
    if not len(found.constraints.must_link) + len(found.constraints.cannot_link):
        raise ConstraintError(f"{request.constraints} holds no answers about pairs: same or different.")
    return vectors, found


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path)
    _exits.written.append(path)


def run_audit(
    request: AuditRequest,
    n_clusters: int,
    most: int,
    output: Path | None,
    method: str | None = None,
    filtering: Filtering | None = None,
) -> None:
    """Read the data and the answers, rank the answers by suspicion, print them, and write the useful ones."""
    if output is not None:
        check_writable(output)
    if filtering is not None:
        filtering.check(request, output)
    with progress(f"reading {request.reading.name}", quiet=request.json):
        vectors, given = _read(request, n_clusters)
        X = normalize(vectors.X) if vectors.metric == "cosine" else vectors.X
    model, seed = None, request.random_state
    if method is not None:
        with progress(f"fitting {method}", quiet=request.json):
            # An audit accepts contradictory answers. A hard method gets a subset that can hold.
            model = fitted_model(method, X, given.constraints.repair(n_clusters).constraints, n_clusters, seed)
    with progress("review", quiet=request.json):
        found = review(X, given.answers, n_clusters, model=model, ids=given.constraints.ids, random_state=seed)
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
    useful: dict[str, Any] | None = None
    if filtering is not None:
        with progress("costs of the answers", quiet=request.json):
            useful = filtering.write(X, given, n_clusters, model, seed)
    if request.json:
        _render.print_json(
            {
                "message": found.message,
                "error_rate": found.error_rate,
                "error_rates": found.error_rates,
                "answers": found.table(),
                **({} if useful is None else {"filtered": useful}),
            }
        )
    else:
        _tell_audit(found, most)
        if useful is not None:
            _render.console().print(
                Text(
                    f"{useful['kept']} of {_render.counted(useful['answers'], 'answer')} "
                    f"written to {useful['output']}.",
                    "dim",
                )
            )


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


def run_advise(request: AuditRequest, n_clusters: int | None, most_clusters: int, metrics: str) -> None:
    """Read the data and the answers, compare numbers of clusters and distances, and print the advice."""
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    unknown = [name for name in names if name not in VECTOR_METRICS]
    if unknown or not names:
        named = unknown[0] if unknown else "''"
        raise ParameterError(f"--metrics {named}: expected some of {', '.join(VECTOR_METRICS)}.")
    with progress(f"reading {request.reading.name}", quiet=request.json):
        vectors, given = _read(request, n_clusters)
        X, known = vectors.X, given.constraints
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
        advice = {
            "n_clusters": numbers.best,
            "n_clusters_sure": numbers.sure,
            "n_clusters_plausible": numbers.plausible,
            "n_clusters_message": numbers.message,
            "n_clusters_table": numbers.table(),
            "metric": distances.best,
            "metric_sure": distances.sure,
            "metric_message": distances.message,
            "metric_table": distances.table(),
        }
        _render.print_json(advice | facts)
        return
    _tell_advice(numbers, distances, k, facts)


def _picture(numbers: ClusterNumberAdvice, distances: MetricAdvice) -> Any:
    above, below = panels(2, 8)
    numbers.plot(above)
    return distances.plot(below)


def _tell_advice(numbers: ClusterNumberAdvice, distances: MetricAdvice, k: int, facts: dict[str, Any]) -> None:
    console = _render.console()
    console.print(Text(numbers.message, "bold"))
    sizes = [(str(row["n_clusters"]), row["probability"]) for row in numbers.table()]
    console.print(_bars("clusters", sizes, "likely"))
    console.print()
    console.print(Text(f"Distances, with {_render.counted(k, 'cluster')}: {distances.message}", "bold"))
    console.print(_bars("distance", [(row["metric"], row["fitness"]) for row in distances.table()], "kept at no cost"))
    console.print()
    lines: list[tuple[str, str | Text]] = [(name, facts[name]) for name in ("propagation", "difficulty")]
    lines.append(("informativeness", f"{facts['informativeness']:.0%} of the answers are violated by plain k-means"))
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
