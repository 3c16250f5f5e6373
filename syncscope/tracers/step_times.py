"""How long steps take, with a recording and without: what a recording weighs is measured in the run that was recorded.

On CUDA and ROCm a step ends when the current stream comes to its end: a host that runs ahead of its device would say how
fast it can ask, not how long the work takes. Elsewhere it ends on the host.
"""

from __future__ import annotations

import sys
from collections import deque
from itertools import pairwise
from statistics import median, quantiles
from time import monotonic_ns
from typing import Any, NamedTuple

from syncscope.model.trace import StepLengths

KEPT = 64  # steps: more say nothing more, and each keeps an event of the driver
LONG = 1.5  # times the median of the later half: a step that is still warming up


class _Moment(NamedTuple):
    at: int  # ns of CLOCK_MONOTONIC
    event: Any  # of the device, where there is one
    built: int  # kernels by then


class StepTimes:
    """The ends of steps, and what lies between two that follow one another."""

    def __init__(self) -> None:
        self._moments: deque[_Moment | None] = deque(maxlen=KEPT)  # None: what follows is no step

    def __len__(self) -> int:
        return sum(a is not None and b is not None for a, b in pairwise(self._moments))

    def boundary(self) -> None:
        """A step ends, and the next begins."""
        programs = sys.modules.get("syncscope.kernels.programs")
        self._moments.append(_Moment(monotonic_ns(), _event(), getattr(programs, "built", 0)))

    def pause(self) -> None:
        """What follows is no step."""
        if self._moments and self._moments[-1] is not None:
            self._moments.append(None)

    def lengths(self) -> list[float]:
        """ns of the steps that are alike: those in which kernels were built, and those much longer than the later ones, warm
        up."""
        found = [
            _between(a, b) for a, b in pairwise(self._moments) if a is not None and b is not None and a.built == b.built
        ]
        usual = median(found[len(found) // 2 :]) if found else 0.0
        return [length for length in found if length <= LONG * usual]

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


def _between(before: _Moment, after: _Moment) -> float:
    if before.event is not None and after.event is not None and before.event.device == after.event.device:
        if not after.event.query():
            sys.modules["torch"]._C._cuda_synchronize()  # the bare one: it is no read of the program's
        return float(before.event.elapsed_time(after.event)) * 1e6
    return float(after.at - before.at)
