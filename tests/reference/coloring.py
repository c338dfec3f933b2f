"""Colouring by trying every colour for every vertex."""

from __future__ import annotations

from tests.reference.closure import partners


def can_color(vertices, edges, n_colors, fixed=None):
    """Whether the part of a graph among `vertices` has a colouring; `fixed` holds a colour per vertex, -1 for open."""
    return _can_extend({}, list(vertices), edges, n_colors, fixed)


def _can_extend(colors, vertices, edges, n_colors, fixed):
    if not vertices:
        return True
    vertex, *rest = vertices
    allowed = range(n_colors) if fixed is None or fixed[vertex] < 0 else [fixed[vertex]]
    taken = {colors.get(other) for other in partners(vertex, edges)}
    return any(
        _can_extend({**colors, vertex: color}, rest, edges, n_colors, fixed) for color in allowed if color not in taken
    )


def is_coloring(colors, edges, n_colors, fixed=None):
    return (
        all(0 <= color < n_colors for color in colors)
        and all(colors[a] != colors[b] for a, b in edges)
        and (fixed is None or all(want in (-1, color) for want, color in zip(fixed, colors, strict=True)))
    )


def agreeing(colors, edges):
    """Vertices that have the colour of a neighbour."""
    return {vertex for edge in edges if colors[edge[0]] == colors[edge[1]] for vertex in edge}
