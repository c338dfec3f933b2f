"""Constraints in the form of the dual ascent: pairs and sets of rows.

A class or must-group becomes an *anchor*: a point that represents all its rows, and each row is tied to it. So each row
of a class has its own price, and nothing is expanded to pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs, group_columns
from clew.solvers.coloring import compress
from clew.solvers.lagrangian import Statements

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NamedStatements:
    """Statements of the solver, and the constraints that they come from.

    Attributes
    ----------
    tied : ndarray
        Rows that constraints name, in ascending order. The solver numbers them in this order, and anchors after them.
    anchors : CSR matrix of shape (n_anchors, n_tied) or None
        The rows of each class and must-group.
    statements : Statements
        Pairs: must-links, then rows of classes, then rows of must-groups. Sets: cannot-links, then cannot-groups.
    label_rows : ndarray
        Row of each statement about a class.
    must_entries : ndarray of shape (…, 2)
        Row and column of each statement about a must-group.
    cannot_entries : ndarray of shape (…, 3)
        Row, column and number of the set, for every row of a cannot-group.
    """

    tied: IntArray
    anchors: sparse.csr_array | None
    statements: Statements
    label_rows: IntArray
    must_entries: IntArray
    cannot_entries: IntArray


def named_statements(constraints: Constraints, unit: float) -> NamedStatements:
    """Convert constraints to statements. Breaking an uncertain statement costs `unit` times its odds."""
    labels = constraints.labels if constraints.labels is not None else np.full(constraints.n_rows, -1)
    label_rows = np.flatnonzero(labels >= 0)
    classes, class_of = np.unique(labels[label_rows], return_inverse=True)
    must_rows, must_columns, must_anchors, n_anchors = _grouped(constraints.must_groups, len(classes))
    set_rows, set_columns, sets, n_sets = _grouped(constraints.cannot_groups, 0)
    named = (constraints.must_link.ravel(), constraints.cannot_link.ravel(), label_rows, must_rows, set_rows)
    tied = np.unique(np.concatenate(named)).astype(np.int64)

    def place(rows: IntArray) -> IntArray:
        return np.searchsorted(tied, rows)

    together = np.concatenate(
        [
            place(constraints.must_link),
            np.column_stack([place(label_rows), len(tied) + class_of]),
            np.column_stack([place(must_rows), len(tied) + must_anchors]),
        ]
    ).astype(np.int64)
    most_pull = np.full(len(together), np.inf)
    # A broken must-link is counted in two clusters, so each charges at most half.
    most_pull[: len(constraints.must_link)] = unit * _odds(constraints.must_link_confidence) / 2
    n_pairs = len(constraints.cannot_link)
    group_ptr, group_members = compress(sets, place(set_rows), n_sets)
    set_ptr = np.concatenate([np.arange(0, 2 * n_pairs, 2), 2 * n_pairs + group_ptr])
    members = np.concatenate([place(constraints.cannot_link).ravel(), group_members])
    most_price = np.full(n_pairs + n_sets, np.inf)
    most_price[:n_pairs] = unit * _odds(constraints.cannot_link_confidence)
    if len(classes) > 1:  # the anchors of different classes are in different clusters
        set_ptr = np.append(set_ptr, set_ptr[-1] + len(classes))
        members = np.concatenate([members, len(tied) + np.arange(len(classes))])
        most_price = np.append(most_price, np.inf)
    statements = Statements(
        len(tied) + n_anchors,
        np.ascontiguousarray(together),
        most_pull,
        set_ptr.astype(np.int64),
        np.ascontiguousarray(members, dtype=np.int64),
        most_price,
    )
    return NamedStatements(
        tied,
        _anchors(together[len(constraints.must_link) :], len(tied), n_anchors),
        statements,
        label_rows,
        np.column_stack([must_rows, must_columns]).astype(np.int64),
        np.column_stack([set_rows, set_columns, n_pairs + sets]).astype(np.int64),
    )


def _anchors(links: IntArray, n_tied: int, n_anchors: int) -> sparse.csr_array | None:
    if not n_anchors:
        return None
    entries = (np.ones(len(links)), (links[:, 1] - n_tied, links[:, 0]))
    return sparse.csr_array(entries, shape=(n_anchors, n_tied))


def _odds(confidence: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.where(confidence < 1, confidence / (1 - confidence), np.inf)


def _grouped(groups: IntArray | None, n_before: int) -> tuple[IntArray, IntArray, IntArray, int]:
    """Row, column and group number of every membership. Groups of all columns are numbered from `n_before` on."""
    rows, columns, numbers = [[np.empty(0, dtype=np.int64)] for _ in range(3)]
    total = n_before
    for place, column in enumerate(group_columns(groups)):
        grouped = np.flatnonzero(column >= 0)
        values, number = np.unique(column[grouped], return_inverse=True)
        rows.append(grouped)
        columns.append(np.full(len(grouped), place))
        numbers.append(number + total)
        total += len(values)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(numbers), total


def distinct(pairs: IntArray, confidence: FloatArray) -> tuple[IntArray, IntArray]:
    """Find the most confident statement of each pair, in the order given, and the pair number of each statement.

    Repeated statements would share one price, so a wrong answer that many people gave would look right.
    """
    stated = distinct_pairs(pairs, confidence)
    order = np.argsort(stated.best)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return stated.best[order], rank[stated.pair_of]
