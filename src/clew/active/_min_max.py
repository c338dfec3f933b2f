"""Min-max: ask about the row that is least similar to all placed rows.

Mallapragada, Jin and Jain 2008 (`mallapragada2008`); Truong and Battiti 2013 (`truong2013`), Eq. 69 and 70.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from clew.active._answers import SAME, Pair
from clew.active._distances import dense_row, distances_to, squared_distances
from clew.active._strategy import Strategy
from clew.active._view import IntArray, View

_NEW, _WHERE = "Is this a new group?", "Where does this row belong? It is least like any row placed so far."


class MinMax(Strategy):
    """Explore, then place the row whose largest similarity to the placed rows is smallest.

    The placed rows are the skeleton. A row is compared with the nearest row of each neighbourhood that it may belong
    to, nearest neighbourhood first. The last comparison is implied.

    Notes
    -----
    Similarity falls with Euclidean distance, so both phases take the row farthest from the skeleton. Explore ends when
    every cluster is found. If the number of clusters is unknown, it never ends.
    Time O(n d) per placed row, from running minima. Memory O(n).
    Departs from [1]: A row joins the skeleton when it is placed, not after the first question about it.

    References
    ----------
    .. [1] P. K. Mallapragada, R. Jin, A. K. Jain (2008). "Active query selection for semi-supervised clustering." ICPR.
    .. [2] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms: from a priori scheme to
       interactive scheme and open issues." Eq. (69), (70).

    Examples
    --------
    >>> from clew.active import MinMax, Questions
    >>> questions = Questions([[0.0], [5.0], [9.0]], MinMax(), n_clusters=2, constraints=[0, -1, 1], random_state=0)
    >>> questions.ask().key
    (1, 2)
    """

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Explore, then consolidate, least certain row first."""
        yield from first_neighbourhood(view, rng, np.arange(view.n_rows))
        while view.neighbourhoods and (rows := view.unplaced()).size:
            row = least_certain(view, rows)
            for member in nearest_members(view, row):
                if (yield Pair(row, member, why=why(view))) is SAME:
                    break


def first_neighbourhood(
    view: View,
    rng: np.random.Generator,
    *choices: IntArray,
    question: Callable[[int, int], Any] = lambda row, start: Pair(row, start, why=_NEW),
) -> Generator[Any, Any, None]:
    """Ask about a random row and the row farthest from it, within the first set of rows that has an open pair.

    After "unsure" another pair is drawn.
    """
    # Drawn again for each question, so that a resumed run asks the same as an uninterrupted one.
    while not view.neighbourhoods:
        found = next((pair for rows in choices if (pair := _far_pair(view, rng, rows)) is not None), None)
        if found is None:
            return
        yield question(*found)


def _far_pair(view: View, rng: np.random.Generator, rows: IntArray) -> tuple[int, int] | None:
    for start in rng.permutation(rows).tolist():
        farthest_first = rows[np.argsort(-distances_to(view.X, start)[rows], kind="stable")]
        for row in farthest_first.tolist():
            if view.is_open(row, start):
                return row, start
    return None


def why(view: View) -> str:
    """The reason shown with a question, for the current phase."""
    complete = view.n_clusters is not None and len(view.neighbourhoods) >= view.n_clusters
    return _WHERE if complete else _NEW


def least_certain(view: View, rows: IntArray) -> int:
    """The row whose largest similarity to the skeleton is smallest (Eq. 70). The first row wins ties."""
    return int(rows[view.to_placed()[rows].argmax()])


def nearest_members(view: View, row: int) -> list[int]:
    """The nearest row of each neighbourhood that a row may belong to, nearest first."""
    found = []
    point = dense_row(view.X, row)
    for neighbourhood in view.open_neighbourhoods(row):
        distances = squared_distances(view.X, neighbourhood.rows, point)[:, 0]
        # Ties go to the lower row, because the order of the rows depends on the order of the answers.
        nearest = min(zip(distances.tolist(), neighbourhood.rows.tolist(), strict=True))
        found.append(nearest)
    return [member for _, member in sorted(found)]
