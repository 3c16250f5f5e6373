"""How long the page of a large recording takes to open, and a frame of its timeline, in a real browser.

    python benchmarks/page_opening.py TRACE [--times 8] [--opens 5]

The recording is TRACE so many times, one after the other, each a little different so that it does not pack better than a real
one. Needs the extra `views` and a chromium. `ready` is the clock from the first byte to the timeline's first picture, `answer`
to the first picture of the page; `main thread` is its processor time until then, which other work on the machine leaves alone.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

import syncscope
from syncscope import api, kineto
from syncscope.exporters import html
from syncscope.model.trace import Trace

FRAMES = """part => {
  const view = document.querySelector('#timeline').view, end = view.events.end, took = [];
  view.show(.4 * end, (.4 + part) * end);
  for (let n = 0; n < 40; n++) {
    const since = performance.now();
    view.from += n;
    view.draw();
    took.push(performance.now() - since);
  }
  return took;
}"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--opens", type=int, default=5)
    chosen = parser.parse_args()
    report = api.with_work(syncscope.report(tiled(kineto.read(chosen.trace), chosen.times), prices=False, name="large"))
    text = html.export(report)
    print(f"{len(report.trace or ()):,} events, a page of {len(text) / 1e6:.2f} MB")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder, "page.html")
        file.write_text(text, encoding="utf-8")
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
        )
        opened = [opens(browser, file) for _ in range(chosen.opens)]
        for number, name in enumerate(("answer", "ready", "main thread")):
            values = sorted(one[number] for one in opened)
            print(f"{name:12} low {values[0]:.2f} s  median {statistics.median(values):.2f}  high {values[-1]:.2f}")
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-ready]", timeout=120_000)
        for part in (0.001, 0.1, 0.6):
            took = sorted(page.evaluate(FRAMES, part))
            print(f"a frame of {part:.1%}: median {statistics.median(took):.1f} ms, high {took[-1]:.1f} ms")
        browser.close()


def opens(browser: Any, file: Path) -> tuple[float, float, float]:
    """Seconds to the page's first picture, to its timeline's, and of the main thread's processor until then."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_selector("body[data-ready]", timeout=120_000)
    ready, painted = page.evaluate("performance.now()"), page.evaluate(PAINTED)
    told = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    page.close()
    return painted / 1e3, ready / 1e3, told["TaskDuration"]


def tiled(trace: Trace, times: int) -> Trace:
    """The recording so often, one after the other."""
    draw, count = np.random.default_rng(0), times * len(trace)
    span = int(trace.end.max() - trace.start.min()) + 1000
    turn = np.repeat(np.arange(times), len(trace))
    rows = np.tile(np.arange(len(trace)), times)
    many = trace.take(rows)
    correlation = np.where(many.correlation >= 0, many.correlation + 10_000_000 * turn, -1)
    duration = (many.duration * draw.uniform(0.9, 1.0, count)).astype(np.int64)
    start = many.start + turn * span + draw.integers(0, 500, count)
    shifted = replace(many, start=start, duration=duration, correlation=correlation, memory=None)
    return shifted.take(np.lexsort((-duration, start)))


if __name__ == "__main__":
    main()
