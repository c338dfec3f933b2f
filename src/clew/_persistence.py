"""Estimators as files: a zip of npy arrays and one JSON document. No pickle, so nothing is executed on load.

`_state()` of an estimator returns its state, and `_from_state()` builds an estimator from a state. Parameters and
learned attributes may be estimators themselves, or lists of estimators. Their states are nested in the outer state.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from clew._tables import replacing
from clew._version import __version__
from clew.exceptions import FileError

FORMAT = 1
_PLAIN = (bool, int, float, str, type(None))


class State(NamedTuple):
    """The stored state of an estimator: the name of its class, its parameters and its learned attributes."""

    name: str
    params: dict[str, Any]
    learned: dict[str, Any]


@dataclass(frozen=True)
class Learned:
    """Declared type and shape of a learned attribute; `check_learned` checks files against it.

    `shapes` are the shapes that the attribute may have. A word such as "columns" is a size that all attributes of an
    estimator share, a number is a fixed size, and None is any size. The empty shape is a single number. With `counts`,
    the attribute is itself the size of that name. With `below`, its numbers are below the size of that name. A size may
    only be 0 with `empty`.
    """

    kind: Literal["integer", "real", "text", "label", "estimator", "estimators"]
    shapes: tuple[tuple[str | int | None, ...], ...] = ((),)
    low: float = -np.inf
    counts: str | None = None
    optional: bool = False
    sparse: bool = False
    below: str | None = None
    empty: bool = False


def check_learned(path: str | os.PathLike[str], expected: dict[str, Learned], learned: dict[str, Any]) -> None:
    """Raise if an estimator cannot have these learned attributes: types, shapes and numbers must fit together."""
    if not learned:
        return
    sizes: dict[str, int] = {}
    for name, form in expected.items():
        if name not in learned and form.optional:
            continue
        wrong = _mismatch(learned[name], form, sizes) if name in learned else "is missing"
        if wrong:
            raise FileError(f"{path} cannot be used: {name} {wrong}. Save the estimator again.")
    for name in learned.keys() - expected.keys():
        raise FileError(f"{path} cannot be used: the estimator learns no {name}. Save the estimator again.")


def _mismatch(value: Any, form: Learned, sizes: dict[str, int]) -> str:
    """The problem with a learned attribute, or None; records the sizes that it determines."""
    if form.kind in ("estimator", "estimators"):
        each = value if form.kind == "estimators" and isinstance(value, list) else [value]
        return "" if all(hasattr(one, "_state") for one in each) else f"holds something other than {form.kind}"
    numbers = _numbers(value, form)
    if numbers is None:
        return f"holds something other than {form.kind} values"
    shape = value.shape if isinstance(value, np.ndarray) or sparse.issparse(value) else ()
    for candidate in form.shapes:
        found = {**sizes}
        if len(candidate) == len(shape) and all(
            want is None
            or (have == (found.setdefault(want, have) if isinstance(want, str) else want) and (have > 0 or form.empty))
            for want, have in zip(candidate, shape, strict=True)
        ):
            sizes.update(found)
            break
    else:
        return f"has shape {shape}, which does not fit the other attributes"
    if numbers.dtype != object and not (np.isfinite(numbers).all() and (numbers >= form.low).all()):
        return "holds a number that is missing or out of range"
    if form.below is not None and (numbers >= sizes[form.below]).any():
        return "holds a number that is out of range"
    if form.counts is not None and value != sizes.setdefault(form.counts, value):
        return f"is {value}, which does not fit the other attributes"
    return ""


def _numbers(value: Any, form: Learned) -> Any:
    """The values of an attribute as an array; None if they are of another kind than expected."""
    is_text = isinstance(value, np.ndarray) and value.dtype == object
    if form.kind == "text" or (form.kind == "label" and is_text):
        return value if is_text else None
    if isinstance(value, int | float if form.kind == "real" else int) and not isinstance(value, bool):
        return np.array(value) if -(2**63) <= value < 2**63 or isinstance(value, float) else None
    if sparse.issparse(value):
        value = value.data if form.sparse else None
    is_array = isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype.itemsize in (4, 8)
    return value if is_array and value.dtype.kind == ("f" if form.kind == "real" else "i") else None


def write_state(path: str | os.PathLike[str], name: str, params: dict[str, Any], learned: dict[str, Any]) -> None:
    """Write an estimator's class name, parameters and learned attributes. An error leaves no partial file."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    document = {"format": FORMAT, "clew": __version__, **_pack_state("", State(name, params, learned), arrays)}
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("estimator.json", json.dumps(document, indent=1))
        for key, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(f"{key}.npy", buffer.getvalue())


def read_state(path: str | os.PathLike[str]) -> State:
    """Read the state from a file that `write_state` wrote. Nested estimators are states, too."""
    try:
        with zipfile.ZipFile(path) as archive:
            document = json.loads(archive.read("estimator.json"))
            if int(document["format"]) > FORMAT:
                raise FileError(f"{path} was written by clew {document['clew']}, which is newer. Update clew.")
            arrays = {
                entry.removesuffix(".npy"): _as_written(np.load(io.BytesIO(archive.read(entry)), allow_pickle=False))
                for entry in archive.namelist()
                if entry.endswith(".npy")
            }
        return _unpack_state(document, arrays)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}. Check the path.") from None
    except Exception:  # zipfile, zlib, json, numpy and scipy raise many kinds of errors, which all mean the same here
        raise FileError(
            f"{path} is damaged, or is not an estimator saved by clew. Check the path, or save the estimator again."
        ) from None


def _pack_state(prefix: str, state: State, arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    parts = {
        part: {key: _pack(f"{prefix}{part}.{key}", value, arrays) for key, value in values.items()}
        for part, values in (("params", state.params), ("learned", state.learned))
    }
    return {"estimator": state.name, **parts}


def _unpack_state(document: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> State:
    params, learned = (
        {str(key): _unpack(value, arrays) for key, value in document[part].items()} for part in ("params", "learned")
    )
    return State(str(document["estimator"]), params, learned)


def _pack(key: str, value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return value
    if hasattr(value, "_state"):
        return _pack_state(f"{key}.", value._state(), arrays)
    if isinstance(value, list) and value and all(hasattr(one, "_state") for one in value):
        return {"list": [_pack_state(f"{key}.{place}.", one._state(), arrays) for place, one in enumerate(value)]}
    if sparse.issparse(value):
        matrix = sparse.csr_array(value)
        for part in ("data", "indices", "indptr"):
            arrays[f"{key}.{part}"] = getattr(matrix, part)
        return {"csr": key, "shape": list(matrix.shape)}
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # the state of a running generator is not saved
    array = np.asarray(value)
    if array.dtype == object and all(isinstance(item, str) for item in array.ravel()):
        return {"strings": array.tolist()}
    if array.dtype == object:
        raise FileError(f"{key} holds {type(value).__name__}, which cannot be saved without pickle.")
    arrays[key] = array
    return {"array": key}


def _as_written(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert an array to this machine's byte order and to C order, as `write_state` stores it."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _unpack(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if "estimator" in value:
        return _unpack_state(value, arrays)
    if "list" in value:
        return [_unpack(one, arrays) for one in value["list"]]
    if "array" in value:
        return arrays[value["array"]]
    if "strings" in value:
        return np.array(value["strings"], dtype=object)
    data, indices, indptr = (arrays[f"{value['csr']}.{part}"] for part in ("data", "indices", "indptr"))
    if indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise ValueError("rows and columns of a sparse matrix are integers")
    matrix = sparse.csr_array((data, indices, indptr), shape=value["shape"])
    matrix.check_format(full_check=True)
    return matrix
