"""A mask that is looked up once: the rows are taken as ever, by positions, and whoever goes on to fixed shapes computes all."""

import json
from dataclasses import replace

import pytest

from syncscope.analysis.summary import summarize
from syncscope.model.answer import Decision
from syncscope.model.finding import Edit, Finding, Fix, Hazard, Safety, Stays
from syncscope.model.source import Place, Span
from syncscope.model.trace import Event, Kind, Lane, Trace

US = 1_000
MAIN, QUEUE = Lane(1, 1), Lane(0, 7, 0)
MASK = Place("train.py", 26)
ONCE = Fix("look it up once", (Edit(Span(0, 1), "x"),), Safety.SAFE, stays=Stays.FIRST, takes=True)


def training(kept: int, taken_by: str = "gather") -> Trace:
    """Twelve steps: a body, x[mask] and y[mask] of a thousand rows, a head over those that were kept, its backward pass."""
    events, now, free, correlation = [], 0, 0, 0

    def launch(name: str, us: float, before: float = 10) -> None:
        nonlocal free, correlation, now
        correlation += 1
        now += int(before * US)
        events.append(Event(Kind.CALL, "cudaLaunchKernel", MAIN, now, 5 * US, correlation=correlation))
        now += 5 * US
        begin = max(now + 3 * US, free + 500)
        events.append(Event(Kind.KERNEL, name, QUEUE, begin, int(us * US), correlation=correlation))
        free = begin + int(us * US)

    def select() -> None:
        nonlocal now, free, correlation
        begin = now
        launch("DeviceReduceKernel", 2)
        correlation += 1
        events.append(Event(Kind.CALL, "cudaMemcpyAsync", MAIN, now, 5 * US, correlation=correlation))
        free = max(now + 3 * US, free + 500) + 2 * US
        events.append(
            Event(Kind.COPY, "Memcpy DtoH (Device -> Pinned)", QUEUE, free - 2 * US, 2 * US, correlation=correlation)
        )
        now += 5 * US
        events.append(Event(Kind.CALL, "cudaStreamSynchronize", MAIN, now, max(5 * US, free + 4 * US - now)))
        now = max(now + 5 * US, free + 4 * US)
        launch(taken_by, 100, before=150)
        detail = json.dumps({"kept": kept, "rows": 1000, "gradient": 1})
        events.append(Event(Kind.READ, "mask_read", MAIN, begin, now - begin, place=MASK, detail=detail))

    for step in range(12):
        begin = now
        launch("body", 500)
        select()
        launch("between", 500)
        select()
        now += 400 * US
        for name, us in (
            ("head", 300),
            ("head_backward", 300),
            ("indexing_backward_kernel", 20),
            ("body_backward", 500),
        ):
            launch(name, us, before=100)
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", MAIN, begin, now - begin))
    return Trace.of(sorted(events, key=lambda e: e.start), recorder="syncscope")


def answered(kept: int, fix: Fix, taken_by: str = "gather"):
    trace = training(kept, taken_by)
    span = Span(0, 1)
    found = Finding("boolean-mask-read", MASK, 0, 26, 9, span, "", 3, fix=fix)
    return summarize(trace, [found], [Hazard("boolean-mask-read", "", "", ("mask_read",))]).answer


def test_what_takes_the_rows_stays():
    """The kernel that gathers takes 100 us in each of the two, of which one waits no longer; and 150 us of the host go on."""
    whole, taken = answered(990, replace(ONCE, takes=False)), answered(990, ONCE)
    assert 0 < taken.offered < whole.offered


@pytest.mark.parametrize(("kept", "more"), [(20, False), (990, True)])
def test_to_have_no_wait_at_all_takes_fixed_shapes_which_pay_where_most_rows_are_kept(kept, more):
    found = answered(kept, ONCE)
    assert (found.share > found.offered + 0.01) is more


def test_a_device_that_takes_rows_by_a_mask_is_tried():
    assert answered(990, ONCE).decision is Decision.FIX
    by_mask = answered(990, ONCE, "mask_gather")
    assert by_mask.decision is Decision.TRY
    assert "more to do" in by_mask.why
