"""The toy family, registered like the families of the package."""

from __future__ import annotations

import sys

import pytest

from clew import _families
from tests.conformance import toys as family


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setitem(sys.modules, "clew.toys", family)
    monkeypatch.setattr(_families, "FAMILIES", (*_families.FAMILIES, "toys"))
    return family
