"""Clustering over graphs: label propagation, and agreement with signed weights of pairs."""

from clew.graph._correlation_clustering import CorrelationClustering
from clew.graph._graph_propagation import GraphPropagation

__all__ = ["CorrelationClustering", "GraphPropagation"]
