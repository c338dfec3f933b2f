"""What clew raises and warns.

::

    ValueError
    └── ClewError                              anything wrong with what was given
        ├── ParameterError                     a constructor or function argument
        │   ├── NotFoundError                  … a row, question, answer or cluster that is not there
        │   └── AnsweredError                  … another answer to a question that was answered
        ├── DataError                          the rows: missing values, text, shape
        │   └── DataTypeError                  … of a type that is no table of numbers (also a TypeError)
        ├── FileError                          a file: unreadable, columns, one of its lines
        │   ├── NoProjectError                 … or database that holds no such project (also a NotFoundError)
        │   └── StorageError                   … the database of a session: full, read-only, out of reach
        └── ConstraintError                    the knowledge: row numbers, ids, confidences
            ├── ContradictoryConstraintsError  must-links join what a cannot-link separates
            ├── InfeasibleConstraintsError     consistent, but impossible with these clusters
            └── WorkLimitError                 neither a solution nor a proof within the work limit
    ImportError
    └── MissingExtraError                      an optional dependency is not installed

Every message says what happened, which input, and what to do.
"""

from __future__ import annotations

from typing import Any


class ClewError(ValueError):
    """Anything wrong with what was given to clew."""


class ParameterError(ClewError):
    """A constructor or function argument outside its allowed values."""


class NotFoundError(ParameterError):
    """A row, question, answer, conflict or cluster that is not there."""


class AnsweredError(ParameterError):
    """Another answer to a question that was answered; `Session.revise` changes an answer."""


class DataError(ClewError):
    """Rows that cannot be clustered: missing values, text columns, wrong shape."""


class DataTypeError(DataError, TypeError):
    """Rows of a type that cannot be read as a table of numbers."""


class FileError(ClewError):
    """A file that cannot be read or written as asked."""


class NoProjectError(NotFoundError, FileError):
    """A file or database that holds no such project."""


class StorageError(FileError):
    """A session's database that cannot be read or written now; `is_full` if there is no space left."""

    def __init__(self, message: str, is_full: bool = False) -> None:
        super().__init__(message)
        self.is_full = is_full


class ConstraintError(ClewError):
    """Knowledge that does not fit: row numbers, ids, confidences, lengths."""


class ContradictoryConstraintsError(ConstraintError):
    """Must-links join what a cannot-link separates; `conflicts` holds the chains."""

    def __init__(self, message: str, conflicts: list[Any] | None = None) -> None:
        super().__init__(message)
        self.conflicts = conflicts or []


class InfeasibleConstraintsError(ConstraintError):
    """Consistent, but impossible with these clusters; `rows` prove it."""

    def __init__(self, message: str, rows: Any = ()) -> None:
        super().__init__(message)
        self.rows = rows


class WorkLimitError(ConstraintError):
    """Neither a solution nor a proof that there is none was found within the work limit."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra."""
