"""The pictures of docs/page.md: every view and every kind of question, in light and dark, on a desk and on a tablet.

`python docs/screenshots.py [SCENE ...]` needs chromium, Playwright and pillow (`pip install '.[dev]'`). It starts a
server of its own for each scene and writes docs/images/page-*.png. `--all DIRECTORY` writes every view of every scene
in every look there: after a change to the page, look through them.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page
from sklearn.datasets import load_digits

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from clew import Session  # noqa: E402
from clew.active import ClusterPairs, DenseMinMax  # noqa: E402
from clew.datasets import load_iris  # noqa: E402
from clew.web import create_app  # noqa: E402
from tests.browser import chromium  # noqa: E402
from tests.web.servers import running  # noqa: E402

TOKEN = "screenshots"
LOOKS = ("desk-light", "desk-dark", "tablet-light")
SIZES = {"desk": (1280, 800), "tablet": (820, 1180)}
# Pictures of the docs: every view in light and dark, and each kind of question once.
_ALL_VIEWS = ("ask", "map", "clusters", "review", "history", "settings")
KEPT = frozenset(
    {f"{view}-{look}" for view in _ALL_VIEWS for look in ("light", "dark")}
    | {"text-light", "image-dark", "series-light", "which-light", "groups-light", "conflict-light", "neighbours-light",
       "stop-light", "probability-light", "image-sheet-light", "text-tablet", "clusters-tablet", "grouping-light"}
)  # fmt: skip
TOPICS = {
    "refund": ["I was charged twice for the same order and would like to have the second payment back",
               "please refund the jacket that I returned last week, the parcel arrived at your warehouse on Monday",
               "the refund you promised me ten days ago has not reached my account yet"],
    "login": ["I cannot log in any more, the page says that my password is wrong although I have just changed it",
              "the mail with the link to reset my password never arrives, not even in the spam folder",
              "my account is locked after three attempts to log in from my new phone"],
    "delivery": ["my parcel is late again and the tracking page has shown the same place since Friday",
                 "the courier left my package at the wrong address and nobody there knows about it",
                 "please change the delivery address of my order, we have moved to another town"],
}  # fmt: skip
ENDINGS = ("please help", "thank you", "this is urgent", "for the second time", "as I wrote before")
RIGHT_TO_LEFT = ("שלום עולם, ההזמנה שלי עדיין לא הגיעה", "مرحبا، لم يصل طلبي بعد وأريد أن أعرف أين هو")


@dataclass
class Scene:
    """A table, what is known of it, and what to take pictures of.

    `shots` names pictures: the view, and what to do in it first.
    """

    data: Path
    truth: dict[str, int]
    id_column: str
    shots: dict[str, tuple[str, Callable[[Page], None] | None]]
    answers: int = 40
    wrong: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


# -- tables ------------------------------------------------------------------------------------------------------------


def flowers(folder: Path) -> tuple[Path, dict[str, int]]:
    """The iris data as a file, and the class of each flower."""
    iris = load_iris()
    names = [f"flower {row:03}" for row in range(len(iris.X))]
    columns = ["sepal length", "sepal width", "petal length", "petal width"]
    rows = ([name, *row] for name, row in zip(names, iris.X, strict=True))
    return written(folder / "iris.csv", ["flower", *columns], rows), dict(zip(names, iris.y.tolist(), strict=True))


def tickets(folder: Path) -> tuple[Path, dict[str, int]]:
    """Made-up messages to a shop, and the topic of each."""
    rng = random.Random(0)
    truth, rows = {}, []
    for number in range(120):
        topic, name = rng.randrange(3), f"T-{1000 + number}"
        truth[name] = topic
        message = f"{rng.choice(list(TOPICS.values())[topic])}, {rng.choice(ENDINGS)}"
        rows.append([name, message, rng.choice(["app", "shop", "web"])])
    return written(folder / "tickets.csv", ["ticket", "message", "product"], rows), truth


def pictures(folder: Path) -> tuple[Path, dict[str, int]]:
    """Drawn shapes, some of them wide, and which shape each is."""
    from PIL import Image, ImageDraw

    rng = random.Random(0)
    truth, rows = {}, []
    for number in range(60):
        shape, name = number % 3, f"picture {number:02}"
        width, height = ((480, 320), (240, 320))[number % 2]
        image = Image.new("RGB", (width, height), (245, 240, 230))
        draw = ImageDraw.Draw(image)
        size = rng.randrange(80, 120)
        x, y = rng.randrange(size, width - size), rng.randrange(size, height - size)
        colour = tuple(rng.randrange(30, 200) for _ in range(3))
        if shape == 0:
            draw.ellipse((x - size, y - size, x + size, y + size), fill=colour)
        else:
            draw.regular_polygon((x, y, size), 3 if shape == 1 else 4, fill=colour)
        image.save(folder / f"{number}.png")
        truth[name] = shape
        rows.append([name, f"{number}.png", rng.choice(["camera", "scanner"])])
    return written(folder / "pictures.csv", ["name", "image", "source"], rows), truth


def curves(folder: Path) -> tuple[Path, dict[str, int]]:
    """Heartbeats of a kind: lists of numbers, and the shape of each."""
    rng = random.Random(0)
    truth, lines = {}, []
    for number in range(90):
        shape, name = number % 3, f"sensor {number:02}"
        truth[name] = shape
        shift = rng.random()
        values = [
            (math.sin(place / 4 + shift), place / 30, 1.0 * (place > 25 + 5 * shift))[shape] + rng.gauss(0, 0.08)
            for place in range(60)
        ]
        where = rng.choice(["hall", "roof", None])
        lines.append(json.dumps({"sensor": name, "reading": [round(value, 3) for value in values], "where": where}))
    path = folder / "curves.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path, truth


def records(folder: Path) -> tuple[Path, dict[str, int]]:
    """Rows that are hard to show: sixty columns, long cells and names, nothing, scripts from right to left."""
    rng = random.Random(0)
    truth, rows = {}, []
    for number in range(80):
        kind, name = number % 4, f"{number:04}-{rng.getrandbits(128):032x}xyz"[:40]
        truth[name] = kind
        figures = [
            None if rng.random() < 0.2 else round(rng.gauss(3 * (kind == place % 4), 1), 3) for place in range(56)
        ]
        note = rng.choice(RIGHT_TO_LEFT)
        path = "/".join(["https://example.org", *["a-very-long-part-of-an-address"] * 5])
        rows.append([name, rng.choice(["Zürich", "København", "", "Łódź"]), note, path, *figures])
    columns = ["record", "city", "remark", "link", *(f"measurement {place:02}" for place in range(56))]
    return written(folder / "records.csv", columns, rows), truth


def customers(folder: Path) -> tuple[Path, dict[str, int]]:
    """Customers who spend little or much, and who, independently, are of three ages."""
    rng = random.Random(0)
    truth, rows = {}, []
    for number in range(90):
        name, spends, age = f"customer {number:02}", rng.randrange(2), rng.randrange(3)
        truth[name] = spends
        spent, visits = rng.gauss(50 + 90 * spends, 6), rng.gauss(3 + 8 * spends, 1)
        years, distance = rng.gauss(25 + 17 * age, 2), rng.gauss(2 + 6 * age, 0.8)
        rows.append([name, round(spent, 2), round(visits), round(years), round(distance, 1)])
    return written(folder / "customers.csv", ["customer", "spent", "visits", "age", "distance"], rows), truth


def digits(folder: Path) -> tuple[Path, dict[str, int]]:
    """Handwritten digits as rows of 64 grey values, and which digit each is."""
    found = load_digits()
    names = [f"digit {row:04}" for row in range(len(found.data))]
    rows = ([name, *values] for name, values in zip(names, found.data.tolist(), strict=True))
    path = written(folder / "digits.csv", ["digit", *(f"pixel {place:02}" for place in range(64))], rows)
    return path, dict(zip(names, found.target.tolist(), strict=True))


def written(path: Path, columns: list[str], rows: Any) -> Path:
    """A table as csv."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


# -- what to do before a picture ---------------------------------------------------------------------------------------


def point(page: Page) -> None:
    """Point at the middle of the map."""
    box = page.locator(".over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.58 * box["width"], box["y"] + 0.5 * box["height"])


def choose(page: Page) -> None:
    """Click two rows that do not belong, in the sheet of all rows."""
    page.locator(".sheet .choose").first.wait_for()
    page.locator(".sheet-head").scroll_into_view_if_needed()
    for place in (1, 4):
        page.locator(".sheet .choose").nth(place).click()
    page.evaluate("document.querySelector('.sheet-head').scrollIntoView()")


def second(page: Page) -> None:
    """Open the second cluster."""
    page.locator(".cluster-item").nth(1).click()
    page.locator(".sheet .choose").first.wait_for()


def regroup(page: Page) -> None:
    """Ask for another way to group the rows, or open the one that is kept since the last look."""
    if page.locator("[data-grouping]").count():
        page.locator("[data-grouping]").click()
        return
    page.locator('[data-action="regroup"]').click()
    page.locator("dialog input").first.fill("by age")
    page.locator("dialog input").last.fill("3")
    page.keyboard.press("Enter")
    page.locator(".cluster-detail .overlap").wait_for()


def resolve(page: Page) -> None:
    """Open the dialogue of a contradiction."""
    page.locator("[data-conflict]").first.click()
    page.locator("dialog .chain").wait_for()


def preview(page: Page) -> None:
    """Look at what a merge would change."""
    page.locator('[data-action="merge"]').click()
    page.locator(".pick button").first.click()
    page.locator("dialog h3").wait_for()


def weighed(page: Page) -> None:
    """Wait for the thorough list."""
    page.get_by_text("Full review: each answer").wait_for()


def neighbours(page: Page) -> None:
    """The map that keeps neighbours."""
    page.locator(".head select").select_option("neighbours")
    page.wait_for_timeout(200)
    page.locator(".making").wait_for(state="hidden", timeout=120_000)


def said(page: Page) -> None:
    """Answer one question, so that the page compares it with the prediction."""
    page.wait_for_selector(".cards .card:not(.skeleton)")
    page.keyboard.press("d")


def filtered(page: Page) -> None:
    """Only some answers."""
    page.locator(".filters select").first.select_option("same")


def events(page: Page) -> None:
    """Everything that happened."""
    page.locator(".tabs button").last.click()


def keys(page: Page) -> None:
    """The list of keys."""
    page.keyboard.press("?")


# -- scenes ------------------------------------------------------------------------------------------------------------


VIEWS: dict[str, Any] = {view: (view, None) for view in ("ask", "clusters", "history", "settings")}
VIEWS["review"] = ("review", weighed)
SCENES: dict[str, Callable[[Path], Scene]] = {
    "table": lambda folder: Scene(
        *flowers(folder), "flower", wrong=(25, 33),
        shots=VIEWS | {"map": ("map", point), "keys": ("ask", keys), "merge": ("clusters", preview),
                       "events": ("history", events), "filtered": ("history", filtered), "after": ("ask", said)},
    ),
    "text": lambda folder: Scene(
        *tickets(folder), "ticket", answers=25, shots={"text": ("ask", None), "text-sheet": ("clusters", choose)}
    ),
    "image": lambda folder: Scene(
        *pictures(folder), "name", answers=12,
        shots={"image": ("ask", None), "image-sheet": ("clusters", choose)},
    ),
    "series": lambda folder: Scene(*curves(folder), "sensor", answers=12, shots={"series": ("ask", None)}),
    "wide": lambda folder: Scene(
        *records(folder), "record", answers=30, wrong=(12, 20), options={"n_clusters": 4},
        shots={f"wide-{view}": shot for view, shot in VIEWS.items()},
    ),
    "which": lambda folder: Scene(
        *flowers(folder), "flower", answers=8, options={"strategy": DenseMinMax(ask="label")},
        shots={"which": ("ask", None)},
    ),
    "which-image": lambda folder: Scene(
        *pictures(folder), "name", answers=8, options={"strategy": DenseMinMax(ask="label", n_neighbors=5)},
        shots={"which-image": ("ask", None)},
    ),
    "groups": lambda folder: Scene(
        *flowers(folder), "flower", answers=0, options={"strategy": ClusterPairs()}, shots={"groups": ("ask", None)}
    ),
    "conflict": lambda folder: Scene(
        *flowers(folder), "flower", answers=30, wrong=(-1,),
        shots={"conflicts": ("review", None), "conflict": ("review", resolve)},
    ),
    "neighbours": lambda folder: Scene(
        *digits(folder), "digit", answers=60, options={"n_clusters": 10},
        shots={"directions": ("map", None), "neighbours": ("map", neighbours)},
    ),
    "probability": lambda folder: Scene(
        *flowers(folder), "flower", answers=12, options={"method": "constrained-gaussian-mixture"},
        shots={"probability": ("clusters", second), "probability-map": ("map", point)},
    ),
    "grouping": lambda folder: Scene(
        *customers(folder), "customer", answers=8, options={"n_clusters": 2}, shots={"grouping": ("clusters", regroup)}
    ),
    "stop": lambda folder: Scene(*flowers(folder), "flower", answers=400, shots={"stop": ("ask", None)}),
}  # fmt: skip


@contextmanager
def served(scene: Scene, name: str) -> Iterator[str]:
    """A server of the scene with its answers given; gives its address."""
    project = scene.data.with_name(f"{name}.clew")
    options = {"n_clusters": 3} | scene.options
    with Session.create(project, scene.data, id_column=scene.id_column, **options) as session:
        answer(session, scene)
        with running(create_app(session, token=TOKEN)) as address:
            yield address


def answer(session: Session, scene: Scene) -> None:
    """Answer some questions, those at the places `wrong` wrongly, and cluster."""
    truth = scene.truth
    for place in range(scene.answers):
        if place == 10:
            session.fit()  # from here on answers are foreseen, or not
        question = session.ask("Ann")
        if question is None or (scene.answers > 100 and session.progress().can_stop):
            break
        if question.kind == "which":
            fits = [row for row in question.candidates if truth[row] == truth[question.left]]
            session.tell(question, fits[0] if fits else "none", seconds=3)
            continue
        same = (truth[question.left] == truth[question.right]) != (place in scene.wrong)
        session.tell(question, "same" if same else "different", seconds=2 + place % 4)
    if -1 in scene.wrong:
        contradict(session, scene)
    session.fit()


def contradict(session: Session, scene: Scene) -> None:
    """Say of two rows that they are the same although a chain of answers says otherwise."""
    said = session.answers()
    apart = next(one for one in said if one.answer == "different")
    friend = next(
        two for one in said if one.answer == "same"
        for side, two in ((one.left, one.right), (one.right, one.left)) if side == apart.left
    )  # fmt: skip
    wrong = scene.data.with_name("wrong.csv")
    written(wrong, ["id_1", "id_2", "answer", "annotator"], [[friend, apart.right, "same", "Ben"]])
    session.import_answers(wrong)


def shoot(browser: Browser, address: str, look: str, scene: Scene, out: Path, wanted: frozenset[str] | None) -> None:
    """The pictures of a scene in one look, or those that are wanted."""
    size, scheme = look.split("-")
    ending = scheme if size == "desk" else size
    shots = {f"{name}-{ending}": shot for name, shot in scene.shots.items()}
    if wanted is not None:
        shots = {name: shot for name, shot in shots.items() if name in wanted}
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=size == "tablet"
    )
    context.add_init_script("localStorage.setItem('clew-annotator', 'Ann')")
    page = context.new_page()
    page.goto(f"{address}/?token={TOKEN}")
    page.get_by_role("button", name="Yes, that was me").click()  # Ann answered before, not in this browser
    for name, (view, prepare) in shots.items():
        page.goto(f"{address}/#{view}")
        page.reload()
        page.wait_for_timeout(1200)
        if prepare is not None:
            prepare(page)
            page.wait_for_timeout(500)
        page.screenshot(path=out / f"page-{name}.png")
        print(f"written: page-{name}.png")
    context.close()


def main() -> None:
    """All pictures, or those of the scenes named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=f"{', '.join(SCENES)}; all unless given")
    parser.add_argument("--all", type=Path, metavar="DIRECTORY", help="write everything there, to look at")
    options = parser.parse_args()
    out, wanted = (ROOT / "docs" / "images", KEPT) if options.all is None else (options.all, None)
    out.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for name in options.scenes or SCENES:
            with tempfile.TemporaryDirectory() as where:
                scene = SCENES[name](Path(where))
                with served(scene, name) as address:
                    for look in LOOKS:
                        shoot(browser, address, look, scene, out, wanted)


if __name__ == "__main__":
    main()
