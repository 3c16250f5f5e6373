"""How much of the machine's processors other programs had meanwhile: where they are the device too, it was slower then."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

STAT = Path("/proc/stat")
IDLE = slice(3, 5)  # of the numbers there: nothing to do, and nothing but waiting for a disk
ALL = slice(0, 8)  # what comes after was counted before: of guests


class ProcessorTime(NamedTuple):
    """Seconds since some moment, of all processors together: in all, at work, and at work for this process."""

    all: float
    busy: float
    own: float


def spent() -> ProcessorTime | None:
    """What was spent so far; None where the system does not tell."""
    try:
        times = [int(word) / os.sysconf("SC_CLK_TCK") for word in STAT.read_text().split("\n", 1)[0].split()[1:]]
    except (OSError, ValueError):
        return None
    own = os.times()
    return ProcessorTime(sum(times[ALL]), sum(times[ALL]) - sum(times[IDLE]), own.user + own.system)


def of_others(since: ProcessorTime | None, until: ProcessorTime | None) -> float | None:
    """The part of the processors (0 to 1) that other programs had in between; None where nobody knows."""
    if since is None or until is None or until.all <= since.all:
        return None
    busy, own = until.busy - since.busy, until.own - since.own
    return max(0.0, busy - own) / (until.all - since.all)
