"""Detect the tool that wrote a document: the first reader that recognises the document reads it."""

from __future__ import annotations

from typing import Any

from clew.constraints._records import AnswerTable
from clew.constraints.formats import (
    _argilla,
    _cognitivefactory,
    _dedupe,
    _label_studio,
    _prodigy,
    _splink,
    _zingg,
)
from clew.constraints.formats._document import Document, Found
from clew.exceptions import ClewError, ConstraintError, ParameterError

_READERS: dict[str, Any] = {
    "splink": _splink,
    "zingg": _zingg,
    "dedupe": _dedupe,
    "label-studio": _label_studio,
    "argilla": _argilla,
    "prodigy": _prodigy,
    "cognitivefactory": _cognitivefactory,
}
# The three formats without a reader here have clew's own columns after the file is read.
NAMES = ("clew", *_READERS, "cop-kmeans", "metric-learn")


def recognised(document: Document, name: str | None = None) -> str | None:
    """Name of the tool that wrote the document, or None for clew's own columns. A given name is not checked."""
    if name is not None:
        if name not in NAMES:
            raise ParameterError(f"There is no format {name!r}: expected one of {', '.join(NAMES)}.")
        return name if name in _READERS else None
    return next((tool for tool, reader in _READERS.items() if reader.matches(document)), None)


def read_document(document: Document, tool: str) -> AnswerTable:
    """Read a document of this tool."""
    found = Found(document, tool)
    try:
        _READERS[tool].read(document, found)
    except ClewError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, OSError) as error:
        # Readers rely on the documented format of a tool, so any error means that the document has another format.
        raise document.error(f"{document.name} is not a file of {tool} ({type(error).__name__}: {error}).") from error
    return found.records()


def records_of_manager(given: Any) -> AnswerTable | None:
    """Read the constraints of a cognitivefactory manager object. None for any other object."""
    if not _cognitivefactory.is_manager(given):
        return None
    document = Document("The constraints manager", [], str, ConstraintError)
    found = Found(document, "cognitivefactory")
    _cognitivefactory.read_manager(given, document, found)
    return found.records()
