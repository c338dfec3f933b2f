"""Answers given in a page while things go wrong: every one ends in the log once, in order."""

from __future__ import annotations

import random
import shutil
from base64 import b64decode
from contextlib import suppress

import pytest

from clew.web._tokens import opening_file
from tests.server import QuickServer

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: the page is not tested.")

from playwright.sync_api import Error

from tests.web.test_page import PATIENCE, Place, answers_of, browser, shown, truth

__all__ = ["browser"]
SAVED = '() => document.querySelector(".saved")?.innerText === "Saved"'
NOTHING_WAITS = "() => !Object.keys(localStorage).some(key => key.startsWith('clew-outbox:'))"
KEYS = {"same": "s", "different": "d", "unsure": "Space"}


@pytest.fixture
def server(tmp_path):
    server = Place(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def context(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def page(context, server):
    page = context.new_page()
    page.goto(server.server.page)
    shown(page)
    return page


def give(page, count, answer_of=truth):
    """Answer by keyboard without waiting for the server; gives what was said."""
    said = []
    for _ in range(count):
        pair = shown(page)
        word = answer_of(*pair)
        page.keyboard.press(KEYS[word])
        said.append((*pair, word))
        page.wait_for_function(
            """pair => [...document.querySelectorAll(".cards > .card > .card-id")].map(e => e.innerText).join()
                       !== pair.map(id => "Row " + id).join()""",
            arg=list(pair),
        )
    return said


def at_hand(page, count=9):
    """Wait until so many questions are leased: the cards are in the page."""
    page.wait_for_function("async (n) => (await (await fetch('/api/questions')).json()).length >= n", arg=count + 1)
    page.wait_for_timeout(200)


def in_storage(page):
    return page.evaluate("Object.keys(localStorage).filter(key => key.startsWith('clew-outbox:')).length")


SLOW_WAYS = [pytest.param(way, marks=pytest.mark.slow) for way in ("same tab", "another tab", "pasted")]


@pytest.mark.parametrize("way", ["closed", *SLOW_WAYS])
def test_nine_answers_outlive_a_restart_with_another_token(context, page, server, way):
    before = give(page, 3)
    page.wait_for_function(SAVED)
    at_hand(page)
    server.kill()
    said = give(page, 9)
    page.get_by_text("9 answers are not saved yet.").wait_for()
    assert in_storage(page) == 9
    server.token = "another-token-than-before"
    server.start()
    page.get_by_text("Please sign in again").wait_for()
    page.get_by_text("9 answers are kept in this browser").wait_for()
    assert page.locator(".saved").inner_text() != "Saved" and in_storage(page) == 9
    if way == "pasted":
        page.get_by_label("Address or token").fill(f"http://127.0.0.1:{server.port + 1}/?token={server.token}")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Answers that wait in this tab can only be sent from here").wait_for()
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy these answers").click()
        page.get_by_text("Copied.").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()").splitlines()
        assert copied == ["id_1,id_2,answer", *(",".join(one) for one in said)]
        page.get_by_label("Address or token").fill(f"http://127.0.0.1:{server.port}/?token=wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("This is not the token of the server.").wait_for()
        page.get_by_label("Address or token").fill(server.server.page)
        page.keyboard.press("Enter")
    elif way == "same tab":
        page.goto(server.server.page)
    else:
        if way == "closed":
            page.close()
        other = context.new_page()
        other.goto(server.server.page)
        page = other if way == "closed" else page
    page.wait_for_function(NOTHING_WAITS)
    page.wait_for_selector("#banner", state="hidden")
    assert answers_of(server) == before + said
    more = give(page, 1)
    page.wait_for_function(SAVED)
    assert answers_of(server) == before + said + more


def test_answers_wait_for_their_own_project(context, page, server, tmp_path):
    at_hand(page)
    server.kill()
    said = give(page, 4)
    (tmp_path / "other").mkdir()
    table = shutil.copy(server.table, tmp_path / "other" / "data.csv")
    other = QuickServer(table, "--id", "name", "-k", "3", port=server.port, token="token-of-another-project")
    tab = context.new_page()
    tab.goto(other.page)
    shown(tab)
    page.get_by_text("Another project is served at this address now.").wait_for()
    page.get_by_text("4 answers wait in this browser until the project of this page is served").wait_for()
    page.keyboard.press("z")
    page.get_by_role("button", name="Show that project").click()
    shown(page)
    other.kill()
    server.start()
    page.goto(server.server.page)
    page.wait_for_function(NOTHING_WAITS)
    assert answers_of(server) == said[:3]  # the fourth was taken back


def test_an_answer_that_waits_is_taken_back_without_the_server(page, server):
    at_hand(page)
    server.kill()
    said = give(page, 4)
    page.get_by_text("4 answers are not saved yet.").wait_for()
    for left in (3, 2, 1):
        page.keyboard.press("z")
        page.get_by_text(f"{left} answer{'s are' if left > 1 else ' is'} not saved yet.").wait_for()
        assert shown(page) == said[left][:2]
    page.keyboard.press("z")
    page.get_by_text("The server may have this answer already.").wait_for()
    again = give(page, 1, lambda *_: "unsure")
    server.start()
    page.wait_for_function(SAVED)
    assert answers_of(server) == said[:1] + again


def test_an_answer_refused_for_good_is_shown_and_can_be_copied(context, page, server):
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    pair = shown(page)
    client_says = "different" if truth(*pair) == "same" else "same"
    question = next(one for one in server.get("questions") if (one["left"], one["right"]) == pair)
    server.post("answers", question=question["id"], answer=client_says, annotator="ann")
    give(page, 1)
    page.get_by_text("1 answer was not accepted.").wait_for()
    banner = page.locator("#banner")
    assert "has another answer already" in banner.inner_text() and pair[0] in banner.inner_text()
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").split() == [
        "id_1,id_2,answer", ",".join((*pair, truth(*pair)))
    ]  # fmt: skip
    page.reload()
    page.get_by_text("The server did not accept this answer").wait_for()
    page.get_by_role("button", name="Discard").click()
    page.wait_for_selector("#banner", state="hidden")
    give(page, 1)
    page.wait_for_function(SAVED)


def test_what_may_pass_is_tried_again(page, server):
    said, now = [], [0]
    for now[0] in (429, 500, 502, 503, 504, 507):
        page.route("**/api/answers", lambda route: route.fulfill(status=now[0], json={"error": "Later."}))
        said += give(page, 1)
        page.get_by_text("1 answer is not saved yet.").wait_for()
        page.get_by_text("Later.").wait_for()
        page.unroute("**/api/answers")
        page.wait_for_function(SAVED)
        assert answers_of(server) == said


def test_an_answer_that_may_be_recorded_is_taken_back_by_the_server_only(page, server):
    def lost(route):
        route.fetch()  # the server records it, and what it says is lost
        with suppress(Error):  # the page may give this try up while the server answers
            route.fulfill(status=504, json={"error": "It is unknown whether this was recorded."})

    page.route("**/api/answers", lost)
    said = give(page, 1)
    page.get_by_text("It is unknown whether this was recorded.").wait_for()
    page.keyboard.press("z")
    page.get_by_text("The server may have this answer already.").wait_for()
    assert in_storage(page) == 1
    page.unroute("**/api/answers")
    page.wait_for_function(SAVED)
    assert answers_of(server) == said


def test_a_storage_that_takes_nothing_is_said_and_nothing_is_called_saved(page, server):
    at_hand(page)
    server.kill()
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError') } }")
    said = give(page, 2)
    page.get_by_text("2 answers are only in this tab: do not close it").wait_for()
    assert page.locator(".saved").inner_text() == "2 answers are not saved yet."
    server.start()
    page.wait_for_function(SAVED)
    assert answers_of(server) == said


@pytest.mark.slow
def test_two_tabs_share_the_answers_that_wait(context, page, server):
    at_hand(page)
    other = context.new_page()
    other.goto(server.server.page)
    shown(other)
    server.kill()
    said = give(page, 5)
    other.get_by_text("5 answers").first.wait_for()
    server.start()
    for tab in (page, other):
        tab.wait_for_function(NOTHING_WAITS)
    assert answers_of(server) == said


def test_every_answer_ends_in_the_log_once_and_in_order_whatever_happens(context, page, server, seed):
    """Random stops, new tokens, reloads and closed tabs between answers."""
    rng = random.Random(seed)
    said, is_up = [], True
    for step in range(9):
        for _ in range(rng.randint(1, 3)):
            if page.locator(".cards > .card:not(.skeleton) > .card-id").count() == 2:
                said += give(page, 1, lambda *_: "unsure")
        action = rng.choice(["stop", "reload", "close"]) if is_up else "start"
        if action == "stop":
            server.kill()
            is_up = False
        elif action == "start":
            server.token = f"token-number-{step}-of-this-test"
            server.start()
            is_up = True
        else:
            if action == "close":
                page.close()
                page = context.new_page()
            page.goto(server.server.page)
            shown(page)
    if not is_up:
        server.start()
    page.goto(server.server.page)
    page.wait_for_function(NOTHING_WAITS)
    assert len(said) >= 5
    assert answers_of(server) == said


def test_the_file_that_opens_the_page_signs_in(context, server):
    path = opening_file(server.server.page)
    page = context.new_page()
    page.goto(path.as_uri())
    shown(page)
    assert page.url == f"http://127.0.0.1:{server.port}/"


@pytest.mark.slow
def test_the_second_browser_with_a_name_says_who_it_is(browser, server):
    for name, choice in (("me", None), ("ann", "No, this is my name"), ("me", "Yes, that was me")):
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(server.server.page)
        if choice is not None:
            page.get_by_text("Somebody called “me” has already been here").wait_for()
            page.keyboard.press("Escape")  # it is asked until it is answered
            if name == "ann":
                page.get_by_label("Your name", exact=True).fill("ann")
            page.get_by_role("button", name=choice).click()
        give(page, 1, lambda *_: "unsure")
        page.wait_for_function(SAVED)
        page.reload()  # nobody is asked twice
        give(page, 1, lambda *_: "unsure")
        page.wait_for_function(SAVED)
        context.close()
    assert [one["annotator"] for one in server.get("answers")] == ["me", "me", "ann", "ann", "me", "me"]


@pytest.mark.slow
def test_pictures_of_the_next_cards_are_there_while_the_server_is_away(context, tmp_path):
    dot = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
    lines = ["name,x,picture"]
    for row in range(30):
        (tmp_path / f"{row}.png").write_bytes(dot)
        lines.append(f"r{row},{row % 3 * 10 + row / 30},{row}.png")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    with QuickServer(tmp_path / "data.csv", "--id", "name", "--columns", "x", "-k", "3") as server:
        page = context.new_page()
        page.goto(server.page)
        shown(page)
        at_hand(page)
    for _ in range(4):
        give(page, 1, lambda *_: "unsure")
        page.wait_for_function(
            "() => { const all = [...document.querySelectorAll('.card img')]; "
            "return all.length === 2 && all.every((one) => one.complete && one.naturalWidth > 0) }",
            timeout=10_000,
        )
