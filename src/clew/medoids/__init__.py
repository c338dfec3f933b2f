"""Clusters around medoids: rows of the data that represent their clusters, for any dissimilarity."""

from clew.medoids._constrained_kmedoids import ConstrainedKMedoids

__all__ = ["ConstrainedKMedoids"]
