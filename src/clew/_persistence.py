"""Estimators as files: a zip of npy arrays and one JSON document. No pickle, so nothing is executed on load."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from typing import Any

import numpy as np
from scipy import sparse

from clew._tables import replacing
from clew._version import __version__
from clew.exceptions import FileError

FORMAT = 1
# What zipfile, zlib, json and numpy raise for files that are not what they should be.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
)
_PLAIN = (bool, int, float, str, type(None))


def write_state(path: str | os.PathLike[str], name: str, params: dict[str, Any], learned: dict[str, Any]) -> None:
    """Write an estimator's class name, parameters and learned attributes; whole or not at all."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    document = {
        "format": FORMAT,
        "clew": __version__,
        "estimator": name,
        "params": {key: _pack(f"params.{key}", value, arrays) for key, value in params.items()},
        "learned": {key: _pack(f"learned.{key}", value, arrays) for key, value in learned.items()},
    }
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("estimator.json", json.dumps(document, indent=1))
        for key, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(f"{key}.npy", buffer.getvalue())


def read_state(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Class name, parameters and learned attributes from a file that `write_state` made."""
    try:
        with zipfile.ZipFile(path) as archive:
            document = json.loads(archive.read("estimator.json"))
            if int(document["format"]) > FORMAT:
                raise FileError(f"{path} was written by clew {document['clew']}, which is newer. Update clew.")
            arrays = {
                entry.removesuffix(".npy"): np.load(io.BytesIO(archive.read(entry)), allow_pickle=False)
                for entry in archive.namelist()
                if entry.endswith(".npy")
            }
        params, learned = (
            {str(key): _unpack(value, arrays) for key, value in document[part].items()}
            for part in ("params", "learned")
        )
        return str(document["estimator"]), params, learned
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}. Check the path.") from None
    except _DAMAGED:
        raise FileError(f"{path} is damaged, or no estimator saved by clew.") from None


def _pack(key: str, value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return value
    if sparse.issparse(value):
        matrix = sparse.csr_array(value)
        for part in ("data", "indices", "indptr"):
            arrays[f"{key}.{part}"] = getattr(matrix, part)
        return {"csr": key, "shape": list(matrix.shape)}
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # a generator in mid-stream belongs to its process
    array = np.asarray(value)
    if array.dtype == object and all(isinstance(item, str) for item in array.ravel()):
        return {"strings": array.tolist()}
    if array.dtype == object:
        raise FileError(f"{key} holds {type(value).__name__}, which cannot be saved without pickle.")
    arrays[key] = array
    return {"array": key}


def _unpack(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "strings" in value:
        return np.array(value["strings"], dtype=object)
    key = value["csr"]
    return sparse.csr_array(
        tuple(arrays[f"{key}.{part}"] for part in ("data", "indices", "indptr")), shape=value["shape"]
    )
