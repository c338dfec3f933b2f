"""Min-max among the rows of dense regions, by pairs or by "which of these?".

Vu, Labroche and Bouchon-Meunier 2010 (`vu2010`); Truong and Battiti 2013 (`truong2013`), Eq. 71.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._neighbours import local_density
from clew.active._answers import SAME, Pair, Which
from clew.active._min_max import first_neighbourhood, least_certain, nearest_members, why
from clew.active._strategy import Strategy
from clew.active._view import View
from clew.exceptions import ParameterError


class DenseMinMax(Strategy):
    r"""Min-max in dense regions: ask about the dense row that is farthest from all placed rows.

    Centres of clusters tend to lie in dense regions. Outliers, which `MinMax` asks about first, do not. When every row
    of a dense region is placed, the other rows follow.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours of a row, at most all other rows.
    threshold : float, optional
        A row is in a dense region if its local density score is above this value. Default: the median score, so that
        about half of the rows are dense.
    ask : {"pairs", "label"}, default="pairs"
        "pairs" compares the row with one neighbourhood at a time. "label" asks which neighbourhood it belongs to.

    Notes
    -----
    The density of row u is the local density score of [1]: the mean number of neighbours that u shares with a neighbour
    in NN(u),

    .. math:: LDS(u) = \frac{1}{k} \sum_{v \in NN(u)} \lvert NN(u) \cap NN(v) \rvert

    If fewer than two rows are above the threshold, all rows count as dense.

    References
    ----------
    .. [1] V.-V. Vu, N. Labroche, B. Bouchon-Meunier (2010). "Active learning for semi-supervised k-means clustering."
       ICTAI.
    .. [2] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms: from a priori scheme to
       interactive scheme and open issues." Eq. (71).

    Examples
    --------
    >>> from clew.active import DenseMinMax, Questions
    >>> strategy = DenseMinMax(n_neighbors=2, ask="label")
    >>> X = [[0.0], [1.0], [5.0], [8.0], [9.0]]
    >>> Questions(X, strategy, n_clusters=2, constraints=[0, -1, -1, 1, -1], random_state=0).ask()
    Which(row=4, candidates=(3, 0), why='Where does this row belong? It is least like any row placed so far.')
    """

    def __init__(self, *, n_neighbors: int = 10, threshold: float | None = None, ask: str = "pairs") -> None:
        if not isinstance(n_neighbors, int | np.integer) or isinstance(n_neighbors, bool) or n_neighbors < 1:
            raise ParameterError(f"n_neighbors={n_neighbors!r} in DenseMinMax: expected an integer >= 1.")
        if threshold is not None and (not isinstance(threshold, int | float | np.number) or not threshold >= 0):
            raise ParameterError(f"threshold={threshold!r} in DenseMinMax: expected a number >= 0, or None.")
        if ask not in ("pairs", "label"):
            raise ParameterError(f'ask={ask!r} in DenseMinMax: expected "pairs" or "label".')
        self.n_neighbors, self.threshold, self.ask = n_neighbors, threshold, ask

    @classmethod
    def _examples(cls) -> list[DenseMinMax]:
        return [cls(n_neighbors=4), cls(n_neighbors=4, ask="label")]

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair | Which, Any, None]:
        """Explore and consolidate in dense regions, then elsewhere."""
        dense = self._dense(view)
        everyone = np.arange(view.n_rows)
        yield from first_neighbourhood(view, rng, everyone[dense], everyone, question=self._first_question)
        while view.neighbourhoods and (rows := view.unplaced()).size:
            row = least_certain(view, rows[dense[rows]] if dense[rows].any() else rows)
            members = nearest_members(view, row)
            if self.ask == "label":
                yield Which(row, tuple(members), why=why(view))
                continue
            for member in members:
                if (yield Pair(row, member, why=why(view))) is SAME:
                    break

    def _first_question(self, row: int, start: int) -> Pair | Which:
        why = "Is this a new group?"
        return Pair(row, start, why=why) if self.ask == "pairs" else Which(row, (start,), why=why)

    def _dense(self, view: View) -> npt.NDArray[np.bool_]:
        key = f"local density, {self.n_neighbors} neighbours"
        density = view.once(key, lambda: local_density(view.X, self.n_neighbors))
        threshold = np.median(density) if self.threshold is None else self.threshold
        dense: npt.NDArray[np.bool_] = density > threshold
        return dense if dense.sum() > 1 else np.ones(view.n_rows, dtype=bool)
