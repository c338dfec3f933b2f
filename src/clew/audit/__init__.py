"""Audit answers: find wrong ones, and estimate the number of clusters and the best distance."""

from clew.audit._advice import (
    MetricAdvice,
    SetRanking,
    advise_metric,
    metric_fitness,
    rank_constraint_sets,
)
from clew.audit._dendrogram import plot_dendrogram
from clew.audit._impact import Impact, filter_by_impact, impact
from clew.audit._k_distance import plot_k_distance
from clew.audit._measures import Difficulty, Propagation, coherence, difficulty, informativeness, propagation
from clew.audit._methods import MethodAdvice, Suitability, TableFacts, advise_methods
from clew.audit._naive import NaiveImpact, optimistic, pessimistic
from clew.audit._number import ClusterNumberAdvice, advise_n_clusters
from clew.audit._review import Doubt, Review, review
from clew.audit._trade_off import TradeOff, alternative_trade_off

__all__ = [
    "ClusterNumberAdvice",
    "Difficulty",
    "Doubt",
    "Impact",
    "MethodAdvice",
    "MetricAdvice",
    "NaiveImpact",
    "Propagation",
    "Review",
    "SetRanking",
    "Suitability",
    "TableFacts",
    "TradeOff",
    "advise_methods",
    "advise_metric",
    "advise_n_clusters",
    "alternative_trade_off",
    "coherence",
    "difficulty",
    "filter_by_impact",
    "impact",
    "informativeness",
    "metric_fitness",
    "optimistic",
    "pessimistic",
    "plot_dendrogram",
    "plot_k_distance",
    "propagation",
    "rank_constraint_sets",
    "review",
]
