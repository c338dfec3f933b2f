"""Plots of the audits. Matplotlib is loaded on first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clew.exceptions import MissingExtraError

# Colours that can be distinguished with any colour vision; suspects have the warm one.
FINE, SUSPECT, BEST, FAINT = "#88a3b8", "#c1443c", "#117733", "#6b7280"
_LINES = ("#332288", "#117733", "#c1443c", "#999933", "#88a3b8", "#882255")


def panels(n_panels: int, height: float) -> Any:
    """Make a new figure with axes one below the other."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("The plot needs matplotlib: pip install 'clew[plot]'.") from error
    figure = Figure(figsize=(8, height), dpi=120, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure.subplots(n_panels, squeeze=False).ravel()


def _axes(ax: Any, height: float) -> Any:
    return panels(1, height)[0] if ax is None else ax


def finish(axes: Any, title: str) -> Any:
    """Add the title, remove the frame, and return the figure."""
    axes.set_title(title, loc="left", fontsize=11)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes.figure


def bars(
    names: Sequence[str],
    values: Sequence[float],
    marked: Sequence[bool],
    *,
    xlabel: str,
    title: str,
    colour: str = SUSPECT,
    limit: float | None = None,
    ax: Any = None,
) -> Any:
    """Draw horizontal bars, the first on top. Marked bars stand out, and a dashed line shows the limit."""
    axes = _axes(ax, 1.2 + 0.24 * max(len(names), 4))
    places = range(len(names))
    axes.barh(places, values, color=[colour if mark else FINE for mark in marked], height=0.7)
    axes.set_yticks(places, names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)  # the first on top
    axes.set_xlabel(xlabel, color=FAINT)
    if limit is not None:
        axes.axvline(limit, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)))
    return finish(axes, title)


def lines(x: Any, curves: Mapping[str, Any], *, xlabel: str, ylabel: str, title: str, ax: Any = None) -> Any:
    """Draw curves over a common axis, with a legend if there are several."""
    axes = _axes(ax, 4.2)
    for place, (name, values) in enumerate(curves.items()):
        axes.plot(x, values, color=_LINES[place % len(_LINES)], linewidth=1.4, label=name, marker=".", markersize=3)
    axes.set_xlabel(xlabel, color=FAINT)
    axes.set_ylabel(ylabel, color=FAINT)
    if len(curves) > 1:
        axes.legend(frameon=False, fontsize=9)
    return finish(axes, title)


def curve(x: Any, y: Any, *, level: float, note: str, xlabel: str, ylabel: str, title: str, ax: Any = None) -> Any:
    """Draw a curve on an axis that starts at 0, and a dashed line with a note at one level."""
    axes = _axes(ax, 4)
    axes.plot(x, y, color=FINE, linewidth=2)
    axes.axhline(level, color=SUSPECT, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        note, (1, level), xycoords=axes.get_yaxis_transform(), xytext=(-4, 4), textcoords="offset points",
        ha="right", va="bottom", color=SUSPECT, fontsize=9,
    )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_xlabel(xlabel, color=FAINT)
    axes.set_ylabel(ylabel, color=FAINT)
    return finish(axes, title)


def dash(axes: Any, color: str, dashes: Any) -> None:
    """Dash the lines of one colour."""
    from matplotlib.colors import to_rgba

    for lines in axes.collections:
        if to_rgba(lines.get_color()[0]) == to_rgba(color):
            lines.set_linestyle(dashes)


def legend(axes: Any, entries: Mapping[str, tuple[str, Any]]) -> None:
    """Draw a legend of lines above the axes, with the colour and style of each name."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=color, linestyle=style) for color, style in entries.values()]
    axes.legend(
        lines, list(entries), loc="lower right", bbox_to_anchor=(1, 1), ncols=len(entries), columnspacing=1,
        handlelength=1.5, frameon=False, fontsize=8,
    )  # fmt: skip
