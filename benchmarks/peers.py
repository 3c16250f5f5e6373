"""Products of matrices by others on OpenCL, for `device_speed.py`: tinygrad, where it is installed.

It chooses its own device; its loader of OpenCL is pyopencl's where the system has none, unless OPENCL_PATH names one. Each
product is compared with numpy once before it is timed.
"""

from __future__ import annotations

import ctypes.util
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

Product = tuple[Callable[[], object], Callable[[], object]]  # an iteration, and how to wait for it


def tinygrad(size: int) -> Product:
    """A product by tinygrad's JIT on its OpenCL device; it searches for no schedule unless BEAM says so."""
    import pyopencl

    os.environ["DEV"] = "CL"
    bundled = sorted(Path(pyopencl.__file__).parent.glob(".libs/libOpenCL*"))
    if bundled and not ctypes.util.find_library("OpenCL"):
        os.environ.setdefault("OPENCL_PATH", str(bundled[0]))
    from tinygrad import Device, Tensor, TinyJit

    a, b, expected = operands(size)
    left, right = (Tensor(x).contiguous().realize() for x in (a, b))
    product = TinyJit(lambda: (left @ right).realize())
    check(product().numpy(), expected)
    return product, Device[Device.DEFAULT].synchronize


def operands(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two matrices in float32, and some rows of their product in float64."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size), np.float32) for _ in range(2))
    return a, b, a[:8].astype(np.float64) @ b


def check(got: np.ndarray, expected: np.ndarray) -> None:
    """Raises where the first rows are not the product."""
    np.testing.assert_allclose(got[: len(expected)], expected, rtol=1e-3, atol=1e-3 * len(got) ** 0.5)


PEERS = {"tinygrad": tinygrad}
