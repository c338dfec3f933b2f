"""Measured figures: `python -m benchmarks` (or `make bench`) runs them all; see docs/benchmarks.md."""
