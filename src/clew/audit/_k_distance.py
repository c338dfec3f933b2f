"""Plot distances to the k-th nearest row, to choose the radius of density methods.

Ester et al. 1996 (`ester1996`), section 4.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew._validation import check_parameters
from clew.audit import _plots
from clew.density import ConstrainedDBSCAN
from clew.density._k_distance import k_distances


def plot_k_distance(
    X: Any, min_samples: int = 5, *, metric: str = "euclidean", eps: Any = "auto", ax: Any = None
) -> Any:
    """Draw the distance of each row to its `min_samples`-th nearest row, largest first.

    Rows below the chosen `eps` are core rows of `ConstrainedDBSCAN`; rows above it are border rows or noise. A good
    radius is where the curve turns from steep (outliers) to flat (rows inside clusters).

    Parameters
    ----------
    X : array-like or sparse matrix; with ``metric="precomputed"``, distances or a neighbour graph
    min_samples : int, default=5
        As in `ConstrainedDBSCAN`. A row counts as its own first neighbour.
    metric : {"euclidean", "manhattan", "cosine", "precomputed"}, default="euclidean"
    eps : float or "auto", default="auto"
        The radius to mark. "auto" is the automatic radius of `ConstrainedDBSCAN`.
    ax : matplotlib axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib figure

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.

    Examples
    --------
    >>> from clew.audit import plot_k_distance
    >>> figure = plot_k_distance([[0.0], [1.0], [2.0], [9.0]], min_samples=2)
    >>> figure.axes[0].get_ylabel()
    'distance to the 2nd nearest row, itself included'
    """
    model = ConstrainedDBSCAN(eps, min_samples=min_samples, metric=metric)
    check_parameters(model, model._parameters)
    rows = model._check_input(X, reset=True)
    radius = model._chosen_eps(rows)
    distances = np.sort(k_distances(rows, [min_samples], metric)[:, 0])[::-1]
    n_core = int((distances <= radius).sum())
    return _plots.curve(
        np.arange(1, len(distances) + 1),
        np.where(np.isfinite(distances), distances, np.nan),
        level=radius,
        note=f"eps = {radius:.3g}: {n_core:,} of {len(distances):,} rows are core rows",
        xlabel="rows, least dense first",
        ylabel=f"distance to the {_ordinal(min_samples)} nearest row, itself included",
        title="Choosing eps",
        ax=ax,
    )


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
