"""Doubt: which answers look wrong, and what they say about the number of clusters and the distance."""

from clew.audit._impact import Impact, impact

__all__ = ["Impact", "impact"]
