"""plans.c, where it can be used: the plans of operators are followed there, else in Python."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pyopencl as cl
import torch

from syncscope import native

ENV = "SYNCSCOPE_OCL_PLANS"  # "python": without it
# One of each lives in a process: to be that one is to be equal.
CONSTANTS = (torch.dtype, torch.layout, torch.memory_format)
FUNCTIONS = ("clSetKernelArg", "clEnqueueNDRangeKernel", "clFlush")
_DLPACK = "__dlpack_c_exchange_api__"  # PyTorch's table of functions


def _found() -> Any:
    if os.environ.get(ENV) == "python" or not hasattr(torch.Tensor, _DLPACK):
        return None
    return native.module(Path(__file__).with_name("plans.c"))


module: Any = _found()


def begin(memory: dict[str, Any], queue: dict[str, Any], flushes: int, generator: int) -> None:
    """Once, with the names of `memory` and `queue`, whose numbers are kept from there, too, and the address at which the
    generator keeps where it stands."""
    library = ctypes.CDLL(cl._cl.__file__)  # what it is linked to is found through it: the same OpenCL
    addresses = tuple(ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in FUNCTIONS)
    capsule = getattr(torch.Tensor, _DLPACK)
    module.begin(capsule, memory, queue, torch.Tensor, torch.nn.Parameter, CONSTANTS, addresses, flushes, generator)
