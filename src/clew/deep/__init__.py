"""Deep clustering: a network maps rows to a space in which clusters and constraints agree. Needs the extra `deep`."""

from clew.deep._deep_constrained_clustering import DeepConstrainedClustering

__all__ = ["DeepConstrainedClustering"]
