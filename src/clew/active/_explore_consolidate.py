"""Find one row of every cluster by farthest-first traversal, then place random rows.

Basu, Banerjee and Mooney 2004 (`basu2004`), section 4, Figures 2 and 3.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.active._answers import Pair
from clew.active._min_max import first_neighbourhood, least_certain
from clew.active._strategy import Strategy
from clew.active._view import View


class ExploreConsolidate(Strategy):
    """Find every cluster by farthest-first traversal (Explore), then place random rows (Consolidate).

    Explore takes the row farthest from all neighbourhoods and asks where it belongs, until every cluster has a
    neighbourhood. Consolidate asks the same about random rows. A row is compared with a random member of each
    neighbourhood, nearest centre first. The last comparison is implied. If the number of clusters is unknown, the
    strategy explores only.

    Parameters
    ----------
    consolidate : bool, default=True
        If False, the strategy explores only.

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

    @classmethod
    def _examples(cls) -> list[ExploreConsolidate]:
        return [cls(), cls(consolidate=False)]

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Explore until every cluster is found, then consolidate."""
        yield from first_neighbourhood(view, rng, np.arange(view.n_rows))
        while view.neighbourhoods and (rows := view.unplaced()).size:
            is_complete = view.n_clusters is not None and len(view.neighbourhoods) >= view.n_clusters
            explores = not is_complete or not self.consolidate
            begun = half_placed(view, rows)
            row = int(begun[0]) if len(begun) else least_certain(view, rows) if explores else int(rng.choice(rows))
            why = "Is this a new group?" if explores else "Where does this row belong?"
            # Recomputed from the view for each question, so that a resumed run asks the same as an uninterrupted one.
            nearest = view.nearest_neighbourhoods(row)[0]
            # The order of the rows depends on the order of the answers. Sorted, the random draw does not depend on it.
            yield Pair(row, int(rng.choice(np.sort(nearest.rows))), why=why)


def half_placed(view: View, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Unplaced rows that a question has already named. Strategies finish these rows first."""
    return rows[view.named[rows]]
