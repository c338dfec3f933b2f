"""The `seed` fixture and the Hypothesis profile; nothing else is global."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("clew", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("clew")


def pytest_addoption(parser):
    parser.addoption("--seeds", default="0", help="seeds of the `seed` fixture: 3, or 0-99 for a night run")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first, _, last = metafunc.config.getoption("--seeds").partition("-")
        metafunc.parametrize(
            "seed", [pytest.param(n, id=f"seed{n}") for n in range(int(first), int(last or first) + 1)]
        )
