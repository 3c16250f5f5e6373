"""Without torch or an OpenCL device there is nothing to test here."""

import importlib.util
import os

import pytest
from effort import EFFORT

if not all(map(importlib.util.find_spec, ("torch", "pyopencl"))):
    collect_ignore_glob = ["*"]


@pytest.fixture(scope="module")
def unoptimised():
    """PoCL builds kernels in a fifth of the time, those written for GPUs above all: for tests of what many of them compute, in
    all their types and shapes. `make fuzz` has them optimised, and so have the tests that train, and the self-test, always."""
    with pytest.MonkeyPatch.context() as patch:
        if EFFORT == 1 and "SYNCSCOPE_OCL_DEVICE" not in os.environ:
            patch.setenv("PYOPENCL_BUILD_OPTIONS", "-cl-opt-disable")
        yield
