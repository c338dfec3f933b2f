"""The page, used as a person uses it: a real server, a real browser, keys and clicks."""

from __future__ import annotations

import csv
import json
import os
from urllib.request import Request, urlopen

import numpy as np
import pytest

from tests.server import TOKEN, Client, QuickServer

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: the page is not tested.")

from tests.browser import chromium, program

CENTRES = ((0, 0), (10, 0), (0, 10))
N_EACH = 40
HARM = '<script>window.harmed = 1</script><img src=x onerror="window.harmed = 2">'
FORMULA = '=HYPERLINK("http://example.org", "click")'
# Milliseconds; far above what anything takes, for machines that are busy.
PATIENCE = 60_000
# The marked words of the rows of a small cluster. Rows are drawn again when clusters change.
MARKS = """[...document.querySelectorAll(".few .card mark")].map((one) => one.innerText).sort().join(" ")"""


def line(name, group, rng):
    x, y = rng.normal(CENTRES[group], 0.6)
    note = HARM if name.endswith("0") else FORMULA if name.endswith("5") else f"an ordinary remark about {name}"
    return [name, f"{x:.3f}", f"{y:.3f}", note]


def group_of(name):
    return "abc".index(name[0])


def truth(left, right):
    return "same" if left[0] == right[0] else "different"


@pytest.fixture(scope="module")
def browser():
    if program() is None:
        reason = "chromium is not installed: the page is not tested."
        pytest.fail(reason) if os.environ.get("CLEW_REQUIRE_CHROMIUM") == "1" else pytest.skip(reason)
    with chromium() as browser:
        yield browser


class Place:
    """A folder with a table, and a server for it that can be killed and started again."""

    def __init__(self, folder):
        self.folder, self.port, self.token = folder, 0, TOKEN
        rng = np.random.default_rng(0)
        names = [f"{'abc'[group]}{place:02}" for group in range(3) for place in range(N_EACH)]
        self.table = self.write(
            "data.csv", [line(name, group_of(name), rng) for name in rng.permutation(names).tolist()]
        )
        self.start()

    def write(self, name, lines):
        with open(self.folder / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["name", "x", "y", "note"], *lines])
        return self.folder / name

    def start(self):
        self.server = QuickServer(self.table, "--id", "name", "-k", "3", port=self.port, token=self.token)
        self.port = self.server.port

    def kill(self):
        self.server.kill()

    def get(self, path):
        client = Client(self.server.host, self.token)
        found = client.get(f"/api/{path}")
        client.close()
        return found

    def post(self, path, **body):
        client = Client(self.server.host, self.token)
        status, found = client.post(f"/api/{path}", **body)
        client.close()
        assert status < 300, found
        return found

    def post_file(self, path, text):
        client = Client(self.server.host, self.token)
        status, found = client.ask("POST", f"/api/{path}", text.encode())
        client.close()
        assert status < 300, found


@pytest.fixture
def server(tmp_path):
    server = Place(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def page(browser, server):
    """A page in which nothing is reported: no error, no refused resource, no harm done."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # A server that was killed does not answer; that is no fault of the page.
    page.on(
        "console",
        lambda message: message.type == "error" and "net::ERR_" not in message.text and complaints.append(message.text),
    )
    page.goto(server.server.page)
    yield page
    assert page.evaluate("window.harmed") is None
    context.close()
    assert complaints == []


def shown(page):
    page.wait_for_selector(".cards .card:not(.skeleton) .card-id")
    return tuple(text.removeprefix("Row ") for text in page.locator(".cards > .card > .card-id").all_inner_texts())


def answer(page, count, answer_of=truth):
    """Answer by keyboard; gives what was said."""
    said = []
    for _ in range(count):
        pair = shown(page)
        word = answer_of(*pair)
        page.keyboard.press({"same": "s", "different": "d", "unsure": "Space"}[word])
        said.append((*pair, word))
        page.wait_for_function(
            """pair => { const ids = [...document.querySelectorAll(".cards > .card > .card-id")].map(e => e.innerText);
                         return ids.join() !== pair.map(id => "Row " + id).join() }""",
            arg=list(pair),
        )
    page.wait_for_function('() => document.querySelector(".saved")?.innerText === "Saved"')
    return said


def answers_of(server):
    return [(one["left"], one["right"], one["answer"]) for one in server.get("answers")]


def settled(server):
    """Cluster of each row once everything that was said is in it."""
    return server.get("labels")


def call_the_rest_same(server):
    """Settle every open conflict by changing one answer "different" in it to "same"."""
    for _ in range(20):
        conflicts = server.get("conflicts")
        if not conflicts:
            return
        apart = [link for link in conflicts[0]["links"] if link["answer"] == "different"]
        said = [event for link in apart for event in link["events"] if event in conflicts[0]["answers"]]
        server.post(f"conflicts/{conflicts[0]['id']}/resolve", how="change", answer_id=said[0], answer="same")


def test_sixty_answers_by_keyboard_ten_undone_and_on_after_a_kill(page, server):
    said = answer(page, 60)
    assert len({frozenset(pair[:2]) for pair in said}) == 60
    assert answers_of(server) == said
    for left in range(59, 49, -1):
        page.keyboard.press("z")
        page.wait_for_function(f'() => document.querySelector(".figure b")?.innerText === "{left}"')
    assert answers_of(server) == said[:50]
    server.kill()
    page.wait_for_selector("#banner:not([hidden])")
    server.start()
    page.wait_for_selector("#banner", state="hidden")
    page.reload()
    again = answer(page, 3)
    assert answers_of(server) == said[:50] + again


def test_an_answer_given_while_the_server_is_down_arrives_when_it_is_back(page, server):
    answer(page, 2)
    server.kill()
    pair = shown(page)
    page.keyboard.press("Space")
    page.wait_for_selector(".saved.late")
    server.start()
    page.wait_for_function('() => document.querySelector(".saved")?.innerText === "Saved"')
    assert answers_of(server)[-1] == (*pair, "unsure")


def test_flag_comment_unsure_and_help_by_keyboard(page, server):
    shown(page)
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("undo, as often as you like").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.keyboard.press("c")
    page.get_by_role("dialog").get_by_role("textbox").fill("not so clear")
    page.keyboard.press("Enter")
    answer(page, 1, lambda *_: "unsure")
    (only,) = server.get("answers")
    assert (only["answer"], only["flag"], only["comment"]) == ("unsure", True, "not so clear")
    assert only["seconds"] > 0


def test_a_key_held_down_is_one_answer(page, server):
    answer(page, 2)
    shown(page)
    for _ in range(6):  # down again without up: the keyboard repeats
        page.keyboard.down("d")
    page.keyboard.up("d")
    answer(page, 1, lambda *_: "unsure")
    assert [word for _, _, word in answers_of(server)[2:]] == ["different", "unsure"]


def test_space_presses_a_button_reached_by_keyboard_and_is_unsure_after_a_click(page, server):
    shown(page)
    page.click(".theme")
    answer(page, 1, lambda *_: "unsure")
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.dataset.answer") != "same":
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.wait_for_function("() => document.querySelector('.figure b')?.innerText === '2'")
    answer(page, 1, lambda *_: "different")
    assert [word for _, _, word in answers_of(server)] == ["unsure", "same", "different"]


def test_a_merge_and_a_never_join_hold_after_a_fit_with_new_rows(page, server):
    answer(page, 8)
    before = settled(server)
    page.goto(f"http://127.0.0.1:{server.port}/#clusters")
    first, second, third = sorted(set(before.values()))
    apart = [next(row for row, cluster in before.items() if cluster == number) for number in (first, second)]
    lines = f"id_1,id_2,answer\n{apart[0]},{apart[1]},different\n"
    server.post_file("answers/import?name=others.csv&annotator=ann", lines)
    page.locator(f'[data-cluster="{first}"]').click()
    page.locator('[data-action="never"]').click()
    page.locator(".pick button").filter(has_text=f"Cluster {third}").click()
    page.get_by_role("button", name="Apply").click()
    page.get_by_text("This applies to every later clustering.").wait_for()
    page.locator(f'[data-cluster="{first}"]').click()
    page.locator('[data-action="merge"]').click()
    page.locator(".pick button").filter(has_text=f"Cluster {second}").click()
    with page.expect_response("**/api/corrections"):
        page.get_by_role("button", name="Record it anyway").click()
    # Somebody said "different" of rows in both clusters, which the merge contradicts: the person changes that answer.
    with page.expect_response("**/api/conflicts/*/resolve"):
        page.locator("dialog[open] .chain li:has(.word.different) button:not([data-correction])").first.click()
    call_the_rest_same(server)
    rng = np.random.default_rng(1)
    new = server.write("new.csv", [line(f"{'abc'[place % 3]}{90 + place // 3}", place % 3, rng) for place in range(12)])
    page.goto(f"http://127.0.0.1:{server.port}/#settings")
    page.locator('input[type="file"]').first.set_input_files(new)
    page.get_by_text("12 rows added.").wait_for()
    after = settled(server)
    assert len(after) == 3 * N_EACH + 12
    assert server.get("conflicts") == []
    assert {after[row] for row, cluster in before.items() if cluster in (first, second)} == {first}
    assert {after[row] for row, cluster in before.items() if cluster == third} == {third}


def test_a_contradiction_is_shown_as_a_chain_and_settled(page, server):
    said = answer(page, 30)
    left, right = next((one, two) for one, two, word in said if word == "different")
    friend = next(
        ({one, two} - {side}).pop()
        for one, two, word in said
        for side in (left, right)
        if word == "same" and side in (one, two)
    )
    other = left if truth(friend, right) == "same" else right
    with open(server.folder / "wrong.csv", "w", encoding="utf-8") as file:
        file.write(f"id_1,id_2,answer\n{friend},{other},same\n")
    page.goto(f"http://127.0.0.1:{server.port}/#settings")
    page.locator('input[type="file"]').nth(1).set_input_files(server.folder / "wrong.csv")
    page.get_by_text("1 answer imported.").wait_for()
    page.keyboard.press("Alt+4")
    page.locator("[data-conflict]").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("These answers cannot all be true").wait_for()
    assert dialog.locator(".chain li").count() >= 3
    assert friend in dialog.locator(".chain").inner_text()
    dialog.get_by_role("button", name="Mark the last one as not sure").click()
    page.get_by_text("Resolved.").wait_for()
    assert server.get("conflicts") == []
    assert answers_of(server)[-1] == (friend, other, "unsure")


def test_a_second_opinion_that_differs_is_mentioned_without_a_dialogue(page, server):
    page.goto("about:blank")
    client = Client(server.server.host, server.token)
    assert client.ask("PUT", "/api/settings", {"overlap": 2})[0] == 200
    client.close()
    first = server.post("questions/next", annotator="ada")
    server.post("answers", question=first["id"], answer="same", annotator="ada")
    page.goto(f"http://127.0.0.1:{server.port}/#ask")
    assert set(shown(page)) == {first["left"], first["right"]}
    page.keyboard.press("d")
    page.get_by_text("Somebody has said the opposite about this pair.").wait_for()
    assert not page.get_by_role("dialog").is_visible()
    page.keyboard.press("Alt+4")
    page.locator("[data-conflict]").click()
    page.get_by_role("dialog").get_by_role("button", name="Change the one that is probably wrong (R)").wait_for()
    assert page.locator(".chain .cheapest").inner_text() == "probably wrong"


def test_people_who_disagree_are_listed_and_compared(page, server):
    rows = sorted(server.get("labels"))
    pairs = list(zip(rows[0:10:2], rows[1:10:2], strict=True))
    for name, word in (("ann", "same"), ("bob", "different")):
        lines = "".join(f"{one},{two},{word},{name}\n" for one, two in pairs[:4])
        server.post_file(f"answers/import?name={name}.csv&annotator={name}", f"id_1,id_2,answer,annotator\n{lines}")
    server.post_file(
        "answers/import?name=3.csv&annotator=x", f"id_1,id_2,answer,annotator\n{pairs[4][0]},{pairs[4][1]},same,BOB\n"
    )
    page.goto(f"http://127.0.0.1:{server.port}/#review")
    page.locator("[data-conflict]").first.wait_for()
    assert page.locator("[data-conflict]").count() == 3
    page.get_by_role("button", name="Show all 4 contradictions").click()
    page.locator("[data-conflict]").nth(3).click()
    page.get_by_role("dialog").get_by_role("button", name="Mark all of them as not sure").click()
    page.get_by_text("Resolved.").wait_for()
    assert [answer for *_, answer in answers_of(server)].count("unsure") == 2
    page.keyboard.press("Alt+6")
    page.locator(".people").wait_for()
    cells = [row.split("\t") for row in page.locator(".people tbody").inner_text().split("\n")]
    assert [[*row[:2], row[4]] for row in cells] == [["ann", "4", "1 of 4"], ["bob", "5", "1 of 4"]]
    page.keyboard.press("Alt+5")
    page.locator(".history table.log").wait_for()
    who = page.locator(".filters select").nth(1)
    assert who.locator("option").count() == 3
    who.select_option(index=2)
    page.get_by_text("5 of 9 answers").wait_for()


def test_the_cheapest_repair_of_a_contradiction_is_one_key(page, server):
    labels = server.get("labels")
    (one, two), three = (
        [row for row in sorted(labels) if labels[row] == 0][:2],
        next(row for row in labels if labels[row]),
    )
    lines = f"{one},{two},same,1\n{two},{three},same,0.6\n{one},{three},different,1\n"
    server.post_file("answers/import?name=others.csv&annotator=ann", f"id_1,id_2,answer,confidence\n{lines}")
    (found,) = server.get("conflicts")
    assert len(found["cheapest"]) == 1
    page.goto(f"http://127.0.0.1:{server.port}/#review")
    page.locator("[data-conflict]").click()
    page.get_by_role("dialog").get_by_role("button", name="Cheapest repair (R)").wait_for()
    page.keyboard.press("r")
    page.get_by_text("Resolved.").wait_for()
    assert server.get("conflicts") == []
    assert [word for *_, word in answers_of(server)][::2] == ["same", "different"]  # the less sure one gave way


def contradict(page, server):
    """Answer the card on the screen against what somebody else says; gives what was said."""
    left, right = shown(page)
    other = next(name for name in settled(server) if name not in (left, right))
    lines = f"id_1,id_2,answer\n{left},{other},same\n{other},{right},same\n"
    server.post_file("answers/import?name=others.csv&annotator=ann", lines)
    page.keyboard.press("d")
    return left, right, "different"


CARD_KEYS = ["Space", "s", "d", "ArrowLeft", "ArrowRight", "z", "Backspace", "f", "c", "m", "?", "1", "0", "Enter"]


def test_a_contradiction_takes_no_key_that_was_meant_for_the_card(page, server):
    shown(page)
    said = contradict(page, server)
    page.get_by_text("These answers cannot all be true").wait_for()
    for key in CARD_KEYS:
        page.keyboard.press(key)
        assert page.get_by_text("These answers cannot all be true").is_visible(), key
    assert answers_of(server)[2:] == [said] and len(server.get("conflicts")) == 1
    page.keyboard.press("Tab")  # whoever goes there by keyboard means the dialogue
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.innerText") != "Decide later":
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.wait_for_selector("#dialog", state="hidden")
    answer(page, 1, lambda *_: "unsure")
    assert len(server.get("conflicts")) == 1


def test_a_contradiction_waits_until_a_comment_is_written(page, server):
    held = []
    page.route("**/api/answers", lambda route: held.append(route))
    shown(page)
    contradict(page, server)
    page.wait_for_function('() => document.querySelector(".saved")?.innerText === "Saving…"')
    page.keyboard.press("c")
    page.keyboard.type("so")
    for _ in range(PATIENCE // 100):  # the page says "Saving…" before the request arrives here
        if held:
            break
        page.wait_for_timeout(100)
    held[0].continue_()
    page.wait_for_function('() => document.querySelector(".saved")?.innerText === "Saved"')
    page.keyboard.type(" so")
    assert page.get_by_role("dialog").get_by_role("textbox").input_value() == "so so"
    page.get_by_role("button", name="Save comment").click()
    page.get_by_text("These answers cannot all be true").wait_for()


def test_a_contradiction_with_a_correction_lets_it_be_taken_back(page, server):
    before = settled(server)
    first, second = sorted(set(before.values()))[:2]
    rows = [next(row for row, cluster in before.items() if cluster == number) for number in (first, second)]
    server.post("corrections", kind="merge", cluster=first, other=second, annotator="ann")
    server.post_file(
        "answers/import?name=others.csv&annotator=ann", f"id_1,id_2,answer\n{rows[0]},{rows[1]},different\n"
    )
    (found,) = server.get("conflicts")
    page.goto(f"http://127.0.0.1:{server.port}/#review")
    page.locator("[data-conflict]").click()
    page.locator(f'[data-correction="{found["corrections"][0]}"]').first.click()
    page.get_by_text("Resolved.").wait_for()
    assert server.get("conflicts") == []
    after = settled(server)
    assert after[rows[0]] != after[rows[1]]


def test_sentences_of_the_review_agree_with_each_other(page, server):
    said = answer(page, 3)
    item = {"answer_id": 0, "annotator": "me", "time": "2030-01-01T00:00:00+00:00", "reasons": ["A reason."]}
    items = [
        item | {"left": left, "right": right, "answer": word, "likely": likely, "suspicion": suspicion}
        for (left, right, _), word, likely, suspicion in zip(
            said, ("same",) * 3, ("different", "same", "same"), (0.9, 0.06, 0.004), strict=True
        )
    ]
    reviewed = {"items": items, "thorough": True, "working": False, "problem": None}
    page.route("**/api/review*", lambda route: route.fulfill(json=reviewed))
    page.keyboard.press("Alt+4")
    page.locator(".suspect").first.wait_for()
    heads = page.evaluate(
        """() => [...document.querySelectorAll(".suspect-head")].map(
             (head) => [...head.children].map((one) => one.textContent).filter(Boolean))"""
    )
    assert heads == [
        ["1.", "me said same", "probably different", "90 % likely to be wrong"],
        ["2.", "me said same", "6 % likely to be wrong"],
    ]


def test_the_lasso_selects_and_splits(page, server):
    answer(page, 4)
    settled(server)
    page.goto(f"http://127.0.0.1:{server.port}/#map")
    page.locator(".legend li").first.wait_for()
    page.keyboard.press("l")
    box = page.locator(".over").bounding_box()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in [*points[1:], points[0]]:
        page.mouse.move(*point, steps=5)
    page.mouse.up()
    page.get_by_text(f"{3 * N_EACH} rows selected").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Point at a row to see it").wait_for()
    page.keyboard.press("Enter")
    page.locator(".side .card-id").wait_for()
    page.keyboard.press("Escape")
    for _ in range(2):
        page.keyboard.press("Space")
        for _ in range(6):
            page.keyboard.press("ArrowRight")
    page.get_by_text("2 rows selected").wait_for()


def test_exports_hold_what_the_log_holds_and_no_formula(page, server):
    said = answer(page, 12)
    page.goto(f"http://127.0.0.1:{server.port}/#history")
    with page.expect_download() as download:
        page.locator('[data-export="answers.csv"]').click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id_1"], row["id_2"], row["answer"]) for row in rows] == said
    with page.expect_download() as download:
        page.locator('[data-export="labels.csv"]').click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert len(cells) >= 2 * 3 * N_EACH
    assert not any(cell.startswith(("=", "+", "@")) for cell in cells)


def test_what_cells_hold_is_shown_as_text(page, server):
    page.goto(f"http://127.0.0.1:{server.port}/#clusters")
    page.locator(".choose").first.wait_for()
    for _ in range(3):
        for text in page.locator(".tile-text").all_inner_texts():
            if text == HARM:
                break
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(200)
    page.goto(f"http://127.0.0.1:{server.port}/#ask")
    for _ in range(12):
        answer(page, 1)
    assert HARM in {one["values"]["note"] for one in server.get("rows?ids=a00&ids=b10")}


def test_a_folder_of_images_shows_each_image_once(browser, tmp_path):
    """The name of a file is its row's id, and the only cell that tells what to show."""
    image = pytest.importorskip("PIL.Image", reason="needs the extra images")
    rng, folder = np.random.default_rng(0), tmp_path / "pictures"
    folder.mkdir()
    for place in range(12):
        grey = (200 * np.eye(2)[place % 2].repeat(8) + rng.uniform(0, 40, size=(16, 16))).astype(np.uint8)
        image.fromarray(grey).save(folder / f"{place:02}.png")
    server = QuickServer(folder, "--id", "file", "-k", "2", port=0, token=TOKEN)
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(server.page)
        page.wait_for_selector(".cards .card:not(.skeleton) img")
        page.wait_for_function(
            "() => [...document.querySelectorAll('.card img')].every((one) => one.naturalWidth === 16)"
        )
        assert page.locator(".cards .card img").count() == page.locator(".cards .card:not(.skeleton)").count() == 2
        page.click("#nav a[href='#clusters']")
        page.wait_for_selector(".tile img")
        assert page.locator(".tile img").count() == page.locator(".tile").count()
    finally:
        context.close()
        server.kill()


def test_every_view_opens_by_keyboard_and_the_theme_can_be_chosen(page, server):
    shown(page)
    for place, name in enumerate(["Ask", "Map", "Clusters", "Review", "History", "Settings"], start=1):
        page.keyboard.press(f"Alt+{place}")
        page.wait_for_function(f'() => document.title === "{name} · clew"')
        assert page.locator("#nav [aria-current]").inner_text() == name
    page.locator(".theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.locator(".theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_news_leave_the_keyboard_in_the_navigation(page, server):
    page.goto(f"http://127.0.0.1:{server.port}/#history")
    page.get_by_text("All answers and changes").wait_for()
    page.locator("#nav a").nth(2).focus()
    other = page.context.new_page()
    other.goto(f"http://127.0.0.1:{server.port}/")
    answer(other, 2)
    page.wait_for_function('() => document.querySelectorAll("#view tbody tr").length === 2')
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#clusters"


def test_long_names_and_many_choices_fit_on_a_telephone(browser, server):
    page = browser.new_page(viewport={"width": 390, "height": 760})
    page.set_default_timeout(PATIENCE)
    page.goto(f"http://127.0.0.1:{server.port}/?token={TOKEN}")
    one, other = sorted(server.get("labels"))[:2]
    for name, word in (("x" * 60, "same"), ("y" * 60, "different")):
        lines = f"id_1,id_2,answer,annotator\n{one},{other},{word},{name}\n"
        server.post_file(f"answers/import?name={name}.csv&annotator={name}", lines)
    width = "document.documentElement.scrollWidth"
    for view, place in (("review", "[data-conflict]"), ("history", "table.log"), ("settings", ".people")):
        page.goto(f"http://127.0.0.1:{server.port}/#{view}")
        page.locator(place).first.wait_for()
        assert page.evaluate(width) <= 390, view
    page.goto(f"http://127.0.0.1:{server.port}/#review")
    page.locator("[data-conflict]").click()
    page.locator("#dialog footer button").nth(2).wait_for()
    for button in page.locator("#dialog footer button").all():
        box = button.bounding_box()
        assert box["y"] + box["height"] <= 760 and box["x"] + box["width"] <= 390
    body = page.locator(".dialog-body")
    assert body.evaluate("one => one.scrollWidth <= one.clientWidth && one.clientHeight > 200")
    page.close()


# Keeps the stream of events of the page, so that a test can send one.
KEPT_STREAM = (
    "window.EventSource = class extends EventSource { constructor(url) { super(url); window.stream = this; } }"
)


def test_wrong_answers_are_reviewed_by_keyboard_and_what_is_kept_stays_kept(page, server):
    page.add_init_script(KEPT_STREAM)
    page.reload()
    answer(page, 30)
    lines = ["id_1,id_2,answer", "a01,a02,different", "b01,b02,different"]
    (server.folder / "wrong.csv").write_text("\n".join(lines) + "\n")
    page.goto(f"http://127.0.0.1:{server.port}/#settings")
    page.locator('input[type="file"]').nth(1).set_input_files(server.folder / "wrong.csv")
    page.get_by_text("2 answers imported.").wait_for()
    numbers = [one["id"] for one in server.get("answers")[-2:]]
    page.keyboard.press("Alt+4")
    page.get_by_text(
        "Full review: each answer"
    ).wait_for()  # after the first list, which says "The full review is running"
    page.locator(".suspect").nth(1).wait_for()
    cards = [page.locator(f'.suspect[data-answer="{number}"]') for number in numbers]
    assert {card.get_attribute("data-answer") for card in page.locator(".suspect").all()[:2]} == set(map(str, numbers))
    cards[0].get_by_role("button").first.focus()
    page.keyboard.press("k")
    cards[0].wait_for(state="detached")
    cards[1].get_by_role("button").first.focus()
    drawn = cards[1].element_handle()
    page.evaluate("window.stream.dispatchEvent(new MessageEvent('clusters', { data: JSON.stringify({ fit: 1 }) }))")
    page.wait_for_function("drawn => !drawn.isConnected", arg=drawn)  # the list is drawn anew
    focused = "document.activeElement.closest('.suspect')?.dataset.answer"
    assert page.evaluate(focused) == str(numbers[1])
    page.keyboard.press("f")
    cards[1].wait_for(state="detached")
    page.reload()
    page.get_by_text("Full review: each answer").wait_for()
    assert page.locator(f'.suspect[data-answer="{numbers[0]}"]').count() == 0
    kept, flipped = server.get("answers")[-2:]
    assert (kept["answer"], kept["confirmed"], kept["revised"]) == ("different", "me", False)
    assert (flipped["answer"], flipped["revised"]) == ("same", True)


@pytest.mark.slow
def test_the_map_of_neighbours_comes_when_it_is_made(page, server):
    settled(server)
    page.goto(f"http://127.0.0.1:{server.port}/#map")
    page.locator(".legend li").first.wait_for()
    pixels = "() => document.querySelector('canvas.points').toDataURL()"
    before = page.evaluate(pixels)
    page.get_by_label("Kind of map").select_option("neighbours")
    page.get_by_text("The map of neighbours is being computed").wait_for()
    page.get_by_text("The map of neighbours is being computed").wait_for(state="hidden")
    page.wait_for_function("before => document.querySelector('canvas.points').toDataURL() !== before", arg=before)


def test_a_map_of_many_rows_shows_their_density_and_single_rows_where_there_are_few(page, server):
    """With limits of 50 and 70 rows instead of 150,000 and 30,000."""

    def with_low_limits(route):
        script = route.fetch()
        route.fulfill(response=script, body=script.text().replace("150_000", "50").replace("30_000", "70"))

    settled(server)
    page.route("**/map.js", with_low_limits)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"http://127.0.0.1:{server.port}/#map")
    page.reload()
    page.get_by_text("Zoom in to see single rows.").wait_for()
    page.wait_for_function(
        """() => { const canvas = document.querySelector("canvas.points"), context = canvas.getContext("2d");
                   return context.getImageData(0, 0, canvas.width, canvas.height).data.some((one) => one) }"""
    )
    asked = asked[[url.endswith("/map.js") for url in asked].index(True) :]  # before: the page that was reloaded
    assert any("/map/tiles/0/0/0" in url for url in asked) and not any("/map/ids" in url for url in asked)
    places = np.frombuffer(fetched(server, "map"), "<f4").reshape(-1, 2)
    x, y = places[np.argmax(places[:, 0])].tolist()
    box = page.locator(".over").bounding_box()
    unit = 0.47 * min(box["width"], box["height"])
    page.mouse.move(box["x"] + box["width"] / 2 + x * unit, box["y"] + box["height"] / 2 - y * unit)
    with page.expect_response(lambda answer: "/map/ids" in answer.url and "box=" in answer.url) as loaded:
        page.mouse.wheel(0, -800)
    assert 0 < len(loaded.value.json()) < len(places)
    page.wait_for_load_state("networkidle")
    page.mouse.click(box["x"] + box["width"] / 2 + x * unit, box["y"] + box["height"] / 2 - y * unit)
    page.locator(".side .card").wait_for()
    assert fetched_ids(server)[np.argmax(places[:, 0])] in page.locator(".side").inner_text()


def fetched(server, path):
    address = f"http://127.0.0.1:{server.port}/api/{path}"
    with urlopen(Request(address, headers={"Authorization": f"Bearer {server.token}"})) as answer:
        return answer.read()


def fetched_ids(server):
    return json.loads(fetched(server, "map/ids"))


def test_answers_are_drawn_on_the_map_however_late_they_come(page, server):
    answer(page, 3)
    held = []
    page.route("**/api/answers", lambda route: held.append(route))
    page.keyboard.press("Alt+2")
    page.wait_for_selector(".legend li")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    lines = """() => { const over = document.querySelector("canvas.over");
      return over.getContext("2d").getImageData(0, 0, over.width, over.height).data.some((one) => one > 0) }"""
    assert not page.evaluate(lines)
    held[0].continue_()
    page.wait_for_function(lines)


def test_several_rows_are_taken_out_by_one_dialogue(page, server):
    before = settled(server)
    page.goto(f"http://127.0.0.1:{server.port}/#clusters")
    page.locator(".sheet .choose").first.wait_for()
    for place in (0, 1):
        page.locator(".sheet .choose").nth(place).click()
    chosen = [page.locator(".sheet .choose").nth(place).get_attribute("data-row") for place in (0, 1)]
    page.locator('[data-action="take-out"]').click()
    page.get_by_role("button", name="Apply").click()
    page.get_by_text("This applies to every later clustering.").wait_for()
    after = settled(server)
    assert len({after[row] for row in chosen} - set(before.values())) == 2


@pytest.mark.slow
def test_another_way_to_group_the_rows_is_kept_under_a_name(page, server):
    before = settled(server)
    page.goto(f"http://127.0.0.1:{server.port}/#clusters")
    page.locator('[data-action="regroup"]').click()
    page.locator("#dialog").get_by_label("Name").fill(HARM)
    page.locator("#dialog").get_by_label("Number of groups").fill("2")
    page.keyboard.press("Enter")
    page.locator("[data-grouping]").wait_for()
    page.locator(".overlap").wait_for()
    assert page.locator(".overlap tbody tr").count() == 2
    assert page.locator('.cluster-item[aria-selected="true"]').count() == 1
    assert "Similarity to the clusters" in page.locator(".cluster-detail").inner_text()
    server.kill()
    server.start()
    page.wait_for_selector("#banner", state="hidden")
    page.reload()
    page.locator("[data-grouping]").click()
    page.locator(".cluster-detail .tile").first.wait_for()
    page.locator('[data-cluster="1"]').click()  # clusters are shown as before
    page.locator(".sheet .choose").first.wait_for()
    assert page.locator(".overlap").count() == 0
    page.locator("[data-grouping]").click()
    page.locator('[data-action="remove-grouping"]').click()
    page.locator("[data-grouping]").wait_for(state="detached")
    assert [one["name"] for one in server.get("groupings")] == []
    server.post("undo")
    assert [one["name"] for one in server.get("groupings")] == [HARM]
    assert settled(server) == before


def test_every_control_has_a_name_and_every_view_is_reached_by_keyboard(page, server):
    answer(page, 2)
    for place, view in enumerate(("ask", "map", "clusters", "review", "history", "settings"), start=1):
        page.keyboard.press(f"Alt+{place}")
        page.wait_for_function(f"() => location.hash === '#{view}' && document.querySelector('#view h1')")
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, a, input, select, textarea, [role=img]")].filter((one) => {
                 const label = one.labels?.[0]?.innerText || one.getAttribute("aria-label") || one.innerText;
                 return one.checkVisibility() && !label?.trim(); }).map((one) => one.outerHTML)"""
        )
        assert nameless == [], view
        hidden = page.evaluate(
            """() => [...document.querySelectorAll("#view button, #view a, #view input, #view select")].filter(
                 (one) => one.tabIndex < 0 && !one.disabled).map((one) => one.outerHTML)"""
        )
        assert hidden == [], view
    page.locator("#skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("[document.activeElement.id, location.hash]") == ["view", "#settings"]


@pytest.mark.parametrize("width", [pytest.param(820, marks=pytest.mark.slow), 400])
def test_no_view_is_wider_than_a_tablet_or_a_telephone(page, server, width):
    page.set_viewport_size({"width": width, "height": 800})
    answer(page, 3)
    for place, view in enumerate(("ask", "map", "clusters", "review", "history", "settings"), start=1):
        page.keyboard.press(f"Alt+{place}")
        page.wait_for_selector(LATEST_PART[view])
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, view


# What comes last when a view opens.
LATEST_PART = {
    "ask": ".card-id", "map": ".legend li", "clusters": ".sheet .tile", "review": ".review h1", "history": ".log tbody",
    "settings": "fieldset",
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_text_stands_out_from_its_ground(browser, server, scheme):
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(server.server.page)
    answer(page, 3)
    low = {}
    for view in ("ask", "clusters", "review", "history", "settings", "map"):
        page.goto(f"http://127.0.0.1:{server.port}/#{view}")
        page.wait_for_timeout(300)
        for text, ratio in page.evaluate(CONTRASTS):
            if ratio < 4.5:
                low[view, text] = round(ratio, 2)
    context.close()
    assert low == {}


# Of every element with text of its own: the text, and its contrast as WCAG 2 defines it.
CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((one, place) => one * top[3] + below[place] * (1 - top[3]));
  const light = (colour) => {
    const linear = (one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = colour.map((one) => linear(one / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    if (!element) return [255, 255, 255];
    const own = rgba(getComputedStyle(element).backgroundColor);
    return own[3] >= 1 ? own.slice(0, 3) : over(own, ground(element.parentElement));
  };
  const found = [];
  for (const one of document.body.querySelectorAll("*")) {
    const own = [...one.childNodes].filter((node) => node.nodeType === 3);
    const text = own.map((node) => node.textContent.trim()).join(" ").trim();
    if (!text || one.disabled || !one.checkVisibility() || one.closest("noscript, option")) continue;
    const below = ground(one);
    const [high, low] = [light(over(rgba(getComputedStyle(one).color), below)), light(below)].sort((a, b) => b - a);
    found.push([text.slice(0, 40), (high + 0.05) / (low + 0.05)]);
  }
  return found;
}"""


@pytest.fixture
def suppliers(tmp_path):
    """Sixty suppliers, each of which is in two lists, with dates in two formats. One phone number is unknown."""
    first, second = ("Nord", "Falke", "Linde", "Orion", "Vela", "Saale"), ("papier", "moden", "holz", "glas", "tee")
    names = [f"{one}{two} {word}" for one in first for two in second for word in ("Berlin", "Wien")]
    months = (".7.", " July ")
    days = [(f"20{place:02}-07-2{place % 10}", f"2{place % 10}{months[place % 2]}20{place:02}") for place in range(60)]
    rows = [[f"a{place:02}", "crm", name, f"{7919 * place:07}", days[place][0]] for place, name in enumerate(names)]
    rows += [
        [f"b{place:02}", "shop", name, phone if place else "n/a", days[place][1]]
        for place, (_, _, name, phone, _) in enumerate(rows)
    ]
    with open(tmp_path / "suppliers.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["name", "list", "firm", "phone", "since"], *rows])
    flags = ("--id", "name", "--groups", "small", "--source", "list")
    server = QuickServer(tmp_path / "suppliers.csv", *flags, port=0, token=TOKEN)
    yield server
    server.kill()


def test_many_small_clusters_are_searched_by_the_words_of_their_rows(browser, suppliers):
    client = Client(suppliers.host, TOKEN)
    assert len(set(client.get("/api/labels").values())) == 60
    client.close()
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(suppliers.page)
    page.goto(f"{suppliers.page.split('?')[0]}#clusters")
    page.locator(".cluster-title").first.wait_for()
    assert page.locator(".groupings").is_hidden()
    page.locator("main .search").fill("saaletee wien")
    page.locator(".cluster-item").nth(1).wait_for(state="detached")
    page.locator(".cluster-item").click()
    page.wait_for_function(f"() => {MARKS} === 'crm shop'")
    page.locator('[data-action="merge"]').click()
    page.keyboard.type("nordpapier berlin")
    page.locator(".pick button").nth(1).wait_for(state="detached")
    page.locator(".pick button").click()
    page.locator("#dialog").get_by_text("What would change").wait_for()
    page.close()


def test_rows_that_come_late_are_not_shown_in_another_cluster(browser, suppliers):
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(suppliers.page)
    held = []

    def all_but_the_first(route):
        if held:
            return route.continue_()
        held.append(route)

    page.route("**/api/clusters/*/rows*", all_but_the_first)
    page.goto(f"{suppliers.page.split('?')[0]}#clusters")
    page.locator(".cluster-item").nth(1).click()
    page.locator(".few .card").nth(1).wait_for()
    shown = page.locator(".few .card-id").all_inner_texts()
    with page.expect_response("**/api/clusters/*/rows*"):
        held[0].continue_()
    # Giving a name draws the open cluster again.
    page.locator(".cluster-detail .name input").fill("ours")
    page.keyboard.press("Enter")
    page.locator(".cluster-name", has_text="ours").wait_for()
    page.locator(".few .card").nth(1).wait_for()
    assert page.locator(".few .card-id").all_inner_texts() == shown
    page.close()


def test_a_cell_without_a_value_is_not_marked_as_a_difference(browser, suppliers):
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(suppliers.page)
    page.goto(f"{suppliers.page.split('?')[0]}#clusters")
    page.locator("main .search").fill("a00")
    page.locator(".cluster-item").nth(1).wait_for(state="detached")
    page.locator(".cluster-item").click()
    page.wait_for_function(f"() => {MARKS} === 'crm shop'")
    assert "n/a" in page.locator(".few").inner_text()
    page.close()


def test_a_telephone_shows_two_records_side_by_side_and_the_answers(browser, suppliers):
    page = browser.new_page(viewport={"width": 400, "height": 600})
    page.set_default_timeout(PATIENCE)
    page.goto(suppliers.page)
    page.locator(".cards .card:not(.skeleton)").nth(1).wait_for()
    left, right = (one.bounding_box() for one in page.locator(".cards .card").all())
    assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]
    same = page.locator(".answer.same").bounding_box()
    assert same["y"] + same["height"] <= 600
    page.close()
