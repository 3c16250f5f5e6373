"""How much of the processors other programs had meanwhile: where they are the device too, it was slower then.

Of those that this process may run on: what others do on the rest of the machine takes nothing from it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

STAT = Path("/proc/stat")
IDLE = slice(3, 5)  # of the numbers there: nothing to do, and nothing but waiting for a disk
ALL = slice(0, 8)  # what comes after was counted before: of guests


class ProcessorTime(NamedTuple):
    """Seconds since some moment, of these processors together: in all, at work, and at work for this process and what it has
    started, the workers of a loader say."""

    all: float
    busy: float
    own: float


def spent() -> ProcessorTime | None:
    """What was spent so far; None where the system does not tell."""
    try:
        names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        rows = [line.split()[1:] for line in STAT.read_text().splitlines() if line.split(" ", 1)[0] in names]
        times = [sum(map(int, column)) / os.sysconf("SC_CLK_TCK") for column in zip(*rows, strict=True)]
    except (AttributeError, OSError, ValueError):  # the first where the system has no such choice
        return None
    own = sum(os.times()[:4]) + _ticks_of_children(Path("/proc/self")) / os.sysconf("SC_CLK_TCK")
    return ProcessorTime(sum(times[ALL]), sum(times[ALL]) - sum(times[IDLE]), own)


def _ticks_of_children(process: Path) -> int:
    """Of the processes that one has started and that still run, of theirs, and of what these have waited for."""
    found = 0
    with contextlib.suppress(OSError):  # it has ended meanwhile, or the system does not list them
        children = [child for task in (process / "task").iterdir() for child in (task / "children").read_text().split()]
        for child in (process.parent / number for number in children):
            words = (child / "stat").read_text().rpartition(")")[2].split()
            found += sum(map(int, words[11:15])) + _ticks_of_children(child)
    return found


def of_others(since: ProcessorTime | None, until: ProcessorTime | None) -> float | None:
    """The part of the processors (0 to 1) that other programs had in between; None where nobody knows."""
    if since is None or until is None or until.all <= since.all:
        return None
    busy, own = until.busy - since.busy, until.own - since.own
    return min(1.0, max(0.0, busy - own) / (until.all - since.all))
