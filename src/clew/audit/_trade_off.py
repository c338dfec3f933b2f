"""The trade-off between the quality of alternative clusterings and their difference from the given clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._validation import check_given, check_matrix
from clew.alternative import CondEns, CoordinatedConditionalIB
from clew.alternative._cond_ens import inertia
from clew.audit._plots import BEST, FAINT, SUSPECT, finish, lines
from clew.evaluation import normalized_mutual_info_score, variation_of_information
from clew.exceptions import DataError

_LEVELS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_GIVEN, _ENSEMBLE, _INFORMATION = "given", "CondEns", "CoordinatedConditionalIB"


@dataclass(frozen=True)
class TradeOff:
    """Quality and novelty of alternative clusterings; the result of `alternative_trade_off`.

    Attributes
    ----------
    methods : tuple of str
        Origin of each clustering: the given clusters, `CondEns`, then `CoordinatedConditionalIB` by coordination.
    coordination : ndarray
        The coordination of each clustering, NaN if it has none.
    quality : ndarray
        Share of the variance of X between the clusters, from 0 to 1: one minus L(X, C) divided by its value for one
        cluster.
    variation_of_information, normalized_mutual_info : ndarray
        Difference from, and similarity to, the given clusters.
    labels : ndarray of shape (n_clusterings, n_samples)
    """

    methods: tuple[str, ...]
    coordination: npt.NDArray[np.float64]
    quality: npt.NDArray[np.float64]
    variation_of_information: npt.NDArray[np.float64]
    normalized_mutual_info: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]

    def table(self) -> list[dict[str, Any]]:
        """One dict per clustering."""
        return [
            {
                "method": method,
                "coordination": None if np.isnan(self.coordination[place]) else float(self.coordination[place]),
                "quality": float(self.quality[place]),
                "variation_of_information": float(self.variation_of_information[place]),
                "normalized_mutual_info": float(self.normalized_mutual_info[place]),
            }
            for place, method in enumerate(self.methods)
        ]

    @property
    def message(self) -> str:
        """A sentence about the alternative that differs most from the given clusters."""
        place = 1 + int(np.argmin(self.normalized_mutual_info[1:]))
        level = "" if np.isnan(self.coordination[place]) else f" with coordination {self.coordination[place]:g}"
        return (
            f"{self.methods[place]}{level} differs most from the given clusters: normalised mutual information "
            f"{self.normalized_mutual_info[place]:.2f}, with {self.quality[place]:.0%} of the variance between its "
            f"clusters. The given clusters have {self.quality[0]:.0%}."
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw quality over similarity to the given clusters and return the matplotlib figure."""
        curve = np.flatnonzero([method == _INFORMATION for method in self.methods])
        order = curve[np.argsort(self.coordination[curve])]
        likeness = self.normalized_mutual_info
        figure = lines(
            likeness[order], {_INFORMATION: self.quality[order]},
            xlabel="normalised mutual information to the given clusters (0: nothing in common)",
            ylabel="share of variance between clusters", title="Alternatives: good against new", ax=ax,
        )  # fmt: skip
        axes = figure.axes[0] if ax is None else ax
        levels: dict[tuple[float, float], list[str]] = {}
        for place in order:  # equal results share one note
            point = round(float(likeness[place]), 2), round(float(self.quality[place]), 2)
            levels.setdefault(point, []).append(f"{self.coordination[place]:g}")
        for point, names in levels.items():
            axes.annotate(", ".join(names), point, xytext=(7, -3), textcoords="offset points", fontsize=8, color=FAINT)
        for name, colour, marker in ((_GIVEN, SUSPECT, "s"), (_ENSEMBLE, BEST, "D")):
            place = self.methods.index(name)
            axes.plot(likeness[place], self.quality[place], marker, color=colour, label=name, markersize=7)
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(0, 1)
        axes.legend(frameon=False, fontsize=9, title="numbers: coordination", title_fontsize=8)
        return finish(axes, "Alternatives: good against new")


def alternative_trade_off(
    X: Any,
    given: Any,
    n_clusters: int,
    *,
    coordination: Sequence[float] = _LEVELS,
    n_bins: int | None = 10,
    random_state: Any = 0,
) -> TradeOff:
    """Compare alternatives to given clusters: how good each is, and how different.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    given : array-like of shape (n_samples,)
        The known clusters, two or more; -1 is noise.
    n_clusters : int
        Number of clusters of the alternatives.
    coordination : sequence of float from 0 to 1
        The values of `coordination` to try in `CoordinatedConditionalIB`.
    n_bins : int or None, default=10
        As in `CoordinatedConditionalIB`; None if X holds counts.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from clew.audit import alternative_trade_off
    >>> rng = np.random.default_rng(0)
    >>> left, low = np.repeat([0, 0, 1, 1], 10), np.repeat([0, 1, 0, 1], 10)
    >>> X = np.column_stack([9 * left, 6 * low]) + rng.normal(size=(40, 2))
    >>> found = alternative_trade_off(X, left, 2, coordination=[0.2, 1.0])
    >>> [(row["method"], round(row["normalized_mutual_info"], 2)) for row in found.table()[:2]]
    [('given', 1.0), ('CondEns', 0.0)]
    """
    rows = check_matrix(X)
    known = check_given(given, rows.shape[0])
    spread = inertia(rows, np.zeros(rows.shape[0], dtype=np.int64))
    if not spread:
        raise DataError("All rows of X are equal, so no clustering is better than another. Add columns.")
    models: list[tuple[str, float, Any]] = [(_ENSEMBLE, np.nan, CondEns(n_clusters, random_state=random_state))]
    for level in coordination:
        model = CoordinatedConditionalIB(n_clusters, coordination=level, n_bins=n_bins, random_state=random_state)
        models.append((_INFORMATION, float(level), model))
    labels = [known, *(model.fit(rows, given=known).labels_ for _, _, model in models)]
    inside = known >= 0
    return TradeOff(
        (_GIVEN, *(name for name, _, _ in models)),
        np.array([np.nan, *(level for _, level, _ in models)]),
        np.array([1 - inertia(rows, one) / spread for one in labels]),
        np.array([variation_of_information(known[inside], one[inside]) for one in labels]),
        np.array([normalized_mutual_info_score(known[inside], one[inside]) for one in labels]),
        np.array(labels),
    )
