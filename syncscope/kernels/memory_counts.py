"""What `torch.ocl` and `torch.accelerator` say of memory, under the names that `torch.cuda` has."""

from __future__ import annotations

import torch
from torch.types import Device

from syncscope.kernels import memory

__all__ = [
    "empty_cache", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved",
    "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
]  # fmt: skip


def empty_cache() -> None:
    """Gives unused memory back to the driver."""
    memory.empty_cache()


def memory_allocated(device: Device = None) -> int:
    """Bytes in live storages."""
    return memory.in_use


def max_memory_allocated(device: Device = None) -> int:
    """The most bytes that were in live storages at once."""
    return memory.peak


def memory_reserved(device: Device = None) -> int:
    """Bytes held from the driver, in use or pooled."""
    return memory.held


def max_memory_reserved(device: Device = None) -> int:
    """The most bytes that were held from the driver at once."""
    return memory.most_held


def reset_peak_memory_stats(device: Device = None) -> None:
    """What was in use and held at most is counted from here."""
    memory.peak, memory.most_held = memory.in_use, memory.held


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Nothing to do: none of the counts adds up."""


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Bytes that this process has not taken, and those that the device has. OpenCL does not tell what others have taken."""
    return memory.ROOM - memory.held, memory.ROOM


def memory_stats(device: Device = None) -> dict[str, int]:
    """These counts under CUDA's keys, in bytes."""
    return {
        "allocated_bytes.all.current": memory.in_use,
        "allocated_bytes.all.peak": memory.peak,
        "reserved_bytes.all.current": memory.held,
        "reserved_bytes.all.peak": memory.most_held,
    }


def install() -> None:
    """Has `torch.accelerator` answer so: its own functions ask for an allocator in C++, and end in an internal assert."""
    for name in __all__:
        shown = "get_memory_info" if name == "mem_get_info" else name
        for module in (torch.accelerator, getattr(torch.accelerator, "memory", None)):
            if hasattr(module, shown):
                setattr(module, shown, globals()[name])
