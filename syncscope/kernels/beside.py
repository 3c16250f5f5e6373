"""Programs that other processes build first: here they are taken from the driver's cache, where those leave them.

Within a process a driver may build one program after the other, whatever threads ask: NVIDIA's does so for the most
part. A file in our cache folder says which programs it has on disk, and no process is started for those. Nothing
depends on that file, nor on the processes: what they do not build is built here, only later. So it is where other programs
have all the processes for which the device has room (`places`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import threading
from pathlib import Path
from queue import SimpleQueue

from syncscope import interpreters
from syncscope.files import cache_folder
from syncscope.kernels import places
from syncscope.kernels.device import device, devices, is_gpu

# "now": who asks for a kernel waits for it; "ahead": threads build it meanwhile; "beside": processes build it first.
ENV = "SYNCSCOPE_OCL_BUILDS"
GIBIBYTE = 1 << 30
# As many as there are processors, and few beside the device's memory: a context of CUDA's takes a quarter to half a GiB of it.
BUILDERS = max(1, min(16, os.cpu_count() or 1, device.global_mem_size // (4 * GIBIBYTE)))
FEW = 40  # programs: the first step of a network takes twice as many, the self-test fewer
PAYS = 0.1  # seconds from which on a program is worth a process
_lock = threading.Lock()
_of_pool = threading.local()  # whether a thread builds beside others
_idle: SimpleQueue[_Builder] | None = None
_wasted = 0  # programs that took as long here as in the process that had built them before


class _Builder:
    """A process that builds, started by the first question for which there is a place."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        """The process.

        Raises:
            OSError: it cannot be started, or there is no place for it.
        """
        if self.process is None or self.process.poll() is not None:
            number = next(number for number, one in devices().items() if one == device)
            code = f"from syncscope.opencl_builder import main; main({number.replace(':', ', ')})"
            command, pipe, no = interpreters.command(code), subprocess.PIPE, subprocess.DEVNULL
            place = places.take(BUILDERS, number)
            try:
                self.process = subprocess.Popen(
                    command, stdin=pipe, stdout=pipe, stderr=no, text=True, encoding="utf-8", pass_fds=place
                )
            finally:
                for one in place:
                    os.close(one)
        return self.process

    def asked(self, line: str) -> float | None:
        """The seconds that a build took; None where it did not build, or the process ended."""
        process = self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
            return float(process.stdout.readline())
        except (OSError, ValueError):
            return None


def serve() -> bool:
    """Whether this driver may gain by it: it builds when it is told to, and keeps on disk what it built."""
    wanted = os.environ.get(ENV, "beside") == "beside"
    return wanted and is_gpu and os.environ.get("CUDA_CACHE_DISABLE", "0") == "0" and _wasted < 3


def by_a_pool() -> None:
    """Says that the calling thread builds beside others: one by one, processes would gain nothing."""
    _of_pool.here = True


def start() -> None:
    """Starts the processes, in the time that the program takes for other things."""
    global _idle
    with _lock:
        if _idle is not None:
            return
        _idle = SimpleQueue()

    def started() -> None:
        for _ in range(BUILDERS):
            one = _Builder()
            with contextlib.suppress(OSError):
                one.start()
            _idle.put(one)

    threading.Thread(target=started, name="syncscope-ocl-builders", daemon=True).start()


def first(source: str, options: list[str]) -> float:
    """Has a process build it, if that may pay. Returns the seconds that it took there, or 0."""
    key = _key(source, options)
    if not getattr(_of_pool, "here", False) or not serve() or key in _known():
        return 0.0
    start()
    assert _idle is not None
    builder = _idle.get()
    try:
        return builder.asked(json.dumps((source, options)) + "\n") or 0.0
    except OSError:
        return 0.0
    finally:
        _idle.put(builder)


def built(source: str, options: list[str], there: float, here: float) -> None:
    """Notes what came of it: the seconds that a build took in the process (0: in none) and here."""
    global _wasted
    if not is_gpu or not getattr(_of_pool, "here", False):
        return
    key, known = _key(source, options), _known()
    if key in known:
        if here > 10 * PAYS:  # somebody has emptied the driver's cache
            known.clear()
            with contextlib.suppress(OSError):
                _file().unlink()
        return
    if there > PAYS and here > there / 2:
        _wasted += 1
    known.add(key)
    with contextlib.suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        with _file().open("a", encoding="ascii") as file:
            file.write(f"{key}\n")


def start_early() -> None:
    """Starts the processes before anybody asks, where the driver has so little on disk that somebody will."""
    if serve() and len(_known()) < FEW:
        start()


_keys: set[str] | None = None


def _known() -> set[str]:
    """The programs that the driver has on disk."""
    global _keys
    if _keys is None:
        try:
            _keys = set(_file().read_text(encoding="ascii").split())
        except (OSError, ValueError):
            _keys = set()
    return _keys


def _file() -> Path:
    where = os.environ.get("CUDA_CACHE_PATH", ""), os.path.expanduser("~")
    facts = (device.name, device.platform.version, device.driver_version, *where)
    return cache_folder("ocl-built") / hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _key(source: str, options: list[str]) -> str:
    return hashlib.sha256("\n".join((*options, source)).encode()).hexdigest()[:16]
