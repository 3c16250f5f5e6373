"""How fast a device fetches from pinned memory, and what the host loses beside the copy from memory that is not."""

import math

import pytest

from syncscope import kineto
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.price import timed_part
from syncscope.analysis.replay import replay
from syncscope.analysis.taken_out import CACHES, PACE
from syncscope.analysis.uploads import PINNED, pinned_bandwidth
from syncscope.model.trace import Event, Kind, Lane, Meta, Trace

MB = 1 << 20


def uploads(of: str, gigabytes: float, meta: Meta) -> Trace:
    """Copies of 4 MB that take so many ns as that bandwidth means."""
    took = round(4 * MB / gigabytes)
    name = f"Memcpy HtoD ({of} -> Device)"
    copies = [Event(Kind.COPY, name, Lane(0, 7, 0), n * 10**6, took, correlation=n, bytes=4 * MB) for n in range(5)]
    return Trace.of(copies, **meta)


def test_copies_from_pinned_memory_tell() -> None:
    assert round(pinned_bandwidth(uploads("Pinned", 25.0, {"pinned": 50.0})), 1) == 25.0


def test_else_what_was_measured_on_the_machine_holds() -> None:
    trace = uploads("Pageable", 6.0, {"pinned": 50.0})
    assert pinned_bandwidth(kineto.read(kineto.write(trace))) == 50.0


def test_else_no_device_is_slower_than_the_slowest_bus() -> None:
    assert pinned_bandwidth(uploads("Pageable", 6.0, {})) == PINNED


@pytest.mark.parametrize("size", [1 << 12, 8 * MB])
def test_a_host_that_copied_much_works_on_more_slowly(size: int) -> None:
    """Its caches are full of what it copied: beside the copy goes a part of its work up to the next one."""
    events, now, own = [], 0, 900_000
    main, queue = Lane(1, 1), Lane(0, 7, 0)
    for step in range(6):
        begin = now
        for number in range(21):
            correlation = step * 100 + number + 1
            copies = number == 0
            took = 1_000_000 if copies else 0
            call = Event(
                Kind.CALL, "cudaMemcpyAsync" if copies else "cudaLaunchKernel", main, now, took, correlation=correlation
            )
            name = "Memcpy HtoD (Pageable -> Device)" if copies else "k"
            done = Event(
                Kind.COPY if copies else Kind.KERNEL,
                name,
                queue,
                now + 5_000,
                max(1_000, took - 5_000),
                correlation=correlation,
                bytes=size if copies else -1,
            )
            events += [call, done]
            now += took + own // 21
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", main, begin, now - begin))
    event_graph = event_graph_of(Trace.of(sorted(events, key=lambda e: e.start), pinned=50.0))
    graph = event_graph.graph()
    window = timed_part(graph)
    saved = window.of(replay(graph)) - window.of(replay(graph, range(len(event_graph.reads))))
    colder = PACE[0] * (1 - math.exp(-size / CACHES)) * own
    assert saved - 1_000_000 == pytest.approx(colder, abs=20_000)
