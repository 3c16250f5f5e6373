"""TensorBoard's tab: what it serves, and what it does not."""

import base64
import gzip
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from importlib.metadata import entry_points

import pytest
from exporters.browser import watched
from exporters.conftest import events

pytest.importorskip("tensorboard")

from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from syncscope import kineto
from syncscope.exporters import tensorboard as exporter
from syncscope.model.trace import Kind, Trace
from syncscope.tensorboard import Tab

THEN = 1_623_247_320  # s, 9 June 2021


@pytest.fixture
def logdir(tmp_path):
    """A run, a broken one, one that is no trace, and a folder outside with what nobody may see."""
    logs = tmp_path / "logs"
    exporter.save(Trace.of(events(), origin_ns=0), logs, "good")
    (logs / "broken.pt.trace.json.gz").write_bytes(b"\x1f\x8b broken")
    (logs / "empty.pt.trace.json").write_text("{}")
    outside = tmp_path / "outside"
    outside.mkdir()
    kineto.save(Trace.of(events()), outside / "secret.pt.trace.json.gz")
    (outside / "train.py").write_text("secret = 1\n" * 20)
    return logs


@pytest.fixture
def ask(logdir):
    """A client of a tab of that folder: the JSON, or the response itself for files."""
    apps = Tab(base_plugin.TBContext(logdir=str(logdir))).get_plugin_apps()

    def answer(path, raw=False, **query):
        response = Client(apps[path]).get(path, query_string=query)
        return response if raw else json.loads(response.get_data())

    answer.apps = apps
    return answer


def named(runs):
    return {run["run"] for run in runs}


def good(runs):
    return next(run["run"] for run in runs if run["run"].startswith("good/"))


def test_tensorboard_finds_the_tab_by_its_entry_point():
    (found,) = entry_points(group="tensorboard_plugins", name="syncscope")
    assert found.load() is Tab
    loads = "import sys, syncscope.tensorboard; print(*[m for m in ('torch', 'numpy', 'libcst') if m in sys.modules])"
    told = subprocess.run(
        [sys.executable, "-c", f"import tensorboard.plugins.base_plugin; {loads}"], capture_output=True, text=True
    )
    assert "torch" not in told.stdout.split()
    assert "libcst" not in told.stdout.split()


def test_a_recording_is_served_with_all_that_its_page_shows(ask):
    runs = ask("/runs")
    assert named(runs) == {good(runs), "broken.pt.trace.json.gz", "empty.pt.trace.json"}
    told = ask("/recording", run=good(runs))
    assert told["shown"]["lines"][0]["op"] == "nonzero"
    assert told["shown"]["uses"]["parts"]
    assert told["shown"]["work"]["kernels"][0]["name"] == "conv2d"
    facts = told["shown"]["timeline"]
    assert len(gzip.decompress(base64.b64decode(told["events"]))) == sum(facts["columns"].values()) * facts["events"]
    assert ask("/summary", run=good(runs))["reads"] == pytest.approx(1.0)


def test_a_run_is_as_old_as_its_recording_and_has_no_syncs_where_nobody_can_count_them(tmp_path):
    """A trace that was exported today may be years old; one that is cut off holds no waits, which is not none."""
    whole = Trace.of(events(), origin_ns=THEN * 10**9)
    exporter.save(whole, tmp_path / "logs", "whole")
    cut = Trace.of([event for event in events() if event.kind is Kind.STEP], origin_ns=0)
    exporter.save(cut, tmp_path / "logs", "cut")
    recordings = Tab(base_plugin.TBContext(logdir=str(tmp_path / "logs"))).recordings
    summaries = {run["run"].split("/")[0]: recordings.summary(run["run"]) for run in recordings.listed()}
    assert summaries["whole"]["recorded"] == THEN - THEN % 60
    assert summaries["whole"]["reads"] == pytest.approx(1.0)
    assert summaries["cut"]["recorded"] is None
    assert summaries["cut"]["reads"] is None


def test_what_is_broken_is_an_answer_and_the_rest_is_there(ask):
    assert "error" in ask("/recording", run="broken.pt.trace.json.gz")
    told = ask("/recording", run="empty.pt.trace.json")
    assert told["error"].startswith("empty.pt.trace.json has no list of traceEvents")
    assert told["hint"]
    assert "error" in ask("/summary", run="empty.pt.trace.json")
    assert "shown" in ask("/recording", run=good(ask("/runs")))


@pytest.mark.parametrize(
    "run",
    [
        "../outside/secret.pt.trace.json.gz",
        "/etc/passwd",
        "",
        "good",
        "good/../../outside/secret.pt.trace.json.gz",
        "\0",
    ],
)
def test_nothing_outside_of_the_logdir_is_opened_by_any_name(ask, logdir, run):
    for name in (run, str(logdir.parent / "outside" / "secret.pt.trace.json.gz")):
        assert set(ask("/recording", run=name)) == {"error", "hint"}


def test_links_and_pipes_in_a_logdir_are_not_opened(logdir):
    outside = logdir.parent / "outside"
    (logdir / "linked.pt.trace.json.gz").symlink_to(outside / "secret.pt.trace.json.gz")
    (logdir / "folder").symlink_to(outside)
    os.mkfifo(logdir / "pipe.pt.trace.json")
    tab = Tab(base_plugin.TBContext(logdir=str(logdir)))
    assert len(tab.recordings.listed()) == 3
    one = logdir / "good" / good(tab.recordings.listed()).rpartition("/")[2]
    one.unlink()
    one.symlink_to(outside / "secret.pt.trace.json.gz")  # between the look and the question
    told = tab.recordings.page(good(tab.recordings.listed()))
    assert set(told) == {"error", "hint"}


def test_the_source_that_a_trace_names_is_not_opened(logdir, monkeypatch):
    monkeypatch.chdir(logdir.parent / "outside")
    tab = Tab(base_plugin.TBContext(logdir=str(logdir)))
    told = gzip.decompress(tab.recordings.page(good(tab.recordings.listed())))
    assert b"train.py" in told
    assert b"secret" not in told
    assert str(logdir.parent).encode() not in told


def test_what_was_concluded_with_the_source_is_shown_as_it_was_written(report, tmp_path):
    exporter.write(report, tmp_path)
    tab = Tab(base_plugin.TBContext(logdir=str(tmp_path)))
    (run,) = tab.recordings.listed()
    told = json.loads(gzip.decompress(tab.recordings.page(run["run"])))
    assert told["shown"]["verdict"] == report.verdict
    assert told["shown"]["page"]["source"]["train.py"]
    (page,) = tmp_path.rglob("*.page.json.gz")
    for spoiled in (b"", b"\x1f\x8b", gzip.compress(b"[]"), gzip.compress(b'{"shown": {}, "events": 3}')):
        page.write_bytes(spoiled)
        tab = Tab(base_plugin.TBContext(logdir=str(tmp_path)))
        told = json.loads(gzip.decompress(tab.recordings.page(run["run"])))
        assert told["shown"]["timeline"]["events"]


def test_a_folder_without_recordings_has_no_tab(tmp_path):
    for logdir in (str(tmp_path), str(tmp_path / "nowhere"), None, "gs://bucket/logs"):
        tab = Tab(base_plugin.TBContext(logdir=logdir))
        assert not tab.is_active()
        assert tab.recordings.listed() == []


def test_answers_have_the_headers_that_tensorboard_asks_for(ask):
    for path in ("/runs", "/page.css", "/tensorboard.js"):
        response = ask(path, raw=True)
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert ask("/page.js", raw=True).headers["Content-Type"].startswith("text/javascript")
    client = Client(ask.apps["/runs"])
    assert client.post("/runs").status_code == 405
    packed = client.get("/runs", headers={"Accept-Encoding": "gzip"})
    assert json.loads(gzip.decompress(packed.get_data())) == ask("/runs")


WITH_OURS = """
from importlib.metadata import entry_points
from absl import app
from tensorboard import main_lib, program
from tensorboard.plugins.core import core_plugin

main_lib.global_init()
(ours,) = entry_points(group="tensorboard_plugins", name="syncscope")
tensorboard = program.TensorBoard(plugins=[core_plugin.CorePluginLoader(), ours.load()])
app.run(tensorboard.main, flags_parser=tensorboard.configure)
"""  # of others one reads each recording, in a process that it starts anew


@pytest.fixture
def server(logdir):
    """TensorBoard itself over that folder; its address."""
    command = [sys.executable, "-c", WITH_OURS, "--logdir", str(logdir), "--port", "0", "--load_fast=false"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if "http://localhost:" in line:
                yield "http://localhost:" + line.partition("http://localhost:")[2].partition("/")[0]
                break
        else:
            pytest.fail("TensorBoard did not start")
    finally:
        process.terminate()
        process.wait(200)


@pytest.fixture
def of_2021(logdir):
    """A recording that was made long before it was written here, and one that holds no wait, since it is cut."""
    exporter.save(Trace.of(events(), origin_ns=THEN * 10**9), logdir, "old")
    exporter.save(Trace.of([event for event in events() if event.kind is Kind.STEP], origin_ns=0), logdir, "cut")


def test_the_tab_in_tensorboard(of_2021, server, logdir, browser):
    with watched(browser, ours="/plugin/syncscope/") as page:
        for _ in range(500):
            listing = json.load(urllib.request.urlopen(f"{server}/data/plugins_listing"))
            if listing.get("syncscope", {}).get("enabled"):
                break
            time.sleep(0.2)
        assert listing["syncscope"]["tab_name"] == "Syncscope"
        page.goto(f"{server}/#syncscope", timeout=200_000, wait_until="commit")
        frame = page.frame_locator("iframe").last
        frame.locator("body[data-ready]").wait_for(timeout=200_000)
        frame.locator("select[aria-label=Recording]").select_option(label="empty.pt.trace.json")
        frame.locator(".problem").first.wait_for(timeout=200_000)
        assert "has no list of traceEvents" in frame.locator(".problem").first.inner_text()
        frame.locator("#runs .link", has_text="good/").click()
        frame.locator("canvas").wait_for(timeout=200_000)
        frame.locator("body[data-ready]").wait_for(timeout=200_000)
        assert "nonzero" in frame.locator("#lines").inner_text()
        frame.locator("#runs >> text=Read all").click()
        frame.locator("#runs tr", has_text="broken.pt.trace.json.gz").locator(".problem").wait_for(timeout=200_000)
        frame.locator("#runs figure").first.wait_for(timeout=200_000)
        cells = {name: frame.locator("#runs tr", has_text=f"{name}/").locator("td") for name in ("old", "cut", "good")}
        assert "2021" in cells["old"].nth(1).inner_text(), "when it was recorded, and not when it was written"
        assert cells["cut"].nth(1).inner_text() == "–"
        assert [cells[name].nth(4).inner_text() for name in ("old", "cut", "good")] == ["1.00", "–", "1.00"]
        steps = frame.locator("#runs figure").first
        assert steps.inner_text().startswith("step, from the oldest to the newest")
        titles = steps.locator("circle title").all_text_contents()
        assert titles[0].startswith("old/"), "the oldest by its recording is first, though it was written last"


def test_a_folder_that_is_swapped_for_a_link_while_it_is_asked_for_leads_nowhere(logdir, monkeypatch):
    outside = logdir.parent / "outside"
    tab = Tab(base_plugin.TBContext(logdir=str(logdir)))
    run = good(tab.recordings.listed())
    hidden = [replace(event, name=event.name.replace("conv2d", "secret")) for event in events()]
    kineto.save(Trace.of(hidden), outside / run.rpartition("/")[2])
    really = os.open

    def swapping(path, flags, *args, **kwargs):
        """Just before the file itself is opened, and back as soon as it is: whoever looks at the path sees nothing."""
        if not str(path).endswith(".pt.trace.json.gz"):
            return really(path, flags, *args, **kwargs)
        (logdir / "good").rename(logdir / "aside")
        (logdir / "good").symlink_to(outside)
        try:
            return really(path, flags, *args, **kwargs)
        finally:
            (logdir / "good").unlink()
            (logdir / "aside").rename(logdir / "good")

    monkeypatch.setattr(os, "open", swapping)
    monkeypatch.setattr(os, "supports_dir_fd", {swapping})
    told = tab.recordings.page(run)
    assert isinstance(told, bytes), told
    assert b"secret" not in gzip.decompress(told)


NESTED = b'{"shown": ' + b"[" * 200_000 + b"]" * 200_000 + b', "events": ""}'
DAMAGED = {
    "cut off": lambda whole: gzip.compress(whole)[:-40],
    "a byte turned": lambda whole: gzip.compress(whole)[:300] + b"\x00" + gzip.compress(whole)[301:],
    "nested": lambda _: gzip.compress(NESTED),
    "no number": lambda whole: gzip.compress(re.sub(rb'"step_ms": [\d.]+', b'"step_ms": NaN', whole, count=1)),
    "half of its keys": lambda _: gzip.compress(b'{"shown": {"schema": 1, "verdict": "", "reads": []}, "events": ""}'),
    "a list that is none": lambda whole: gzip.compress(whole.replace(b'"lines": [', b'"lines": 3, "other": [', 1)),
    "63 MB": lambda _: gzip.compress(
        b'{"shown": {"schema": 1, "lines": [' + b"{}," * 21_000_000 + b'{}]}, "events": ""}', 1
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_page_does_not_hide_its_recording(report, tmp_path, damage):
    exporter.write(report, tmp_path)
    (page,) = tmp_path.rglob("*.page.json.gz")
    page.write_bytes(DAMAGED[damage](gzip.decompress(page.read_bytes())))
    tab = Tab(base_plugin.TBContext(logdir=str(tmp_path)))
    (run,) = tab.recordings.listed()
    told = json.loads(gzip.decompress(tab.recordings.page(run["run"])))
    assert told["shown"]["timeline"]["events"]
    assert tab.recordings.summary(run["run"])["verdict"]
