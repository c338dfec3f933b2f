"""Graph and kernel methods: spectral clustering, kernel k-means, label propagation and correlation clustering."""

from clew.graph._constrained_spectral import ConstrainedSpectral
from clew.graph._correlation_clustering import CorrelationClustering
from clew.graph._graph_propagation import GraphPropagation
from clew.graph._semi_supervised_kernel_kmeans import SemiSupervisedKernelKMeans

__all__ = ["ConstrainedSpectral", "CorrelationClustering", "GraphPropagation", "SemiSupervisedKernelKMeans"]
