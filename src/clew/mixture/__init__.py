"""Mixture models with certain or uncertain constraints: mixtures of Gaussians and of word distributions."""

from clew.mixture._constrained_gaussian_mixture import ConstrainedGaussianMixture
from clew.mixture._feedback_naive_bayes import FeedbackNaiveBayes
from clew.mixture._penalized_gaussian_mixture import PenalizedGaussianMixture
from clew.mixture._soft_group_mixture import SoftGroupMixture

__all__ = ["ConstrainedGaussianMixture", "FeedbackNaiveBayes", "PenalizedGaussianMixture", "SoftGroupMixture"]
