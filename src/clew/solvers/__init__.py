"""Shared solvers on arrays and graphs; they do not depend on constraints or estimators."""
