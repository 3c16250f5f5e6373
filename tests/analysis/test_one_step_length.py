"""A report says how long a step took once, and of which length each of its shares is a part."""

import re
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from drawn import timeline
from effort import draws
from hypothesis import given, settings

from syncscope.analysis.summary import summarize
from syncscope.exporters import _figures as figures
from syncscope.exporters import json as as_json
from syncscope.exporters import terminal
from syncscope.model.report import Report
from syncscope.model.source import Place
from syncscope.model.trace import Event, Kind, Lane, Trace
from syncscope.model.uses import Use

US = 1_000
HOST, QUEUE = Lane(1, 1), Lane(0, 7, 0)
LINE = Place("train.py", 7)
TIME = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
ROUNDED = 0.006  # three figures are off by as much

STEP = st.fixed_dictionaries(
    {
        "between": st.sampled_from([0, 0, 40 * US, 4_000 * US]),  # what passes before it, outside of any step
        "own": st.integers(1, 900).map(lambda us: us * US),  # the host's own work
        "device": st.integers(0, 2_000).map(lambda us: us * US),
        "waits": st.booleans(),
        "warms": st.sampled_from([False, False, False, True]),
    }
)


def recording(steps) -> Trace:
    """Steps that launch one kernel each; some wait for it, on one line, and some ask the driver for memory."""
    events, now, free = [], 0, 0
    for number, step in enumerate(steps):
        now += step["between"]
        begin = now
        if step["warms"]:
            events.append(Event(Kind.CALL, "cudaMalloc", HOST, now, 5 * US))
            now += 5 * US
        events.append(Event(Kind.CALL, "cudaLaunchKernel", HOST, now, 5 * US, correlation=number, place=LINE))
        start = max(now + 8 * US, free)
        free = start + step["device"]
        events.append(Event(Kind.KERNEL, "k", QUEUE, start, step["device"], correlation=number))
        now += 5 * US + step["own"]
        if step["waits"]:
            until = max(now + 2 * US, free + 1 * US)
            events.append(Event(Kind.OP, "aten::item", HOST, now, until - now, place=LINE))
            events.append(Event(Kind.CALL, "cudaStreamSynchronize", HOST, now, until - now, place=LINE))
            now = until
        events.append(Event(Kind.STEP, f"ProfilerStep#{number}", HOST, begin, now - begin))
    return Trace.of(events)


def row(report: Report, name: str) -> str:
    """A row of the summary, with what goes on below it."""
    return re.search(rf"^{name:9}(.*(?:\n {{9}}.*)*)", terminal.export(report), re.MULTILINE)[1]


def times(text: str) -> list[float]:
    """The durations that a row gives, ns."""
    return [float(value) * TIME[unit] for value, unit in re.findall(r"([\d.]+) (ns|us|ms|s)\b", text)]


@settings(max_examples=draws(20), deadline=None)
@given(st.lists(STEP, min_size=1, max_size=9))
def test_the_mean_lies_within_the_shortest_and_the_longest(steps):
    report = summarize(recording(steps))
    told = as_json.as_object(report)
    low, high = told["step_range_ms"]
    assert low <= told["step_ms"] <= high
    mean, *ends = times(row(report, "steps"))
    if len(steps) > 1:
        assert ends[0] <= mean <= ends[1], "in the row itself, as rounded there"
    for one in report.what_if:
        assert one.low <= one.saving <= one.high
    for found in filter(None, [report.answer, *(line.answer for line in report.lines)]):
        if None not in (found.low, found.share):
            assert found.low <= found.share <= found.high


@settings(max_examples=draws(15), deadline=None)
@given(st.lists(STEP, min_size=1, max_size=9))
def test_all_that_was_measured_is_of_that_very_step(steps):
    report = summarize(recording(steps))
    assert report.uses.step == pytest.approx(report.step)
    assert report.by_line.step == pytest.approx(report.step)
    assert sum(one.time for one in report.uses.spent) == pytest.approx(report.step)
    worked = sum(one.time for one in report.uses.spent if one.use in (Use.COMPUTE, Use.COPY, Use.COLLECTIVE))
    assert report.device_busy == pytest.approx(worked / report.step), (
        "busy is what the device does of where a step goes"
    )


@settings(max_examples=draws(15), deadline=None)
@given(st.lists(STEP, min_size=1, max_size=9), st.integers(1, 5_000))
def test_what_savings_are_of_is_said_once_and_is_what_they_are_of(steps, untraced):
    known = {"median_ns": untraced * US, "low_ns": untraced * US, "high_ns": untraced * US, "steps": 5, "left_out": 0}
    trace = recording(steps)
    report = summarize(replace(trace, meta={**trace.meta, "untraced": known, "traced": known}))
    text = terminal.export(report)
    assert "savings are of the former" not in text
    if report.saving is None:
        return
    assert text.count("savings  ") == 1
    (whole,) = times(row(report, "savings"))
    assert whole == pytest.approx(report.saving_step, rel=ROUNDED)
    assert report.bound.step == pytest.approx(report.saving_step)
    told = as_json.as_object(report)
    assert told["answer"]["share"] * told["saving_step_ms"] <= told["saving_step_ms"]
    for line in report.lines:
        assert f" {figures.percent(line.price.share / report.saving_step)} " in text


def test_the_loader_between_two_steps_is_part_of_the_second():
    steps = [{"between": 4_000 * US, "own": 500 * US, "device": 300 * US, "waits": True, "warms": False}] * 6
    report = summarize(recording(steps))
    assert report.step == pytest.approx(4_507 * US)
    assert report.step_range == (report.step, report.step)
    assert report.saving_step == pytest.approx(report.step, rel=0.01), "nothing of a recorder to take off"


def test_an_untraced_length_changes_nothing_of_what_was_measured():
    steps = [{"between": 0, "own": 900 * US, "device": 300 * US, "waits": True, "warms": False}] * 8
    trace = recording(steps)
    known = {"median_ns": 870 * US, "low_ns": 860 * US, "high_ns": 880 * US, "steps": 5, "left_out": 0}
    alone, timed = summarize(trace), summarize(replace(trace, meta={**trace.meta, "untraced": known}))
    assert (timed.step, timed.uses, timed.device_busy) == (
        alone.step,
        replace(alone.uses, words=timed.uses.words),
        alone.device_busy,
    )
    assert timed.saving_step < alone.saving_step
    assert "(860 us to 880 us in 5 steps)" in row(timed, "untraced")
    known["left_out"] = 1
    told = row(summarize(replace(trace, meta={**trace.meta, "untraced": known})), "untraced")
    assert "in 5 of 6 steps, without those that warmed up or were much longer" in " ".join(told.split())
    assert "without what the recorder took" in " ".join(row(timed, "savings").split())


@pytest.mark.parametrize(
    ("median", "said"),
    [(890, ""), (500, "which is the program's own step"), (1_800, "when the machine was slower")],
)
def test_a_step_that_was_not_recorded_is_told_unasked_where_it_was_another(median, said):
    steps = [{"between": 0, "own": 900 * US, "device": 300 * US, "waits": True, "warms": False}] * 8
    known = {"median_ns": median * US, "low_ns": median * US, "high_ns": median * US, "steps": 5, "left_out": 0}
    trace = recording(steps)
    report = summarize(replace(trace, meta={**trace.meta, "untraced": known}))
    told = {name: str(text) for name, text in terminal.summary(report, 80, False)}
    assert ("untraced" in told) is bool(said)
    assert said in told.get("untraced", "")


@settings(max_examples=draws(20), deadline=None)
@given(st.lists(STEP, min_size=4, max_size=9), st.booleans())
def test_no_line_saves_more_than_all_of_them_can(steps, processor):
    """The figures of one report: lines, plan, all waits, and what no fix can pass."""
    trace = recording(steps)
    report = summarize(replace(trace, meta=trace.meta | {"devices": [{"id": 0, "name": "d", "processor": processor}]}))
    if report.saving is None or report.bound is None:
        return
    most = report.bound.saving + 1.0
    assert report.saving <= most
    assert (report.plan_saving or 0.0) <= most
    for line in report.lines:
        if line.price is not None:
            assert line.price.share <= most
            assert line.price.alone <= most
    if report.answer is not None and report.answer.share is not None and not report.answer.along:
        assert report.saving == pytest.approx(report.answer.share * report.saving_step, abs=1.0 + 0.01 * report.saving)


def test_the_empty_region_with_which_a_profiler_ends_is_no_step():
    drawn = """
        steps  1==============|2|
        host   a.<item  >..b...
        gpu    ..AAAA.......BB
    """
    report = summarize(timeline(drawn))
    assert len(report.steps) == 1
    assert report.step == 1_600_000
    assert [line.count for line in report.lines] == [1.0]
    worked = drawn.replace("2|", "2====|").replace("b...", "b...(mul)")
    assert len(summarize(timeline(worked)).steps) == 2
