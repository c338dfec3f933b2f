"""Exact helpers that methods share; they know arrays and graphs, not constraints or estimators."""
