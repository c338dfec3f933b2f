"""Errors and warnings of clew.

::

    ValueError
    └── ClewError                              anything wrong with the input
        ├── ParameterError                     a constructor or function argument
        │   ├── NotFoundError                  … a row, question, answer or cluster that does not exist
        │   └── AnsweredError                  … another answer to a question that was answered
        ├── DataError                          the rows: missing values, text, shape
        │   └── DataTypeError                  … of a type that is not a table of numbers (also a TypeError)
        ├── FileError                          a file: unreadable, columns, one of its lines
        │   ├── TooLargeError                  … that holds more than is allowed
        │   ├── NoProjectError                 … or database that has no such project (also a NotFoundError)
        │   └── StorageError                   … the database of a session: full, read-only, out of reach
        │       └── UnknownOutcomeError        … lost while it was recording: perhaps it was recorded, perhaps not
        ├── StrategyError                      a query strategy that fails, or never asks anything
        └── ConstraintError                    the constraints: row numbers, ids, confidences
            ├── ContradictoryConstraintsError  must-links join rows that a cannot-link separates
            ├── InfeasibleConstraintsError     consistent, but impossible with these clusters
            └── WorkLimitError                 neither a solution nor a proof within the work limit
    ImportError
    └── MissingExtraError                      an optional dependency is not installed
    UserWarning
    └── ClewWarning                            the result is valid, but differs from the request
        ├── FewerClustersWarning               a fit found fewer clusters than n_clusters
        ├── IndefiniteKernelWarning            a kernel has negative eigenvalues and was shifted
        ├── MoreClustersWarning                merging stopped at more clusters than n_clusters
        └── UnusedKnowledgeWarning             the method ignores some of the constraints

Every message says what happened, which input, and what to do.
"""

from __future__ import annotations

from typing import Any


class ClewError(ValueError):
    """Base of all errors about invalid input."""


class ParameterError(ClewError):
    """A constructor or function argument outside its allowed values."""


class NotFoundError(ParameterError):
    """A row, question, answer, conflict or cluster does not exist."""


class AnsweredError(ParameterError):
    """The question already has another answer. `Session.revise` changes an answer."""


class DataError(ClewError):
    """Rows that cannot be clustered: missing values, text columns, wrong shape."""


class DataTypeError(DataError, TypeError):
    """Rows of a type that cannot be read as a table of numbers."""


class FileError(ClewError):
    """A file that cannot be read or written as asked."""


class TooLargeError(FileError):
    """A file that is larger than allowed."""


class NoProjectError(NotFoundError, FileError):
    """A file or database that has no such project."""


class StorageError(FileError):
    """A session's database cannot be read or written now. `is_full` is True if there is no space left."""

    def __init__(self, message: str, is_full: bool = False) -> None:
        super().__init__(message)
        self.is_full = is_full


class UnknownOutcomeError(StorageError):
    """The connection to a session's database was lost during a commit. It is unknown whether the event was recorded."""


class StrategyError(ClewError):
    """A query strategy failed, or was stopped because it did not ask anything."""


class ConstraintError(ClewError):
    """Invalid constraints: row numbers, ids, confidences, lengths."""


class ContradictoryConstraintsError(ConstraintError):
    """Must-links join two rows that a cannot-link separates; `conflicts` holds the chains of pairs."""

    def __init__(self, message: str, conflicts: list[Any] | None = None) -> None:
        super().__init__(message)
        self.conflicts = conflicts or []


class InfeasibleConstraintsError(ConstraintError):
    """Constraints are consistent, but impossible with these clusters.

    `rows` is a set of rows that proves it, and `fact` is the message without its advice.
    """

    def __init__(self, message: str, rows: Any = (), fact: str | None = None) -> None:
        super().__init__(message)
        self.rows, self.fact = rows, message if fact is None else fact


class WorkLimitError(ConstraintError):
    """Neither a solution nor a proof that there is none was found within the work limit."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra."""


class ClewWarning(UserWarning):
    """The result is valid, but differs from the request."""


class FewerClustersWarning(ClewWarning):
    """A fit found fewer clusters than `n_clusters`; the message has the number found and the reason."""


class IndefiniteKernelWarning(ClewWarning):
    """A kernel has negative eigenvalues, so a number was added to its diagonal."""


class MoreClustersWarning(ClewWarning):
    """Merging stopped at more clusters than `n_clusters`; the message has the number and the reason."""


class UnusedKnowledgeWarning(ClewWarning):
    """The method ignores some of the constraints; the message names methods that use them."""
