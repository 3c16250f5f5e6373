"""A backward pass that ran before the device was there.

PyTorch makes a thread for each device at the first backward pass of a process, and never again. Where there was none, a pass on
ours would end in an internal assert (`device_ready_queues_`). What makes the threads can be called once more
(`Engine::start_device_threads`, torch/csrc/autograd/engine.cpp): where the first pass found no device it has made none, so that
nothing is there twice.
"""

from __future__ import annotations

import ctypes
import warnings

import torch

from syncscope.kernels import storage

_ENGINE = "_ZN5torch8autograd6Engine18get_default_engineEv"
_START = "_ZN5torch8autograd6Engine20start_device_threadsEv"


def recorded() -> bool:
    """Whether this thread has recorded anything for a backward pass. Where it has not there was none, and none is tried: that
    makes the threads, after which a child made by fork can have no backward pass.
    """
    return bool(torch.autograd._get_sequence_nr())


def require() -> None:
    """Makes the device's thread where a backward pass came before the device; warns where that cannot be done."""
    if _there():
        return
    try:
        library = ctypes.CDLL(torch._C.__file__)
        engine, start = getattr(library, _ENGINE), getattr(library, _START)
    except (OSError, AttributeError):
        pass
    else:
        engine.restype, start.restype, start.argtypes = ctypes.c_void_p, None, [ctypes.c_void_p]
        start(engine())
        if _there():
            return
    warnings.warn(
        "a backward pass ran before `import syncscope.kernels`, and this PyTorch has no thread for a device that comes later: "
        "one on ocl will end in an internal assert (`device_ready_queues_`). Import syncscope.kernels first.",
        stacklevel=2,
    )


def _there() -> bool:
    """Tries a backward pass of nothing."""
    x = torch.empty(0, device=storage.device(), requires_grad=True)
    try:
        torch.autograd.grad(x.view(0), x, torch.empty(0, device=storage.device()))
    except RuntimeError as error:
        if "device_ready_queues_" not in str(error):
            raise
        return False
    return True
