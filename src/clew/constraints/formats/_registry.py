"""Which tool wrote this? Asked of each in turn; the first that knows its own reads it."""

from __future__ import annotations

from typing import Any

from clew.constraints._records import Records
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
# The other three are tables in our own columns once they are read.
NAMES = ("clew", *_READERS, "cop-kmeans", "metric-learn")


def recognised(document: Document, name: str | None = None) -> str | None:
    """The tool that wrote the document, None if it is no foreign one; a given name is taken at its word."""
    if name is not None:
        if name not in NAMES:
            raise ParameterError(f"format={name!r}: expected one of {', '.join(NAMES)}.")
        return name if name in _READERS else None
    return next((tool for tool, reader in _READERS.items() if reader.matches(document)), None)


def read_document(document: Document, tool: str) -> Records:
    """What a document of this tool says."""
    found = Found(document, tool)
    try:
        _READERS[tool].read(document, found)
    except ClewError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, OSError) as error:
        # Readers trust the shape that a tool documents; whatever breaks there is not that shape.
        raise document.error(f"{document.name} is not what {tool} writes ({type(error).__name__}: {error}).") from error
    return found.records()


def records_of_manager(given: Any) -> Records | None:
    """The constraints in a manager object of cognitivefactory; None for any other object."""
    if not _cognitivefactory.is_manager(given):
        return None
    document = Document("The constraints manager", [], str, ConstraintError)
    found = Found(document, "cognitivefactory")
    _cognitivefactory.read_manager(given, document, found)
    return found.records()
