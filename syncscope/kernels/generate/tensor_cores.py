"""Products by the matrix units of NVIDIA's GPUs: 16 x 8 sums of a warp by 16 steps of k of halves, or 8 of floats, in one
instruction of PTX.

OpenCL has no word for them; its compiler takes assembly. Products of halves are exact in float32, and are summed in it. Of a
float they read 11 significant bits. So each is taken apart into two that hold 22 of its bits, and of their four products the
three that matter are added up, small ones first, eight steps of k by themselves, as the units cut off where they should round:
that is as near to the exact sum as float32's own multiply-add (Ootomo and Yokota, 2022). Where a probe does not build or sums
up wrongly, contractions do without.
"""

from __future__ import annotations

import functools

import numpy as np
import pyopencl as cl
import torch

from syncscope.kernels import programs
from syncscope.kernels.device import context, device

# Item l of a warp holds of `a` the rows l / 4 and 8 below, each at steps 2 (l % 4) + {0, 1} and 8 on; of `b` the column l / 4
# at the same steps, two neighbours of k in a word; and of the sums those rows (lo, hi) at columns 2 (l % 4) + {0, 1}. Of floats
# the steps are l % 4 and 4 on, one in a word.
PTX = """
#define MMA_BEGIN
#define MMA_half "m16n8k16.row.col.f32.f16.f16"
#define MMA_bfloat16 "m16n8k16.row.col.f32.bf16.bf16"
#define MMA_plain "m16n8k8.row.col.f32.tf32.tf32"
#define MMA_ONCE(lo, hi, a0, a1, a2, a3, b0, b1)                                                                       \\
    asm volatile("mma.sync.aligned." JOIN(MMA_, STORED) ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "         \\
                 "{%0, %1, %2, %3};"                                                                                  \\
                 : "+f"((lo)[0]), "+f"((lo)[1]), "+f"((hi)[0]), "+f"((hi)[1])                                         \\
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#define TF32(bits, x) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
"""
_PAIRS = """
#define WORD uint
#define READ(x) (x)
#define MMA MMA_ONCE
"""
# What is not finite has a small part that is no number: its sums are none either, and are made again without these units.
_FLOATS = """
#define WORD uint2
#define READ(x) apart(x)
#define MMA(lo, hi, a0, a1, a2, a3, b0, b1) {                                                                          \\
    upper[0] = upper[1] = lower[0] = lower[1] = 0;                                                                          \\
    MMA_ONCE(upper, lower, (a0).y, (a1).y, (a2).y, (a3).y, (b0).x, (b1).x)                                             \\
    MMA_ONCE(upper, lower, (a0).x, (a1).x, (a2).x, (a3).x, (b0).y, (b1).y)                                             \\
    MMA_ONCE(upper, lower, (a0).x, (a1).x, (a2).x, (a3).x, (b0).x, (b1).x)                                             \\
    (lo)[0] += upper[0]; (lo)[1] += upper[1]; (hi)[0] += lower[0]; (hi)[1] += lower[1]; }

static inline uint2 apart(float x) {
    uint large, small;
    TF32(large, x)
    TF32(small, x - as_float(large))
    return (uint2)(large, small);
}
"""
_KINDS = {torch.float16: "half", torch.bfloat16: "bfloat16", torch.float32: "plain"}  # STORED
_PROBE = """
#define T float
#define STORED {stored}
{text}
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void probe(__global const {word} *a, __global const {word} *b, __global float *out) {{
    MMA_BEGIN
    const int l = get_local_id(0), row = l / 4, pair = l % 4;
    float sums[2][2] = {{{{0, 0}}, {{0, 0}}}}, upper[2], lower[2];
    MMA(sums[0], sums[1], READ(a[row * 8 + pair]), READ(a[row * 8 + 64 + pair]), READ(a[row * 8 + pair + 4]),
        READ(a[row * 8 + 64 + pair + 4]), READ(b[row * 8 + pair]), READ(b[row * 8 + pair + 4]))
    for (int i = 0; i < 4; i++) out[(row + i / 2 * 8) * 8 + pair * 2 + i % 2] = sums[i / 2][i % 2];
}}
"""


def text(pairs: bool) -> str:
    """`MMA` and what it takes, for STORED halves in pairs, or floats."""
    return PTX + (_PAIRS if pairs else _FLOATS)


def serve(dtype: torch.dtype) -> bool:
    """Whether contractions of this dtype are made by them."""
    return dtype in _KINDS and "NVIDIA" in device.platform.name and _right(_KINDS[dtype])


@functools.cache
def _right(stored: str) -> bool:
    """Whether one instruction makes of numbers what it should."""
    pairs = stored != "plain"
    steps = 16 if pairs else 8
    a, b = (np.random.default_rng(0).integers(-8, 9, size).astype(np.float32) for size in ((16, steps), (8, steps)))
    if not pairs:
        a /= 3  # more bits than are multiplied at once
    flags, out = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, np.zeros((16, 8), np.float32)
    try:
        source = _PROBE.format(stored=stored, text=text(pairs), word="uint" if pairs else "float")
        kernel = programs.build(source, "probe")
        buffers = [cl.Buffer(context, flags, hostbuf=_bits(x, stored)) for x in (a, b)]
        result, queue = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, out.nbytes), cl.CommandQueue(context)
        kernel(queue, (32,), (32,), *buffers, result)
        cl.enqueue_copy(queue, out, result)
    except (cl.Error, RuntimeError):
        return False
    return bool(np.allclose(out, a.astype(np.float64) @ b.T, rtol=0, atol=0 if pairs else 1e-5))


def _bits(x: np.ndarray, stored: str) -> np.ndarray:
    if stored == "plain":
        return x
    if stored == "half":
        return x.astype(np.float16).view(np.uint16)
    return (x.view(np.uint32) >> 16).astype(np.uint16)
