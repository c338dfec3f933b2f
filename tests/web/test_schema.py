"""Whatever a client sends that the OpenAPI document allows, and much that it does not: no answer is a 500."""

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from clew import Session
from clew.web import create_app
from tests.web.servers import running

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install 'clew[dev]'")

TOKEN = "a-token-for-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
ROWS = [[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0], [0.0, 9.0], [1.0, 9.0]]


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """The OpenAPI document of a server that runs."""
    with Session.create(tmp_path_factory.mktemp("web") / "first.clew", ROWS, n_clusters=3) as first:
        first.tell(first.ask("ann"), "unsure")  # loads what questions need, see below
        first.labels()
    with Session.create(tmp_path_factory.mktemp("web") / "toy.clew", ROWS, n_clusters=3) as session:
        session.import_answers([(0, 1, "same"), (0, 2, "different"), (2, 3, "same"), (1, 3, "same")])
        app = create_app(session, token=TOKEN)
        # Loads all that it will need, before another thread compiles too: Python 3.11 mixes the two up.
        schemathesis.openapi.from_dict(app.openapi())["/api/rows"]["GET"].as_strategy()
        with running(app) as address:
            yield schemathesis.openapi.from_url(f"{address}/api/openapi.json", headers=HEADERS)


def routes():
    """Each route with what is sent: what the document allows, and what it forbids where it asks for something."""
    document = create_app(None, token=TOKEN).openapi()  # it does not depend on the session
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            if path == "/api/events":
                continue  # never ends; see test_events.py
            yield method, path, schemathesis.GenerationMode.POSITIVE
            if "parameters" in route or "requestBody" in route:
                yield method, path, schemathesis.GenerationMode.NEGATIVE


# The HTTP parser itself refuses longer addresses, before the application sees them.
LONGEST_QUERY = 8_000
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]


@pytest.mark.parametrize(("method", "path", "mode"), list(routes()))
def test_no_request_breaks_the_server(document, method, path, mode):
    @given(case=document[path][method.upper()].as_strategy(generation_mode=mode))
    @settings(max_examples=8, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None)
    def run(case):
        assume(len(repr(case.query)) < LONGEST_QUERY)
        case.validate_response(case.call(headers=HEADERS), checks=CHECKS)

    run()
