"""Clusters that spread over a graph of neighbours."""

from clew.graph._graph_propagation import GraphPropagation

__all__ = ["GraphPropagation"]
