"""How many copies of a program hold what memory there is, on the GPU and on the host: seen from inside of one of them."""

from __future__ import annotations

import contextlib
import resource
import sys
from pathlib import Path
from typing import Any

CONTEXT = 600 << 20  # bytes that CUDA takes of a device for each process
CGROUP = Path("/sys/fs/cgroup")
MEMORY = Path("/proc/meminfo")


def room() -> int | None:
    """This one, and as many more as fit beside what else lies there; None where that is not known."""
    return min((count for count in (_on_device(), _on_host()) if count is not None), default=None)


def _on_device() -> int | None:
    torch: Any = sys.modules.get("torch")
    if not getattr(getattr(torch, "cuda", None), "_initialized", False):
        return None
    with contextlib.suppress(Exception):  # whatever is wrong with it: then it is not known
        free, _ = torch.cuda.mem_get_info()
        return 1 + int(free // (torch.cuda.max_memory_reserved() + CONTEXT))
    return None


def _on_host() -> int | None:
    free = available()
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return None if free is None else 1 + free // max(1, taken)


def available(memory: Path = MEMORY, cgroup: Path = CGROUP) -> int | None:
    """Bytes of the host's memory that programs may still take, here or in the container around; None but on Linux."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        said = dict(line.split(":", 1) for line in memory.read_text().splitlines())
        free = int(said["MemAvailable"].split()[0]) << 10
        with contextlib.suppress(OSError, ValueError):  # "max" is no number
            limit, used = (int((cgroup / f"memory.{name}").read_text()) for name in ("max", "current"))
            free = min(free, max(0, limit - used))
        return free
    return None
