"""Convert every accepted form of constraints into the arguments of `Constraints`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from clew._frames import as_frame
from clew.constraints._answers import Answers
from clew.constraints._arrays import IntArray, as_rows_together, distinct_pairs, filled
from clew.constraints._files import constraints_row, read_records, records_of_document
from clew.constraints._records import AnswerTable, arguments_of, key_of, row_lookup
from clew.constraints.formats import recognised, records_of_manager
from clew.constraints.formats._document import Document
from clew.exceptions import ConstraintError

# Argument of `Constraints` for each key that a dict may use. The aliases are keys of related packages.
_KEYS = {
    "must_link": "must_link",
    "ml": "must_link",
    "match": "must_link",
    "cannot_link": "cannot_link",
    "cl": "cannot_link",
    "distinct": "cannot_link",
    "labels": "labels",
    "membership": "labels",
    "must_groups": "must_groups",
    "cannot_groups": "cannot_groups",
    "cannot_link_groups": "cannot_groups",
    "must_link_confidence": "must_link_confidence",
    "cannot_link_confidence": "cannot_link_confidence",
    "soft_groups": "soft_groups",
    "triplets": "triplets",
    "fixed": "fixed",
    "unlabelled": "unlabelled",
}
_FORMS = (
    "a Constraints, labels (one per row, -1 unknown), a dict {'must_link': ..., 'cannot_link': ...}, pairs with "
    "answers (pairs, y), a frame with columns id_1, id_2, answer, a signed sparse matrix, or the path of a file"
)


def arguments_from(given: Any, n_samples: int | None, ids: Any, table: Any = None) -> dict[str, Any]:
    """Return the arguments of `Constraints` for any accepted form except a `Constraints` object."""
    if isinstance(given, Answers | AnswerTable):
        return arguments_of(given.records if isinstance(given, Answers) else given, ids, n_samples)
    if isinstance(given, str | os.PathLike):
        return arguments_of(read_records(given, table=table, known=ids), ids, n_samples)
    if isinstance(given, Mapping):
        document = _document("The dict", given, ids, table)
        if recognised(document) is not None:
            return arguments_of(records_of_document(document), ids, n_samples)
        return _from_dict(given, ids)
    managed = records_of_manager(given)
    if managed is not None:
        return arguments_of(managed, ids, n_samples)
    if sparse.issparse(given):
        return _from_signed_matrix(given, ids)
    if as_frame(given, ConstraintError) is not None:
        return arguments_of(read_records(given, table=table, known=ids), ids, n_samples)
    series = nw.from_native(given, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        given = series.to_numpy()
    if isinstance(given, tuple) and len(given) == 2 and np.ndim(given[1]) == 1 and _looks_like_pairs(given[0]):
        return _from_pairs_and_answers(given[0], given[1], n_samples, ids)
    if _ndim(given) == 1 and len(given) == 0:
        return {"ids": ids}
    if _ndim(given) == 1:
        return {"labels": given, "ids": ids}
    hint = " A plain list of pairs could be must-links or cannot-links." if _looks_like_pairs(given) else ""
    raise ConstraintError(f"constraints of type {type(given).__name__} cannot be read.{hint} Pass {_FORMS}.")


def only_means_constraints(value: Any, n_rows: int) -> bool:
    """Whether a value can be constraints but not one label per row."""
    if value is None:
        return False
    if (
        isinstance(value, Answers | Mapping | str | os.PathLike)
        or hasattr(value, "must_link")
        or sparse.issparse(value)
    ):
        return True
    if records_of_manager(value) is not None:
        return True
    frame = nw.from_native(value, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return len(frame) != n_rows or "answer" in frame.columns
    if has_missing_labels(value):
        return True
    pairs = value[0] if isinstance(value, tuple) and len(value) == 2 else value
    return isinstance(pairs, list | tuple | np.ndarray) and _ndim(pairs) in (-1, 2) and len(pairs) != n_rows


def has_missing_labels(value: Any) -> bool:
    """Whether a list, array or series has empty entries (None or NaN), like labels known for some rows only."""
    series = nw.from_native(value, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series.null_count() > 0 or (series.dtype.is_float() and bool(series.is_nan().any()))
    if _ndim(value) != 1:
        return False
    array = np.asarray(value)
    if array.dtype.kind == "f":
        return bool(np.isnan(array).any())
    return array.dtype == object and any(item is None or item != item for item in array.tolist())


def marks_unknown(value: Any) -> bool:
    """Whether a value looks like labels that are known for some rows only: several classes from 0 on, and -1."""
    if value is None or _ndim(value) != 1:
        return False
    labels = np.asarray(value)
    return labels.dtype.kind == "i" and labels.min(initial=0) == -1 and len(np.unique(labels)) > 2


def _document(name: str, content: Any, ids: Any, table: Any) -> Document:
    known = None if ids is None else frozenset(row_lookup(ids))
    return Document(name, content, constraints_row, ConstraintError, table, (), known)


def _ndim(given: Any) -> int:
    try:
        return int(given.ndim if hasattr(given, "ndim") else np.asarray(given).ndim)
    except ValueError:  # ragged
        return -1


def _looks_like_pairs(value: Any) -> bool:
    return _ndim(value) == 2 or (_ndim(value) == 1 and np.size(value) == 0) or _ndim(value) == -1


def _from_dict(given: Mapping[Any, Any], ids: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for key, value in given.items():
        name = _KEYS.get(key)
        if name is None:
            raise ConstraintError(
                f"constraints has the key {key!r}: expected must_link, cannot_link, labels, must_groups, …"
            )
        if name in arguments:
            raise ConstraintError(f"constraints names {name} twice ({key!r} is another word for it). Keep one.")
        arguments[name] = value
    lookup = None if ids is None else row_lookup(ids)
    for name, width in (("must_link", 2), ("cannot_link", 2), ("triplets", 3)):
        if sparse.issparse(arguments.get(name)):
            if arguments[name].shape[0] != arguments[name].shape[1]:
                raise ConstraintError(f"{name} has shape {arguments[name].shape}: expected rows x rows, or pairs.")
            upper = sparse.triu(abs(arguments[name]) + abs(arguments[name]).T, k=1).tocoo()
            arguments[name] = np.column_stack([upper.row, upper.col])
        elif lookup is not None and name in arguments:
            arguments[name] = _rows_of_ids(arguments[name], name, width, lookup)
    fixed, unlabelled = arguments.pop("fixed", None), arguments.pop("unlabelled", None)
    if (fixed is not None or unlabelled is not None) and "labels" not in arguments:
        raise ConstraintError(
            "constraints has 'fixed' or 'unlabelled', but no 'labels' (or 'membership') to apply them to."
        )
    if fixed is not None:
        if np.shape(fixed) != np.shape(arguments["labels"]):
            raise ConstraintError(
                f"'fixed' has shape {np.shape(fixed)}, the labels {np.shape(arguments['labels'])}. Give one per row."
            )
        arguments["labels"] = [
            label if kept else None
            for label, kept in zip(filled(arguments["labels"], "labels").tolist(), np.asarray(fixed), strict=True)
        ]
    if unlabelled is not None:
        given_labels = filled(arguments["labels"], "labels").tolist()
        arguments["labels"] = [None if key_of(label) == key_of(unlabelled) else label for label in given_labels]
    return {**arguments, "ids": ids}


def _rows_of_ids(tuples: Any, name: str, width: int, lookup: dict[str, int]) -> IntArray:
    rows = []
    for place, ids in enumerate(tuples):
        if np.ndim(ids) != 1 or len(ids) != width:
            raise ConstraintError(f"{name}[{place}] is {ids!r}: expected {width} ids.")
        for value in ids:
            if key_of(value) not in lookup:
                raise ConstraintError(f"{name}[{place}] names {value!r}, which is not among the {len(lookup)} row ids.")
        rows.append([lookup[key_of(value)] for value in ids])
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _from_pairs_and_answers(pairs: Any, answers: Any, n_samples: int | None, ids: Any) -> dict[str, Any]:
    """Read the form of metric-learn: row pairs and +1 / -1."""
    together, signs = (
        as_rows_together(pairs, "pairs", 2) if ids is None else np.asarray(pairs).reshape(-1, 2),
        np.asarray(answers),
    )
    if len(together) != len(signs):
        raise ConstraintError(f"{len(together)} pairs but {len(signs)} answers. Give one answer (1 or -1) per pair.")
    columns = {"id_1": together[:, 0].tolist(), "id_2": together[:, 1].tolist(), "answer": signs.tolist()}
    records = AnswerTable(columns, lambda place: f"pair {place}", ConstraintError, "The pairs")
    return arguments_of(records, ids, n_samples)


def _from_signed_matrix(matrix: Any, ids: Any) -> dict[str, Any]:
    """Read a signed matrix: entries above 0 are must-links, below 0 cannot-links, with |entry| as confidence."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ConstraintError(f"The signed matrix has shape {matrix.shape}: expected rows x rows.")
    entries = sparse.coo_array(matrix)
    rows = np.column_stack([entries.coords[0], entries.coords[1]]).astype(np.int64)
    values = entries.data.astype(np.float64)
    rows, values = rows[values != 0], values[values != 0]
    if (np.abs(values) > 1).any() or not np.isfinite(values).all():
        place = int(np.flatnonzero(~(np.abs(values) <= 1))[0])
        raise ConstraintError(
            f"The signed matrix holds {values[place]:g} at {tuple(rows[place].tolist())}: expected -1 to 1 "
            "(sign: must or cannot; size: confidence)."
        )
    arguments: dict[str, Any] = {"n_samples": matrix.shape[0], "ids": ids}
    for name, chosen in (("must_link", values > 0), ("cannot_link", values < 0)):
        # Both triangles count. A symmetric matrix gives each pair twice: keep the higher confidence.
        confidence = np.abs(values[chosen])
        stated = distinct_pairs(rows[chosen], confidence)
        arguments[name] = stated.pairs
        arguments[f"{name}_confidence"] = confidence[stated.best]
    return arguments
