"""Matching: many small groups of rows that are the same thing, found by a learned model of pairs."""

from clew.matching._match_clustering import MatchClustering

__all__ = ["MatchClustering"]
