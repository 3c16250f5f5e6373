"""Recordings drawn in ASCII and recordings of a simulated device: what the tests of the analysis begin with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from syncscope.model import trace as model
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace

COLUMN = 100_000  # ns
HOST = re.compile(r"(?P<launch>[a-z]+)|<(?P<wait>[\w ]*?) *>|\((?P<op>[\w:]*?) *\)")
DEVICE = re.compile(r"(?P<work>([A-Z])\2*)")
STEP = re.compile(r"(?P<step>\d)=*\|")


def timeline(picture: str) -> Trace:
    """A trace from a picture; one column is 100 us.

    ```text
    steps  1=============|2============|
    host   a.b.<item  >...c
    gpu    ..AAAAA.BBBB....CCC
    ```

    On a host row `a` launches the work `A`, `<item >` is an `aten::item` that waits for the device, `<sync>` a bare
    cudaDeviceSynchronize and `(name)` an operator. Every row whose name begins with `gpu` is a queue, every other a thread.
    """
    events = []
    for number, row in enumerate(line for line in picture.splitlines() if line.strip()):
        name, _, drawn = row.strip().partition(" ")
        drawn = row[row.index(name) + len(name) :]
        offset = row.index(name) + len(name)
        if name == "steps":
            found = STEP.finditer(drawn)
            events += [_event(Kind.STEP, f"ProfilerStep#{m['step']}", Lane(1, 1), m, offset) for m in found]
        elif name.startswith("gpu"):
            for m in DEVICE.finditer(drawn):
                work = _event(Kind.KERNEL, m[2], Lane(0, number, 0), m, offset)
                events.append(_with(work, correlation=ord(m[2].lower())))
        else:
            lane = Lane(1, 1 if name == "host" else number)
            for m in HOST.finditer(drawn):
                events += _host(m, lane, offset)
    first = min(e.start for e in events)
    return Trace.of([_with(e, start=e.start - first) for e in events])


def _host(m: re.Match[str], lane: Lane, offset: int) -> Iterable[Event]:
    if m["launch"]:
        for i, letter in enumerate(m["launch"]):
            start = (m.start() + offset + i) * COLUMN
            yield Event(Kind.CALL, "cudaLaunchKernel", lane, start, COLUMN, correlation=ord(letter))
    elif m["op"]:
        yield _event(Kind.OP, f"aten::{m['op']}", lane, m, offset)
    elif m["wait"] == "sync":
        yield _event(Kind.CALL, "cudaDeviceSynchronize", lane, m, offset)
    else:
        yield _event(Kind.OP, f"aten::{m['wait']}", lane, m, offset)
        yield _event(Kind.CALL, "cudaStreamSynchronize", lane, m, offset)


def _event(kind: Kind, name: str, lane: Lane, m: re.Match[str], offset: int) -> Event:
    return Event(kind, name, lane, (m.start() + offset) * COLUMN, (m.end() - m.start()) * COLUMN)


def _with(event: Event, **changes) -> Event:
    from dataclasses import replace

    return replace(event, **changes)


def device_early(trace: Trace, by: int) -> Trace:
    """The same recording where the device's clock is that many ns behind the host's."""
    events = ({s: getattr(e, s) for s in Event.__slots__} for e in trace)
    return Trace.of(Event(**(e | {"start": e["start"] - by * (e["kind"] in model.DEVICE)})) for e in events)


@dataclass
class Device:
    """A host and in-order queues: runs a program (with or without its reads) and records what happens.

    A program is a list of steps, a step a list of ("work", ns), ("launch", queue, ns), ("read", line, queue) and
    ("wait", queue, other): cudaStreamWaitEvent, which leaves no record of the queues.
    """

    launch: int = 3_000  # ns that each takes on the host
    latency: int = 5_000
    gap: int = 1_000
    returns: int = 2_000
    depth: int = 2**31  # launches that may be enqueued and not begun
    events: list[Event] = field(default_factory=list)

    def run(self, program, without=()) -> tuple[Trace, int]:
        """The recording and when everything had ended."""
        self.events.clear()
        host, free, calls, begun, gates = 0, {}, 0, [], {}
        for number, step in enumerate(program):
            begin = host
            for what, *rest in step:
                calls += 1
                if what == "work":
                    host += rest[0]
                elif what == "launch":
                    queue, duration = rest
                    call = host
                    if len(begun) >= self.depth:
                        host = max(host, begun[-self.depth])
                    start = max(host + self.latency, free.get(queue, -self.gap) + self.gap, gates.pop(queue, 0))
                    begun.append(start)
                    self._call("cudaLaunchKernel", call, host - call + self.launch, calls)
                    lane = Lane(0, 7 + queue, 0)
                    self.events.append(Event(Kind.KERNEL, f"k{calls}", lane, start, duration, correlation=calls))
                    free[queue] = start + duration
                    host += self.launch
                elif what == "wait":
                    queue, other = rest
                    gates[queue] = free.get(other, 0) + 1_500
                    self._call("cudaStreamWaitEvent", host, 1_000, -1)
                    host += 1_000
                elif rest[0] not in without:
                    line, queue = rest
                    end = max(host, free.get(queue, 0)) + self.returns
                    place = Place("train.py", line)
                    self._call("clEnqueueReadBuffer", host, end - host, -1, Flag.BLOCKING)
                    self.events.append(Event(Kind.READ, "item", Lane(1, 1), host, end - host, place=place))
                    host = end
            self.events.append(Event(Kind.STEP, f"ProfilerStep#{number}", Lane(1, 1), begin, host - begin))
        return Trace.of(self.events), max(host, *free.values()) if free else host

    def _call(self, name, start, duration, correlation, flags=Flag.NONE) -> None:
        self.events.append(Event(Kind.CALL, name, Lane(1, 1), start, duration, correlation=correlation, flags=flags))
