"""Products of halves by the matrix units of NVIDIA's GPUs: 16 x 8 sums of a warp by 16 steps of k, in one instruction of PTX.

OpenCL has no word for them; its compiler takes assembly. Products of halves are exact in float32, and are summed in it. Where a
probe does not build or sums up wrongly, contractions do without.
"""

from __future__ import annotations

import functools

import numpy as np
import pyopencl as cl

from syncscope.kernels import programs
from syncscope.kernels.device import context, device

# Item l of a warp holds of `a` the rows l / 4 and 8 below, each at steps 2 (l % 4) + {0, 1} and 8 on; of `b` the column l / 4
# at the same steps, two neighbours of k in a word; and of the sums those rows (lo, hi) at columns 2 (l % 4) + {0, 1}.
TEXT = """
#define MMA_half "f16"
#define MMA_bfloat16 "bf16"
#define MMA_KIND JOIN(MMA_, STORED)
#define MMA_BEGIN
#define MMA(lo, hi, a0, a1, a2, a3, b0, b1)                                                                  \\
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_KIND "." MMA_KIND                              \\
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                      \\
                 : "+f"((lo)[0]), "+f"((lo)[1]), "+f"((hi)[0]), "+f"((hi)[1])                                \\
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
"""
_PROBE = """
#define STORED {stored}
{text}
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void probe(__global const uint *a, __global const uint *b, __global float *out) {{
    MMA_BEGIN
    const int l = get_local_id(0), row = l / 4, pair = l % 4;
    float sums[2][2] = {{{{0, 0}}, {{0, 0}}}};
    MMA(sums[0], sums[1], a[row * 8 + pair], a[row * 8 + 64 + pair], a[row * 8 + pair + 4], a[row * 8 + 64 + pair + 4],
        b[row * 8 + pair], b[row * 8 + pair + 4])
    for (int i = 0; i < 4; i++) out[(row + i / 2 * 8) * 8 + pair * 2 + i % 2] = sums[i / 2][i % 2];
}}
"""


def serve(width: int) -> bool:
    """Whether contractions of elements of so many bytes are made by them."""
    return width == 2 and _there()


@functools.cache
def _there() -> bool:
    return "NVIDIA" in device.platform.name and all(_right(stored) for stored in ("half", "bfloat16"))


def _right(stored: str) -> bool:
    """Whether one instruction makes of whole numbers what it should."""
    a, b = (np.random.default_rng(0).integers(-8, 9, size).astype(np.float32) for size in ((16, 16), (8, 16)))
    flags, out = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, np.zeros((16, 8), np.float32)
    try:
        kernel = programs.build(_PROBE.format(stored=stored, text=TEXT), "probe")
        buffers = [cl.Buffer(context, flags, hostbuf=_bits(x, stored)) for x in (a, b)]
        result, queue = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, out.nbytes), cl.CommandQueue(context)
        kernel(queue, (32,), (32,), *buffers, result)
        cl.enqueue_copy(queue, out, result)
    except (cl.Error, RuntimeError):
        return False
    return bool((out == a @ b.T).all())


def _bits(x: np.ndarray, stored: str) -> np.ndarray:
    if stored == "half":
        return x.astype(np.float16).view(np.uint16)
    return (x.view(np.uint32) >> 16).astype(np.uint16)
