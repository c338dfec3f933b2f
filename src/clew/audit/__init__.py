"""Doubt: which answers look wrong, and what they say about the number of clusters and the distance."""

from clew.audit._advice import (
    ClusterNumberAdvice,
    MetricAdvice,
    SetRanking,
    advise_metric,
    advise_n_clusters,
    metric_fitness,
    rank_constraint_sets,
)
from clew.audit._impact import Impact, impact
from clew.audit._measures import Difficulty, Propagation, coherence, difficulty, informativeness, propagation
from clew.audit._naive import NaiveImpact, optimistic, pessimistic
from clew.audit._review import Doubt, Review, review

__all__ = [
    "ClusterNumberAdvice",
    "Difficulty",
    "Doubt",
    "Impact",
    "MetricAdvice",
    "NaiveImpact",
    "Propagation",
    "Review",
    "SetRanking",
    "advise_metric",
    "advise_n_clusters",
    "coherence",
    "difficulty",
    "impact",
    "informativeness",
    "metric_fitness",
    "optimistic",
    "pessimistic",
    "propagation",
    "rank_constraint_sets",
    "review",
]
