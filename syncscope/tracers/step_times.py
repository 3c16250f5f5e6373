"""How long steps take, with a recording and without: what a recording weighs is measured in the run that was recorded.

On CUDA and ROCm a step ends when the current stream comes to its end: a host that runs ahead of its device would say how
fast it can ask, not how long the work takes. So it does on `ocl` where that is asked for, since its queue has to keep times
then. Elsewhere a step ends on the host.
"""

from __future__ import annotations

import sys
from collections import deque
from itertools import dropwhile, pairwise
from statistics import median, quantiles
from time import monotonic_ns
from typing import Any, NamedTuple

from syncscope.model.trace import StepLengths

KEPT = 64  # steps: more say nothing more, and each keeps an event of the driver
LONG = 1.5  # times the median of the later half: a step that is still warming up
ALIKE = 1.1  # times the longest of the later half that is not: so long may the first be


class Moment(NamedTuple):
    """Where a step ends: by the host's clock, on the device, and in what had been compiled."""

    at: int  # ns of CLOCK_MONOTONIC
    event: Any  # of the device, where there is one
    built: int  # kernels by then


class StepTimes:
    """The ends of steps, the last `kept` of them (None: all), and what lies between two that follow one another.

    With `queued`, a step on `ocl` ends where its queue does.
    """

    def __init__(self, kept: int | None = KEPT, queued: bool = False) -> None:
        self._moments: deque[Moment | None] = deque(maxlen=kept)  # None: what follows is no step
        self._queued = queued

    def __len__(self) -> int:
        return sum(a is not None and b is not None for a, b in pairwise(self._moments))

    def boundary(self, at: Moment | None = None) -> None:
        """A step ends, and the next begins: now, or at a moment that was kept."""
        self._moments.append(at or moment(self._queued))

    def pause(self) -> None:
        """What follows is no step."""
        if self._moments and self._moments[-1] is not None:
            self._moments.append(None)

    def every(self) -> list[float | None]:
        """ns of all steps; None where kernels were built."""
        both = ((a, b) for a, b in pairwise(self._moments) if a is not None and b is not None)
        return [_between(a, b) if a.built == b.built else None for a, b in both]

    def lengths(self) -> list[float]:
        """ns of the steps that are alike: those in which kernels were built, the first ones until they are like the later half,
        and those much longer than these, warm up."""
        found = [length for length in self.every() if length is not None]
        later = found[len(found) // 2 :]
        most = LONG * median(later) if later else 0.0
        warm = ALIKE * max((length for length in later if length <= most), default=0.0)
        return [length for length in dropwhile(lambda length: length > warm, found) if length <= most]

    def facts(self) -> StepLengths | None:
        """What a trace says of them; None where there were none."""
        alike = self.lengths()
        if not alike:
            return None
        low, _, high = quantiles(alike, n=4) if len(alike) > 3 else (min(alike), 0.0, max(alike))
        return {
            "steps": len(alike),
            "left_out": len(self) - len(alike),
            "median_ns": round(median(alike)),
            "low_ns": round(low),
            "high_ns": round(high),
        }


def moment(queued: bool = False) -> Moment:
    """This moment; with `queued` also where the queue of `ocl` is."""
    programs = sys.modules.get("syncscope.kernels.programs")
    event = _event() or (_ocl_event() if queued and programs is not None else None)
    return Moment(monotonic_ns(), event, getattr(programs, "built", 0))


def _event() -> Any:
    torch = sys.modules.get("torch")
    # The flag itself: under `run --device`, is_initialized() says yes where there is no GPU.
    if torch is None or not getattr(getattr(torch, "cuda", None), "_initialized", False):
        return None
    if torch.cuda.is_current_stream_capturing():
        return None
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _ocl_event() -> Any:
    event = sys.modules["torch"].ocl.Event(enable_timing=True)
    event.record()
    return event


def _between(before: Moment, after: Moment) -> float:
    if before.event is None or after.event is None:
        return float(after.at - before.at)
    on_ocl = not hasattr(after.event, "device")
    if on_ocl or before.event.device == after.event.device:
        if on_ocl:
            after.event.synchronize()
        elif not after.event.query():
            sys.modules["torch"]._C._cuda_synchronize()  # the bare one: it is no read of the program's
        return float(before.event.elapsed_time(after.event)) * 1e6
    return float(after.at - before.at)
