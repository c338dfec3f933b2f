"""The pictures of docs/page.md: every view of the page, in light and dark, on the iris flowers and on short texts.

`python docs/screenshots.py [VIEW ...]` needs chromium and Playwright (`pip install '.[dev]'`). It starts a
server of its own on a free port of this machine and writes docs/images/page-*.png.
"""

from __future__ import annotations

import csv
import random
import shutil
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright

from clew import Session
from clew.datasets import load_iris
from clew.web import create_app

IMAGES = Path(__file__).resolve().parent / "images"
TOKEN = "screenshots"
VIEWS = ("ask", "map", "clusters", "review", "history", "settings")
TOPICS = {
    "refund": ["I was charged twice and want my money back", "please refund the order I returned last week",
               "the refund has not reached my account yet"],
    "login": ["I cannot log in, the page says my password is wrong", "the mail to reset my password never arrives",
              "my account is locked after three attempts to log in"],
    "delivery": ["my parcel is late again, where is it now", "the courier left my package at the wrong address",
                 "please change the delivery address of my order"],
}  # fmt: skip
ENDINGS = ("please help", "thank you", "this is urgent", "for the second time", "as I wrote before")


def flowers(folder: Path) -> tuple[Path, dict[str, int]]:
    """The iris data as a file, and the class of each flower."""
    iris = load_iris()
    names = [f"flower {row:03}" for row in range(len(iris.X))]
    columns = ["sepal length", "sepal width", "petal length", "petal width"]
    with open(folder / "iris.csv", "w", newline="") as file:
        csv.writer(file).writerows(
            [["flower", *columns], *([name, *row] for name, row in zip(names, iris.X, strict=True))]
        )
    return folder / "iris.csv", dict(zip(names, iris.y.tolist(), strict=True))


def tickets(folder: Path) -> tuple[Path, dict[str, int]]:
    """Made-up messages to a shop, and the topic of each."""
    rng = random.Random(0)
    truth: dict[str, int] = {}
    with open(folder / "tickets.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "message", "product"])
        for number in range(120):
            topic = rng.randrange(3)
            name = f"T-{1000 + number}"
            truth[name] = topic
            message = f"{rng.choice(list(TOPICS.values())[topic])}, {rng.choice(ENDINGS)}"
            writer.writerow([name, message, rng.choice(["app", "shop", "web"])])
    return folder / "tickets.csv", truth


@contextmanager
def served(data: Path, id_column: str):
    """A server in a thread; gives the session and the address."""
    with Session.create(data.with_suffix(".clew"), data, id_column=id_column, n_clusters=3) as session:
        config = uvicorn.Config(create_app(session, token=TOKEN), port=0, log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.05)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield session, f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join(10)


def answered(session: Session, truth: dict[str, int], count: int, wrong: tuple[int, ...] = ()) -> None:
    """Answer some questions, those at the places `wrong` wrongly, and cluster."""
    for place in range(count):
        question = session.ask("Ann")
        same = (truth[question.left] == truth[question.right]) != (place in wrong)
        session.tell(question, "same" if same else "different", seconds=2 + place % 4)
    session.fit()


def shoot(page: Page, address: str, view: str, name: str) -> None:
    """One view as a picture."""
    page.goto(f"{address}/#{view}")
    page.wait_for_timeout(1500)
    if view == "map":
        box = page.locator(".over").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.58 * box["width"], box["y"] + 0.5 * box["height"])
        page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / f"page-{name}.png")
    print(f"written: page-{name}.png")


def main() -> None:
    """All pictures, or those of the views named."""
    wanted = sys.argv[1:] or VIEWS
    with tempfile.TemporaryDirectory() as where, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        data, truth = flowers(Path(where))
        with served(data, "flower") as (session, address):
            answered(session, truth, 40, wrong=(25, 33))
            for scheme in ("light", "dark"):
                context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
                page = context.new_page()
                page.goto(f"{address}/?token={TOKEN}")
                for view in wanted:
                    shoot(page, address, view, f"{view}-{scheme}")
                context.close()
        data, truth = tickets(Path(where))
        with served(data, "ticket") as (session, address):
            answered(session, truth, 25)
            context = browser.new_context(viewport={"width": 768, "height": 1024}, has_touch=True)
            page = context.new_page()
            page.goto(f"{address}/?token={TOKEN}")
            shoot(page, address, "ask", "text-tablet")
            shoot(page, address, "clusters", "clusters-tablet")
        browser.close()


if __name__ == "__main__":
    main()
