"""How long other processes kept this one from the processors: where they are the device too, it was slower then.

Linux says of each thread how long it ran, and how long it was ready to and had no processor. It may also have waited for
another thread of its own process: more than what others had of the processors, they did not take. That is of those that this
process may run on: what others do on the rest of the machine takes nothing from it. Where Linux does not say it of threads,
what the processors did besides is told, but for what this process has started: the workers of a loader, say.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

STAT = Path("/proc/stat")
IDLE = slice(3, 5)  # of the numbers there: nothing to do, and nothing but waiting for a disk
ALL = slice(0, 8)  # what comes after was counted before: of guests
BRIEF = 1e-3  # s: of threads that wanted less than that nothing is told


class ProcessorTime(NamedTuple):
    """Seconds since some moment, of these processors together: in all, at work, and at work for this process and what it has
    started. `threads` are those of this process, each with the seconds for which it ran, and had to wait for a processor."""

    all: float
    busy: float
    own: float
    threads: Mapping[int, tuple[float, float]] = MappingProxyType({})


def spent() -> ProcessorTime | None:
    """What was spent so far; None where the system does not tell."""
    try:
        names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        rows = [line.split()[1:] for line in STAT.read_text().splitlines() if line.split(" ", 1)[0] in names]
        times = [sum(map(int, column)) / os.sysconf("SC_CLK_TCK") for column in zip(*rows, strict=True)]
    except (AttributeError, OSError, ValueError):  # the first where the system has no such choice
        return None
    own = sum(os.times()[:4]) + _ticks_of_children(Path("/proc/self")) / os.sysconf("SC_CLK_TCK")
    return ProcessorTime(sum(times[ALL]), sum(times[ALL]) - sum(times[IDLE]), own, _threads())


def _threads() -> dict[int, tuple[float, float]]:
    """Of each thread of this process for how long it ran and waited to, s; nothing where the system does not tell."""
    found = {}
    with contextlib.suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile, or the kernel keeps no such count
                ran, waited, _ = map(int, (task / "schedstat").read_text().split())
                found[int(task.name)] = ran / 1e9, waited / 1e9
    return found


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
    """The part of its time (0 to 1) for which others kept this process from the processors; None where nobody knows."""
    if since is None or until is None:
        return None
    every, busy, own = until.all - since.all, until.busy - since.busy, until.own - since.own
    pairs = [(since.threads.get(thread, (0.0, 0.0)), times) for thread, times in until.threads.items()]
    ran, waited = (sum(now[which] - before[which] for before, now in pairs) for which in (0, 1))
    if ran + waited < BRIEF:
        return min(1.0, max(0.0, busy - own) / every) if every > 0 else None
    kept = waited / (ran + waited)
    return min(kept, max(0.0, busy - ran) / every) if every > 0 else kept
