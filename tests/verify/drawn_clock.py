"""A clock for the steps of a program, which only moves by what sleeps: then a machine that is busy decides nothing, and
nobody waits. The program imports it, from a folder of libraries: fixture `library`.

Each sleep is a little longer or shorter than was asked, drawn anew and the same in each run: no two steps take the same, and
what is found of them is the same everywhere.
"""

import random
import sys
import time

from syncscope.tracers.step_times import Moment, StepTimes

LOOK = 1000  # ns that it takes to look at the clock: no step takes none
_draw = random.Random(0)
_now = 10**9  # ns
_worked = 0  # ns of them of the processors
_asked = 0  # ns of work that was asked for and is not done
_real_now = StepTimes.now


def monotonic_ns() -> int:
    """The clock."""
    global _now
    _now += LOOK
    return _now


def sleep(seconds: float) -> None:
    """In place of `time.sleep`."""
    global _now
    _now += round(seconds * 1e9 * _draw.uniform(0.98, 1.02))


def work(seconds: float) -> None:
    """The processors work meanwhile."""
    global _worked
    before = _now
    sleep(seconds)
    _worked += _now - before


def ask(seconds: float) -> None:
    """The processors are to work so long, and the step goes on: they do it by when somebody waits."""
    global _asked
    before = _now
    sleep(seconds)
    _asked += _now - before


def wait() -> None:
    """Until all is done that was asked for."""
    global _worked, _asked
    _worked, _asked = _worked + _asked, 0


def _moment(times: StepTimes) -> Moment:
    """Those of a recording stand beside events with times of their own."""
    return Moment(monotonic_ns(), None, 0) if times._queued else _real_now(times)


time.sleep = sleep
StepTimes.now = _moment
for name in ("in_the_run", "in_turns"):  # whichever has begun this process
    if module := sys.modules.get(f"syncscope.verify.{name}"):
        module.monotonic_ns = monotonic_ns
        module.worked = lambda: _worked or None  # where none do, the device does it all
        module.wait = wait
