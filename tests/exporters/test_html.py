"""The page, as a real browser shows it where one is installed."""

import dataclasses
import os
import re
import shutil

import pytest

from syncscope.exporters import html
from syncscope.model.finding import Finding
from syncscope.model.report import Line, Report
from syncscope.model.source import Place, Span
from syncscope.model.trace import Event, Kind, Lane, Trace

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
STEPS = 4


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    if not CHROMIUM:
        pytest.skip("no chromium is installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens the page of a report; fails if it complains or asks for anything that is not in it."""
    pages, seen = [], []

    def opened(report: Report):
        file = tmp_path / "report.html"
        file.write_text(html.export(report), encoding="utf-8")
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on("console", lambda message: seen.append(message.text))
        page.on(
            "request",
            lambda request: seen.append(request.url) if not request.url.startswith(("file:", "blob:")) else None,
        )
        page.goto(file.as_uri())
        if report.trace is not None:
            page.wait_for_selector("body[data-ready]", timeout=30_000)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert seen == []


def drawn(page) -> dict[str, float]:
    """What the canvas shows, once the frame is done."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return {
        key: float(value)
        for key, value in page.locator("canvas").evaluate("c => ({...c.dataset})").items()
        if key != "under"
    }


def test_the_page_needs_nothing_from_outside(report):
    page = html.export(report)
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?\s*(?:https?:)?//""", page)
    assert "default-src 'none'" in page
    assert "/*" + "TITLE*/" not in page


def test_text_of_the_recording_cannot_become_part_of_the_page(report):
    bad = "</script><img src=x onerror=alert(1)>"
    line = Line("item", Place(bad, 1), 1, 1.0, 0.0, rule=bad)
    page = html.export(dataclasses.replace(report, lines=(line,), name=bad, notes=(bad,), trace=None))
    assert bad not in page
    assert "<img" not in page


def test_figures_lines_and_rewrites_are_shown(report, show):
    page = show(report)
    assert "9.00 ms" in page.inner_text("#summary")
    assert report.verdict in page.inner_text("#summary")
    assert page.locator(".bars button").count() == STEPS
    rows = [row.inner_text() for row in page.locator("tbody tr").all()]
    assert len(rows) == len(report.lines)
    assert "train.py:5" in rows[0]
    assert "background = torch.nonzero" in rows[0]
    assert "12.2 %" in rows[0]
    page.click("tbody details summary")
    assert "+    target = torch.where(target == 9, -1, target)" in page.inner_text("tbody pre")
    assert "boolean-mask-index" in page.inner_text("#findings")
    assert report.notes[0] in page.inner_text("#notes")


def test_the_timeline_draws_zooms_moves_and_finds_waits(report, show):
    page = show(report)
    canvas = page.locator("canvas")
    whole = drawn(page)
    assert (whole["from"], whole["to"]) == (0, 39e6)
    assert whole["drawn"] == len(report.trace) + STEPS
    colours = "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    assert canvas.evaluate(colours) > 5
    canvas.focus()
    page.keyboard.press("+")
    closer = drawn(page)
    assert closer["to"] - closer["from"] == pytest.approx(0.6 * 39e6)
    page.keyboard.press("ArrowRight")
    assert drawn(page)["from"] > closer["from"]
    page.keyboard.press("n")
    assert canvas.get_attribute("data-under") == "host waits 5.00 ms: train.py:5 nonzero"
    first = drawn(page)
    page.keyboard.press("n")
    assert drawn(page)["from"] == pytest.approx(first["from"] + 10e6)
    page.keyboard.press("0")
    assert drawn(page) == whole
    page.mouse.wheel(0, 0)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 600, box["y"] + 30)
    page.mouse.wheel(0, -200)
    zoomed = drawn(page)
    assert zoomed["to"] - zoomed["from"] < 39e6
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 30)
    page.mouse.up()
    assert drawn(page)["from"] > zoomed["from"]
    page.click("text=train.py:5")
    assert canvas.get_attribute("data-under") == "host waits 5.00 ms: train.py:5 nonzero"


def test_a_hundred_thousand_events_are_drawn_as_few_as_there_are_pixels(report, show):
    host, queue = Lane(1, 1), Lane(1, 7, 0)
    events = [Event(Kind.OP, f"op{i % 50}", host, 1000 * i, 900) for i in range(50_000)]
    events += [Event(Kind.KERNEL, f"kernel{i % 50}", queue, 1000 * i + 50, 900) for i in range(50_000)]
    page = show(dataclasses.replace(report, trace=Trace.of(events)))
    assert 1000 < drawn(page)["drawn"] < 5000
    page.evaluate("view.show(25_000_000, 25_020_000)")
    assert drawn(page)["drawn"] == pytest.approx(40, abs=4)


def test_an_empty_report_has_a_page(show):
    page = show(Report())
    assert "nowhere in this recording" in page.inner_text("#lines")
    assert page.locator("canvas").count() == 0


def test_a_finding_without_a_recording_has_a_page(show):
    found = Finding("unique", Place("a.py", 3), 1, 3, 9, Span(0, 1), "waits", 3, True)
    assert "a.py:3" in show(Report(findings=(found,))).inner_text("#findings")
