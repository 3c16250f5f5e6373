"""What an OpenCL device can do at best, measured once: bytes per second of a copy, operations per second of a GEMM.

Both are timed by the device's own stamps and kept in the user's cache directory for that platform, device and driver.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pyopencl as cl

from syncscope import files

COPY_BYTES = 64 << 20
SIDE = 1024  # of the square matrices
ROUNDS = 5
METHOD = "3"  # of measuring: what an older one found is not taken from the cache
BLOCKS = ((8, 8), (8, 16))  # rows and columns that a work item makes: what GPUs have registers for, and CPUs vectors
# Compilers may contract a product and a sum as they like; PoCL's wheel would leave fma() as a call.
GEMM = """
typedef float%(width)d vector;
__kernel void gemm(__global const float *restrict a, __global const float *restrict b, __global float *restrict c, int n) {
    int row = get_global_id(1) * %(rows)d, column = get_global_id(0) * %(width)d;
    vector sum[%(rows)d];
    for (int i = 0; i < %(rows)d; i++) sum[i] = 0.0f;
    for (int k = 0; k < n; k++) {
        vector right = vload%(width)d(0, b + k * n + column);
        #pragma unroll
        for (int i = 0; i < %(rows)d; i++) sum[i] = a[(row + i) * n + k] * right + sum[i];
    }
    for (int i = 0; i < %(rows)d; i++) vstore%(width)d(sum[i], 0, c + (row + i) * n + column);
}
"""


def devices() -> list[cl.Device]:
    """The OpenCL devices of this machine."""
    try:
        return [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:  # no platform at all
        return []


def known(device: cl.Device) -> tuple[float, float] | None:
    """What was measured of it before."""
    path = _kept(device)
    if not path.is_file():
        return None
    kept = json.loads(path.read_text())
    return float(kept["bandwidth"]), float(kept["flops"])


def peaks(device: cl.Device, again: bool = False) -> tuple[float, float]:
    """Bytes and floating-point operations per second of a device; from the cache unless `again`."""
    if not again and (kept := known(device)) is not None:
        return kept
    if "PoCL" in device.platform.version:
        from syncscope.kernels import pocl_cpu

        pocl_cpu.name_unknown(device)  # its compiler may not know a new CPU
    found = _bandwidth(device), _flops(device)
    facts = {"device": device.name, "bandwidth": found[0], "flops": found[1]}
    files.write(_kept(device), json.dumps(facts).encode())
    return found


def _kept(device: cl.Device) -> Path:
    what = "|".join((METHOD, device.platform.name, device.platform.version, device.name, device.driver_version))
    name = hashlib.sha256(what.encode()).hexdigest()[:16]
    return files.cache_folder("peaks") / f"{name}.json"


def _bandwidth(device: cl.Device) -> float:
    """A copy reads and writes each byte."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    source, target = (cl.Buffer(context, cl.mem_flags.READ_WRITE, COPY_BYTES) for _ in range(2))
    cl.enqueue_fill_buffer(queue, source, np.zeros(1, np.uint8), 0, COPY_BYTES).wait()
    best = min(_seconds(cl.enqueue_copy(queue, target, source, byte_count=COPY_BYTES)) for _ in range(ROUNDS))
    return 2 * COPY_BYTES / best


def _flops(device: cl.Device) -> float:
    """The best of some ways to block a product: what is beaten by the next kernel is no ceiling."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    values = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    a, b, c = (cl.Buffer(context, flags, hostbuf=values) for _ in range(3))
    best = math.inf
    for rows, width in BLOCKS:
        kernel = cl.Kernel(cl.Program(context, GEMM % {"rows": rows, "width": width}).build(), "gemm")
        kernel.set_args(a, b, c, np.int32(SIDE))
        size = (SIDE // width, SIDE // rows)
        for _ in range(ROUNDS):
            best = min(best, _seconds(cl.enqueue_nd_range_kernel(queue, kernel, size, None)))
    return 2 * SIDE**3 / best


def _seconds(event: cl.Event) -> float:
    event.wait()
    return max(1, int(event.profile.end) - int(event.profile.start)) / 1e9
