"""Errors and warnings of clew.

::

    ValueError
    └── ClewError                              anything wrong with the input
        ├── ParameterError                     a constructor or function argument
        │   ├── NotFoundError                  … a row, question, answer or cluster that is not there
        │   └── AnsweredError                  … another answer to a question that was answered
        ├── DataError                          the rows: missing values, text, shape
        │   └── DataTypeError                  … of a type that is no table of numbers (also a TypeError)
        ├── FileError                          a file: unreadable, columns, one of its lines
        │   ├── TooLargeError                  … that holds more than is allowed
        │   ├── NoProjectError                 … or database that holds no such project (also a NotFoundError)
        │   └── StorageError                   … the database of a session: full, read-only, out of reach
        │       └── UnknownOutcomeError        … lost while it was recording: perhaps it was recorded, perhaps not
        ├── StrategyError                      a query strategy that fails, or goes on without asking anything
        └── ConstraintError                    the knowledge: row numbers, ids, confidences
            ├── ContradictoryConstraintsError  must-links join what a cannot-link separates
            ├── InfeasibleConstraintsError     consistent, but impossible with these clusters
            └── WorkLimitError                 neither a solution nor a proof within the work limit
    ImportError
    └── MissingExtraError                      an optional dependency is not installed
    UserWarning
    └── ClewWarning                            the result is valid, but not all that was asked for
        ├── FewerClustersWarning               a fit found fewer clusters than n_clusters
        ├── IndefiniteKernelWarning            a kernel has negative eigenvalues and was shifted
        ├── MoreClustersWarning                a tree of clusters stopped at more of them than were asked for
        └── UnusedKnowledgeWarning             the method has no use for some of the knowledge

Every message says what happened, which input, and what to do.
"""

from __future__ import annotations

from typing import Any


class ClewError(ValueError):
    """Base of all errors about invalid input."""


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


class TooLargeError(FileError):
    """A file that is larger than allowed."""


class NoProjectError(NotFoundError, FileError):
    """A file or database that holds no such project."""


class StorageError(FileError):
    """A session's database that cannot be read or written now; `is_full` if there is no space left."""

    def __init__(self, message: str, is_full: bool = False) -> None:
        super().__init__(message)
        self.is_full = is_full


class UnknownOutcomeError(StorageError):
    """The connection to a session's database was lost during a commit. It is unknown whether the event was recorded."""


class StrategyError(ClewError):
    """A query strategy that failed, or was stopped because it went on without asking anything."""


class ConstraintError(ClewError):
    """Knowledge that does not fit: row numbers, ids, confidences, lengths."""


class ContradictoryConstraintsError(ConstraintError):
    """Must-links join two rows that a cannot-link separates; `conflicts` holds the chains of pairs."""

    def __init__(self, message: str, conflicts: list[Any] | None = None) -> None:
        super().__init__(message)
        self.conflicts = conflicts or []


class InfeasibleConstraintsError(ConstraintError):
    """Consistent constraints that these clusters cannot satisfy.

    `rows` are a set of rows that proves it, and `fact` is the message without its advice.
    """

    def __init__(self, message: str, rows: Any = (), fact: str | None = None) -> None:
        super().__init__(message)
        self.rows, self.fact = rows, message if fact is None else fact


class WorkLimitError(ConstraintError):
    """Neither a solution nor a proof that there is none was found within the work limit."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra."""


class ClewWarning(UserWarning):
    """The result is valid, but it is not all that was asked for."""


class FewerClustersWarning(ClewWarning):
    """A fit found fewer clusters than `n_clusters`; the message has the number found and the reason."""


class IndefiniteKernelWarning(ClewWarning):
    """A kernel has negative eigenvalues, so that a number was added to its diagonal."""


class MoreClustersWarning(ClewWarning):
    """Merges stopped at more clusters than were asked for; the message has the number and the reason."""


class UnusedKnowledgeWarning(ClewWarning):
    """The method has no use for some of the knowledge; the message names the methods that have."""
