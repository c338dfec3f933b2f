"""Explore core rows farthest first, and ask about the border rows of each.

Truong and Battiti 2013 (`truong2013`), Algorithm 19 (Active-Selecting-DBSCAN).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors

from clew._neighbours import nearest_neighbours
from clew._validation import NONE, check_parameters, integer, number
from clew.active._answers import Pair
from clew.active._distances import Nearest, distances_to, mean_row, squared_distances
from clew.active._strategy import Strategy
from clew.active._view import View
from clew.exceptions import ParameterError

IntArray = npt.NDArray[np.int64]

# Number of border rows asked for each core row. Algorithm 19 writes the same border row twice; two rows are meant.
_BORDERS_PER_CORE = 2


class DensityBorder(Strategy):
    """Compare core rows with each other, then each core row with its nearest border rows.

    The next core row is the one farthest from all selected core rows. It is compared with each of them, nearest first,
    and then with its two nearest border rows. Implied pairs are skipped. The number of clusters is not needed.

    Parameters
    ----------
    eps : float, optional
        Radius around a row, as in DBSCAN. Default: the median distance to the `min_samples`-th nearest row (a row
        itself is the first), so that half of the rows are core rows.
    min_samples : int, default=5
        A core row has at least this many rows within `eps`, itself included. Other rows within `eps` of a core row are
        border rows. Values above the number of rows count as the number of rows.

    Notes
    -----
    Departs from [1]: The two border rows are the nearest and the second nearest (the text names the nearest twice).
    Rows in a known neighbourhood count as selected, and one of them represents the neighbourhood in questions.

    References
    ----------
    .. [1] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms: from a priori scheme to
       interactive scheme and open issues." Algorithm 19.

    Examples
    --------
    >>> from clew.active import Questions
    >>> from clew.active._density_border import DensityBorder
    >>> X = [[0.0], [0.1], [0.2], [0.5], [5.0], [5.1], [5.2], [5.5]]
    >>> Questions(X, DensityBorder(eps=0.2, min_samples=3), random_state=0).ask().why
    'Does the group reach to here?'
    """

    def __init__(self, *, eps: float | None = None, min_samples: int = 5) -> None:
        self.eps, self.min_samples = eps, min_samples
        check_parameters(self, {"eps": number(0) | NONE, "min_samples": integer(1)})

    @classmethod
    def _examples(cls) -> list[DensityBorder]:
        return [cls(min_samples=3)]

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Finish the questions about selected core rows, then select the next core row."""
        if view.n_rows < 2:
            return
        dense: DenseRows = view.once(
            f"truong2013 Algorithm 19 eps={self.eps} min_samples={self.min_samples}",
            lambda: dense_rows(view.X, self.eps, self.min_samples),
        )
        if not len(dense.core):
            raise ParameterError(
                f"eps={self.eps} in DensityBorder: no row has min_samples={self.min_samples} rows within it. "
                "Raise eps or lower min_samples."
            )
        # Recomputed from the view for each question, so that a resumed run asks the same as an uninterrupted one.
        while (pair := _next_question(view, dense, rng)) is not None:
            yield pair


@dataclass(frozen=True)
class DenseRows:
    """Core rows, and the nearest border rows of each.

    Attributes
    ----------
    core : ndarray of ints
    border : ndarray of ints
    borders_of : dict
        Core row → its nearest border rows, nearest first.
    """

    core: IntArray
    border: IntArray
    borders_of: dict[int, list[int]]


def dense_rows(X: Any, eps: float | None, min_samples: int) -> DenseRows:
    """Find core and border rows as DBSCAN does, without listing all rows within `eps`."""
    n_rows = X.shape[0]
    n_others = min(min_samples, n_rows) - 1
    reach = nearest_neighbours(X, n_others)[0][:, -1] if n_others else np.zeros(n_rows)
    radius = float(np.median(reach)) if eps is None else eps
    is_core = (reach <= radius) & (min_samples <= n_rows or eps is None)
    core, rest = np.flatnonzero(is_core), np.flatnonzero(~is_core)
    if not core.size or not rest.size:
        return DenseRows(core, rest[:0], {})
    is_near = pairwise_distances_argmin_min(X[rest], X[core])[1] <= radius
    border = rest[is_near]
    if not border.size:
        return DenseRows(core, border, {})
    search = NearestNeighbors(n_neighbors=min(_BORDERS_PER_CORE, len(border))).fit(X[border])
    found = border[search.kneighbors(X[core], return_distance=False)]
    return DenseRows(core, border, dict(zip(core.tolist(), found.tolist(), strict=True)))


def _next_question(view: View, dense: DenseRows, rng: np.random.Generator) -> Pair | None:
    """The first open question about the selected core rows, in their order, else about the next core row."""
    selected = _selected(view, dense)
    for place, row in enumerate(selected):
        if (pair := _first_open(view, row, selected[:place], dense)) is not None:
            return pair
    is_explored = view.placed.copy()
    is_explored[selected] = True
    nearest = view.once("distance to explored rows", lambda: Nearest(view.n_rows)).distances(view.X, is_explored)
    free = dense.core[~is_explored[dense.core]]
    while free.size:
        row = int(free[nearest[free].argmax()]) if selected else int(rng.choice(free))
        if (pair := _first_open(view, row, selected, dense)) is not None:
            return pair
        selected.append(row)
        free = free[free != row]
        nearest = np.minimum(nearest, distances_to(view.X, row))
    return None


def _selected(view: View, dense: DenseRows) -> list[int]:
    """One row of each neighbourhood known without questions, then the core rows that questions named, in order."""
    is_core = np.zeros(view.n_rows, dtype=bool)
    is_core[dense.core] = True
    asked: list[int] = view.said[:, 1::-1].ravel().tolist()
    asked += [row for pair in sorted(view.pending) for row in pair]
    named = [row for row in dict.fromkeys(asked) if is_core[row]]
    components = {view.knowledge.component(row) for row in named}
    others = [one.member for one in view.neighbourhoods if view.knowledge.component(one.member) not in components]
    return others + named


def _first_open(view: View, row: int, earlier: list[int], dense: DenseRows) -> Pair | None:
    """The first open pair of a core row with earlier selected rows, else with its nearest border rows."""
    if not view.placed[row]:
        # Nearest first, because an early "same" implies the rest.
        is_open = np.zeros(view.n_rows, dtype=bool)
        is_open[view.knowledge.open_rows(row)] = True
        others = np.array([other for other in earlier if is_open[other]], dtype=np.int64)
        distances = squared_distances(view.X, others, mean_row(view.X, np.array([row]))[None, :])[:, 0]
        for other in others[np.argsort(distances, kind="stable")].tolist():
            if view.is_open(row, other):
                return Pair(row, other, why="Is this a new dense group?")
    for border in dense.borders_of.get(row, ()):
        if view.is_open(row, border):
            return Pair(row, border, why="Does the group reach to here?")
    return None
