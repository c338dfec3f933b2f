"""Estimators for tests: a family as small as can be, with one of each role."""

from tests.conformance.toys._toy_alternative import ToyAlternative
from tests.conformance.toys._toy_medoids import ToyMedoids
from tests.conformance.toys._toy_scaling import ToyScaling

__all__ = ["ToyAlternative", "ToyMedoids", "ToyScaling"]
