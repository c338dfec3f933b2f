"""Find one row of every cluster by farthest-first traversal, then place random rows.

Basu, Banerjee and Mooney 2004 (`basu2004`), section 4, Figures 2 and 3.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.active._answers import SAME, Pair
from clew.active._view import View, squared_distances


class ExploreConsolidate:
    """Explore, then consolidate.

    Explore takes the row farthest from all neighbourhoods and asks where it belongs, until there is a neighbourhood for
    every cluster; Consolidate does so for random rows. Neighbourhoods are tried nearest first, and the last one is
    implied. Where the number of clusters is unknown, it explores only.

    Parameters
    ----------
    consolidate : bool, default=True
        False explores only.

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney (2004). "Active semi-supervision for pairwise constrained clustering."
       SDM. Figures 2 and 3.

    Examples
    --------
    >>> from clew.active import ExploreConsolidate, Questions
    >>> Questions([[0.0], [5.0], [9.0]], ExploreConsolidate(), n_clusters=2, random_state=0).ask().why
    'Is this a new group?'
    """

    def __init__(self, *, consolidate: bool = True) -> None:
        self.consolidate = consolidate

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Explore until every cluster is found, then consolidate."""
        yield from explore(view, rng, until_complete=self.consolidate)
        while self.consolidate and view.neighbourhoods and (rows := view.unplaced()).size:
            begun = half_placed(view, rows)
            yield from place(view, int(begun[0] if len(begun) else rng.choice(rows)), "Where does this row belong?")


def explore(view: View, rng: np.random.Generator, *, until_complete: bool = True) -> Generator[Pair, Any, None]:
    """Farthest-first traversal; with k known and `until_complete` it ends when k neighbourhoods are found."""
    for start in rng.permutation(view.n_rows):
        if view.neighbourhoods:
            break
        yield from _first_pair(view, int(start))
    while view.neighbourhoods and (rows := view.unplaced()).size:
        if until_complete and view.n_clusters is not None and len(view.neighbourhoods) >= view.n_clusters:
            return
        begun = half_placed(view, rows)
        row = begun[0] if len(begun) else rows[view.to_placed()[rows].argmax()]
        yield from place(view, int(row), "Is this a new group?")


def half_placed(view: View, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Those of some unplaced rows that a question has named already: after a restart they come first."""
    return rows[view.named[rows]]


def _first_pair(view: View, start: int) -> Generator[Pair, Any, None]:
    """A row and the one farthest from it; "unsure" moves on to the next farthest."""
    point = view.X[[start]]
    point = np.asarray(point.toarray() if sparse.issparse(point) else point, dtype=np.float64)
    for row in np.argsort(-squared_distances(view.X, None, point)[:, 0], kind="stable").tolist():
        if view.is_open(row, start):
            yield Pair(row, start, why="Is this a new group?")
            if view.neighbourhoods:
                return


def place(view: View, row: int, why: str) -> Generator[Pair, Any, None]:
    """Ask about a row and each neighbourhood it may belong to, nearest first, until one is the same."""
    for neighbourhood in view.nearest_neighbourhoods(row):
        if (yield Pair(row, neighbourhood.member, why=why)) is SAME:
            return
