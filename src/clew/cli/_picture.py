"""The before / after picture of the demo: two panels, the same rows, coloured by cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.exceptions import MissingExtraError

# Paul Tol's "muted" palette, which is safe for colour-blind readers.
COLOURS = (
    "#332288", "#CC6677", "#117733", "#DDCC77", "#88CCEE",
    "#882255", "#44AA99", "#999933", "#AA4499", "#777777",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
INK = "#22252b"
FAINT = "#6b7280"


@dataclass(frozen=True)
class Panel:
    """One clustering. Clusters have the numbers of their matching classes; `misplaced` marks rows of other classes."""

    title: str
    note: str
    clusters: NDArray[np.int64]
    misplaced: NDArray[np.bool_]
    must_link: NDArray[np.int64] | None = None
    cannot_link: NDArray[np.int64] | None = None


def project(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the first two principal components and the share of the variance they show."""
    centred = X - X.mean(axis=0)
    left, values, right = np.linalg.svd(centred, full_matrices=False)
    # The sign of a singular vector is arbitrary. Fixing it makes the picture the same on every machine.
    signs = np.sign(right[np.arange(2), np.abs(right[:2]).argmax(axis=1)])
    return left[:, :2] * values[:2] * signs, float((values[:2] ** 2).sum() / (values**2).sum())


def draw(path: Path, X: NDArray[np.float64], panels: Sequence[Panel], names: Sequence[str], title: str) -> None:
    """Save the panels side by side as a PNG.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise MissingExtraError("The picture needs matplotlib: pip install 'clew[plot]'.") from error
    points, shown = project(X)
    figure = Figure(
        figsize=(11, 5.4),
        dpi=150,
        facecolor="white",
        layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.06, wspace=0.02),
    )
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK)
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True)
    for axis, panel in zip(axes, panels, strict=True):
        _draw_panel(axis, points, panel)
    axes[0].set_ylabel("second component", fontsize=9, color=FAINT)
    for axis in axes:
        axis.set_xlabel(f"first component (the two show {shown:.0%} of the variance)", fontsize=9, color=FAINT)
    figure.legend(
        handles=_legend(names, panels),
        loc="outside lower left",
        ncols=min(len(names) + 3, 7),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handletextpad=0.5,
        columnspacing=1.8,
    )
    figure.savefig(path, format="png", metadata={"Software": None})


def _draw_panel(axis: Any, points: NDArray[np.float64], panel: Panel) -> None:
    from matplotlib.collections import LineCollection

    axis.set_title(panel.title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=22)
    axis.text(0, 1.025, panel.note, transform=axis.transAxes, fontsize=9.5, color=FAINT)
    axis.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    for spine in axis.spines.values():
        spine.set_color("#d5d8dd")
    for pairs, style in ((panel.cannot_link, (0, (4, 3))), (panel.must_link, "solid")):
        if pairs is not None and len(pairs):
            lines = LineCollection(
                list(points[pairs]), colors=INK, linewidths=0.7, linestyles=[style], alpha=0.4, zorder=1
            )
            axis.add_collection(lines)
    size, ring = (34, 1.0) if len(points) < 500 else (14, 0.6)
    for cluster in range(int(panel.clusters.max()) + 1):
        rows = panel.clusters == cluster
        axis.scatter(
            *points[rows].T,
            s=size,
            marker=MARKERS[cluster % len(MARKERS)],
            color=COLOURS[cluster % len(COLOURS)],
            edgecolors="white",
            linewidths=0.5,
            zorder=2,
        )
    wrong = panel.misplaced
    axis.scatter(*points[wrong].T, s=size * 3.4, facecolors="none", edgecolors=INK, linewidths=ring, zorder=3)


def _legend(names: Sequence[str], panels: Sequence[Panel]) -> list[Any]:
    from matplotlib.lines import Line2D

    handles: list[Any] = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=MARKERS[place % len(MARKERS)],
            color=COLOURS[place % len(COLOURS)],
            markeredgecolor="white",
            markersize=7,
            label=name,
        )
        for place, name in enumerate(names)
    ]
    ring: dict[str, Any] = {
        "marker": "o",
        "markerfacecolor": "none",
        "markeredgecolor": INK,
        "markersize": 10,
    }
    handles.append(Line2D([], [], linestyle="none", label="in the wrong cluster", **ring))
    if any(panel.must_link is not None for panel in panels):
        handles.append(Line2D([], [], color=INK, linewidth=0.8, alpha=0.7, label="answered: same"))
        handles.append(
            Line2D(
                [],
                [],
                color=INK,
                linewidth=0.8,
                alpha=0.7,
                linestyle=(0, (4, 3)),
                label="answered: different",
            )
        )
    return handles
