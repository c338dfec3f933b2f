"""The `seed` fixture, the Hypothesis profile, and the PostgreSQL server; nothing else is global."""

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


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server; skips where there is none, unless CLEW_REQUIRE_POSTGRESQL says that there must be."""
    try:
        from tests.postgresql import NoServerError, Server
    except ImportError as error:
        _without_postgresql(f"{error.name} is not installed")
    try:
        server = Server()
    except NoServerError as error:
        _without_postgresql(str(error))
    yield server
    server.stop()


def _without_postgresql(reason):
    if os.environ.get("CLEW_REQUIRE_POSTGRESQL") == "1":
        pytest.fail(f"{reason}, and CLEW_REQUIRE_POSTGRESQL=1.", pytrace=False)
    pytest.skip(f"{reason}: the PostgreSQL half of the session tests does not run.")


@pytest.fixture
def postgresql_url(postgresql):
    """The address of an empty database."""
    database = postgresql.new_database()
    yield postgresql.url(database)
    postgresql.drop(database)
