"""What is replayed: launches and waits in the host's order, with what each had to wait for."""

from __future__ import annotations

from dataclasses import dataclass

from syncscope.analysis.entries import HostOrder
from syncscope.model.report import Read, Step

NEVER = -1e18  # a time that bounds nothing


@dataclass(frozen=True, slots=True)
class Graph:
    """What is replayed: `stream` is the host's order of launches and waits.

    `reads` are the logical reads, `holds` the positions in `stream` at which each of them waits. `ends[m]` is when step m
    had ended in the recording, on the host and on the device; `end` the same for everything. `together` are sets of reads:
    what belongs to one changes where any of them is taken out, and number n of them goes on after the reads.
    """

    stream: HostOrder
    queues: int
    reads: tuple[Read, ...]
    holds: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    end: float
    ends: tuple[float, ...]
    depth: int
    free: tuple[float, ...]  # when each queue had done what came before the recording
    together: tuple[tuple[int, ...], ...] = ()
    inferred: int = 0  # edges between queues that were guessed from times
    # edges between queues that held nothing up: for calls that made a queue wait, nobody knows for what
    assumed: int = 0
    odd: int = 0  # work that began late for no recorded reason: it is kept as late after the work before it
    crowded: int = 0  # work that began late because others had the device
    guessed: int = 0  # waits whose target was guessed from times
    ops: int = 0
    origin: int = 0  # time 0, ns of the trace
    begin: float = 0.0  # when the device came to the first step, where it had earlier ones to do
    # the part of the host's calls in which two threads were in one, though they are put into one order
    overlap: float = 0.0
