"""Agglomerative methods: trees of clusters in which every level satisfies the constraints."""

from clew.hierarchical._constrained_agglomerative import ConstrainedAgglomerative
from clew.hierarchical._space_level_agglomerative import SpaceLevelAgglomerative

__all__ = ["ConstrainedAgglomerative", "SpaceLevelAgglomerative"]
