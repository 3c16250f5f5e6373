"""What each wait of a recording waited for, how long it took to return, and what was late for no recorded reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.hosts import Host
from syncscope.analysis.silences import unrecorded_waits
from syncscope.analysis.start_causes import DeviceWork, usual
from syncscope.analysis.waits import CLOCKS, Launches, Wait, working_threads
from syncscope.model.trace import Lane, Trace


@dataclass(frozen=True, slots=True)
class Late:
    """From `start` to `end` (ns since the origin) a queue had not begun, or a thread not returned, for no recorded reason."""

    lane: Lane
    start: NDArray[np.float64]
    end: NDArray[np.float64]


class Returns:
    """By the row of each wait the work (by number) that it waited for, and how long it took to return after that, ns: as
    `recorded`, and `prompt`, the usual where that is too long to be it.

    It is less than nothing where the work ended later by the device's clock.
    """

    def __init__(
        self, trace: Trace, held: Sequence[Wait], host: Host, work: DeviceWork, item_of: Mapping[int, int]
    ) -> None:
        self.targets = targets_of(held, host, work, item_of)
        self.recorded: dict[int, float] = {}
        of: dict[int, list[float]] = {}
        for row, found in self.targets.items():
            item = item_of[row]
            after = max([host.began[item], *(work.end[j] for j in found)])
            self.recorded[row] = float(host.end[item] - after)
            of.setdefault(int(trace.name[row]), []).append(self.recorded[row])
        ordinary = {name: usual(np.array(times)) for name, times in of.items()}
        self.prompt: dict[int, float] = {}
        for row, time in self.recorded.items():
            middle, longest = ordinary[int(trace.name[row])]
            self.prompt[row] = middle if time > longest else time


def targets_of(
    held: Sequence[Wait], host: Host, work: DeviceWork, item_of: Mapping[int, int]
) -> dict[int, tuple[int, ...]]:
    """The work (by number) that each wait waited for: of what was launched by then, what had ended when it returned.

    Clocks may disagree about that by a little.
    """
    first = np.searchsorted(work.item, np.arange(len(host.row) + 1))
    order = np.argsort(work.row)
    rows = work.row[order]
    found = {}
    for wait in held:
        item = item_of[wait.row]
        numbers = order[np.searchsorted(rows, np.array(wait.targets, np.intp))].tolist()
        over = host.end[item] + CLOCKS
        found[wait.row] = tuple(j for j in numbers if j < first[item + 1] and work.end[j] <= over)
    return found


def silent(trace: Trace, launched: Launches, host: Host, work: DeviceWork, calls: NDArray[np.intp]) -> list[Late]:
    """Each thread with the time in which it waited for the device, as it seems, though none of these calls did."""
    zero = host.origin
    enqueued = host.began[work.item] + zero if len(host.row) else work.start + zero
    columns = enqueued, work.start + zero, work.end + zero, work.queue
    waits = unrecorded_waits(trace, working_threads(trace, launched), calls, columns)
    return [Late(trace.lanes[lane], begin - zero, end - zero) for lane, (begin, end) in waits.items()]


def late(
    trace: Trace, held: Sequence[Wait], host: Host, work: DeviceWork, returns: Returns, item_of: Mapping[int, int]
) -> list[Late]:
    """Each queue and each thread with what was late there for no recorded reason."""
    found = []
    for number, lane in enumerate(work.lanes):
        of = (work.queue == number) & (work.late > 0)
        found.append(Late(lane, work.start[of] - work.late[of], work.start[of]))
    lanes: dict[Lane, list[tuple[float, float]]] = {trace.lanes[trace.lane[w.row]]: [] for w in held}
    for row, time in returns.recorded.items():
        if time > returns.prompt[row]:
            end = float(host.end[item_of[row]])
            lanes[trace.lanes[trace.lane[row]]].append((end - time + returns.prompt[row], end))
    for lane, times in lanes.items():
        start, over = np.array(times, float).reshape(-1, 2).T
        found.append(Late(lane, start, over))
    return found
