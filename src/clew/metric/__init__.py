"""Metric learners map rows to a space in which Euclidean distances agree with the constraints."""

from clew.metric._boost_cluster import BoostCluster
from clew.metric._dist_boost import DistBoost
from clew.metric._geometry_preserving_learner import GeometryPreservingLearner
from clew.metric._mahalanobis_learner import MahalanobisLearner

__all__ = ["BoostCluster", "DistBoost", "GeometryPreservingLearner", "MahalanobisLearner"]
