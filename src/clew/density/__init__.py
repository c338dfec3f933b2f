"""Density-based methods: clusters are regions where rows are dense, and all other rows are noise."""

from clew.density._constrained_dbscan import ConstrainedDBSCAN
from clew.density._constrained_density import ConstrainedDensity

__all__ = ["ConstrainedDBSCAN", "ConstrainedDensity"]
