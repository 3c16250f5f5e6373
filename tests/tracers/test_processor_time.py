"""For how much of its time other processes kept this one from the processors."""

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
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # with a processor free it would take nothing from us
    shell = ["sh", "-c", '"$0" -c "while True: pass" >/dev/null & echo $!', sys.executable]
    busy = int(subprocess.run(shell, stdout=subprocess.PIPE, check=True).stdout)  # its parent has ended: it is no child
    try:
        while used(busy) < 0.05:  # on a machine that others use, too, this may take a while
            time.sleep(0.05)
        since, begun = spent(), time.process_time()
        while time.process_time() - begun < 0.1:
            pass
        until = spent()
    finally:
        os.kill(busy, signal.SIGKILL)
        os.sched_setaffinity(0, before)
    found = of_others(since, until)
    assert since is not None
    assert found is not None
    assert found > 0.2  # of two that are alike each has half
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


@needs_stat
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not count it")
def test_two_busy_children_on_our_one_processor_kept_us_from_it(start: Any) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        busy = [start([sys.executable, "-c", "while True: pass"]).pid for _ in range(2)]
        while min(map(used, busy)) < 0.05:
            time.sleep(0.05)
        since, begun = spent(), time.process_time()
        while time.process_time() - begun < 0.1:
            pass
        found = of_others(since, spent())
    finally:
        os.sched_setaffinity(0, before)
    assert found is not None
    assert found > 0.3  # of three that are alike each has a third, and what else runs there takes more


def waiting(ran: float, waited: float, busy: float, every: float = 2.0) -> float | None:
    """Of a thread that ran and waited for so long while the processors were busy."""
    since, until = ProcessorTime(5.0, 5.0, 5.0, {7: (1.0, 1.0)}), (1.0 + ran, 1.0 + waited)
    return of_others(since, ProcessorTime(5.0 + every, 5.0 + busy, 5.0 + ran, {7: until}))


def test_a_thread_that_waits_for_another_of_its_process_waits_for_no_others() -> None:
    assert waiting(ran=1.0, waited=1.0, busy=2.0) == pytest.approx(0.5)
    assert waiting(ran=1.0, waited=1.0, busy=1.0) == 0.0
    assert waiting(ran=1.0, waited=0.1, busy=2.0) == pytest.approx(0.1 / 1.1)  # they leave way where it wants to run
    assert waiting(ran=0.01, waited=0.03, busy=0.0, every=0.0) == pytest.approx(0.75)  # shorter than their ticks


def test_of_threads_that_hardly_ran_what_the_processors_did_tells() -> None:
    assert waiting(ran=0.0, waited=1e-4, busy=1.0) == pytest.approx(0.5)


def test_where_the_system_does_not_tell_nothing_is_said() -> None:
    assert of_others(None, spent()) is None
    moment = ProcessorTime(1.0, 1.0, 1.0)
    assert of_others(moment, moment) is None


@needs_stat
def test_a_recording_says_it() -> None:
    with Session() as session:
        time.sleep(0.1)
    assert 0.0 <= session.trace.meta["others"] <= 1.0
