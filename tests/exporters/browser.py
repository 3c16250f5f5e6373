"""A real browser, where one is installed, that lets nothing outside be reached and tells whatever a page complains of."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
NEAR = ("file:", "blob:", "data:", "about:", "http://localhost:", "http://127.0.0.1:")


class Browser:
    """All pages that are opened alike are drawn by one process, as long as one of them is there: one stays. To start a process
    takes twice as long as to draw a page."""

    def __init__(self, opened):
        self.opened, self.contexts = opened, {}

    def new_page(self, *, viewport, color_scheme="light", **options):
        context = self.contexts.get(tuple(options.items()))
        if context is None:
            context = self.contexts[tuple(options.items())] = self.opened.new_context(**options)
            context.new_page().goto(Path(__file__).as_uri())
        page = context.new_page()
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=color_scheme)
        return page


@contextlib.contextmanager
def chromium():
    """The browser; the test skips without one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    if not CHROMIUM:
        pytest.skip("no chromium is installed")
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--process-per-site"]
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        yield Browser(opened)
        opened.close()


@contextlib.contextmanager
def watched(browser, ours="", **options):
    """A new page; what it complains of, and whom it asks that is not on this machine, fails the test. In a page of others only
    complaints of files whose address holds `ours` count.
    """
    page, seen = browser.new_page(**({"viewport": {"width": 1200, "height": 900}} | options)), []
    page.set_default_timeout(200_000)

    def said(message):
        if message.type in ("error", "warning") and ours in message.location["url"]:
            seen.append(message.text)

    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("console", said)
    page.on("request", lambda request: None if request.url.startswith(NEAR) else seen.append(request.url))
    page.route(lambda url: not url.startswith(NEAR), lambda route: route.abort())
    yield page
    if page.url.startswith("file:"):
        page.evaluate("localStorage.clear()")  # what it keeps for the next time is none of the next test's
    page.close()
    assert seen == []


def shown(page, path: Path):
    """The page of a file, once it is drawn."""
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]", timeout=200_000)
    return page


def drawn(page) -> dict[str, float]:
    """What the canvas shows, once the frame is done."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    told = page.locator("canvas").evaluate("c => ({...c.dataset})")
    return {key: float(told[key]) for key in ("from", "to", "drawn", "arrows")}


def selected(page) -> str:
    drawn(page)
    return page.locator("canvas").get_attribute("data-selected")


def view(page, script: str):
    return page.evaluate(f"() => {{ const view = document.querySelector('#timeline').view; return {script}; }}")
