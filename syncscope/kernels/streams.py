"""Which number of the generator is whose: how CUDA's kernels deal the elements of a tensor out to streams."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

from syncscope.kernels import storage
from syncscope.kernels.device import device, is_gpu

GROUP = 256  # threads of a block of CUDA's kernels that draw
_LANES = 1 if is_gpu else 8  # as cl/philox.cl has it: streams of an item
TEAM = (GROUP // _LANES,)  # a work-group, for as many streams
_H100 = 132 * 2048
# Threads that a multiprocessor of NVIDIA's holds at once, by its compute capability, where they are not 2,048 (CUDA C++
# Programming Guide, technical specifications).
_FEWER = {(7, 5): 1024, (8, 6): 1536, (8, 7): 1536, (8, 9): 1536, (11, 0): 1536, (12, 0): 1536, (12, 1): 1536}


@functools.cache
def most() -> int:
    """Streams that CUDA has at most on this device; on those of others, as many as on an H100."""
    if "NVIDIA" not in device.platform.name:
        return _H100
    capability = device.compute_capability_major_nv, device.compute_capability_minor_nv
    return int(device.max_compute_units) * _FEWER.get(capability, 2048)


class Streams(NamedTuple):
    """So many streams draw side by side, and each so often."""

    across: int
    turns: int

    @staticmethod
    def of(total: int, each: int) -> Streams:
        """For so many elements, of which `each` are drawn at a time."""
        across = min(-(-total // GROUP) * GROUP, most() // GROUP * GROUP)
        return Streams(across, -(-total // (across * each)))

    @property
    def drawn(self) -> int:
        """How far the generator is afterwards."""
        return 4 * self.turns


def items(streams: int) -> tuple[int]:
    """The size of a launch for so many streams at least."""
    return (-(-streams // GROUP) * TEAM[0],)


def dense(x: torch.Tensor) -> bool:
    """Whether a tensor's elements fill its memory, in whatever order: they are numbered as they lie there."""
    return bool(storage.extent(x.shape, x.stride()) == x.numel())
