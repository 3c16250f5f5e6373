"""Without torch or an OpenCL device there is nothing to test here."""

import importlib.util
import os
from pathlib import Path

import pytest

if not all(map(importlib.util.find_spec, ("torch", "pyopencl"))):
    collect_ignore_glob = ["*"]


@pytest.fixture
def optimised():
    """The environment of a process whose kernels are built as users' are: see `tests/conftest.py`."""
    return {name: value for name, value in os.environ.items() if name != "PYOPENCL_BUILD_OPTIONS"}


@pytest.fixture
def exactly(monkeypatch):
    """In float32: as PyTorch comes, convolutions and the steps of an LSTM are made in TF32 where a device has it."""
    import torch

    monkeypatch.setattr(torch.ocl, "allow_tf32", False)


@pytest.fixture
def no_plans(monkeypatch):
    """No plan is kept, and the next are made once the kernels are there."""
    import torch

    from syncscope.kernels import coming, plans

    monkeypatch.setattr(coming, "ahead", False)
    torch.ocl.synchronize()
    plans.forget()


@pytest.fixture
def launched():
    """Tells how many launches there were, those included whose kernels are being built when it is asked."""
    import torch

    from syncscope.kernels import queue

    def told():
        torch.ocl.synchronize()
        return queue.launches

    return told


@pytest.fixture(scope="module")
def gpu_shape():
    """The kernels of GPUs, which any device can run, if slowly."""
    from syncscope.kernels import plans
    from syncscope.kernels.generate import run

    before, run.SHAPE = run.SHAPE, "gpu"
    plans.forget()
    yield
    run.SHAPE = before
    plans.forget()


@pytest.fixture
def cores(monkeypatch):
    """Tensor cores; where the device has none, what they do in C."""
    import torch

    from syncscope.kernels import plans
    from syncscope.kernels.generate import run, tensor_cores
    from syncscope.kernels.ops import convolution

    if tensor_cores.serve(torch.float32):
        yield
        return
    monkeypatch.setattr(tensor_cores, "serve", lambda dtype: dtype in (torch.float32, torch.float16, torch.bfloat16))
    monkeypatch.setattr(tensor_cores, "PTX", (Path(__file__).parent / "tensor_core.cl").read_text())
    for known in (run.plan.cache_clear, convolution._plans.cache_clear, plans.forget):
        known()
    yield
    for known in (run.plan.cache_clear, convolution._plans.cache_clear, plans.forget):
        known()
