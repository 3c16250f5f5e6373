"""A number that was read makes the operators it is given to new ones: without the read they are called as ever."""

from dataclasses import replace

import pytest

from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.summary import summarize
from syncscope.exporters import terminal
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace

HOST, QUEUE = Lane(1, 1, label="MainThread"), Lane(1, 7, device=0)
US = 1_000
KNOWN, DECIDED, READ = 20 * US, 200 * US, 30 * US


def recording(
    anew: Flag, in_optimizer: bool = False, taken: int = 0, late: int = 0, others: float | None = None
) -> Trace:
    """Ten operators a step, a read after the fourth; two after it take 200 us instead of 20, perhaps in the optimizer.

    In the third step somebody has `taken` the processor from one of them for so many ns, and in each the ninth's work begins so
    `late`; of the time of the device, a processor then, `others` had that part.
    """
    events, now, number = [], 0, 0
    for step in range(8):
        began = now
        for turn in range(10):
            number += 1
            slow = turn in (5, 7)
            lasts = (DECIDED if slow else KNOWN) + taken * (turn == 5 and step == 2)
            flags = anew if slow else Flag.NONE
            if slow and in_optimizer:
                events.append(Event(Kind.ANNOTATION, "Optimizer.step#SGD.step", HOST, now, lasts + 2 * US))
            events.append(Event(Kind.OP, "aten::mul", HOST, now + US, lasts, flags=flags))
            call = now + lasts - 5 * US
            events.append(Event(Kind.CALL, "clEnqueueNDRangeKernel", HOST, call, 4 * US, correlation=number))
            start = call + 8 * US + late * (turn == 8)
            events.append(Event(Kind.KERNEL, "mul_float", QUEUE, start, 2 * US, correlation=number))
            now += lasts + 3 * US
            if turn == 3:
                events.append(Event(Kind.READ, "item", HOST, now, READ))
                wait = Event(Kind.CALL, "clEnqueueReadBuffer", HOST, now + 10 * US, 15 * US, flags=Flag.BLOCKING)
                events.append(wait)
                now += READ + US
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", HOST, began, now - began))
    trace = Trace.of(events, recorder="syncscope")
    if others is None:
        return trace
    return replace(trace, meta=trace.meta | {"others": others, "devices": [{"name": "a processor", "processor": True}]})


def test_what_was_decided_anew_for_a_number_goes_with_its_read() -> None:
    found, alike = summarize(recording(Flag.ANEW)), summarize(recording(Flag.NONE))
    assert found.saving is not None
    assert alike.saving is not None
    assert found.saving - alike.saving == pytest.approx(2 * (DECIDED - KNOWN), rel=0.01)
    assert found.saving_range is not None
    assert found.saving_range[0] <= alike.saving + US  # what takes the read's place may be another number


def test_what_an_optimizer_decides_anew_stays() -> None:
    graph = event_graph_of(recording(Flag.ANEW, in_optimizer=True))
    assert not graph.taken_out.anew()


def test_time_that_others_took_from_what_was_decided_anew_is_not_the_reads() -> None:
    found, disturbed = summarize(recording(Flag.ANEW)), summarize(recording(Flag.ANEW, taken=50_000 * US))
    assert found.saving is not None
    assert disturbed.saving == pytest.approx(found.saving, rel=0.05)
    assert found.bound is not None
    assert disturbed.bound is not None
    assert disturbed.bound.share > found.bound.share - 0.01  # which nothing may pass, whatever the time was taken from


def test_beside_others_no_more_is_told_than_is_seen_where_a_replay_does_not_give_back_the_recording() -> None:
    """Here a replay says that nearly all goes with a read after which the device is idle for a few us."""
    alone, beside = (summarize(recording(Flag.ANEW, late=60 * US, others=others)) for others in (0.0, 0.9))
    assert alone.unexplained is not None
    assert alone.unexplained > 0.05
    assert alone.step is not None
    idle = alone.lines[0].idle_after / alone.step
    for report in (alone, beside):
        assert report.answer is not None
        assert report.answer.share is not None
    assert alone.answer.share > 5 * idle
    assert beside.answer.share == pytest.approx(idle + 0.1 * (alone.answer.share - idle), rel=0.05)
    assert beside.notes[0].startswith("others had the processors, which are the device, for 90% of its time")
    assert "other programs had the processors for 90% of the device's time" in " ".join(terminal.export(beside).split())
    trusted = summarize(recording(Flag.ANEW, others=0.9))
    assert trusted.answer is not None
    assert trusted.answer.share is not None
    assert trusted.answer.share > 5 * idle
