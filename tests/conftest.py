"""The `seed` fixture, which tests run, the Hypothesis profile, and the PostgreSQL server; nothing else is global.

Two marks keep `make test` short. A `slow` test runs with `--thorough` only. Without `--thorough`, every n-th case of a
`sampled(n)` test runs, and the sample of each test begins at a case of its own. Where n has no divisor in common with
the number of scenarios, every law meets every estimator and every scenario in turn. Every m-th of the other cases of a
`sampled(n, slow=m)` test is a slow test, which CI runs; with `slow=1`, all of them are. The remaining cases of the
largest grids run before a release.
"""

from __future__ import annotations

import gc
import os
import zlib
from collections import defaultdict

# One thread per process, before numpy is loaded: several processes of tests share the cores already, and the servers
# and commands that tests start inherit this. Twice the threads took a third more processor time.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import pytest
from hypothesis import settings

settings.register_profile("clew", deadline=None, derandomize="CI" in os.environ, max_examples=20)
settings.register_profile("thorough", parent=settings.get_profile("clew"), max_examples=100)
settings.load_profile("clew")


def pytest_addoption(parser):
    parser.addoption("--seeds", default="0", help="seeds of the `seed` fixture: 3, or 0-99 for a night run")
    parser.addoption("--thorough", action="store_true", help="slow tests, every case of sampled ones, more examples")


def pytest_configure(config):
    if config.getoption("--thorough"):
        settings.load_profile("thorough")


# Collection makes millions of objects that live until the end. Searching them for garbage again and again took a fifth
# of its time.
@pytest.hookimpl(wrapper=True)
def pytest_collection():
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m selects by the marks
def pytest_collection_modifyitems(config, items):
    if config.getoption("--thorough"):
        _mark_slow_cases(items)
        return
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    config.hook.pytest_deselected(items=slow)
    left_out = set(slow)
    items[:] = [item for item in items if item not in left_out]


def _mark_slow_cases(items):
    """Mark the cases outside a sample that CI runs as slow."""
    sampled = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            sampled[item.nodeid.partition("[")[0]].append(item)
    for test, cases in sampled.items():
        mark = cases[0].get_closest_marker("sampled")
        (step,), every = mark.args, mark.kwargs.get("slow")
        first = _first_case(test, step, len(cases))
        for place, item in enumerate(cases):
            if every and (place - first) % every == 0 and (place - first) % step:
                item.add_marker(pytest.mark.slow)


def _first_case(test, step, n_cases):
    """The first case of a sample. It follows from the name of the test, so that tests of one grid begin differently."""
    return zlib.crc32(test.encode()) % max(1, min(step, n_cases))


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first, _, last = metafunc.config.getoption("--seeds").partition("-")
        metafunc.parametrize(
            "seed", [pytest.param(n, id=f"seed{n}") for n in range(int(first), int(last or first) + 1)]
        )
    result = yield
    sampled = metafunc.definition.get_closest_marker("sampled")
    if sampled is not None and not metafunc.config.getoption("--thorough"):
        # There is no public way to thin a grid before its cases are made, which takes half of the time of collection.
        (step,), calls = sampled.args, metafunc._calls
        metafunc._calls = calls[_first_case(metafunc.definition.nodeid, step, len(calls)) :: step]
    return result


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
