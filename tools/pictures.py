"""Make the pictures of the README and of docs/ from a recording: the report in a terminal, the page, and TensorBoard's tab.

    python samples/segmentation.py --device ocl --steps 40 --trace runs/pictures
    python tools/pictures.py runs/pictures
    syncscope run --memory --quiet -o runs/memory samples/segmentation.py --device ocl --steps 24
    python tools/pictures.py runs/memory memory

Needs the extra `views` and a chromium.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from rich.console import Console

import syncscope
from syncscope import api
from syncscope.exporters import html, tensorboard, terminal

PICTURES = ("report", "page", "by-line", "timeline", "memory", "tensorboard")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def main() -> None:
    """Make them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path, help="a recording, or the folder in which the newest is taken")
    parser.add_argument("pictures", nargs="*", default=PICTURES, help=f"which of {', '.join(PICTURES)}; all by default")
    parser.add_argument("--out", type=Path, default=Path("docs"))
    chosen = parser.parse_args()
    file = chosen.recording
    if file.is_dir():
        file = max(file.rglob("*.pt.trace.json.gz"), key=lambda path: path.stat().st_mtime)
    report = api.with_work(syncscope.report(file))
    if "report" in chosen.pictures:
        console = Console(record=True, width=terminal.WIDTH, file=io.StringIO(), force_terminal=True)
        console.print(terminal.render(report, terminal.WIDTH))
        console.save_svg(str(chosen.out / "report.svg"), title="syncscope report")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page_file = Path(folder, "page.html")
        page_file.write_text(html.export(report), encoding="utf-8")
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 1290})
        page.goto(page_file.as_uri())
        page.wait_for_selector("body[data-ready]")
        if "page" in chosen.pictures:
            page.screenshot(path=chosen.out / "page.png")
        if "by-line" in chosen.pictures and page.locator("#by-line").count():
            page.locator("table.takes .spot").first.click()
            page.locator("#by-line").screenshot(path=chosen.out / "by-line.png")
        if "timeline" in chosen.pictures:
            page.evaluate("document.querySelector('.bar').style.position = 'static'")
            page.evaluate("document.querySelector('#timeline').view.wait(1)")
            page.evaluate("document.querySelector('#timeline').view.zoom(2)")
            page.wait_for_timeout(300)
            page.locator("#timeline").screenshot(path=chosen.out / "timeline.png")
        if "memory" in chosen.pictures and report.memory:
            page.evaluate("document.querySelector('#memory .link').click()")
            page.wait_for_timeout(300)
            page.locator("#memory").screenshot(path=chosen.out / "memory.png")
        if "tensorboard" in chosen.pictures:
            tensorboard.write(report, Path(folder, "logs"))
            with server(Path(folder, "logs")) as address:
                page = browser.new_page(viewport={"width": 1280, "height": 860})
                page.goto(f"{address}/#syncscope", wait_until="commit")
                page.frame_locator("iframe").last.locator("body[data-ready]").wait_for(timeout=90_000)
                page.wait_for_timeout(1000)
                page.screenshot(path=chosen.out / "tensorboard.png")
        browser.close()


@contextmanager
def server(logs: Path) -> Iterator[str]:
    """TensorBoard over a folder; its address."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logs), "--port", "0"]
    process: Any = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield next(
            word for line in process.stderr for word in line.split() if word.startswith("http://localhost:")
        ).rstrip("/")
    finally:
        process.terminate()
        process.wait(20)


if __name__ == "__main__":
    main()
