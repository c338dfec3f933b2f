"""Relatives of k-means."""

from clew.partitional._balanced_kmeans import BalancedKMeans
from clew.partitional._constrained_kmeans import ConstrainedKMeans
from clew.partitional._cop_kmeans import COPKMeans
from clew.partitional._cvqe import CVQE
from clew.partitional._hmrf_kmeans import HMRFKMeans
from clew.partitional._ig_kmeans import IGKMeans
from clew.partitional._lcvqe import LCVQE
from clew.partitional._mpck_means import MPCKMeans
from clew.partitional._pck_means import PCKMeans
from clew.partitional._sampled_balanced_kmeans import SampledBalancedKMeans
from clew.partitional._seeded_kmeans import SeededKMeans

__all__ = [
    "CVQE",
    "LCVQE",
    "BalancedKMeans",
    "COPKMeans",
    "ConstrainedKMeans",
    "HMRFKMeans",
    "IGKMeans",
    "MPCKMeans",
    "PCKMeans",
    "SampledBalancedKMeans",
    "SeededKMeans",
]
