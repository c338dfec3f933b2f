"""Clusters as regions where rows are dense; rows outside are noise."""

from clew.density._constrained_dbscan import ConstrainedDBSCAN
from clew.density._constrained_density import ConstrainedDensity

__all__ = ["ConstrainedDBSCAN", "ConstrainedDensity"]
