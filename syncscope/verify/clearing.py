"""The end of all that runs have started, also where `syncscope verify` itself was killed.

Whatever a program starts stays below the fork server, even a process that leaves its session and its parent (Linux has the
server adopt it). A small process that nobody has reason to kill waits for us to end; unless we say that we have cleared up, it
ends what runs and takes back what runs have written.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType

from syncscope.verify.request import JOURNAL

ADOPTS = 36  # PR_SET_CHILD_SUBREAPER
ENDING = 5.0  # s until a process that was killed is gone, unless it hangs in a driver
DONE = b"cleared\n"
PROC = Path("/proc")
# Until the other end has said that it has cleared up, or is no more. What clears up is imported then: mostly nobody needs it.
WAITS = f"""
import sys
server = 0
for line in sys.stdin.buffer:
    if line == {DONE!r}:
        sys.exit()
    server = int(line)
sys.path.insert(0, sys.argv[1])
from syncscope.verify.clearing import survive
survive(server, sys.argv[2])
"""


def adopt() -> None:
    """From now on, what processes below this one leave behind becomes its child."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(ADOPTS, 1, 0, 0, 0)


def bury() -> None:
    """Lets go of adopted children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def below(process: int) -> list[int]:
    """What a process has started, and what that has, as far as it has not ended; nothing where there is no `/proc`.

    One look may miss what loses its parent meanwhile: a parent that has gone when its own turn comes. Hence those that have
    ended count as parents, and whoever must have all looks twice.
    """
    children, running = defaultdict(list), set()
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = _state(folder)
            one = int(folder.name)
            children[parent].append(one)
            if state not in (b"Z", b"X"):
                running.add(one)
    found = [process]
    for one in found:
        found += children[one]
    return [one for one in found[1:] if one in running]


def _state(process: Path) -> tuple[bytes, int]:
    """What a process does, as a letter, and who its parent is."""
    state, parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[:2]
    return state, int(parent)


def end_below(process: int) -> None:
    """Ends all that a process has started, but not itself."""
    until = time.monotonic() + ENDING
    empty = 0
    while empty < 2 and time.monotonic() < until:
        running = below(process)
        empty = 0 if running else empty + 1
        for one in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        time.sleep(0.001)  # what was forked meanwhile is seen by the next look


def end(server: int) -> None:
    """Ends a process and all that it has started, itself last: until then it adopts what is left behind."""
    with contextlib.suppress(ProcessLookupError):
        _stop(server)  # it starts nothing any more
        end_below(server)
        os.kill(server, signal.SIGKILL)


def _stop(process: int) -> None:
    """Stops a process, and waits until it has: a fork that it has begun is carried out, and takes long with much memory."""
    os.kill(process, signal.SIGSTOP)
    until = time.monotonic() + ENDING
    with contextlib.suppress(OSError, ValueError):
        while _state(PROC / str(process))[0] not in (b"T", b"t", b"Z", b"X") and time.monotonic() < until:
            time.sleep(0.001)


class Survivor:
    """A process that clears up should we be killed: what runs below the server it is told of, and what lies in `folder`."""

    def __init__(self, folder: str) -> None:
        command = [sys.executable, "-S", "-P", "-c", WAITS, str(Path(__file__).parents[2]), folder]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)

    def tell(self, server: int) -> None:
        """Runs are forked from this process now."""
        self._say(b"%d\n" % server)

    def __enter__(self) -> Survivor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._say(DONE)
        self._process.communicate()

    def _say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody did kill it
            self._process.stdin.write(line)


def survive(server: int, folder: str) -> None:
    """In the survivor, where `verify` was killed: ends the server and what runs below it, takes back what runs have done."""
    if server:
        end(server)
    from syncscope.verify.undo import undo

    for journal in Path(folder).glob(f"*/{JOURNAL}"):
        undo(journal)
    shutil.rmtree(folder, ignore_errors=True)
