"""Fixtures for projects: `store_url` is the address of a new project on each kind of database."""

from __future__ import annotations

import importlib.util

import pytest

# Without the extra app there is nothing to test here.
collect_ignore_glob = [] if importlib.util.find_spec("sqlalchemy") else ["test_*.py"]

# Names of the databases that the tests run on; each needs a fixture of the name f"{name}_url". In `make test`, only the
# tests of the store and a few others run on PostgreSQL too.
DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]


@pytest.fixture
def sqlite_url(tmp_path):
    return str(tmp_path / "project.clew")


@pytest.fixture(params=DATABASES)
def store_url(request):
    return request.getfixturevalue(f"{request.param}_url")
