"""What a price lies between, when it is one at all, and what stands in its place."""

import os
import re
from dataclasses import replace

import numpy as np
import pytest
from drawn import Device, timeline
from simulated import Machine
from test_price import US, loop

from syncscope.analysis.compare import compare
from syncscope.analysis.errors import centre, half_interval, half_interval_of_neighbours
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.fidelity import bounds
from syncscope.analysis.summary import summarize
from syncscope.analysis.verdict import next_recording, verdict
from syncscope.cli._diff_words import sentence
from syncscope.cli._verified import summary
from syncscope.model.answer import Decision
from syncscope.model.finding import Finding, Fix, Safety, Span
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace
from syncscope.verify.foretold import foretold
from syncscope.verify.results import Verification
from syncscope.verify.timing import Ratio
from syncscope.verify.values import Values

MS = 1_000_000


def uneven(steps, scale, line=57):
    """A loop whose host works for a time that differs from step to step: what a read costs differs as much."""
    random = np.random.default_rng(0)
    times = [max(0, int(t)) for t in random.normal(2 * MS, scale * MS, steps)]
    return [[("launch", 0, 3 * MS), ("read", line, 0), ("work", time)] for time in times]


def test_the_interval_of_a_mean_is_student_s():
    values = np.random.default_rng(0).normal(0, 1, (4000, 6))
    inside = [abs(row.mean()) <= half_interval(row) for row in values]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)
    assert half_interval(np.array([1.0])) == 0.0


@pytest.mark.parametrize("count", [3, 6, 9, 20, 39])
@pytest.mark.parametrize("far_off", [0.0, 0.15])
def test_an_interval_of_a_middle_holds_it_and_a_few_values_far_off_make_it_little_wider(count, far_off):
    random = np.random.default_rng(0)
    values = random.normal(0, 1, (1500, count))
    values = np.where(random.random(values.shape) < far_off, 15 * values, values)
    found = [centre(row) for row in values]
    assert all(low <= middle <= high for middle, low, high in found)
    assert np.mean([low <= 0 <= high for _, low, high in found]) > 0.93
    if count >= 20:
        width = np.median([high - low for _, low, high in found])
        assert width < (1.1 if not far_off else 0.6) * 2 * np.median([half_interval(row) for row in values])


@pytest.mark.parametrize(("akin", "steps"), [(0.0, 12), (0.4, 40), (0.6, 100)])
def test_steps_that_are_like_their_neighbours_tell_less(akin, steps):
    random = np.random.default_rng(0)
    values = random.normal(0, 1, (2000, steps + 50))
    for n in range(1, steps + 50):
        values[:, n] += akin * values[:, n - 1]
    runs = values[:, 50:]
    inside = np.mean([abs(run.mean()) <= half_interval_of_neighbours(run) for run in runs])
    assert 0.91 < inside < 0.98
    assert np.mean([abs(run.mean()) <= half_interval(run) for run in runs]) == pytest.approx(0.95, abs=0.015) or akin
    assert half_interval_of_neighbours(np.full(6, 3.0)) == 0.0


def test_a_price_has_the_spread_of_the_steps():
    calm, wild = (summarize(Device().run(uneven(20, scale))[0]) for scale in (0.05, 0.9))
    width = [report.saving_range[1] - report.saving_range[0] for report in (calm, wild)]
    assert width[1] > 4 * width[0]
    for report in (calm, wild):
        (line,) = report.lines
        assert report.saving_range[0] <= report.saving <= report.saving_range[1]
        assert line.price.low <= line.price.share <= line.price.high


def test_what_may_be_noise_is_to_be_tried():
    """One dear step in ten, and the others cost little: nobody knows what the next ones do, whatever other loops showed."""
    program = [[("launch", 0, 100 * US), ("read", 57, 0), ("work", 5 * MS)] for _ in range(10)]
    program[4] = [("launch", 0, 7 * MS), ("read", 57, 0), ("work", 5 * MS)]
    report = summarize(Device().run(program)[0])
    assert report.saving > 0.01 * report.saving_step
    low, high = report.saving_range
    assert low < 0.01 * report.saving_step < report.saving < high
    assert report.answer.decision is Decision.TRY
    assert [line.answer.decision for line in report.lines] == [Decision.TRY]
    assert report.answer.low < report.answer.share <= report.answer.high <= report.answer.bound
    assert "--line" in report.verdict  # what settles it


@pytest.mark.parametrize(
    ("safety", "command"),
    [(None, "verify --stale"), (Safety.SUGGEST, "--line"), (Safety.UNSAFE, "--line"), (Safety.SAFE, "--line")],
)
def test_what_settles_a_line_is_a_command_that_can_try_it(safety, command):
    """Of what has no rewrite `verify --line` has nothing to try; of a line that is named it tries suggestions, too."""
    program = [[("launch", 0, 100 * US), ("read", 57, 0), ("work", 5 * MS)] for _ in range(10)]
    program[4] = [("launch", 0, 7 * MS), ("read", 57, 0), ("work", 5 * MS)]
    trace = Device().run(program)[0]
    (line,) = summarize(trace).lines
    fix = Fix("", (), safety) if safety else None
    found = Finding("host-read", line.place, 0, 57, 9, Span(0, 1), "", 3, fix=fix)
    said = summarize(trace, [found]).verdict
    assert command in said
    assert ("explain host-read" in said) == ("--stale" in command)


def test_what_is_launched_for_waits_is_said_to_be_most_of_what_they_cost():
    """A host that is hardly blocked saves much only where what it launches for its waits goes with them."""
    step = [("launch", 0, 5 * MS), ("read", 57, 0), ("work", 5 * MS)]
    usual = summarize(Device().run([step] * 10)[0])
    assert "comes only where" not in usual.verdict
    brief = replace(usual, lines=tuple(replace(line, idle_after=0.4 * MS) for line in usual.lines))
    said = "the device stands still after them for 0.40 ms. The rest comes only where what is launched"
    assert said in verdict(brief).verdict


def test_something_may_be_launched_in_the_place_of_a_value():
    """Unless its rewrite is known to add nothing: a host that gives up a read for a launch has gained little."""
    program = [[("work", 40 * US), ("launch", 0, 5 * US), ("read", 57, 0)] * 8 for _ in range(10)]
    event_graph = event_graph_of(Device().run(program)[0])
    graph, everything = event_graph.graph(), set(range(len(event_graph.reads)))
    low, high = bounds(event_graph, graph, everything)
    event_graph.rewritten(everything)
    plain = bounds(event_graph, graph, everything)
    assert plain[0] == pytest.approx(low)
    assert high - plain[1] > 8 * 40 * US  # the work before each launch is taken for the launching operator's


def test_a_processor_that_others_had_is_no_sure_device():
    """Where it is a GPU, others on the host's processors are not the device's."""
    trace, _ = Device().run(uneven(20, 0.05))
    quiet = summarize(trace)
    for device, wider in (({"processor": True}, 0.3), ({}, 0.0)):
        report = summarize(replace(trace, meta=trace.meta | {"others": 0.3, "devices": [device]}))
        assert report.saving_range[0] == pytest.approx(
            quiet.saving_range[0] - wider * quiet.saving_step, abs=0.26 * quiet.saving
        )
        assert any("which are the device, for 30% of its time" in note for note in report.notes) == (wider > 0)


def test_a_refused_price_says_what_to_do_and_still_orders_the_lines():
    trace = timeline("""
        host   ab..<item       >...c.<tolist>......d
        gpu    .AAA.......BBB.......C.............D
    """)
    report = summarize(trace)
    assert report.saving is None
    assert "Record it again, with each step marked" in report.verdict
    idle = [line.idle_after for line in report.lines]
    assert idle == sorted(idle, reverse=True)


@pytest.mark.parametrize(
    ("recorder", "steps", "said"),
    [
        ("syncscope", 12, "more steps than 12 (`syncscope run --wait 8 --active 24`)"),
        ("", 6, "more steps than 6 (`schedule=torch.profiler.schedule(wait=8, warmup=1, active=20)`)"),
        (
            "syncscope",
            30,
            "other steps, once all is compiled, of a run that makes 68 (`syncscope run --wait 38 --active 30`)",
        ),
    ],
)
def test_what_records_more_steps_is_named_with_its_numbers(recorder: str, steps: int, said: str):
    """Those that were recorded are the ninth and later of the program's."""
    trace = Device().run([[("launch", 0, MS), ("read", 57, 0)]] * steps)[0]
    named = tuple(re.sub(r"#(\d+)$", lambda m: f"#{int(m[1]) + 8}", name) for name in trace.names)
    report = summarize(replace(trace, names=named, meta=trace.meta | {"recorder": recorder}))
    assert said in next_recording(report)
    lent = summarize(replace(report.trace, meta=report.trace.meta | {"stands_for": "cuda"}))
    assert said.replace("syncscope run ", "syncscope run --device ocl ") in next_recording(lent)


def test_recordings_that_differ_by_chance_are_within_noise():
    one, other = uneven(14, 0.5), uneven(14, 0.5)[::-1]
    found = compare(Device().run(one)[0], Device().run(other)[0])
    assert found.within_noise
    assert found.came_true is None  # nothing was predicted
    found = compare(Device().run(loop([57]))[0], Device().run(loop([]))[0])
    assert not found.within_noise
    assert found.came_true
    slower = [[("launch", 0, 9 * MS), ("work", 4 * MS)]] * 6  # something else was changed
    found = compare(Device().run(loop([57]))[0], Device().run(slower)[0])
    assert found.came_true is False


def timed(trace, untraced, traced, off=0.0):
    """The recording as that of a run whose steps took as many ms without one and with, give or take a part."""
    lengths = {
        name: {
            "steps": 20,
            "left_out": 0,
            "median_ns": ms * MS,
            "low_ns": (1 - off) * ms * MS,
            "high_ns": (1 + off) * ms * MS,
        }
        for name, ms in (("untraced", untraced), ("traced", traced))
    }
    return replace(trace, meta=trace.meta | lengths)


def by_host(steps=6, reads=True):
    """8.5 ms a step, or 6.5 without reads, of a host that launches 150 times: any part of that may be the recorder's."""
    launches = [("work", 40 * US), ("launch", 0, 5 * US)] * 150
    waits = [("launch", 0, 2 * MS), ("read", 57, 0)] if reads else []
    return Device().run([[*launches, *waits]] * steps)[0]


def test_a_recorded_step_is_not_compared_with_one_that_was_not():
    recorded = by_host()
    step = compare(recorded, recorded).before.step
    half = compare(timed(recorded, 8, 9), recorded)
    assert half.before.step == half.after.step == step
    assert half.within_noise
    assert "A step of the first took 8.0 ms without a recording" in half.as_recorded
    both = compare(timed(recorded, 8, 9), timed(recorded, 8, 9))
    assert both.before.step == both.after.step == pytest.approx(8 * MS, rel=0.01)
    assert step > 8.4 * MS
    assert not both.as_recorded


def test_where_no_replay_tells_it_steps_are_compared_as_timed_without_a_recording():
    machine = Machine()
    machine.run([[("launch", 0, 9 * MS), ("work", MS), ("item", 0), ("work", 3 * MS)]] * 8)
    machine.events = [each for each in machine.events if not re.search("Memcpy|Synchronize", each["name"])]
    lost = machine.trace()
    recorded = timed(lost, 11, 12)
    report = summarize(recorded)
    assert report.answer.decision is Decision.UNKNOWN
    assert "a thread waits for the device by no recorded call" in report.answer.why
    assert "Decision: unknown. No savings of lines: for 66.7%" in report.verdict
    assert report.bound.share == pytest.approx(0.25, abs=0.01)
    found = compare(recorded, recorded)
    assert found.refusal
    assert report.step == summarize(lost).step, "what was measured without a recording is a row of its own"
    assert found.before.step == found.after.step == 11 * MS
    assert summarize(lost).step == compare(lost, lost).before.step == pytest.approx(12 * MS, rel=0.01)


def test_steps_before_a_recording_that_contradict_it_are_not_compared():
    others = timed(by_host(), 12, 8)
    found = compare(others, others)
    assert found.before.step == found.after.step == pytest.approx(8.8 * MS, rel=0.1)  # no recorder makes a step shorter
    assert any("so those without were others" in note for note in found.before.notes)


def test_noise_is_that_of_the_steps_that_are_compared():
    """Those without recording differ by 40 % from each other, and the recorded ones by nothing."""
    calm, wild = (compare(timed(by_host(), 8, 9, off), timed(by_host(), 7, 7.9, off)) for off in (0.01, 0.4))
    assert not calm.within_noise
    assert wild.within_noise
    assert wild.spread[0] > 20 * calm.spread[0]


def test_a_machine_that_drifts_within_a_run_is_noise():
    """Without recording the second is an eighth shorter, recorded it is longer: one of both saw another machine."""
    drifted = compare(timed(by_host(), 8, 9, 0.01), timed(by_host(), 7, 9.3, 0.01))
    assert drifted.after.step < 0.9 * drifted.before.step
    assert drifted.within_noise
    assert not compare(timed(by_host(), 8, 9, 0.01), timed(by_host(), 7, 9 * 7 / 8, 0.01)).within_noise
    gone = compare(timed(by_host(), 8, 9), timed(by_host(reads=False), 6, 6.6))
    assert not gone.within_noise
    assert gone.came_true


def test_a_range_as_wide_as_the_step_it_predicts_proves_nothing():
    found = compare(Device().run(loop([57]))[0], Device().run(loop([]))[0])
    assert found.came_true
    wide = replace(found, predicted_range=(0.0, 2.1 * found.predicted))
    assert wide.came_true is None
    assert "too wide to tell" in sentence(wide)
    outside = replace(wide, after=replace(wide.after, step=3 * found.predicted))
    assert outside.came_true is False
    promised = Verification("train.py", ratio=Ratio(0.9, 0.8, 1.0, turns=5), predicted=Ratio(0.9, 0.8, 1.0))
    assert promised.came_true
    promised.predicted = Ratio(0.9, 0.4, 1.4)
    assert promised.came_true is None


def test_a_range_as_wide_as_the_step_is_no_price():
    """Other programs had most of the processor that is the device: diff and verify refuse it, a report keeps its figure."""
    quiet = Device().run(loop([57]))[0]
    after = Device().run(loop([]))[0]
    found = compare(quiet, after)
    assert found.came_true
    assert compare(quiet, Device().run([[("launch", 0, 30 * MS)]] * 6)[0]).came_true is False
    trace = replace(quiet, meta=quiet.meta | {"others": 0.9, "devices": [{"processor": True}]})
    report = summarize(trace)
    assert report.answer.share == pytest.approx(report.saving / report.saving_step)
    assert report.answer.high <= report.bound.share  # which no interval passes
    wide = compare(trace, after)
    assert wide.predicted is None
    assert wide.came_true is None
    assert "would take anything between" in sentence(wide)
    (place,) = {Place(os.path.realpath(read.place.path), read.place.line) for read in report.reads}
    read, none = (Values(6, [], {}, [waits] * 6, [], []) for waits in ({(place, "item"): 1}, {}))
    said = foretold(trace, read, none, lambda at: at, lambda at: at)
    assert isinstance(said, str)
    assert "would take anything between" in said
    elsewhere = Values(6, [], {}, [{(Place(place.path, 1), "item"): 1}] * 6, [], [])
    assert (
        foretold(trace, elsewhere, none, lambda at: at, lambda at: at)
        == "the recorded steps have none of the waits that went"
    )
    assert foretold(trace, none, none, lambda at: at, lambda at: at) == "none of the recorded waits went"
    found = Verification("train.py", ratio=Ratio(0.9, 0.8, 1.0, turns=5))
    found.promise(said)
    assert ("predicted", f"nothing: {said}") in summary(found)


def by_device(steps=8, reads=4):
    """A device that works for 3 ms a step on what a host launches in 0.3, and after it on copies of so many values."""
    host, queue, events = Lane(1, 1, label="MainThread"), Lane(1, 7, device=0), []
    now = device = number = 0
    for step in range(steps):
        begin = now
        for _ in range(30):
            number += 1
            events.append(Event(Kind.CALL, "clEnqueueNDRangeKernel", host, now, 5 * US, correlation=number))
            device = max(device + 18 * US, now + 10 * US)
            events.append(Event(Kind.KERNEL, "k", queue, device, 100 * US, correlation=number))
            device, now = device + 100 * US, now + 10 * US
        for line in range(reads):
            number += 1
            start = max(device + 18 * US, now + 8 * US)
            device = start + 2 * US
            spent = device + 3 * US - now
            events.append(Event(Kind.READ, "item", host, now, spent, place=Place("train.py", 50 + line)))
            call = Event(Kind.CALL, "clEnqueueReadBuffer", host, now + US, spent - 2 * US, correlation=number)
            events += [
                replace(call, flags=Flag.BLOCKING),
                Event(Kind.COPY, "copy", queue, start, 2 * US, correlation=number),
            ]
            now += spent
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", host, begin, now - begin))
    return Trace.of(events, recorder="syncscope")


def test_what_stands_in_the_place_of_a_read_works_on_the_device_too():
    """Where the device is what a step waits for, four short kernels for each number that is no longer read make it longer."""
    event_graph = event_graph_of(by_device())
    graph = event_graph.graph()
    low, high = bounds(event_graph, graph, range(len(graph.reads)))
    step = summarize(by_device()).saving_step
    assert low < step < high
    assert high - low > 4 * 4 * (18 + 100) * US
    few = event_graph_of(by_device(reads=1))
    low_of_few, high_of_few = bounds(few, few.graph(), range(len(few.reads)))
    assert high - low > 3 * (high_of_few - low_of_few)
