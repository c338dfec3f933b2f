"""Matching: finds many small groups of rows that describe the same thing, with a learned model of row pairs."""

from clew.matching._match_clustering import MatchClustering

__all__ = ["MatchClustering"]
