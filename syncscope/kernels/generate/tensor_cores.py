"""Products by the matrix units of NVIDIA's GPUs: 16 x 8 sums of a warp by 16 steps of k of halves, or 8 of floats, in one
instruction of PTX.

OpenCL has no word for them; its compiler takes assembly. Products of halves are exact in float32, and are summed in it. Of a
float they read 11 significant bits. So each is taken apart into two that hold 22 of its bits, and of their four products the
three that matter are added up, small ones first, eight steps of k by themselves, as the units cut off where they should round:
that is nearer to the exact sum than float32's own multiply-adds (Ootomo and Yokota, 2022). Where a probe does not build or sums
up wrongly, contractions do without.

Hopper's instructions of four warps (wgmma) are refused by the driver's compiler, but can be had: as a comment in the source,
uncovered in the program's PTX, which is assembled again for sm_90a. On an H200 they gained nothing, in TF32 and in halves:
in the 48 KiB of local memory that OpenCL gives, tiles of 128 x 128 came no faster than the second cache seems to give them,
whoever multiplied, and larger ones had no room for those to come.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Literal

import numpy as np
import pyopencl as cl
import torch

from syncscope.kernels import coming, programs
from syncscope.kernels.device import context, device

Kind = Literal["halves", "thrice", "once", "rounded"]  # what is multiplied, and floats how often: in TF32 once
# Item l of a warp holds of `a` the rows l / 4 and 8 below, each at steps 2 (l % 4) + {0, 1} and, of halves, 8 on; of `b` the
# column l / 4 at the same steps; and of the sums those rows (lo, hi) at columns 2 (l % 4) + {0, 1}.
PTX = """
static inline uint tf32(float x) {
    uint y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}
#define TF32(x) tf32(x)
#define MMA_BEGIN
#define MMA_half "m16n8k16.row.col.f32.f16.f16"
#define MMA_bfloat16 "m16n8k16.row.col.f32.bf16.bf16"
#define MMA_plain "m16n8k8.row.col.f32.tf32.tf32"
#define MMA_ONCE(lo, hi, a0, a1, a2, a3, b0, b1)                                                                       \\
    asm volatile("mma.sync.aligned." JOIN(MMA_, STORED) ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "         \\
                 "{%0, %1, %2, %3};"                                                                                  \\
                 : "+f"((lo)[0]), "+f"((lo)[1]), "+f"((hi)[0]), "+f"((hi)[1])                                         \\
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
// Copies from global to local memory that the item does not wait for: of one float, or zero, and of four.
#define COPY(to, from, valid)                                                                                          \\
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((uint)(ulong)(to)), "l"((ulong)(from)),         \\
                 "r"((valid) ? 4 : 0) : "memory");
#define COPY4(to, from, valid)                                                                                         \\
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint)(ulong)(to)), "l"((ulong)(from)),        \\
                 "r"((valid) ? 16 : 0) : "memory");
// Of eight halves, and what a warp multiplies of them: four matrices of 8 x 8, each item telling where a row begins. Of each it
// gets two neighbours of row l / 4, or (TURNED) of column l / 4.
#define COPY8(to, from, valid) COPY4(to, from, valid)
#define MATRICES(a, b, c, d, at) MATRICES_AS("", a, b, c, d, at)
#define MATRICES_TURNED(a, b, c, d, at) MATRICES_AS(".trans", a, b, c, d, at)
#define MATRICES_AS(how, a, b, c, d, at)                                                                               \\
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];"                            \\
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((uint)(ulong)(at)) : "memory");
// The number of the item beside, of each two, or of one a few items apart.
#define EXCHANGE(x) EXCHANGE_BY(x, 1)
#define EXCHANGE_BY(x, apart) asm volatile("shfl.sync.bfly.b32 %0, %0, " #apart ", 0x1f, 0xffffffff;" : "+f"(x));
#define POWER_OF_TWO(y, x) asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
// Two floats as halves, a word.
#define TWO_half "f16x2"
#define TWO_bfloat16 "bf16x2"
#define BOTH(word, x, y) asm("cvt.rn." JOIN(TWO_, STORED) ".f32 %0, %1, %2;" : "=r"(word) : "f"(y), "f"(x));
#define COPIES_END asm volatile("cp.async.commit_group;" ::: "memory");
#define COPIES_WAIT(left) asm volatile("cp.async.wait_group " #left ";" ::: "memory");
"""
# A WORD is two neighbours of k as they lie in local memory, a PART as it is multiplied.
_HALVES = """
#define WORD uint
#define PART uint
#define PAIR(x, y) as_uint((ushort2)(x, y))
#define READ(x) (x)
#define MMA MMA_ONCE
"""
# What is not finite has a small part that is no number: its sums are none either, and are made again without these units.
_FLOATS = """
#define WORD float2
#define PART uint4
#define PAIR(x, y) (float2)(x, y)
#define READ(x) apart(x)
#define MMA(lo, hi, a0, a1, b0) {                                                                                      \\
    upper[0] = upper[1] = lower[0] = lower[1] = 0;                                                                     \\
    MMA_ONCE(upper, lower, (a0).z, (a1).z, (a0).w, (a1).w, (b0).x, (b0).y)                                             \\
    MMA_ONCE(upper, lower, (a0).x, (a1).x, (a0).y, (a1).y, (b0).z, (b0).w)                                             \\
    MMA_ONCE(upper, lower, (a0).x, (a1).x, (a0).y, (a1).y, (b0).x, (b0).y)                                             \\
    (lo)[0] += upper[0]; (lo)[1] += upper[1]; (hi)[0] += lower[0]; (hi)[1] += lower[1]; }

static inline uint4 apart(float2 x) {
    const uint2 large = (as_uint2(x) + 0x1000u) & 0xffffe000u;
    return (uint4)(large, as_uint2(x - as_float2(large)));
}
"""
# TF32: floats are rounded to eleven bits as they come, and multiplied once.
_ONCE = """
#define WORD uint2
#define PART uint2
#define PAIR(x, y) (uint2)(TF32(x), TF32(y))
#define READ(x) (x)
#define MMA(lo, hi, a0, a1, b0) MMA_ONCE(lo, hi, (a0).x, (a1).x, (a0).y, (a1).y, (b0).x, (b0).y)
"""
# The same of floats that lie in local memory as they came: whoever reads one rounds it.
_ONCE_READ = (
    _ONCE.replace("PAIR(x, y) (uint2)(TF32(x), TF32(y))", "PAIR(x, y) (float2)(x, y)")
    .replace("WORD uint2", "WORD float2")
    .replace("READ(x) (x)", "READ(x) (uint2)(TF32((x).s0), TF32((x).s1))")
)
# And of those that were rounded before.
_ROUNDED = _ONCE_READ.replace("READ(x) (uint2)(TF32((x).s0), TF32((x).s1))", "READ(x) as_uint2(x)")
_STORED = {torch.float16: "half", torch.bfloat16: "bfloat16", torch.float32: "plain"}
_PROBE = """
#define T float
#define STORED {stored}
{text}
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void probe(__global const WORD *a, __global const WORD *b, __global float *out) {{
    MMA_BEGIN
    const int l = get_local_id(0), row = l / 4, pair = l % 4;
    float sums[2][2] = {{{{0, 0}}, {{0, 0}}}}, upper[2], lower[2];
    MMA(sums[0], sums[1], {parts})
    for (int i = 0; i < 4; i++) out[(row + i / 2 * 8) * 8 + pair * 2 + i % 2] = sums[i / 2][i % 2];
}}
"""


SUFFIXES: dict[Kind, str] = {"halves": "", "once": "_tf32", "thrice": "_tf32x3"}
"""What the name of a kernel ends with, by which a recording tells what it multiplies in."""


def kind(dtype: torch.dtype, tf32: bool) -> Kind:
    """What they multiply of a dtype, and how often."""
    return "halves" if dtype.itemsize == 2 else "once" if tf32 else "thrice"


def text(kind: Kind, copied: bool = False) -> str:
    """`MMA`, and how words are made and read for it; `copied` into local memory as they come, or through registers."""
    once = _ONCE_READ if copied else _ONCE
    words = {"halves": _HALVES, "once": once, "rounded": _ROUNDED, "thrice": _FLOATS}[kind]
    return PTX + words


@functools.cache
def serve(dtype: torch.dtype) -> bool:
    """Whether contractions of this dtype are made by them; asked at every product."""
    if dtype not in _STORED or "NVIDIA" not in device.platform.name:
        return False
    kinds: tuple[Kind, ...] = ("halves",) if dtype.itemsize == 2 else ("thrice", "once")
    _ask(_STORED[dtype], kinds)
    return all(_right(_STORED[dtype], kind) for kind in kinds)


@functools.cache
def _ask(stored: str, kinds: tuple[Kind, ...]) -> None:
    """Has the probes built side by side."""
    for kind in kinds:
        with contextlib.suppress(cl.Error):  # which is told of where it is waited for
            _probe(stored, kind)


def _probe(stored: str, kind: Kind) -> cl.Kernel | coming.Coming:
    halves = kind == "halves"
    words = 8 if halves else 4  # of a row
    places = [f"a[row * {words} + pair + {x}]" for x in ((0, 64, 4, 68) if halves else (0, 32))]
    places += [f"b[row * {words} + pair + {x}]" for x in ((0, 4) if halves else (0,))]
    parts = ", ".join(f"READ({x})" for x in places)
    return programs.build(_PROBE.format(stored=stored, text=text(kind), parts=parts), "probe")


@functools.cache
def _right(stored: str, kind: Kind) -> bool:
    """Whether one instruction makes of numbers what it should."""
    halves = kind == "halves"
    words = 8 if halves else 4
    a, b = (np.random.default_rng(0).integers(-8, 9, (rows, 2 * words)).astype(np.float32) for rows in (16, 8))
    if not halves:
        a /= 3  # more bits than are multiplied at once: by one product alone some sums are off by 1e-2
    flags, out = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, np.zeros((16, 8), np.float32)
    try:
        buffers = [cl.Buffer(context, flags, hostbuf=_bits(x, stored)) for x in (a, b)]
        result, queue = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, out.nbytes), cl.CommandQueue(context)
        coming.kernel(_probe(stored, kind))(queue, (32,), (32,), *buffers, result)
        cl.enqueue_copy(queue, out, result)
    except (cl.Error, RuntimeError):
        return False
    return bool(
        np.allclose(out, a.astype(np.float64) @ b.T, rtol=0, atol={"halves": 0, "once": 5e-2, "thrice": 1e-4}[kind])
    )


def _bits(x: np.ndarray, stored: str) -> np.ndarray:
    if stored == "plain":
        return x
    if stored == "half":
        return x.astype(np.float16).view(np.uint16)
    return (x.view(np.uint32) >> 16).astype(np.uint16)
