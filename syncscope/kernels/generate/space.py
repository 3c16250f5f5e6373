"""Which schedules there are for a contraction on a GPU, and which to take where nobody has tuned."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from syncscope.kernels.generate import block, cpu, tensor_cores
from syncscope.kernels.generate.block import Schedule
from syncscope.kernels.generate.ir import Contraction
from syncscope.kernels.generate.operands import contiguous, copied_as, fetches, wide

_LOCAL = 48 << 10  # bytes of local memory that every GPU of the last ten years gives a group
_SPLITS = (1, 2, 4, 8, 16, 32, 64, 128)

# Tiles, depth and blocks that a default is chosen among; the search may leave them. The largest tile takes so many registers
# that it is fastest with the least depth, which needs fewer to fetch ahead.
_TILES = tuple(
    Schedule(bm, bn, bk, tm, tn)
    for bm, bn, bk, tm, tn in (
        (128, 128, 8, 8, 8), (128, 64, 16, 8, 8), (64, 128, 16, 8, 8), (64, 64, 16, 8, 8), (64, 64, 16, 8, 4),
        (32, 128, 8, 8, 8), (16, 128, 8, 8, 8), (128, 32, 16, 8, 4), (32, 64, 16, 4, 4), (64, 32, 16, 4, 4), (32, 32, 16, 4, 4),
        (16, 128, 16, 4, 4), (128, 16, 16, 4, 4), (16, 64, 16, 4, 4), (16, 32, 16, 4, 4), (32, 16, 16, 4, 4),
    )
)  # fmt: skip
# In products that one unit makes in the time of: an element of the workspace written and read again; one more launch; the
# start and end of a group.
_ELEMENT = 100
_LAUNCH = 1 << 20
_GROUP = 1 << 15
_CORES = {"halves": 5, "once": 4, "thrice": 2}  # times as fast are tensor cores
_TURN = 5.7  # of their steps of k a barrier takes
# Of convolutions in TF32 these tiles, which are copied, took .92 and .82 of the time that those fetched through registers
# took: the means of ten and of four on an H100, none above .94 and .86. To the weights, where both operands lie along k, they
# gain nothing.
_COPIED = {
    (128, 128): Schedule(128, 128, 8, 8, 16, cores=True, stages=4),
    (64, 128): Schedule(64, 128, 16, 8, 8, cores=True, stages=3),
}
# Of floats whose channels lie innermost (channels_last.py), in whole vectors: 1.3 to 1.8 times as fast as those. The first that
# has room is taken, which depends on the axes along which the operands lie.
_COPIED_LAST = {
    (128, 128): (
        Schedule(128, 128, 16, 8, 16, cores=True, stages=3),
        Schedule(128, 128, 8, 8, 16, cores=True, stages=4),
    ),
    (128, 64): (Schedule(128, 64, 16, 8, 8, cores=True, stages=3),),
    (64, 128): (Schedule(64, 128, 16, 8, 8, cores=True, stages=3),),
    (64, 64): (Schedule(64, 64, 16, 8, 4, cores=True, stages=4),),
}
# Of halves whose channels lie innermost, where tiles of 128 x 128 take a tenth longer: there are too few of them.
_COPIED_HALVES_LAST = Schedule(64, 128, 32, 8, 8, cores=True, stages=4)
# Of halves that can be brought eight at a time these, not the same tiles through registers: on an H100 190 to 350 TFLOPS in
# eleven products of transformers, where those had 74 to 155.
_COPIED_HALVES = {
    (128, 128): Schedule(128, 128, 32, 8, 16, cores=True, stages=3),
    (128, 64): Schedule(128, 64, 32, 8, 8, cores=True, stages=4),
    (64, 128): Schedule(64, 128, 32, 4, 16, cores=True, stages=4),
    (64, 64): Schedule(64, 64, 32, 8, 4, cores=True, stages=4),
}
_WAYS = (False, 2), (True, 2), (True, 3), (True, 4)  # by them or not, and tiles in local memory
# What they multiply by beside the tiles above: few rows.
_FLAT = tuple(Schedule(16, bn, 16, 2, tn, cores=True) for bn, tn in ((128, 8), (64, 8), (64, 4), (32, 4)))


def legal(c: Contraction, s: Schedule, aligned: tuple[bool, ...], dtype: torch.dtype) -> bool:
    """Whether a schedule can make a contraction of such elements."""
    cores, halves = s.cores, dtype.itemsize == 2
    if s.copied and halves:
        local = 2 * s.stages * s.bk * (s.bm + s.bn)
    elif s.copied:
        sides = zip((contiguous(c, c.a, "m"), contiguous(c, c.b, "n")), (s.bm, s.bn), strict=True)
        kind = copied_as(c, s, aligned)
        local = 4 * s.stages * sum(math.prod(block.copied(s, along, size, kind)) for along, size in sides)
    elif cores:
        local = s.stages * s.bk // 2 * sum(block.width(x, halves) for x in (s.bm, s.bn)) * (4 if halves else 8)
    else:  # halves are widened
        local = 2 * s.bk * (s.bm + s.bn + 8) * max(dtype.itemsize, 4)
    return (
        (not cores or tensor_cores.serve(dtype))
        and (not s.copied or (cores and (dtype is torch.float32 or (halves and s.tn % 4 == 0))))
        and (32 if cores else 16) <= s.items <= 256
        and local <= _LOCAL
        and s.bm % (8 * s.tm if cores else s.tm)
        == s.bn % (4 * s.tn if cores else s.tn)
        == s.bk % ((16 if halves else 8) if cores else 1)
        == s.tm % (1 if cores else 4)  # without them by vectors of four
        == 0
        and (s.split == 1 or (s.split - 1) * -(-c.size("k") // (s.split * s.bk)) * s.bk < c.size("k"))
        and fetches(c, s, aligned, cores and halves) is not None
    )


def every(c: Contraction, aligned: tuple[bool, ...], dtype: torch.dtype) -> Iterator[Schedule]:
    """All legal schedules."""
    cores = tensor_cores.serve(dtype)
    blocks = ((4, 4), (4, 8), (8, 4), (8, 8), *(((2, 4), (2, 8), (8, 16), (16, 8)) if cores else ()))
    sides = (16, 32, 64, 128, *((256,) if cores else ()))
    for bm in sides:
        for bn in sides:
            for tm, tn in blocks:
                for bk in (8, 16, 32):
                    for lanes in (1, 4):
                        for split in _SPLITS:
                            for by, stages in _WAYS if cores else ((False, 2),):
                                s = Schedule(bm, bn, bk, tm, tn, lanes, split, by, stages)
                                if legal(c, s, aligned, dtype):
                                    yield s


@functools.lru_cache(1024)
def default(c: Contraction, units: int, aligned: tuple[bool, ...], dtype: torch.dtype, tf32: bool = False) -> Schedule:
    """By a model of `units` that each work through their share of the groups, one after the other."""
    along = contiguous(c, c.b, "n")
    tiles = list(_TILES)
    if tensor_cores.serve(dtype):
        depths, without = ((16, 32), []) if dtype.itemsize == 2 else ((16,), tiles)
        tiles = [*(replace(s, bk=bk, cores=True) for s in _TILES for bk in depths), *_FLAT]
        four = wide(c, c.a, contiguous(c, c.a, "m"), aligned[0]) and wide(c, c.b, along, aligned[1])
        if dtype.itemsize == 2 and not four:
            tiles = [s for s in tiles if s.items < 256]  # what is fetched one by one takes registers, too
        tiles += without
    if along == "k" and not wide(c, c.b, along, aligned[1]):  # items that take several steps of k work out less
        tiles = [replace(s, bk=max(16, s.bk), lanes=4) for s in tiles]
    choices = (replace(s, split=split) for s in tiles for split in _SPLITS)
    legal_ones = (s for s in choices if legal(c, s, aligned, dtype))
    best = min(legal_ones, key=lambda s: cost(c, s, units, dtype, tf32))
    for copied in _copied(c, (best.bm, best.bn), along, dtype, tf32) if best.cores else ():
        if legal(c, chosen := replace(copied, split=best.split), aligned, dtype):
            return chosen
    return best


def _copied(c: Contraction, tile: tuple[int, int], along: str, dtype: torch.dtype, tf32: bool) -> Iterator[Schedule]:
    """In the place of a tile those that are copied, the best first."""
    if dtype.itemsize == 2:
        if c.b.inside and tile == (128, 128):
            yield _COPIED_HALVES_LAST
        yield from (_COPIED_HALVES[tile],) if tile in _COPIED_HALVES else ()
    elif c.b.rounded:
        yield from _COPIED_LAST.get(tile, ())
    elif tf32 and c.b.inside and along == "n" and tile in _COPIED:
        yield _COPIED[tile]


def cost(c: Contraction, s: Schedule, units: int, dtype: torch.dtype, tf32: bool = False) -> float:
    """Of a schedule, in products that a unit at its peak makes in that time without tensor cores."""
    m, n, k, z = (c.size(x) for x in "mnkz")
    groups = -(-m // s.bm) * -(-n // s.bn) * z * s.split
    depth = -(-k // (s.split * s.bk)) * s.bk
    # What is read from local memory for each product grows as blocks shrink, and what is read from afar as tiles do.
    # Tensor cores multiply so fast that all else counts more.
    more, turns = (_CORES[tensor_cores.kind(dtype, tf32)], 1 + _TURN / s.bk) if s.cores else (1, 1)
    slower = turns * (0.4 + 2 * (1 / s.tm + 1 / s.tn) + more * 6.4 * (1 / s.bm + 1 / s.bn)) / more
    total = -(-groups // units) * (s.bm * s.bn * depth * slower + _GROUP)
    if s.split > 1:
        total += _LAUNCH + m * n * z * s.split * _ELEMENT / units
    return total


def problem(c: Contraction, aligned: tuple[bool, ...], dtype: torch.dtype, tf32: bool) -> str:
    """The class that a contraction is tuned in: bytes of an element, how each operand is fetched, sizes as powers of the root
    of two. A schedule that suits one class may be far worse than the default in the next."""
    sides = []
    for label, access, axis, even in (("a", c.a, "m", aligned[0]), ("b", c.b, "n", aligned[1])):
        along = contiguous(c, access, axis)
        wideness = "4" if wide(c, access, along, even) else ""
        sides.append(f"{label}{wideness}{along}{'?' * len(access.inside)}")
    sizes = (f"{x}{round(2 * math.log2(max(1, c.size(x)))) / 2:g}" for x in "zmnk")
    return f"{dtype.itemsize}{' tf32' * tf32} {' '.join(sides)} {' '.join(sizes)}"


_ROWS = 24  # from which packing the right operand pays


def turns(c: Contraction) -> bool:
    """Whether a CPU should make columns of the rows.

    What is seen through windows is cheap to read element by element, for one row each, and dear to pack, where it would lie as
    often as it is seen; but then the other operand is packed, and stores are scattered. Nor can vectors be filled from fewer
    than eight columns.
    """
    m, n, k = (c.size(x) for x in "mnk")
    windows = len(c.n) > 1 or len(c.k) > 1
    return not c.b.inside and m >= 8 and (n < 8 or (windows and 2 * m * (k + n) < 3 * n * k))


def default_cpu(c: Contraction) -> cpu.Schedule:
    """What a CPU takes where nobody has tuned."""
    m, n = c.size("m"), c.size("n")
    windows = len(c.m) > 1 or len(c.k) > 1
    row = c.n[-1] if c.n else 1
    tn = 16 if n > 8 and not 16 < n <= 24 else 8
    direct = row == n and row % tn == 0 and bool(c.n) and c.b.at.n[-1] == 1 and not c.b.inside
    pack_b = not direct or m >= _ROWS
    pack_a = bool(c.a.inside) or (n >= 4 * tn and not windows)
    return cpu.Schedule(min(8, m), tn, pack_a, pack_b)
