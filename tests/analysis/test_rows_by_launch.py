"""What works on the rows of a selection to which no gradient comes back: its launches are larger where more rows are kept."""

import json
from collections.abc import Sequence

import pytest

from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.summary import summarize
from syncscope.model.trace import Event, Kind, Lane, Trace

US = 1_000
MAIN, QUEUE = Lane(1, 1), Lane(0, 7, 0)
ROWS, BLOCK = 10_000, 128


def field(kept: Sequence[int]) -> Trace:
    """A network over the rows of an input that a mask keeps: forward, a loss of all rows, backward; a step for each number.

    The gradient of the weights adds over rows, launched alike all the time; so are the loss and the optimizer.
    """
    events, now, free, correlation = [], 0, 0, 0

    def launch(name: str, us: float, threads: int, kind: Kind = Kind.KERNEL) -> None:
        nonlocal now, free, correlation
        correlation += 1
        events.append(Event(Kind.CALL, "cudaLaunchKernel", MAIN, now, 5 * US, correlation=correlation))
        grid = json.dumps({"grid": [-(-threads // BLOCK), 1, 1], "block": [BLOCK, 1, 1]})
        begin = max(now + 8 * US, free + 500)
        events.append(Event(kind, name, QUEUE, begin, int(us * US), correlation=correlation, detail=grid))
        free = begin + int(us * US)
        now += 15 * US

    for step, rows in enumerate(kept):
        began = begin = now
        launch("count", 2, ROWS)
        end = free + 4 * US
        events.append(Event(Kind.CALL, "cudaStreamSynchronize", MAIN, now, end - now))
        now = end
        known = json.dumps({"kept": rows, "rows": ROWS})
        events.append(Event(Kind.READ, "mask_read", MAIN, begin, now - begin, detail=known))
        for name in ("encode", "layer"):
            launch(name, 200, rows)
        for number in range(9):
            launch(f"loss {number}", 20, ROWS)
        launch("layer_backward", 200, rows)
        launch("weights", 200, 64)
        launch("encode_backward", 200, rows)
        for number in range(9):
            launch(f"optimizer {number}", 20, 4096)
        now += 500 * US
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", MAIN, began, now - began))
    return Trace.of(sorted(events, key=lambda e: e.start), recorder="syncscope")


def on_rows(trace: Trace) -> set[str]:
    event_graph = event_graph_of(trace)
    work = event_graph.device_work
    return {trace.names[trace.name[work.row[j]]] for one in event_graph.selections for j in one.work.tolist()}


def test_forward_and_backward_pass_are_found_by_their_launches() -> None:
    assert on_rows(field([1000, 1400, 1200, 1600, 1100, 1500, 1300, 1400])) == {
        *("encode", "layer", "layer_backward", "weights", "encode_backward")
    }


@pytest.mark.parametrize("kept", [[1000] * 8, [1000, 1400] * 4], ids=["always as many", "two numbers"])
def test_steps_that_keep_as_many_tell_nothing(kept: list[int]) -> None:
    assert on_rows(field(kept)) == set()


def test_a_network_over_all_rows_is_not_advised() -> None:
    report = summarize(field([1000, 1400, 1200, 1600, 1100, 1500, 1300, 1400]))
    assert report.plan == ()
    (line,) = report.lines
    assert line.price is not None
    assert line.price.alone < -3 * 200 * US  # what took 200 us takes seven times as long
