"""How much of the machine's processors other programs had meanwhile."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from syncscope.tracers.processor_time import STAT, ProcessorTime, of_others, spent
from syncscope.tracers.session import Session

CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children")
needs_stat = pytest.mark.skipif(not STAT.exists(), reason=f"no {STAT} on this system")


WORKS = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ntime.sleep(60)"


def used(process: int) -> float:
    """Seconds of a processor that a process has had."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


@needs_stat
def test_a_busy_program_beside_shows_and_our_own_work_does_not() -> None:
    shell = ["sh", "-c", '"$0" -c "while True: pass" >/dev/null & echo $!', sys.executable]
    busy = int(subprocess.run(shell, stdout=subprocess.PIPE, check=True).stdout)  # its parent has ended: it is no child
    try:
        since = spent()
        while used(busy) < 0.3:  # on a machine that others use, too, this may take a while
            time.sleep(0.05)
        until = spent()
    finally:
        os.kill(busy, signal.SIGKILL)
    found = of_others(since, until)
    assert since is not None
    assert until is not None
    assert found is not None
    assert found > 0.1 / (until.all - since.all)  # of all that processors had; they are counted in hundredths
    own = ProcessorTime(since.all + 1.0, since.busy + 0.5, since.own + 0.5)
    assert of_others(since, own) == pytest.approx(0.0, abs=1e-9)


@needs_stat
@pytest.mark.skipif(not CHILDREN.exists(), reason=f"no {CHILDREN} on this system")
@pytest.mark.parametrize("deep", [False, True])
def test_what_we_have_started_is_our_own(deep: bool, start: Any) -> None:
    since = spent()
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {WORKS!r}])" if deep else WORKS
    worker = start([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert worker.stdout.readline() == b"done\n"
    until = spent()
    assert since is not None
    assert until is not None
    assert until.own - since.own > 0.25


def test_where_the_system_does_not_tell_nothing_is_said() -> None:
    assert of_others(None, spent()) is None
    moment = ProcessorTime(1.0, 1.0, 1.0)
    assert of_others(moment, moment) is None


@needs_stat
def test_a_recording_says_it() -> None:
    with Session() as session:
        time.sleep(0.1)
    assert 0.0 <= session.trace.meta["others"] <= 1.0
