"""Products of matrices by others on OpenCL, for `device_speed.py`: tinygrad and CLBlast, where they are installed.

tinygrad chooses its own device; its loader of OpenCL is pyopencl's where the system has none, unless OPENCL_PATH names one.
CLBlast is the system's (`apt install libclblast1`), or the library that CLBLAST_PATH names, on the device that `ocl` is. Each
product is compared with numpy once before it is timed.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
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


def clblast(size: int) -> Product:
    """A product by CLBlast, with the parameters that it ships for the device."""
    path = os.environ.get("CLBLAST_PATH") or ctypes.util.find_library("clblast")
    if path is None:
        sys.exit("CLBlast is not installed: apt install libclblast1, or name the library in CLBLAST_PATH")
    import pyopencl as cl

    from syncscope.kernels.device import context

    a, b, expected = operands(size)
    given = cl.mem_flags.COPY_HOST_PTR
    left, right = (cl.Buffer(context, given, hostbuf=x) for x in (a, b))
    made, queue = cl.Buffer(context, cl.mem_flags.READ_WRITE, a.nbytes), cl.CommandQueue(context)
    sgemm = ctypes.CDLL(path).CLBlastSgemm
    count, number, handle = ctypes.c_size_t, ctypes.c_float, ctypes.c_void_p
    matrix = (handle, count, count)
    sgemm.argtypes = [ctypes.c_int] * 3 + [count] * 3 + [number, *matrix, *matrix, number, *matrix, handle, handle]
    at = ctypes.byref(handle(queue.int_ptr))
    row_major, as_it_is = 101, 111

    def product() -> None:
        operands_of = (left.int_ptr, 0, size, right.int_ptr, 0, size)
        code = sgemm(
            row_major, as_it_is, as_it_is, size, size, size, 1, *operands_of, 0, made.int_ptr, 0, size, at, None
        )
        assert code == 0, code

    product()
    got = np.empty_like(a)
    cl.enqueue_copy(queue, got, made)
    check(got, expected)
    return product, queue.finish


def operands(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two matrices in float32, and some rows of their product in float64."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size), np.float32) for _ in range(2))
    return a, b, a[:8].astype(np.float64) @ b


def check(got: np.ndarray, expected: np.ndarray) -> None:
    """Raises where the first rows are not the product."""
    np.testing.assert_allclose(got[: len(expected)], expected, rtol=1e-3, atol=1e-3 * len(got) ** 0.5)


PEERS = {"tinygrad": tinygrad, "clblast": clblast}
