"""Prices are of the step as it is without a recorder; steps that warm up are no measure of others."""

from dataclasses import replace

import pytest
from drawn import Device

from syncscope.analysis.steps import alike
from syncscope.analysis.summary import summarize
from syncscope.model.report import Step
from syncscope.model.trace import Event, Kind, Lane, Trace

HOST, QUEUE = Lane(1, 1, label="MainThread"), Lane(1, 7, device=0)
US = 1_000
LAUNCHES = 20


def recording(
    added: int, steps: int = 8, work: int = 2 * US, cold: int = 0, times: float = 1.0, reads: int = 0, **meta: object
) -> Trace:
    """A host that launches small kernels every 12 us, reads once a step, and pays `added` ns for each of its calls; in the
    first `cold` steps the driver loads code for a millisecond. All that the host does takes so many `times` as long; `reads`
    of one value each are made between the launches."""
    events, now, number, device = [], 0, 0, 0
    for step in range(steps):
        began = now
        if step < cold:
            events.append(Event(Kind.CALL, "cuLibraryLoadData", HOST, now, 1_000 * US))
            now += 1_000 * US
        for launch in range(LAUNCHES):
            number += 1
            now += round(8 * US * times) + added
            call = round(4 * US * times)
            events.append(Event(Kind.CALL, "cudaLaunchKernel", HOST, now, call, correlation=number))
            now += call
            start = max(now + US, device)
            device = start + work
            events.append(Event(Kind.KERNEL, f"k{launch}", QUEUE, start, work, correlation=number))
            if launch < reads:
                read = round(6 * US * times)
                end = max(now + read, device) + round(3 * US * times)
                events.append(Event(Kind.READ, "item", HOST, now, end - now))
                events.append(Event(Kind.CALL, "cudaStreamSynchronize", HOST, now + read, end - now - read))
                now = end
        now += added
        end = max(now, device) + 3 * US
        events.append(Event(Kind.CALL, "cudaStreamSynchronize", HOST, now, end - now))
        now = end + 5 * US
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", HOST, began, now - began))
    return Trace.of(events, recorder="syncscope", **meta)  # type: ignore[arg-type]


def untraced(length: float) -> dict[str, int]:
    return {"steps": 9, "left_out": 1, "median_ns": round(length), "low_ns": round(length), "high_ns": round(length)}


@pytest.mark.parametrize("added", [500, 2_000, 6_000])
def test_prices_are_of_the_untraced_step(added: int) -> None:
    bare = summarize(recording(0))
    assert bare.saving_step
    heavy = summarize(recording(added))
    assert heavy.saving_step == pytest.approx(bare.saving_step + (LAUNCHES + 1) * added, rel=0.02)
    found = summarize(recording(added, untraced=untraced(bare.saving_step)))
    assert found.saving_step == pytest.approx(bare.saving_step, rel=0.005)
    assert found.saving == pytest.approx(bare.saving, abs=0.02 * bare.saving_step)
    assert found.lean_step is None


@pytest.mark.parametrize("times", [1.2, 1.6, 1.9])
def test_a_read_is_worth_what_it_takes_without_the_recorder(times: float) -> None:
    """A driver that is listened to does everything more slowly, and the calls of reads are no exception."""
    bare = summarize(recording(0, reads=12))
    assert bare.saving_step
    assert bare.saving
    found = summarize(recording(0, times=times, reads=12, untraced=untraced(bare.saving_step)))
    assert found.saving_step == pytest.approx(bare.saving_step, rel=0.005)
    assert found.saving == pytest.approx(bare.saving, abs=0.03 * bare.saving_step)


def test_steps_that_are_shorter_when_recorded_are_others() -> None:
    bare = summarize(recording(0))
    assert bare.saving_step
    said = {"untraced": untraced(2 * bare.saving_step), "traced": untraced(bare.saving_step)}
    found = summarize(recording(0, **said))
    assert found.saving == pytest.approx(bare.saving, rel=0.2)
    assert "untraced" not in found.trace.meta  # it is not obeyed, and
    assert not [note for note in found.notes if "every step was recorded" in note], (
        "some were not, as the other note says"
    )
    assert any("so those without were others" in note for note in found.notes)


def test_a_host_that_ran_ahead_is_no_baseline() -> None:
    """Its steps seemed shorter than the device works in one."""
    work = [[("launch", 0, 90_000_000), ("launch", 0, 5_000_000)]] * 8
    trace, _ = Device().run(work)
    said = {"untraced": untraced(22_000_000), "traced": untraced(95_000_000)}
    found = summarize(replace(trace, meta=trace.meta | said))
    assert "untraced" not in found.trace.meta
    assert any("so the host ran ahead" in note for note in found.notes)
    true = summarize(replace(trace, meta=trace.meta | said | {"untraced": untraced(93_000_000)}))
    assert "untraced" in true.trace.meta


def test_where_every_step_was_recorded_the_recorder_may_be_why_a_step_is_long() -> None:
    """The range holds the step of a recorder that took as much as recorders are seen to, and the report says so."""
    bare, heavy = summarize(recording(0)), recording(0, times=1.3)
    told, untold = summarize(heavy), summarize(replace(heavy, meta={**heavy.meta, "traced": untraced(1.0)}))
    assert told.saving_step is not None
    assert untold.saving_step == pytest.approx(told.saving_step)
    for report, holds in ((told, False), (untold, True)):
        assert report.saving_step is not None
        assert report.saving_range is not None
        assert bare.saving_step is not None
        assert bare.saving is not None
        assert (report.saving_step - report.saving_range[1] <= bare.saving_step - bare.saving) is holds
        assert any("every step was recorded" in note for note in report.notes) is holds


def test_nothing_is_taken_off_where_the_recording_was_no_slower() -> None:
    bare = summarize(recording(0))
    assert bare.saving_step
    assert summarize(recording(0, untraced=untraced(1.1 * bare.saving_step))).saving_step == bare.saving_step


def test_what_the_device_takes_stays() -> None:
    """A step that the device fills is no shorter for a host that does less."""
    full = summarize(recording(1_000, work=40 * US))
    assert full.saving_step
    found = summarize(recording(1_000, work=40 * US, untraced=untraced(0.5 * full.saving_step)))
    assert found.saving_step == pytest.approx(full.saving_step, rel=0.1)


def test_steps_that_warm_up_are_no_measure_of_others() -> None:
    for steps, cold in ((3, 1), (6, 3), (9, 2)):
        found = summarize(recording(0, steps=steps, cold=cold))
        assert found.saving_step == pytest.approx(summarize(recording(0)).saving_step, rel=0.02)
        assert found.saving is not None
        assert found.steady == max(2, steps - cold - (2 if steps - cold >= 4 else 0))
        assert any(f"{cold} of {steps} steps" in note for note in found.notes)


@pytest.mark.parametrize(
    ("settled", "counted"),
    [
        ("+++++++", range(1, 6)),
        ("-+-+++", range(3, 6)),
        ("-----", range(1, 4)),
        ("-+-", range(3)),
        ("++++++-++", range(1, 5)),
    ],
)
def test_the_most_settled_steps_that_follow_one_another(settled: str, counted: range) -> None:
    assert alike([Step(n, 100 * n, 100 * n + 100, 50, mark == "+") for n, mark in enumerate(settled)]) == counted


def test_what_the_recorder_took_is_no_error_of_the_replay() -> None:
    """A range is no wider for a recorder whose time was measured, and taken off."""
    bare = summarize(recording(0))
    assert bare.saving_step
    found = summarize(recording(6_000, untraced=untraced(bare.saving_step)))
    for report in (bare, found):
        assert report.saving_range
        low, high = report.saving_range
        assert high - low < 0.2 * bare.saving_step
