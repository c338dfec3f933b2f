"""Tables, sizes and numbers as the terminal shows them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from clew._words import counted as counted

# Number of clusters that are listed; the rest is only counted.
MOST_CLUSTERS = 12
# Number of pairs that are named; the rest is only counted.
MOST_PAIRS = 5
BAR_WIDTH = 28


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object; NaN and infinity become null."""
    typer.echo(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def number(value: float) -> str:
    """Format a number with six significant digits."""
    return f"{value:.6g}"


def seconds(value: float) -> str:
    """Format a duration in seconds."""
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def sizes_table(names: Sequence[str], sizes: Sequence[int]) -> Table:
    """Return a table of cluster sizes with bars. If there are many clusters, only the largest are listed."""
    order = list(range(len(sizes)))
    if len(sizes) > MOST_CLUSTERS:
        order = sorted(order, key=lambda cluster: -sizes[cluster])[:MOST_CLUSTERS]
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    table.add_column("cluster")
    table.add_column("rows", justify="right")
    table.add_column("")
    for cluster in order:
        bar = "━" * max(1, round(BAR_WIDTH * sizes[cluster] / max(*sizes, 1))) if sizes[cluster] else ""
        table.add_row(Text(names[cluster]), f"{sizes[cluster]:,}", Text(bar, "cyan"))
    if len(order) < len(sizes):
        table.add_row("others", f"{sum(sizes) - sum(sizes[cluster] for cluster in order):,}", "")
    return table


def cluster_name(cluster: int, name: str | None) -> str:
    """Return the id of a cluster, with its name if it has one."""
    return f"{cluster} {name}" if name else str(cluster)


def pair_names(pairs: Sequence[Sequence[Any]]) -> str:
    """Name the first pairs and count the others."""
    named = ", ".join(f"{first}–{second}" for first, second in pairs[:MOST_PAIRS])
    more = len(pairs) - MOST_PAIRS
    return f"{named} and {more:,} more" if more > 0 else named


def facts(rows: Sequence[tuple[str, str | Text]]) -> Table:
    """Return a table of names and values, one per line."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value if isinstance(value, Text) else Text(value))
    return table


def console(*, stderr: bool = False) -> Console:
    """Return the console for results, or for messages if `stderr`."""
    return Console(stderr=stderr, highlight=False)
