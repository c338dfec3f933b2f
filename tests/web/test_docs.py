"""The page on the server tells of every route and every flag."""

import inspect
import json
import re
from pathlib import Path

from typer.main import get_command

from clew.cli._app import app
from clew.web import _events, create_app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "server.md").read_text(encoding="utf-8")


def test_the_table_of_routes_is_that_of_the_server():
    paths = create_app(None, token="a-token").openapi()["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert set(re.findall(r"^\| `([A-Z]+ /api/\S+)` \|", PAGE, re.MULTILINE)) == routes


def test_the_table_of_flags_is_that_of_the_command():
    flags = {flag for one in get_command(app).commands["serve"].params for flag in one.opts if flag.startswith("--")}
    flags = flags - {"--browser", "--n-clusters"} | {"--no-browser"}
    table = PAGE.partition("| flag | meaning |")[2].partition("\n\n")[0]
    assert flags <= set(re.findall(r"--[a-z-]+", table))


def test_every_event_that_is_named_is_sent():
    sent = set(re.findall(r'_event\("(\w+)"', inspect.getsource(_events)))
    said = json.dumps(create_app(None, token="a-token").openapi())
    assert sent == {"progress", "clusters", "jobs"}
    assert set(re.findall(r"event `(\w+)`", said)) <= sent and all(f"`{name}`" in said for name in sent)
