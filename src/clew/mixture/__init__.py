"""Gaussian mixtures under certain and uncertain constraints."""

from clew.mixture._constrained_gaussian_mixture import ConstrainedGaussianMixture
from clew.mixture._penalized_gaussian_mixture import PenalizedGaussianMixture
from clew.mixture._soft_group_mixture import SoftGroupMixture

__all__ = ["ConstrainedGaussianMixture", "PenalizedGaussianMixture", "SoftGroupMixture"]
