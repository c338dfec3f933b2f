"""Agglomerative methods: trees of clusters, each level of which satisfies the constraints."""

from clew.hierarchical._constrained_agglomerative import ConstrainedAgglomerative
from clew.hierarchical._space_level_agglomerative import SpaceLevelAgglomerative

__all__ = ["ConstrainedAgglomerative", "SpaceLevelAgglomerative"]
