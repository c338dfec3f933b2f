"""Slow, obvious versions of clew's algorithms, and small inputs on which both must agree."""

from __future__ import annotations

import importlib.util
from itertools import combinations, product
from pathlib import Path

import clew.kernels


def every_graph(n):
    """All graphs on n vertices, each as a list of edges."""
    pairs = list(combinations(range(n), 2))
    for kept in product([False, True], repeat=len(pairs)):
        yield [pair for pair, keep in zip(pairs, kept, strict=True) if keep]


def graphs_up_to_renaming(n):
    """One graph of each shape on up to five vertices; degrees, and those of neighbours, tell the shapes apart."""
    shapes = {}
    for edges in every_graph(n):
        degree = [sum(vertex in edge for edge in edges) for vertex in range(n)]
        around = [
            (degree[vertex], sorted(degree[sum(edge) - vertex] for edge in edges if vertex in edge))
            for vertex in range(n)
        ]
        shapes.setdefault(str(sorted(around)), edges)
    assert len(shapes) == {1: 1, 2: 2, 3: 4, 4: 11, 5: 34}[n]
    return list(shapes.values())


def every_grouping(n, n_groups):
    """All ways to give n rows one of some groups or none (-1)."""
    return product(range(-1, n_groups), repeat=n)


def interpreted_kernel(name):
    """The source of a kernel run as plain Python, beside the compiled module of the same name."""
    path = Path(clew.kernels.__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"interpreted_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
