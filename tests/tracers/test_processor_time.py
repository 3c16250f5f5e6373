"""How much of the machine's processors other programs had meanwhile."""

import subprocess
import sys
import time

import pytest

from syncscope.tracers.processor_time import STAT, ProcessorTime, of_others, spent
from syncscope.tracers.session import Session

needs_stat = pytest.mark.skipif(not STAT.exists(), reason=f"no {STAT} on this system")


@needs_stat
def test_a_busy_program_beside_shows_and_our_own_work_does_not() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.3)
        since = spent()
        time.sleep(0.5)
        until = spent()
    finally:
        busy.kill()
        busy.wait()
    found = of_others(since, until)
    assert since is not None
    assert until is not None
    assert found is not None
    assert found > 0.1 / (until.all - since.all)  # it had a tenth of a second at least, of all that processors had
    own = ProcessorTime(since.all + 1.0, since.busy + 0.5, since.own + 0.5)
    assert of_others(since, own) == pytest.approx(0.0, abs=1e-9)


def test_where_the_system_does_not_tell_nothing_is_said() -> None:
    assert of_others(None, spent()) is None
    moment = ProcessorTime(1.0, 1.0, 1.0)
    assert of_others(moment, moment) is None


@needs_stat
def test_a_recording_says_it() -> None:
    with Session() as session:
        time.sleep(0.1)
    assert 0.0 <= session.trace.meta["others"] <= 1.0
