"""How fast a device fetches from pinned memory: as its recording shows, else as was measured on its machine."""

from syncscope import kineto
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
