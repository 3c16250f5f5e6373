"""What is replayed: launches and waits in the host's order, with what each had to wait for.

Launches in a row are folded. With the host at `h` and a queue free at `q`, a launch leaves the queue free at
max(h + latency, q + gap) + duration: linear in the algebra of max and +. So a whole row of launches is one such step again,
and a replay of a recording costs as many steps as it has waits, not launches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncscope.analysis.entries import Hold, HostOrder, Run
from syncscope.model.report import Read, Step

NEVER = -1e18  # a time that bounds nothing
LONGEST = 256  # launches folded into one
PARTS = 16  # into so many a full queue is folded: within one of them it does not stop the host


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
    assumed: int = (
        0  # edges between queues that held nothing up: for calls that made a queue wait, nobody knows for what
    )
    odd: int = 0  # work that began late for no recorded reason: it is kept as late after the work before it
    crowded: int = 0  # work that began late because others had the device
    guessed: int = 0  # waits whose target was guessed from times
    ops: int = 0
    origin: int = 0  # time 0, ns of the trace
    overlap: float = (
        0.0  # the part of the host's calls in which two threads were in one, though they are put into one order
    )


class Fold:
    """Folds launches into runs, as long as nobody needs to know of one of them."""

    def __init__(self, needed: set[int], ops: int, meets: Mapping[int, int], depth: int) -> None:
        self._meets = meets
        self.stream = HostOrder()
        self._needed = needed
        self._ops = ops
        self._longest = LONGEST if ops <= depth else max(1, min(LONGEST, depth // PARTS))
        self._count = 0
        self._begin()

    def _begin(self) -> None:
        self._host = 0.0
        self._from_host: dict[int, float] = {}
        self._from_queue: dict[int, float] = {}
        self._numbers: dict[int, int] = {}
        self._folded = 0
        self._last = (0, 0.0)

    def advance(self, time: float) -> None:
        """The host works."""
        self._host += time

    def launch(
        self,
        number: int,
        latency: float,
        queue: int,
        gap: float,
        duration: float,
        source: int,
        lag: float,
        read: int,
        left: float = -1.0,
        spare: float = 0.0,
    ) -> None:
        """The host launches work."""
        if source >= 0 or number in self._meets or read >= 0:
            host_gap = self.flush(keep_host=True)
            self._count += 1
            meets, known = self._meets.get(number, -1), self._number(number)
            self.stream.launch(
                host_gap, latency, queue, gap, duration, source, lag, meets, known, self._count, read, left, spare
            )
            return
        if queue in self._numbers or self._folded == self._longest:
            self._host = self.flush(keep_host=True)
        start = max(self._host + latency, self._from_host.get(queue, NEVER) + gap)
        self._from_host[queue] = start + duration
        self._from_queue[queue] = self._from_queue.get(queue, 0.0) + gap + duration
        self._last = queue, duration
        self._folded += 1
        self._count += 1
        if number in self._needed:
            self._numbers[queue] = number

    def _number(self, number: int) -> int:
        return number if number in self._needed else -1

    def position(self) -> int:
        """Where in the stream the next hold will stand."""
        if self._folded:
            self._host = self.flush(keep_host=True)
        return len(self.stream)

    def hold(self, targets: tuple[int, ...], returns: float, freed: float, read: int = -1, mark: int = -1) -> None:
        """The host waits, or a step ends."""
        host_gap = self.flush(keep_host=True)
        self.stream.append(Hold(host_gap, targets, returns, freed, read, mark, int(self._count < self._ops)))

    def flush(self, keep_host: bool = False) -> float:
        """End the run that is being folded; what the host did after its last launch is returned, if asked, not stored."""
        left = self._host if keep_host else 0.0
        if self._folded or (self._host and not keep_host):
            moves = tuple(
                (queue, alpha, self._from_queue[queue], self._numbers.get(queue, -1))
                for queue, alpha in self._from_host.items()
            )
            self.stream.append(Run(self._host, moves, self._count, *self._last))
            left = 0.0
        self._begin()
        return left
