"""What a rewrite to fixed shapes adds: the work that hangs on a selection, over all rows."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from syncscope import kineto
from syncscope.analysis.changes import Supposed
from syncscope.analysis.event_graph import EventGraph, event_graph_of
from syncscope.analysis.fidelity import bounds
from syncscope.analysis.job import job
from syncscope.analysis.price import timed_part
from syncscope.analysis.rank import rank_of
from syncscope.analysis.replay import replay
from syncscope.analysis.summary import summarize
from syncscope.cli import commands
from syncscope.model.finding import Adds, Finding, Fix, Safety
from syncscope.model.report import Advice
from syncscope.model.source import Place, Span
from syncscope.model.trace import Event, Kind, Lane, Trace

US = 1_000
MAIN, QUEUE = Lane(1, 1), Lane(0, 7, 0)
MASK, BACKWARD, ACCURACY = Place("train.py", 26), Place("train.py", 29), Place("train.py", 35)


def training(
    kept: int | None, rows: int, head: int = 900, put: str = "indexing_backward_kernel", accuracy: bool = False
) -> Trace:
    """Eight steps of a body (2 ms on the device), x[mask], a head over the rows that were kept, its backward pass, the body's.

    The head takes `head` us, and as much in the backward pass; `put` is the kernel that brings its gradient back. For an
    `accuracy` the mask selects once more after that.
    """
    events, now, free, correlation = [], 0, 0, 0

    def host(us: float) -> None:
        nonlocal now
        now += int(us * US)

    def launch(name: str, us: float, kind: Kind = Kind.KERNEL) -> None:
        nonlocal free, correlation
        correlation += 1
        events.append(Event(Kind.CALL, "cudaLaunchKernel", MAIN, now, 5 * US, correlation=correlation))
        host(5)
        begin = max(now + 3 * US, free + 500)
        events.append(Event(kind, name, QUEUE, begin, int(us * US), correlation=correlation))
        free = begin + int(us * US)
        host(10)

    def read(name: str, place: Place, known: dict[str, int]) -> None:
        nonlocal now
        begin = now
        launch("DeviceReduceKernel", 2)
        launch("Memcpy DtoH (Device -> Pinned)", 2, Kind.COPY)
        events.append(Event(Kind.CALL, "cudaStreamSynchronize", MAIN, now, max(5 * US, free + 4 * US - now)))
        now = max(now + 5 * US, free + 4 * US)
        launch("gather" if name == "mask_read" else put, 5)
        text = json.dumps(known) if known else ""
        events.append(Event(Kind.READ, name, MAIN, begin, now - begin, place=place, detail=text))

    for step in range(8):
        begin = now
        launch("body", 2000)
        read("mask_read", MASK, {"kept": kept, "rows": rows, "gradient": 1} if kept is not None else {})
        launch("head", head)
        launch("head_backward", head)
        if put:
            read("index_put_", BACKWARD, {})
        launch("body_backward", 3000)
        for _ in range(7):
            host(500)
            launch("small", 30)
        if accuracy:
            read("mask_read", ACCURACY, {"kept": kept or 0, "rows": rows})
            launch("equal", 4)
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", MAIN, begin, now - begin))
    return Trace.of(sorted(events, key=lambda e: e.start), recorder="syncscope")


def test_where_few_rows_are_kept_the_selection_is_left() -> None:
    report = summarize(training(kept=100, rows=1000))
    assert report.plan == ()
    assert "No wait is worth fixing: `" in report.verdict
    mask = next(line for line in report.lines if line.place == MASK)
    assert mask.advice is Advice.LEAVE
    assert "10% of the rows are kept" in mask.why
    assert mask.price is not None
    assert mask.price.alone == pytest.approx(-2 * 9 * 900 * US, rel=0.05)  # forward and backward, ten times as long


def test_where_most_rows_are_kept_it_is_rewritten() -> None:
    report = summarize(training(kept=990, rows=1000))
    assert report.plan
    assert all(line.advice is Advice.REWRITE for line in report.lines)
    assert report.saving is not None
    assert report.saving > 300 * US


def test_where_all_rows_may_take_anything_there_is_no_price() -> None:
    report = summarize(training(kept=10, rows=10_000, put=""))  # nothing may hang on it, or all
    (line,) = (line for line in report.lines if line.advice is Advice.TRY)
    assert line.price is None
    assert line.why.startswith("no saving is known: 0.1% of the rows are kept")
    assert report.plan == ()
    assert "No saving is known for" in report.verdict
    assert "syncscope verify" in report.verdict


def test_the_range_holds_nothing_and_all_of_it() -> None:
    event_graph = event_graph_of(training(kept=100, rows=1000))
    graph = event_graph.graph()
    everything = set(range(len(graph.reads)))
    low, high = bounds(event_graph, graph, everything)
    plain = timed_part(graph).of(replay(event_graph.graph(supposed=Supposed(added="nothing")), everything))
    assert low <= plain < timed_part(graph).of(replay(graph, everything)) <= high


@pytest.mark.parametrize("accuracy", [False, True])
def test_only_what_lies_before_the_gradients_return_hangs_on_it(accuracy: bool) -> None:
    event_graph = event_graph_of(trace := training(kept=100, rows=1000, accuracy=accuracy))
    names = {
        trace.names[trace.name[event_graph._work.row[j]]] for one in event_graph.selections for j in one.work.tolist()
    }
    assert names == {"head", "head_backward"}


def test_without_a_gradients_return_nothing_is_said_to_hang_on_it_but_may() -> None:
    event_graph = event_graph_of(training(kept=100, rows=1000, put=""))
    assert event_graph.selections
    assert all(not len(one.work) and len(one.most) for one in event_graph.selections)


def test_a_rewrite_that_adds_nothing_has_the_price_of_the_wait() -> None:
    trace = training(kept=100, rows=1000)
    fix = Fix("say how many", (), Safety.SAFE)
    finding = Finding("boolean-mask-read", MASK, 1, 26, 9, Span(0, 1), "", 3, fix=fix)
    assert summarize(trace, [finding]).plan
    adding = Finding(
        "boolean-mask-read", MASK, 1, 26, 9, Span(0, 1), "", 3, fix=Fix("", (), Safety.SAFE, adds=Adds.ROWS)
    )
    assert not summarize(trace, [adding]).plan


def test_a_recording_that_does_not_know_says_so() -> None:
    report = summarize(training(kept=None, rows=1000))
    assert report.plan
    assert any("kept was not recorded" in note for note in report.notes)


def test_with_shapes_only_operators_that_were_given_such_rows_count() -> None:
    trace = training(kept=100, rows=1000)
    events = [trace[row] for row in range(len(trace))]
    shapes = {"head": [[100, 8], [8, 4]], "head_backward": [[8, 4], [16, 8]]}
    works = {e.correlation: e.name for e in events if e.kind in (Kind.KERNEL, Kind.COPY)}
    for call in [e for e in events if e.kind is Kind.CALL and e.correlation > 0]:
        dims = shapes.get(works[call.correlation], [[3, 3]])
        text = json.dumps({"Input Dims": dims})
        events.append(Event(Kind.OP, "aten::mm", MAIN, call.start - 1 * US, call.duration + 2 * US, detail=text))
    shaped = Trace.of(sorted(events, key=lambda e: e.start), **trace.meta)
    event_graph = event_graph_of(shaped)
    assert {name for one in event_graph.selections for name in names_of(shaped, event_graph, one.most)} == {"head"}


def steps_of(
    read: str, known: dict[str, int], selects: list[str], then: Mapping[str, float], operator: str = ""
) -> Trace:
    """Six steps: a read that waits for 300 us of work and then selects, and what follows it, us each.

    What is named like `(...)` in it was launched by one `operator`, if its name is given.
    """
    events: list[Event] = []
    now = free = correlation = 0

    def launch(name: str, us: float, kind: Kind = Kind.KERNEL) -> None:
        nonlocal now, free, correlation
        correlation += 1
        events.append(Event(Kind.CALL, "clEnqueueNDRangeKernel", MAIN, now, 5 * US, correlation=correlation))
        begin = max(now + 8 * US, free + 500)
        events.append(Event(kind, name, QUEUE, begin, int(us * US), correlation=correlation))
        now, free = now + 15 * US, begin + int(us * US)

    for step in range(6):
        first = now
        launch("copy_float", 300)
        launch("Memcpy DtoH", 2, Kind.COPY)
        end = max(now + 5 * US, free + 4 * US)
        events.append(Event(Kind.CALL, "clFinish", MAIN, now, end - now))
        now = end
        for name in selects:
            launch(name, 100)
        events.append(Event(Kind.READ, read, MAIN, first, now - first, place=MASK, detail=json.dumps(known)))
        inside = []
        for name, us in then.items():
            if name.startswith("("):
                inside.append(now)
            launch(name.strip("()"), us)
        if operator:
            events.append(Event(Kind.OP, operator, MAIN, inside[0], inside[-1] + 15 * US - inside[0]))
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", MAIN, first, now - first))
    return Trace.of(sorted(events, key=lambda e: e.start), recorder="syncscope")


def test_the_way_back_of_a_gradient_goes_with_its_selection() -> None:
    """On a device whose backward pass asks nothing: an operator puts the rows back, and a copy undoes an earlier layout."""
    then = {
        "head": 400,
        "head_backward": 400,
        "(scan)": 200,
        "(mask_put)": 200,
        "copy_float": 300,
        "body_backward": 900,
    }
    known = {"kept": 990, "rows": 1000, "gradient": 1}
    trace = steps_of("mask_read", known, ["mask_gather"], then, operator="aten::_index_put_impl_")
    event_graph = event_graph_of(trace)
    for one in event_graph.selections:
        assert names_of(trace, event_graph, one.back) == ["scan", "mask_put", "copy_float"]
    graph, everything = event_graph.graph(), set(range(len(event_graph.reads)))
    saved = timed_part(graph).of(replay(graph)) - timed_part(graph).of(replay(graph, everything))
    device = (300 + 100) + (200 + 200 + 300) - 2 * 400 / 99  # the read's own and the way back, less what ten rows add
    assert saved == pytest.approx(device * US, rel=0.05)


def test_zeros_that_are_no_kernel_go_too() -> None:
    then = {"head": 40, "head_backward": 40, "Memset": 9, "(mask_put)": 20, "copy_float": 9, "body_backward": 900}
    known = {"kept": 10, "rows": 1000, "gradient": 1}
    trace = steps_of("mask_read", known, ["mask_gather"], then, operator="aten::_index_put_impl_")
    event_graph = event_graph_of(trace)
    for one in event_graph.selections:
        assert names_of(trace, event_graph, one.back) == ["Memset", "mask_put", "copy_float"]
        assert names_of(trace, event_graph, one.work) == ["head", "head_backward"]


def test_positions_that_were_an_index_have_a_way_back_too() -> None:
    """Its zeros and the sorting of positions go with it, the index itself stays, and so does an embedding's gradient."""
    then = {"index_elementwise_kernel": 20, "loss": 30, "loss_backward": 30, "FillFunctor<float>": 10}
    then |= {"BUnaryFunctor<long, long, long>": 10, "radix_sort": 40, "indexing_backward_kernel": 50}
    then |= {"body_backward": 300, "FillFunctor<float> ": 10, "radix_sort ": 40, "indexing_backward_kernel ": 50}
    trace = steps_of("nonzero", {"kept": 10, "rows": 1000}, ["write_indices<long>"], then)
    event_graph = event_graph_of(trace)
    way_back = ["FillFunctor<float>", "BUnaryFunctor<long, long, long>", "radix_sort", "indexing_backward_kernel"]
    for one in event_graph.selections:
        assert names_of(trace, event_graph, one.back) == way_back
        assert names_of(trace, event_graph, one.work) == ["index_elementwise_kernel", "loss", "loss_backward"]


def names_of(trace: Trace, event_graph: EventGraph, work: NDArray[np.intp]) -> list[str]:
    """What pieces of work are called."""
    return [trace.names[trace.name[event_graph.device_work.row[j]]] for j in work.tolist()]


def recorded(folder: Path, **changes: int) -> str:
    """A recording of which nobody can say what its step takes over all rows; on disk."""
    path = folder / f"few{'-'.join(map(str, changes.values()))}.json.gz"
    kineto.save(training(**{"kept": 10, "rows": 10_000, "put": ""} | changes), path)  # type: ignore[arg-type]
    return str(path)


REFUSED = (
    "No saving is known for `mask_read` at train.py:26: "
    "it keeps so few rows that nobody can say what a step takes over all of them"
)
NEXT = "`syncscope verify` measures"


def test_the_terminal_says_which_line_has_no_price_and_what_to_do_next(tmp_path: Path) -> None:
    said = CliRunner().invoke(commands, ["report", recorded(tmp_path)]).output
    said = " ".join(said.split())
    assert REFUSED in said
    assert "try: no saving is known: 0.1% of the rows are kept" in said
    assert NEXT in said
    assert "leave:" not in said


def test_the_page_says_it_too(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    CliRunner().invoke(commands, ["report", recorded(tmp_path), "-o", str(page)])
    assert "it keeps so few rows that nobody can say" in page.read_text()


def test_diff_says_why_nothing_is_predicted(tmp_path: Path) -> None:
    after = tmp_path / "after.json.gz"
    kineto.save(without_reads(training(kept=10, rows=10_000, put="")), after)
    said = CliRunner().invoke(commands, ["diff", recorded(tmp_path), str(after)]).output
    assert "Nothing is predicted: what a step takes over all rows" in " ".join(said.split())


def without_reads(trace: Trace) -> Trace:
    """The same recording without its reads and their waits."""
    return Trace.of(
        [event for event in trace if event.kind is not Kind.READ and event.name != "cudaStreamSynchronize"],
        recorder="syncscope",
    )


def test_a_line_without_a_price_is_named_beside_a_plan() -> None:
    """A second line reads a number, which has a price; the plan has it, and the verdict has both."""
    trace = training(kept=10, rows=10_000, put="")
    events = list(trace)
    for kernel in [event for event in trace if event.name == "body_backward"]:
        begin, end = kernel.start - 4 * US, kernel.end + 4 * US
        events.append(Event(Kind.CALL, "cudaStreamSynchronize", MAIN, begin, end - begin))
        events.append(Event(Kind.READ, "item", MAIN, begin, end - begin, place=Place("train.py", 40)))
    report = summarize(Trace.of(sorted(events, key=lambda e: e.start), recorder="syncscope"))
    refused = next(line for line in report.lines if line.place == MASK)
    assert refused.advice is Advice.TRY
    assert REFUSED in report.verdict
    if report.plan:
        assert "Fixing one line saves" in report.verdict


def test_a_job_has_no_price_for_it_either() -> None:
    ranks = [rank_of(training(kept=10, rows=10_000, put=""), number, f"rank {number}") for number in range(2)]
    found = job(ranks)
    (line,) = (line for line in found.lines if line.place == MASK)
    assert line.price is None
    assert line.unforeseen
    assert REFUSED in found.verdict
