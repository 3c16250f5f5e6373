"""What processes hold of a GPU's memory, as NVML tells: of all together, and of a process with all that it has started."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Any

SAMPLED = 0.05  # s between two looks


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_uint64), ("free", ctypes.c_uint64), ("used", ctypes.c_uint64))


class _Held(ctypes.Structure):
    _fields_ = (
        ("process", ctypes.c_uint),
        ("used", ctypes.c_uint64),
        ("instance", ctypes.c_uint),
        ("computes", ctypes.c_uint),
    )


PROCESSES = 256  # on one GPU, at most
UNKNOWN = 2**64 - 1  # what NVML says of a process of which it is not told


def first_visible() -> int:
    """NVML counts all GPUs of a machine, whatever CUDA is to see."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0]
    return int(named) if named.isdigit() else 0


def parent_of(process: int) -> int:
    """0 where it is gone."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


class DeviceMemory:
    """What is in use of the first GPU that is visible, by NVML; nothing where there is none."""

    def __init__(self) -> None:
        self._handle = ctypes.c_void_p()
        try:
            self._library: Any = ctypes.CDLL("libnvidia-ml.so.1")
            if self._library.nvmlInit_v2() or self._library.nvmlDeviceGetHandleByIndex_v2(
                first_visible(), ctypes.byref(self._handle)
            ):
                self._library = None
        except OSError:
            self._library = None

    def used(self) -> float | None:
        """MiB, by all processes together."""
        told = _Memory()
        if self._library is None or self._library.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(told)):
            return None
        return float(told.used) / 2**20

    def by_process(self) -> dict[int, float]:
        """MiB that each process holds, as far as that is told."""
        if self._library is None:
            return {}
        number, held = ctypes.c_uint(PROCESSES), (_Held * PROCESSES)()
        try:
            if self._library.nvmlDeviceGetComputeRunningProcesses_v3(self._handle, ctypes.byref(number), held):
                return {}
        except AttributeError:  # an older driver
            return {}
        return {one.process: one.used / 2**20 for one in held[: number.value] if one.used != UNKNOWN}


class Taken:
    """The most that a process and all that it has started hold of the device at once, looked at as it runs.

    Where NVML tells of no process, it is what all together hold above what they did before: right where nothing else runs.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory, self._before = memory, memory.used()
        self._known: set[int] = set()
        self._own = self._all = 0.0
        self._ended, self._looking = threading.Event(), threading.Thread()

    @property
    def most(self) -> float | None:
        """MiB."""
        return None if self._before is None else self._own or self._all

    def look(self) -> None:
        """Once."""
        held = self._memory.by_process()
        self._own = max(self._own, sum(used for process, used in held.items() if self._is_ours(process)))
        self._all = max(self._all, (self._memory.used() or 0.0) - (self._before or 0.0))

    def follow(self, process: int) -> None:
        """From now on, and until `end()`."""
        self._known.add(process)

        def looks() -> None:
            while not self._ended.wait(SAMPLED):
                self.look()

        self._looking = threading.Thread(target=looks, daemon=True)
        self._looking.start()

    def end(self) -> None:
        """No more looks."""
        self._ended.set()
        self._looking.join()

    def _is_ours(self, process: int) -> bool:
        """One that has lost its parent meanwhile was seen before."""
        line = []
        while process > 1 and process not in self._known:
            line.append(process)
            process = parent_of(process)
        if process > 1:
            self._known.update(line)
        return process > 1
