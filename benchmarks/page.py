"""The page as its user feels it: the first card, the next card after a key, and a map of many points.

`python -m benchmarks.page [--quick] [--publish]` needs chromium and Playwright; the server is a process of its own.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page
from sklearn.datasets import make_blobs

from benchmarks._harness import RESULTS, Report, environment, judged, publish
from clew import Session, datasets
from tests.browser import chromium
from tests.server import Server, write_table

N_ROWS, N_POINTS, N_ANSWERS, N_LOADS, N_CLUSTERS = 10_000, 100_000, 60, 5, 20
QUICK_ROWS, QUICK_POINTS, QUICK_ANSWERS, QUICK_LOADS, QUICK_CLUSTERS = 300, 2_000, 6, 1, 5
N_DENSE = 1_000_000  # rows of a map that shows their density
STRATEGIES = ("explore-consolidate", "auto")
# Milliseconds. Two refreshes of a screen with 60 Hz are 33.4 ms.
FIRST, NEXT, FRAME = 2000.0, 100.0, 34.0
# Seconds between a card and its answer: faster than anybody reads.
PAUSE = 0.4
_PATIENCE = 120_000
_FIRST_CARD = ".cards .card:not(.skeleton) .card-id"

# From a key to the first frame that shows another pair.
_WATCH = """() => {
  const ids = ".cards > .card:not(.skeleton) > .card-id";
  const shown = () => [...document.querySelectorAll(ids)].map((one) => one.textContent).join();
  window.waits = [];
  addEventListener("keydown", () => {
    const start = performance.now();
    const before = shown();
    const look = () => {
      const now = shown();
      if (now && now !== before) requestAnimationFrame(() => window.waits.push(performance.now() - start));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, true);
}"""
_FRAMES = """() => {
  window.frames_seen = [];
  let last = performance.now();
  const next = (now) => { window.frames_seen.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
}"""
_DRAWN = """() => {
  const canvas = document.querySelector("canvas.points");
  if (!canvas || !document.querySelector(".legend li")) return false;
  const probe = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let place = 3; place < probe.length; place += 4) if (probe[place]) return true;
  return false;
}"""


def run(*, quick: bool) -> Report:
    """Measure everything."""
    n_rows, n_points, n_answers, n_loads, k = (
        (QUICK_ROWS, QUICK_POINTS, QUICK_ANSWERS, QUICK_LOADS, QUICK_CLUSTERS)
        if quick
        else (N_ROWS, N_POINTS, N_ANSWERS, N_LOADS, N_CLUSTERS)
    )
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as where, chromium() as browser:
        X, groups = make_blobs(n_rows, 16, centers=k, cluster_std=3.0, random_state=0)
        table = write_table(Path(where) / "rows.csv", X)
        for strategy in STRATEGIES:
            rows += _asking(browser, table, strategy, groups, k, n_answers, n_loads)
        X, _ = make_blobs(n_points, 16, centers=k, cluster_std=3.0, random_state=0)
        rows += _map(browser, write_table(Path(where) / "points.csv", X), "-k", str(k))
        if not quick:
            rows += dense_map(browser, Path(where))
    for row in rows:
        limit = row.pop("limit")
        row |= judged(row["p95"], None if quick else limit, " ms")
    columns = {
        "what": "what",
        "rows": "rows",
        "p50": "median, ms",
        "p95": "p95, ms",
        "bar": "bar of p95",
        "verdict": "",
    }
    notes = [
        f"A server process and chromium without a graphics card on one machine; {n_rows:,} rows of 16 columns, "
        f"{n_answers} answers with {PAUSE:g} s between them. A first card from the start of the process is measured "
        "once for each strategy, from loading the page five times."
    ]
    return Report("page", "The page", columns, rows, notes)


def _row(what: str, n_rows: int, times: Sequence[float], limit: float | None) -> dict[str, Any]:
    p50, p95 = np.percentile(times, [50, 95]).tolist()
    return {"what": what, "rows": n_rows, "p50": p50, "p95": p95, "limit": limit}


def _asking(
    browser: Browser, table: Path, strategy: str, groups: NDArray[np.int64], k: int, n_answers: int, n_loads: int
) -> list[dict[str, Any]]:
    project = table.with_name(f"{strategy}.clew")
    arguments = (table, "--id", "name", "-k", str(k), "--project", project, "--strategy", strategy)
    loads = []
    started = time.perf_counter()
    with Server(*arguments) as server:
        for person in range(n_loads):
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            context.add_init_script(f"localStorage.setItem('clew-annotator', 'person {person}')")
            page = context.new_page()
            page.set_default_timeout(_PATIENCE)
            before = time.perf_counter()
            page.goto(server.page)
            page.wait_for_selector(_FIRST_CARD)
            now = time.perf_counter()
            loads.append(1000 * (now - before))
            if person == 0:
                cold = 1000 * (now - started)
            if person < n_loads - 1:
                context.close()
        waits = _answered(page, groups, n_answers)
        context.close()
    return [
        _row(f"first card from the start of the process, {strategy}", len(groups), [cold], None),
        _row(f"first card from loading the page, {strategy}", len(groups), loads, FIRST),
        _row(f"next card after a key, {strategy}", len(groups), waits, NEXT),
    ]


def _answered(page: Page, groups: NDArray[np.int64], n_answers: int) -> list[float]:
    """Answer by keyboard; gives the milliseconds until the next card."""
    page.evaluate(_WATCH)
    for number in range(1, n_answers + 1):
        page.wait_for_selector(_FIRST_CARD)
        names = page.locator(".cards > .card > .card-id").all_inner_texts()
        left, right = (groups[int(name.removeprefix("Row r"))] for name in names)
        page.wait_for_timeout(1000 * PAUSE)
        page.keyboard.press("s" if left == right else "d")
        page.wait_for_function("number => window.waits.length === number", arg=number)
    return list(page.evaluate("window.waits"))


def dense_map(browser: Browser, folder: Path) -> list[dict[str, Any]]:
    """Measure the map of a million rows, clustered by PCKMeans."""
    table, project = folder / "dense.parquet", folder / "dense.clew"
    X, _ = make_blobs(N_DENSE, 16, centers=N_CLUSTERS, cluster_std=3.0, random_state=0)
    columns = {f"c{column}": X[:, column].astype(np.float32) for column in range(X.shape[1])}
    datasets.write_table(table, {"name": [f"r{row}" for row in range(N_DENSE)], **columns})
    chosen = {"n_clusters": N_CLUSTERS, "method": "pck-means", "strategy": "explore-consolidate"}
    with Session.create(project, table, id_column="name", **chosen) as session:
        session.fit()
    return _map(browser, table, "--project", str(project))


def _map(browser: Browser, table: Path, *options: str) -> list[dict[str, Any]]:
    with Server(table, "--id", "name", *options) as server:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(_PATIENCE)
        page.goto(server.page)
        page.wait_for_selector(_FIRST_CARD)
        drawn = []
        for _ in range(2):  # the first has to wait for the first clusters
            started = time.perf_counter()
            page.evaluate("location.hash = 'map'")
            page.wait_for_function(_DRAWN)
            drawn.append(1000 * (time.perf_counter() - started))
            page.evaluate("location.hash = 'ask'")
            page.wait_for_selector(_FIRST_CARD)
        page.evaluate("location.hash = 'map'")
        page.wait_for_function(_DRAWN)
        page.wait_for_timeout(1000)
        n_points = int(page.evaluate("fetch('/api/settings').then(a => a.json()).then(settings => settings.rows)"))
        moved = {what: _frames(page, what) for what in ("panning", "zooming", "pointing")}
        page.close()
    return [
        _row("map drawn, the first clusters waited for", n_points, drawn[:1], None),
        _row("map drawn again", n_points, drawn[1:], FIRST),
        *[_row(f"frame of the map while {what}", n_points, times, FRAME) for what, times in moved.items()],
    ]


def _frames(page: Page, what: str) -> list[float]:
    """Milliseconds between frames while the mouse is at work."""
    box = page.locator(".over").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    if what == "panning":
        page.mouse.down()
    page.evaluate(_FRAMES)
    for step in range(60):
        if what == "zooming":
            page.mouse.wheel(0, -60 if step < 30 else 60)
        else:
            page.mouse.move(x + 150 * np.sin(step / 5), y + 100 * np.cos(step / 7))
    frames = list(page.evaluate("window.frames_seen"))[2:]
    page.mouse.up()
    page.wait_for_timeout(300)
    return frames


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="toy size: shows that it runs, judges nothing")
    parser.add_argument("--publish", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIRECTORY", help="where the JSON file goes")
    options = parser.parse_args(arguments)
    print(", ".join(f"{key} {value}" for key, value in environment().items()))
    report = run(quick=options.quick)
    path = report.write(options.out, "python -m benchmarks.page" + (" --quick" if options.quick else ""))
    if options.publish:
        publish(report)
    print(f"\n{report.title}\n\n{report.table()}\n\n{report.notes[0]}\nwritten: {path}")


if __name__ == "__main__":
    main()
