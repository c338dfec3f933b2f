"""`clew cluster` for files that are larger than memory: rows are read, and labels are written, by the batch."""

from __future__ import annotations

import hashlib
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from clew import Constraints
from clew._tables import remove_abandoned, require_pyarrow, write_batches
from clew.cli import _exits, _render
from clew.cli._cluster import ClusterRequest, KnownConstraints, cluster_names, print_summary, summary
from clew.cli._progress import progress
from clew.cli._reading import FileOfAnswers, Reading, tell_columns
from clew.cli._streamed_columns import batches_of, check_ids, columns_of, prepared
from clew.datasets import StoredRows, Table, open_rows, read_table
from clew.datasets._encode import described
from clew.datasets._stored import BATCH_ROWS
from clew.exceptions import ClewError, FileError, ParameterError
from clew.partitional._checkpoint import Checkpoint, FitStopped, checkpointed

# Files whose numbers take more memory than this are read by the batch.
_LARGE = 2**30


def is_streamed(request: ClusterRequest, estimator: Any, data: str) -> bool:
    """Whether the rows are read by the batch: on request, or if they are many and the method can."""
    path = Path(data)
    possible = (path.is_dir() and any(path.rglob("*.parquet"))) or path.suffix in (".parquet", ".npy")
    if request.stream:
        if not path.exists():
            raise FileError(f"{data} does not exist. Check the path.")
        if path.is_dir() and not possible:
            raise ParameterError(f"--stream: {data} is a folder without parquet files.")
        if not possible:
            raise ParameterError(f"--stream: {data} is no .npy or parquet file, nor a folder of parquet files.")
        return True
    if request.stream is False or not possible or not estimator.capabilities.out_of_core:
        return False
    return path.is_dir() or (path.is_file() and _size(path) > _LARGE)


def _size(path: Path) -> int:
    """Bytes of the numbers in a file, once they are in memory."""
    if path.suffix == ".npy":
        return path.stat().st_size
    metadata = require_pyarrow().parquet.ParquetFile(path).metadata
    return int(metadata.num_rows * metadata.num_columns * 8)


def run(request: ClusterRequest, reading: Reading, estimator: Any, output: Path | None) -> None:
    """Open the rows, fit the method, write the labels and print a summary."""
    _refuse(request)
    path, quiet = Path(reading.data), request.quiet
    with progress(f"reading {path.name}", quiet=quiet):
        columns = columns_of(path, reading)
        rows = open_rows(path, columns.used)
        if reading.id_column is not None:
            check_ids(path, reading.id_column)
        known = _knowledge(request, reading, path, len(rows))
        scaled, encodings = prepared(rows, columns, reading.scale)
        rows.check_unchanged()
    place = Path(f"{path.name}.checkpoint") if output is None else output.with_name(f"{output.name}.checkpoint")
    about = {**estimator.get_params(), "method": request.method, "scale": str(reading.scale), "rows": len(rows)}
    about["columns"] = columns.used
    about["files"] = [list(file) for file in rows.fingerprint.files]
    constraints = known.constraints
    if constraints is not None:
        about["pairs"] = [len(constraints.must_link), len(constraints.cannot_link)]
        about["answers"] = _digest(constraints)
    checkpoint = Checkpoint(place, about)
    started = time.perf_counter()
    is_kept = checkpoint.restore(estimator)
    if not quiet and is_kept:
        _exits.say("resumed", f"with the complete fit in {place}", "bold")
    elif not quiet and checkpoint.saved_rounds:
        _exits.say("resumed", f"after the {checkpoint.saved_rounds} rounds in {place}", "bold")
    try:
        if not is_kept:
            with checkpointed(checkpoint), _stops(checkpoint):
                with progress(type(estimator).__name__, quiet=quiet):
                    estimator.fit(scaled, constraints=constraints)
                rows.check_unchanged()
                is_kept = _keep(checkpoint, estimator, output)
    except FitStopped as stopped:
        _exits.say(
            "stopped",
            f"after {stopped.n_rounds} rounds, which are kept in {stopped.path}. Repeat the command to continue, or "
            "delete the file to start anew.",
            "yellow",
        )
        raise typer.Exit(_exits.INTERRUPTED) from None
    except ClewError:
        if not checkpoint.stop_requested:  # the rounds would end in the same error
            place.unlink(missing_ok=True)
        raise
    except KeyboardInterrupt:
        if checkpoint.saved_rounds:
            _exits.say(
                "kept", f"{checkpoint.saved_rounds} rounds, in {place}. Repeat the command to continue.", "yellow"
            )
        raise
    finally:
        rows.close()
    elapsed = time.perf_counter() - started
    names = cluster_names(estimator, known.class_names)
    try:
        if is_kept and checkpoint.stop_requested:
            raise KeyboardInterrupt
        with progress(f"writing {output or 'labels'}", quiet=quiet):
            labels = _labelled(path, rows, reading, estimator, known, names)
            write_batches(sys.stdout if output is None else output, labels)
    except (KeyboardInterrupt, Exception) as error:
        try:
            rows.check_unchanged()
        except FileError as changed:
            place.unlink(missing_ok=True)
            raise changed from error
        if is_kept:
            _exits.say("kept", f"the complete fit, in {place}. Repeat the command to write the labels.", "yellow")
        raise
    place.unlink(missing_ok=True)
    remove_abandoned(place)
    if output is not None:
        remove_abandoned(output)
        _exits.written.append(output)
    no_rows = np.empty(0, dtype=np.int64)  # the summary names rows of constraints only, which follow
    result = summary(request.method, estimator, replace(known, constraints=None), no_rows, names, elapsed, output)
    result |= _violated(estimator, known)
    if request.json:
        _render.print_json(result | {"columns": [asdict(column) for column in encodings]})
    elif not quiet:
        print_summary(result, _render.console(stderr=output is None), by_texts=False)
    if encodings and not quiet:
        tell_columns(described(encodings))


def _keep(checkpoint: Checkpoint, estimator: Any, output: Path | None) -> bool:
    """Keep the complete fit until the labels are in their file; not for stdout and devices."""
    if output is None or (output.exists() and not output.is_file()):
        return False
    try:
        checkpoint.keep(estimator)
    except FileError as error:
        _exits.say("warning", f"{error} The fit is lost if the labels cannot be written either.", "yellow")
        return False
    return True


def _digest(constraints: Constraints) -> str:
    """A short text that differs for different constraints."""
    found = hashlib.sha256()
    for kind in ("must_link", "cannot_link", "must_link_confidence", "cannot_link_confidence", "labels"):
        values = getattr(constraints, kind)
        found.update(b"" if values is None else np.ascontiguousarray(values).tobytes())
    return found.hexdigest()[:16]


def _refuse(request: ClusterRequest) -> None:
    for name in ("unlike", "source", "golden", "dissimilarity"):
        if getattr(request, name) is not None:
            raise ParameterError(f"--{name} needs all rows in memory. Leave it out, or give --no-stream.")
    if request.label_column is not None:
        raise ParameterError("--label-column needs all rows in memory. Give --no-stream, or a file of answers with -c.")


def _knowledge(request: ClusterRequest, reading: Reading, path: Path, n_rows: int) -> KnownConstraints:
    """Constraints on the rows; of ids, only those in the file of answers are kept in memory."""
    if request.constraints is None:
        return KnownConstraints(None, [])
    if reading.id_column is None:
        file = FileOfAnswers.read(request.constraints, Table(str(path), {}, (), n_rows), None)
        return KnownConstraints(file.constraints.numbered(), _classes(file.constraints), file.n_unsure)
    places, ids = _places(request.constraints, reading, path)
    file = FileOfAnswers.read(request.constraints, Table(str(path), {reading.id_column: ids}, (), len(ids)), ids)
    some = file.constraints.numbered()
    known = Constraints(
        places[some.must_link], places[some.cannot_link],
        must_link_confidence=some.must_link_confidence, cannot_link_confidence=some.cannot_link_confidence,
        labels=None if some.labels is None else _spread(some.labels, places, n_rows),
        n_samples=n_rows,
    )  # fmt: skip
    return KnownConstraints(known, _classes(file.constraints), file.n_unsure)


def _classes(constraints: Constraints) -> list[str]:
    return [] if constraints.classes is None else list(constraints.classes.tolist())


def _spread(labels: NDArray[np.int64], places: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
    found = np.full(n_rows, -1, dtype=np.int64)
    found[places] = labels
    return found


def _places(answers: Path, reading: Reading, path: Path) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Rows whose id occurs anywhere in the file of answers, and their ids."""
    named = {str(value) for column in read_table(answers).values.values() for value in column.ravel().tolist()}
    named |= {name.removesuffix(".0") for name in named}
    places: list[int] = []
    found: list[Any] = []
    first = 0
    for ids in batches_of(path, str(reading.id_column)):
        for place, value in enumerate(ids.tolist()):
            if str(value) in named:
                found.append(value)
                places.append(first + place)
        first += len(ids)
    return np.array(places, dtype=np.int64), np.array(found, dtype=None if found else object)


def _labelled(
    path: Path, rows: StoredRows, reading: Reading, estimator: Any, known: KnownConstraints, names: dict[int, str]
) -> Iterator[dict[str, Any]]:
    """Id or number, and cluster, of the rows, by the batch. Raises after the last one if the ids may have changed."""
    labels = estimator.labels_
    key = "row" if reading.id_column is None else "id" if reading.id_column == "cluster" else reading.id_column
    if reading.id_column is None:
        starts = range(0, len(labels), BATCH_ROWS)
        batches: Iterator[NDArray[Any]] = (np.arange(at, min(at + BATCH_ROWS, len(labels))) for at in starts)
    else:
        batches = batches_of(path, reading.id_column)
    first = 0
    for ids in batches:
        here = labels[first : first + len(ids)]
        clusters = np.array([names[label] for label in here.tolist()]) if known.class_names else here
        yield {str(key): ids, "cluster": clusters}
        first += len(ids)
    rows.check_unchanged()


def _violated(estimator: Any, known: KnownConstraints) -> dict[str, Any]:
    """Violated pairs for the summary."""
    if known.constraints is None:
        return {}
    result: dict[str, Any] = {"violated": {}, "unsure": known.n_unsure}
    for kind in ("must_link", "cannot_link"):
        given = getattr(known.constraints, kind)
        labels = estimator.labels_[given]
        apart = labels[:, 0] != labels[:, 1]
        broken = given[apart if kind == "must_link" else ~apart]
        if len(given):
            result["violated"][kind] = {"count": len(broken), "of": len(given)}
        result[f"violated_{kind}"] = broken.tolist()
    return result


@contextmanager
def _stops(checkpoint: Checkpoint) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop the fit after the present round, and a second one at once."""

    def stop(*_: Any) -> None:
        if checkpoint.stop_requested:
            raise KeyboardInterrupt
        checkpoint.stop_requested = True
        _exits.say("stopping", "after this round, to keep the rounds so far. Ctrl-C again stops at once.", "yellow")

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
