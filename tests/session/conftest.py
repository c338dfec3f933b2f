"""Where the projects of the tests live: `store_url` gives a fresh place for one, on each kind of database."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlalchemy", reason="needs the extra app")

# Names of the databases that the tests run on; each needs a fixture of the name f"{name}_url".
DATABASES = ["sqlite"]


@pytest.fixture
def sqlite_url(tmp_path):
    return str(tmp_path / "project.clew")


@pytest.fixture(params=DATABASES)
def store_url(request):
    return request.getfixturevalue(f"{request.param}_url")
