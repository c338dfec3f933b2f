"""The `seed` fixture, which tests run, the Hypothesis profile, and the PostgreSQL server; nothing else is global.

Two marks keep `make test` short. A `slow` test runs with `--thorough` only. Of a `sampled(n)` test every n-th case runs
without `--thorough`. Where n has no divisor in common with the number of scenarios, every law meets every estimator and
every scenario in turn. The other cases of a `sampled(n, rest="slow")` test are slow tests, which CI runs. The other
cases of larger grids run before a release.
"""

from __future__ import annotations

import os
from collections import Counter

# One thread per process, before numpy is loaded: several processes of tests share the cores already, and the servers
# and commands that tests start inherit this. Twice the threads took a third more processor time.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import pytest
from hypothesis import settings

settings.register_profile("clew", deadline=None, derandomize="CI" in os.environ, max_examples=40)
settings.register_profile("thorough", parent=settings.get_profile("clew"), max_examples=100)
settings.load_profile("clew")


def pytest_addoption(parser):
    parser.addoption("--seeds", default="0", help="seeds of the `seed` fixture: 3, or 0-99 for a night run")
    parser.addoption("--thorough", action="store_true", help="slow tests, every case of sampled ones, more examples")


def pytest_configure(config):
    if config.getoption("--thorough"):
        settings.load_profile("thorough")


@pytest.hookimpl(tryfirst=True)  # before -m selects by the marks
def pytest_collection_modifyitems(config, items):
    left_out = list(_left_out(items))
    if config.getoption("--thorough"):
        return
    config.hook.pytest_deselected(items=left_out)
    left_out = set(left_out)
    items[:] = [item for item in items if item not in left_out]


def _left_out(items):
    """The cases that `make test` leaves out; those outside a sample are marked slow where the sample says so."""
    places = Counter()
    for item in items:
        if (sampled := item.get_closest_marker("sampled")) is not None:
            test = item.nodeid.partition("[")[0]
            places[test] += 1
            if places[test] % sampled.args[0] != 1:
                if sampled.kwargs.get("rest") == "slow":
                    item.add_marker(pytest.mark.slow)
                yield item
                continue
        if item.get_closest_marker("slow") is not None:
            yield item


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
