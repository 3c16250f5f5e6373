"""How long steps take, with a recording and without: what a recording weighs is measured in the run that was recorded.

On CUDA and ROCm a step ends when the current stream comes to its end: a host that runs ahead of its device would say how
fast it can ask, not how long the work takes. So it does on `ocl` where that is asked for, since its queue has to keep times
then; else steps of `ocl` end on the host, and after the last of them the queue is waited for: by what it was behind, beyond
one step, they were longer together. Elsewhere a step ends on the host.

To ask a stream for the time takes a step of a millisecond 50 us longer (on an H200): so steps are asked for together, as
many as there are in `APART`.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median, quantiles
from time import monotonic_ns
from typing import Any, NamedTuple

from syncscope.model.trace import StepLengths
from syncscope.model.warming import much_longer, warming

KEPT = 256  # steps: machines are now faster, now slower, for tenths of a second
APART = 5_000_000  # ns between two events of the driver, at least
PROMPT = 200_000  # ns within which the driver may still be asked when a step ended


class Moment(NamedTuple):
    """Where a step ends: by the host's clock, on the device, and in what had been compiled."""

    at: int  # ns of CLOCK_MONOTONIC
    event: Any  # of the device, where there is one
    built: int  # kernels by then
    over: int = 0  # when the queue of `ocl` came here, where the host waited for that: ns of CLOCK_MONOTONIC


class StepTimes:
    """The ends of steps, the last `kept` of them (None: all), and what lies between two that follow one another.

    With `queued`, a step on `ocl` ends where its queue does. Steps are timed together that take less than `apart` ns.
    """

    def __init__(self, kept: int | None = KEPT, queued: bool = False, apart: int = APART) -> None:
        self._moments: deque[Moment | None] = deque(maxlen=kept)  # None: what follows is no step
        self._queued, self._apart = queued, apart
        self._newest = -apart  # when the driver was asked last
        self._enqueued = _enqueued()  # on `ocl`, by the last pause

    def __len__(self) -> int:
        return sum(a is not None and b is not None for a, b in pairwise(self._moments))

    def now(self) -> Moment:
        """This moment, on the device too where it was long not asked."""
        at = monotonic_ns()
        found = moment(at, self._queued) if at - self._newest >= self._apart else Moment(at, None, _built())
        if found.event is not None:
            self._newest = at
        return found

    def boundary(self, at: Moment | None = None) -> None:
        """A step ends, and the next begins: now, or at a moment that was kept."""
        self._moments.append(at or self.now())

    def pause(self) -> None:
        """What follows is no step. Where one has just ended, the device is asked for it, too."""
        if self._moments and (last := self._moments[-1]) is not None:
            if last.event is None and monotonic_ns() - last.at < PROMPT:
                self._moments[-1] = last = moment(last.at, self._queued)
            if last.event is None and _enqueued() != self._enqueued:
                self._moments[-1] = last._replace(over=_emptied())
            self._moments.append(None)
        self._newest, self._enqueued = -self._apart, _enqueued()

    def every(self) -> list[float | None]:
        """ns of all steps; None where kernels were built. Steps for which the device was asked together are alike."""
        found: list[float | None] = []
        run: list[Moment] = []
        for at in (*self._moments, None):
            if at is not None:
                run.append(at)
                continue
            lengths: list[float | None] = []
            for steps in _together(run):
                length = _between(steps[0], steps[-1]) / (len(steps) - 1)
                lengths += [length if steps[0].built == steps[-1].built else None] * (len(steps) - 1)
            behind = _behind(run[-1], [length for length in lengths if length is not None]) if run else 0.0
            found += [length and length + behind for length in lengths]
            run = []
        return found

    def lengths(self) -> list[float]:
        """ns of the steps that are alike: those in which kernels were built, the first ones until they are like the later half,
        and those much longer than these, warm up."""
        found = [length for length in self.every() if length is not None]
        most = much_longer(found)
        return [length for length in found[warming(found) :] if length <= most]

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
            "measured": len(set(alike)),
        }


def moment(at: int, queued: bool) -> Moment:
    """This moment, which is `at` by the host's clock; with `queued` also where the queue of `ocl` is."""
    return Moment(at, _event() or (_ocl_event() if queued and _programs() is not None else None), _built())


def _programs() -> Any:
    return sys.modules.get("syncscope.kernels.programs")


def _built() -> int:
    return getattr(_programs(), "built", 0)


def _together(run: Sequence[Moment]) -> Iterator[Sequence[Moment]]:
    """The moments from one event to the next; without two events each step by itself, by the host's clock."""
    asked = [number for number, at in enumerate(run) if at.event is not None]
    cuts = asked if len(asked) > 1 else range(len(run))
    return (run[a : b + 1] for a, b in pairwise(cuts))


def _queue() -> Any:
    return sys.modules.get("syncscope.kernels.queue")


def _enqueued() -> int:
    return getattr(_queue(), "launches", 0)


def _emptied() -> int:
    """Waits until the queue of `ocl` is empty, and says when that was; 0 where nobody had to wait. It is no read of the
    program's."""
    from syncscope.tracers.hooks.reads import unheard

    with unheard():
        since = monotonic_ns()
        _queue().finish()
        return over if (over := monotonic_ns()) - since > PROMPT else 0


def _behind(last: Moment, lengths: Sequence[float]) -> float:
    """By how much longer each of these steps was on the device, which was behind the host after the last of them, ns.

    One step behind is as it should be: the host asks for the next.
    """
    if not last.over or not lengths:
        return 0.0
    return max(0.0, last.over - last.at - median(lengths)) / len(lengths)


def _event() -> Any:
    torch = sys.modules.get("torch")
    # The flag itself: under `run --device`, is_initialized() says yes where there is no GPU.
    if torch is None or not getattr(getattr(torch, "cuda", None), "_initialized", False):
        return None
    try:
        if torch.cuda.is_current_stream_capturing():
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
    except (
        RuntimeError
    ):  # a kernel of the program's has failed, and every call says so from then on: it hears that itself
        return None
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
        try:
            if on_ocl:
                after.event.synchronize()
            elif not after.event.query():
                sys.modules["torch"]._C._cuda_synchronize()  # the bare one: it is no read of the program's
            return float(before.event.elapsed_time(after.event)) * 1e6
        except RuntimeError:  # the device has failed meanwhile
            pass
    return float(after.at - before.at)
