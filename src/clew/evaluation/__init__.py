"""Scores: how well two partitions agree, and how many constraints a partition satisfies.

Every score takes `labels_true, labels_pred`: one label per row, of any hashable kind. Scores compare which rows are
together, never the label values. The number -1 in predicted labels is noise: the row is in no cluster, and counts like
a cluster of one row. In true labels, -1 is a class like any other.
"""

import warnings
from typing import Any

from clew.evaluation._evaluate import evaluate, same_partition
from clew.evaluation._information import normalized_mutual_info_score, variation_of_information
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
    "normalized_mutual_info_score",
    "pairwise_scores",
    "rand_score",
    "same_partition",
    "variation_of_information",
]


def __getattr__(name: str) -> Any:
    if name != "normalized_mutual_info":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "normalized_mutual_info is called normalized_mutual_info_score now; the old name is removed in version 0.2.",
        DeprecationWarning,
        stacklevel=2,
    )
    return normalized_mutual_info_score
