"""A number that was read makes the operators it is given to new ones: without the read they are called as ever."""

import pytest

from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.summary import summarize
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace

HOST, QUEUE = Lane(1, 1, label="MainThread"), Lane(1, 7, device=0)
US = 1_000
KNOWN, DECIDED, READ = 20 * US, 200 * US, 30 * US


def recording(anew: Flag, in_optimizer: bool = False) -> Trace:
    """Ten operators a step, a read after the fourth; two after it take 200 us instead of 20, perhaps in the optimizer."""
    events, now, number = [], 0, 0
    for step in range(8):
        began = now
        for turn in range(10):
            number += 1
            slow = turn in (5, 7)
            lasts = DECIDED if slow else KNOWN
            flags = anew if slow else Flag.NONE
            if slow and in_optimizer:
                events.append(Event(Kind.ANNOTATION, "Optimizer.step#SGD.step", HOST, now, lasts + 2 * US))
            events.append(Event(Kind.OP, "aten::mul", HOST, now + US, lasts, flags=flags))
            call = now + lasts - 5 * US
            events.append(Event(Kind.CALL, "clEnqueueNDRangeKernel", HOST, call, 4 * US, correlation=number))
            events.append(Event(Kind.KERNEL, "mul_float", QUEUE, call + 8 * US, 2 * US, correlation=number))
            now += lasts + 3 * US
            if turn == 3:
                events.append(Event(Kind.READ, "item", HOST, now, READ))
                wait = Event(Kind.CALL, "clEnqueueReadBuffer", HOST, now + 10 * US, 15 * US, flags=Flag.BLOCKING)
                events.append(wait)
                now += READ + US
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", HOST, began, now - began))
    return Trace.of(events, recorder="syncscope")


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
