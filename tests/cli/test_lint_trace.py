"""`syncscope lint --trace`: the linter's findings in the order of what a recording says they cost."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace

MS = 1_000_000  # ns
SOURCE = """\
import torch

def train(model, data):
    for batch in data:
        loss = torch.mean(model(batch))
        cheap = loss.item()
        dear = loss.item()
        never = loss.item()
"""
CHEAP, DEAR, NEVER = 6, 7, 8


def recording() -> Trace:
    """Five steps. The first read waits for a kernel that is nearly done, the second drains the queue and leaves it idle."""
    host, queue = Lane(1, 1, label="python"), Lane(1, 7, 0)
    events = []
    for n in range(5):
        at, number = 20 * n * MS, 10 * n
        events.append(Event(Kind.STEP, f"ProfilerStep#{n}", host, at, 20 * MS))
        for call, kernel, (begin, length) in ((0, "a", (1, 1.85)), (4, "b", (4, 8))):
            events += [
                Event(Kind.CALL, "clEnqueueNDRangeKernel", host, at + call * MS, 50_000, number + call),
                Event(Kind.KERNEL, kernel, queue, at + begin * MS + 100_000, int(length * MS), number + call),
            ]
        for line, begin, end in ((CHEAP, 3, 3.03), (DEAR, 4.2, 12.2)):
            start, length = at + int(begin * MS), int((end - begin) * MS)
            events += [
                Event(
                    Kind.READ, "item", host, start, length, place=Place("/cluster/project/train.py", line), column=16
                ),
                Event(
                    Kind.CALL, "clEnqueueReadBuffer", host, start, length, number + line, flags=Flag.BLOCKING, bytes=4
                ),
                Event(Kind.COPY, "Memcpy DtoH", queue, start + length - 20_000, 9000, number + line, bytes=4),
            ]
    return Trace.of(events)


@pytest.fixture
def lint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text(SOURCE)
    kineto.save(recording(), tmp_path / "run.json.gz")
    return lambda *args: CliRunner().invoke(commands, ["lint", "project", "--no-cache", "--isolated", *args])


def test_the_dearest_comes_first_and_what_costs_nothing_is_left_out(lint):
    assert [f["line"] for f in json.loads(lint("--format", "json").stdout)] == [CHEAP, DEAR, NEVER]
    done = lint("--trace", "run.json.gz", "--format", "json")
    (only,) = json.loads(done.stdout)
    assert only["line"] == DEAR
    assert "its wait costs " in only["message"]
    assert "% of a step" in only["message"]
    assert "not shown: 1 worth nothing, 1 that did not wait in this recording" in done.stderr


def test_of_a_folder_the_newest_recording_counts_as_in_report(lint, tmp_path):
    (tmp_path / "runs" / "train").mkdir(parents=True)
    kineto.save(recording(), tmp_path / "runs" / "train" / "a.pt.trace.json.gz")
    (only,) = json.loads(lint("--trace", "runs", "--format", "json").stdout)
    assert only["line"] == DEAR
    assert "project holds no trace" in lint("--trace", "project").exception.message


def test_a_trace_without_prices_is_an_error_that_says_why(lint, tmp_path):
    kineto.save(recording().take(recording().kind == Kind.STEP), tmp_path / "empty.json")
    done = lint("--trace", "empty.json")
    assert done.exception.message.startswith("empty.json gives no savings")


def test_what_the_recording_does_not_know_is_an_error_that_names_what_it_does(lint, tmp_path):
    (tmp_path / "project" / "train.py").rename(tmp_path / "project" / "other.py")
    error = lint("--trace", "run.json.gz").exception
    assert error.message == "run.json.gz knows no line of project/other.py"
    assert "train.py" in error.hint


MAYBE = """\
import torch

def picked(x: torch.Tensor):
    x = x.exp()
    kept = x + 1

    return kept.unique()
"""


def test_what_a_recording_saw_waiting_is_hot_by_measurement(lint, tmp_path):
    (tmp_path / "project" / "train.py").write_text(MAYBE)
    said = {f["line"]: f["heat"] for f in json.loads(lint("--all", "--format", "json").stdout)}
    assert said[7] == "`picked` may run in every step, and there the host needs what it asks for"
    events = [
        replace(e, name="unique", place=replace(e.place, line=7)) if e.kind == Kind.READ and e.place.line == DEAR else e
        for e in recording()
    ]
    kineto.save(Trace.of(events), tmp_path / "run.json.gz")
    found = json.loads(lint("--trace", "run.json.gz", "--all", "--format", "json").stdout)
    said = [(f["line"], f["heat"], f["confidence"]) for f in found]
    assert said == [(7, "measured: it waited in the recorded steps", "high")]


def test_fixing_everything_and_choosing_by_price_do_not_go_together(lint):
    assert "do not go together" in lint("--trace", "run.json.gz", "--fix").exception.message


TWICE = """\
import torch

def train(model, data):
    for batch in data:
        loss = torch.mean(model(batch))
        cheap = loss.item()
        both = loss.item() + abs(loss).item()
"""


def test_of_two_findings_on_a_line_each_has_the_part_of_its_own_reads(lint, tmp_path):
    (tmp_path / "project" / "train.py").write_text(TWICE)
    first, second = 16, 30
    events = [replace(e, column=second) if e.kind == Kind.READ and e.place.line == DEAR else e for e in recording()]
    kineto.save(Trace.of(events), tmp_path / "run.json.gz")
    (only,) = json.loads(lint("--trace", "run.json.gz", "--format", "json").stdout)
    assert (only["line"], only["column"]) == (DEAR, second)
    brief = [e for e in recording() if e.kind == Kind.READ and e.place.line == DEAR]
    both = [*events, *(replace(e, column=first, start=e.start + e.duration + 1, duration=1_000) for e in brief)]
    kineto.save(Trace.of(both), tmp_path / "run.json.gz")
    found = json.loads(lint("--trace", "run.json.gz", "--format", "json").stdout)
    assert [f["column"] for f in found if f["line"] == DEAR] == [second], "the other costs next to nothing"
