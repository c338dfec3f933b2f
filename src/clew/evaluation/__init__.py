"""Scores: how well two partitions agree, and how well one keeps what is known.

Every score takes `labels_true, labels_pred`: one label per row, of any hashable kind; only who is with whom
counts, never the label values. -1 in the predicted labels is a label like any other, so noise counts as one
cluster; `constraint_satisfaction` alone reads it as noise.
"""

from clew.evaluation._evaluate import evaluate, same_partition
from clew.evaluation._information import normalized_mutual_info, variation_of_information
from clew.evaluation._matching import matching_accuracy
from clew.evaluation._pairs import PairwiseScores, adjusted_rand_score, pairwise_scores, rand_score
from clew.evaluation._satisfaction import ConstraintSatisfaction, SatisfiedPairs, constraint_satisfaction

__all__ = [
    "ConstraintSatisfaction",
    "PairwiseScores",
    "SatisfiedPairs",
    "adjusted_rand_score",
    "constraint_satisfaction",
    "evaluate",
    "matching_accuracy",
    "normalized_mutual_info",
    "pairwise_scores",
    "rand_score",
    "same_partition",
    "variation_of_information",
]
