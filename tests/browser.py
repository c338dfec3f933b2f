"""Debian's chromium, driven by Playwright: for tests, benchmarks and the pictures of the docs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# Nothing but what it is told to load, and no window.
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
          "--disable-sync", "--no-first-run")  # fmt: skip


def program() -> str | None:
    """Where the browser is; None if it is not installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program(), args=list(_FLAGS))
        yield browser
        browser.close()
