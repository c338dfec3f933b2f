"""Draw a dendrogram in which must-links and blocked merges stand out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scipy.cluster.hierarchy import dendrogram
from sklearn.utils.validation import check_is_fitted

from clew.audit import _plots
from clew.exceptions import DataError, ParameterError
from clew.hierarchical._family import AgglomerativeFamily

_DASHES = (0, (3, 2))


def plot_dendrogram(
    model: AgglomerativeFamily, *, names: Sequence[Any] | None = None, most_leaves: int = 60, ax: Any = None
) -> Any:
    """Draw the tree of a fitted agglomerative method.

    Must-links are green, at height 0. Merges that cannot-links block are red and dashed, above all others. A thin
    dashed line shows the level of `labels_`.

    Parameters
    ----------
    model : ConstrainedAgglomerative or SpaceLevelAgglomerative
        A fitted estimator, with two rows or more.
    names : sequence of length n_samples, optional
        A name for each row. Default: row numbers.
    most_leaves : int, default=60
        Larger trees show only the last merges. A leaf is then a cluster, with its number of rows in brackets.
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
    >>> from clew import ConstrainedAgglomerative
    >>> from clew.audit import plot_dendrogram
    >>> model = ConstrainedAgglomerative().fit([[0.0], [1.0], [5.0]], constraints={"cannot_link": [(0, 2)]})
    >>> [text.get_text() for text in plot_dendrogram(model).axes[0].get_legend().get_texts()]
    ['1 merge', '1 blocked by cannot-links', 'level of labels_']
    """
    check_is_fitted(model)
    n_rows = len(model.labels_)
    if n_rows < 2:
        raise DataError("The model was fitted to 1 row, which has no tree. Fit two rows or more.")
    if names is not None and len(names) != n_rows:
        raise ParameterError(f"names has {len(names)} entries, but the model was fitted to {n_rows} rows.")
    if most_leaves < 2:
        raise ParameterError(f"most_leaves={most_leaves!r} in plot_dendrogram: expected an integer >= 2.")
    kinds = {
        _plots.BEST: (n_rows - model.k_max_, "must-link"),
        _plots.FINE: (model.k_max_ - model.k_min_, "merge"),
        _plots.SUSPECT: (model.k_min_ - 1, "blocked by cannot-links"),
    }
    colors = [color for color, (count, _) in kinds.items() for _ in range(count)]
    axes = _plots.panels(1, 4.2)[0] if ax is None else ax
    dendrogram(
        model.linkage_,
        p=most_leaves,
        truncate_mode="lastp",
        link_color_func=lambda node: colors[node - n_rows],
        labels=None if names is None else [str(name) for name in names],
        leaf_font_size=8,
        ax=axes,
    )
    _plots.dash(axes, _plots.SUSPECT, _DASHES)
    entries = {
        f"{count} {word}{'s' if count > 1 and not word.startswith('blocked') else ''}": (
            color,
            _DASHES if color == _plots.SUSPECT else "-",
        )
        for color, (count, word) in kinds.items()
        if count
    }
    axes.axhline(_height_of_labels(model), color=_plots.FAINT, linewidth=0.8, linestyle=(0, (4, 3)))
    entries["level of labels_"] = (_plots.FAINT, (0, (4, 3)))
    _plots.legend(axes, entries)
    axes.set_ylim(-0.02 * axes.get_ylim()[1])  # keep must-links at height 0 visible
    axes.set_ylabel("distance", color=_plots.FAINT)
    return _plots.finish(axes, f"{type(model).__name__}: {len(model.cluster_labels_)} clusters")


def _height_of_labels(model: AgglomerativeFamily) -> float:
    """A height between the last merge that led to `labels_` and the next one."""
    n_made = len(model.labels_) - len(model.cluster_labels_)
    heights = model.linkage_[:, 2]
    below = heights[:n_made].max(initial=0.0)
    above = heights[n_made] if n_made < len(heights) else 1.1 * below
    return float(below + max(above - below, 0.0) / 2)
