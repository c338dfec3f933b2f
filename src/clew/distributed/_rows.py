"""Rows in the blocks of a Dask collection, and the passes over them that the rounds of k-means need.

Workers keep no state between rounds: a task reads its block, the present centres and the few tied rows of the block,
and returns a tally. So a worker may die at any time. The scheduler then computes its blocks again, on other workers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dask
import dask.array
import numpy as np
import numpy.typing as npt

from clew.datasets._stored import check_block
from clew.exceptions import DataError, DataTypeError, TooLargeError
from clew.partitional._geometry import Chunk, FloatArray, IntArray, Labels, Problem, Scoring, chunks_of
from clew.partitional._reduction import Map, RowLabels, Tally, assign_chunk

Prepare = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
_NO_ROWS = np.empty(0, dtype=np.int64)


class DaskRows:
    """A table whose blocks of rows are on the workers; it has a shape and a type, and maps functions over chunks."""

    ndim = 2

    def __init__(
        self, blocks: list[Any], starts: IntArray, n_columns: int, dtype: Any, columns: tuple[str, ...] | None
    ) -> None:
        self.blocks, self.starts = blocks, starts  # `starts` has one entry more than there are blocks
        self.shape, self.dtype, self.columns = (int(starts[-1]), n_columns), np.dtype(dtype), columns
        self._prepare: Prepare | None = None

    @classmethod
    def of(cls, X: Any) -> DaskRows:
        """Open a Dask array or frame, after one pass that checks every value."""
        columns = None
        if hasattr(X, "to_dask_array"):
            columns = tuple(map(str, X.columns))
            for name, kind in X.dtypes.items():
                if getattr(kind, "kind", "O") not in "fiub":
                    raise DataError(f"Column {name!r} of X has type {kind}. Encode it as numbers, or leave it out.")
            X = X.to_dask_array(lengths=True)
        if not hasattr(X, "to_delayed") or getattr(X, "ndim", None) != 2 or X.dtype.kind not in "fiub":
            raise DataTypeError(
                f"X is a Dask {type(X).__name__} of shape {getattr(X, 'shape', '?')} and type "
                f"{getattr(X, 'dtype', '?')}: expected rows of numbers."
            )
        if np.isnan(X.shape[0]):
            X = X.compute_chunk_sizes()
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        X = X.rechunk({1: -1}).astype(dtype)
        blocks = _on_workers(X) if is_distributed() else X.to_delayed().ravel().tolist()
        starts = np.concatenate([[0], np.cumsum(X.chunks[0])]).astype(np.int64)
        if not starts[-1] or not X.shape[1]:
            raise DataError(f"X has shape {X.shape}: expected at least one row and one column.")
        rows = cls(blocks, starts, X.shape[1], dtype, columns)
        for _ in rows.map_chunks(partial(_check, columns)):
            pass
        return rows

    def __len__(self) -> int:
        return self.shape[0]

    def prepared(self, function: Prepare) -> DaskRows:
        """The same rows, with a function applied to every block before it is used."""
        rows = DaskRows(self.blocks, self.starts, self.shape[1], self.dtype, self.columns)
        before = self._prepare
        rows._prepare = function if before is None else lambda block: function(before(block))
        return rows

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        """Some rows, by their numbers, copied to this process."""
        rows = np.asarray(rows)
        block_of = np.searchsorted(self.starts, rows, side="right") - 1
        used = np.unique(block_of)
        chosen = [np.flatnonzero(block_of == one) for one in used]
        tasks = [
            dask.delayed(_take)(self.blocks[one], self._prepare, rows[some] - self.starts[one])
            for one, some in zip(used.tolist(), chosen, strict=True)
        ]
        found = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        for some, values in zip(chosen, self.computed(tasks), strict=True):
            found[some] = values
        return found

    def map_chunks(self, function: Callable[..., Any], *aligned: Any) -> Iterator[Any]:
        """Call a function with each chunk and the parts of aligned arrays or labels, on the workers."""
        tasks = [
            dask.delayed(_map)(block, self._prepare, int(self.starts[place]), function, *parts)
            for place, (block, parts) in enumerate(zip(self.blocks, self._parts(aligned), strict=True))
        ]
        for results in self.computed(tasks):
            yield from results

    def computed(self, tasks: list[Any]) -> Any:
        """Compute tasks and return their results, in their order. After an error, the cluster drops the blocks.

        Otherwise the scheduler would go on with blocks that are too large, and workers would die in the next fit.
        """
        try:
            return dask.compute(*tasks)
        except BaseException as error:
            for block in self.blocks:
                if hasattr(block, "release"):  # a future, and not a delayed block of this process
                    block.release()
            if type(error).__name__ == "KilledWorker":
                raise TooLargeError(
                    f"Workers died several times over the same block ({error.args[0]}). It is probably larger than "
                    "their memory: make smaller chunks (X.rechunk), or give workers more memory."
                ) from None
            raise

    def _parts(self, aligned: tuple[Any, ...]) -> Iterator[list[Any]]:
        for place in range(len(self.blocks)):
            here = slice(int(self.starts[place]), int(self.starts[place + 1]))
            yield [
                one.part(place) if isinstance(one, DaskLabels) else one[here] if len(one) else one for one in aligned
            ]

    def tied_in(self, place: int, tied: IntArray) -> slice:
        """Which of the sorted rows `tied` are in a block."""
        return slice(*np.searchsorted(tied, self.starts[place : place + 2]).tolist())

    def row_labels(self, problem: Problem, tied: IntArray) -> DaskRowLabels:
        """Labels for a run of the rounds."""
        return DaskRowLabels(self, problem, tied)

    def nearest(self, scoring: Scoring) -> DaskLabels:
        """The nearest centre of every row."""
        return DaskLabels(self, scoring, _NO_ROWS, np.empty(0, dtype=np.int32))

    def aligned(self, labels: npt.NDArray[Any]) -> Any:
        """Labels in this process as a Dask array with the blocks of the rows."""
        return dask.array.from_array(labels, chunks=(tuple(np.diff(self.starts).tolist()),))

    def close(self) -> None:
        """Do nothing, because the blocks belong to the user."""


class DaskLabels:
    """Labels of all rows, as a rule instead of an array: the nearest centre, except for the tied rows."""

    def __init__(
        self,
        rows: DaskRows,
        scoring: Scoring,
        tied: IntArray,
        tied_labels: Labels,
        names: npt.NDArray[Any] | None = None,
    ) -> None:
        self._rows, self._scoring, self._tied, self._tied_labels, self._names = rows, scoring, tied, tied_labels, names

    def __len__(self) -> int:
        return len(self._rows)

    def copy(self) -> DaskLabels:
        """Return these labels themselves, because they never change."""
        return self

    def part(self, place: int) -> Any:
        """The labels of a block, computed on its worker."""
        rows, some = self._rows, self._rows.tied_in(place, self._tied)
        return dask.delayed(_labels)(
            rows.blocks[place], rows._prepare, self._scoring,
            self._tied[some] - rows.starts[place], self._tied_labels[some], self._names,
        )  # fmt: skip

    def at(self, rows: IntArray) -> npt.NDArray[Any]:
        """The labels of some rows, copied to this process."""
        points = self._rows[rows]
        place = np.searchsorted(self._tied, rows)
        place = np.minimum(place, max(len(self._tied) - 1, 0))
        is_tied = self._tied[place] == rows if len(self._tied) else np.zeros(len(rows), dtype=bool)
        mine = np.flatnonzero(is_tied)
        return _labels(points, None, self._scoring, mine, self._tied_labels[place[mine]], self._names)

    def renamed(self, names: npt.NDArray[Any]) -> DaskLabels:
        """The name of each label."""
        names = names if self._names is None else names[self._names]
        return DaskLabels(self._rows, self._scoring, self._tied, self._tied_labels, names)

    def array(self) -> Any:
        """The labels as a Dask array."""
        dtype = np.int32 if self._names is None else self._names.dtype
        sizes = np.diff(self._rows.starts).tolist()
        parts = [
            dask.array.from_delayed(self.part(place), (size,), dtype=dtype)
            for place, size in enumerate(sizes)
        ]  # fmt: skip
        return dask.array.concatenate(parts)


class DaskRowLabels(RowLabels):
    """The labels of one run. The rounds use tallies, and the rule from which labels are computed."""

    def __init__(self, rows: DaskRows, problem: Problem, tied: IntArray) -> None:
        self._rows, self._order = rows, np.argsort(tied)
        self._tied = np.asarray(tied)[self._order]
        self._tied_labels = np.full(len(tied), -1, dtype=np.int32)
        self._scoring: Scoring | None = None
        self._before: Tally | None = None

    @property
    def values(self) -> Any:  # type: ignore[override]
        """The present labels."""
        assert self._scoring is not None
        return DaskLabels(self._rows, self._scoring, self._tied, self._tied_labels.copy())

    def assign(self, problem: Problem, centers: FloatArray, run: Map) -> Tally:
        """One reduction over all blocks: the sums of the free rows of each cluster."""
        self._scoring = problem.scoring(centers)
        rows, weights = self._rows, problem.weights
        tallies = []
        for place, block in enumerate(rows.blocks):
            here = slice(int(rows.starts[place]), int(rows.starts[place + 1]))
            tied = self._tied[rows.tied_in(place, self._tied)] - rows.starts[place]
            share = weights[here] if len(weights) else weights
            tallies.append(dask.delayed(_tally)(block, problem.X._prepare, share, tied, self._scoring))
        total: Tally = rows.computed([dask.delayed(_total)(tallies)])[0]
        # Sums are added up in a fixed order, so they are exactly equal as long as no label changes.
        before, self._before = self._before, total
        changed = before is None or not (
            np.array_equal(before.sums, total.sums) and np.array_equal(before.errors, total.errors)
            and np.array_equal(before.masses, total.masses)
        )  # fmt: skip
        found = total.rounded()
        found.totals[1] = float(changed)
        return found

    def place(self, rows: IntArray, labels: Labels) -> None:
        """Set the labels of the tied rows."""
        self._tied_labels = np.asarray(labels, dtype=np.int32)[self._order]

    @property
    def _free(self) -> npt.NDArray[np.uint8]:  # type: ignore[override]
        free = np.ones(len(self._rows), dtype=np.uint8)
        free[self._tied] = 0
        return free


def is_distributed() -> bool:
    """Whether a client of a cluster is active."""
    if "distributed" not in sys.modules:
        return False
    import distributed

    try:
        distributed.get_client()
    except ValueError:
        return False
    return True


def _on_workers(X: Any) -> list[Any]:
    """Compute the blocks once and keep them on the workers; return their futures."""
    import distributed

    X = X.persist()
    futures = {future.key: future for future in distributed.futures_of(X)}
    return [futures[key] for row in X.__dask_keys__() for key in row]


def _prepared(block: Any, prepare: Prepare | None) -> npt.NDArray[Any]:
    rows = np.ascontiguousarray(block)
    # A function may change the rows, which belong to Dask.
    return rows if prepare is None else prepare(rows.copy() if rows is block or rows.base is not None else rows)


def _take(block: Any, prepare: Prepare | None, rows: IntArray) -> npt.NDArray[Any]:
    chosen = np.ascontiguousarray(block[rows])
    return chosen if prepare is None else prepare(chosen)


def _check(columns: tuple[str, ...] | None, chunk: Chunk) -> None:
    check_block(chunk.rows(), chunk.start, columns)


def _map(block: Any, prepare: Prepare | None, start: int, function: Callable[..., Any], *parts: Any) -> list[Any]:
    found = []
    for chunk in chunks_of(_prepared(block, prepare), start):
        here = slice(chunk.start - start, chunk.stop - start)
        found.append(function(chunk, *(part[here] if len(part) else part for part in parts)))
    return found


def _tally(block: Any, prepare: Prepare | None, weights: FloatArray, tied: IntArray, scoring: Scoring) -> Tally:
    """Assign the free rows of a block and add them up. The labels are not kept."""
    return _assigned(_prepared(block, prepare), weights, tied, scoring)[1]


def _labels(
    block: Any,
    prepare: Prepare | None,
    scoring: Scoring,
    tied: IntArray,
    tied_labels: Labels,
    names: npt.NDArray[Any] | None,
) -> npt.NDArray[Any]:
    labels, _ = _assigned(_prepared(block, prepare), np.empty(0), tied, scoring)
    labels[tied] = tied_labels
    return labels if names is None else names[labels]


def _assigned(rows: npt.NDArray[Any], weights: FloatArray, tied: IntArray, scoring: Scoring) -> tuple[Labels, Tally]:
    labels, free = np.full(len(rows), -1, dtype=np.int32), np.ones(len(rows), dtype=np.uint8)
    free[tied] = 0
    total = Tally.empty(scoring.directions.shape[1], scoring.directions.shape[0])
    for chunk in chunks_of(rows):
        here = slice(chunk.start, chunk.stop)
        share = weights[here] if len(weights) else weights
        total.add(assign_chunk(chunk, share, free[here], scoring, labels[here], fresh=True))
    return labels, total


def _total(tallies: list[Tally]) -> Tally:
    total = Tally.empty(*tallies[0].sums.shape)
    for tally in tallies:
        total.add(tally)
    return total
