"""Clustering over graphs: spectral clustering, label propagation, and agreement with signed weights of pairs."""

from clew.graph._constrained_spectral import ConstrainedSpectral
from clew.graph._correlation_clustering import CorrelationClustering
from clew.graph._graph_propagation import GraphPropagation

__all__ = ["ConstrainedSpectral", "CorrelationClustering", "GraphPropagation"]
