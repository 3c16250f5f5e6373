"""Convolutions of copies with channels innermost: tiles of both operands are then brought in whole vectors, and none of it
has to pass through registers. What is made is row-major as ever.

The copies cost a pass over each operand. It pays where images would else be read element by element, as windows of them are,
and as pixels are whose number is no multiple of a vector.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.generate import run, tensor_cores
from syncscope.kernels.generate.convolutions import Geometry
from syncscope.kernels.generate.ir import Contraction, simplified
from syncscope.kernels.generate.operands import eights
from syncscope.kernels.programs import elements, kernel

_SIDE = 64  # of a tile that is turned in local memory
_FEW = 32  # pixels below which it is not worth one
_GROUP = 256
_FEWEST = 8  # channels


def suits(g: Geometry, plain: Iterable[Contraction], aligned: tuple[bool, ...], dtype: torch.dtype, tf32: bool) -> bool:
    """Whether a pass is made so, which would be `plain` else."""
    halves = dtype.itemsize == 2
    if run.SHAPE != "gpu" or not (halves or tf32) or not tensor_cores.serve(dtype):
        return False
    channels = g.weight[1], g.made[1] // g.groups
    if any(x % (8 if halves else 4) or x < _FEWEST for x in channels):
        return False
    if halves:
        return not all(eights(c, aligned) for c in map(simplified, plain))
    return any(c.b.inside for c in map(simplified, plain))


def rounded(c: Contraction) -> Contraction:
    """A contraction of copies that were rounded to TF32."""
    return replace(c, a=replace(c.a, rounded=True), b=replace(c.b, rounded=True))


class Copies:
    """Of tensors (N, C, ...) as (N, ..., C), each made where it is first asked for; floats rounded to TF32."""

    def __init__(self) -> None:
        self._made: dict[int, Tensor] = {}

    def of(self, x: Tensor) -> Tensor:
        """The copy of a row-major tensor that lives as long as this does; halves of one pixel as they are."""
        if x.dtype.itemsize == 2 and x.numel() == x.shape[0] * x.shape[1] and run.aligned(x)[0]:
            return x
        if id(x) not in self._made:
            self._made[id(x)] = _copy(x, *x.shape[:2])
        return self._made[id(x)]

    def of_weight(self, x: Tensor) -> Tensor:
        """A weight (CO, CI, ...) as the pass to the input reads it: (CI, ..., CO), or of one tap as it lies."""
        return _copy(x, 1, x.shape[0]) if x.numel() > x.shape[0] * x.shape[1] else self.of(x)


def _copy(x: Tensor, images: int, channels: int) -> Tensor:
    pixels = x.numel() // (images * channels)
    out = storage.empty([images, pixels, channels], x.dtype)
    macros = elements(x.dtype) | {"ROUND": int(x.dtype is torch.float32)}
    given = storage.buffer(x), x.storage_offset(), storage.buffer(out), channels, pixels
    if pixels < _FEW:
        total = x.numel()
        size = (-(-total // _GROUP) * _GROUP,)
        queue.launch(kernel("conv", "conv_few_channels_last", **macros), size, (_GROUP,), *given, total)
    else:
        tiles = (-(-pixels // _SIDE) * images * _GROUP, -(-channels // _SIDE))
        queue.launch(kernel("conv", "conv_channels_last", **macros), tiles, (_GROUP, 1), *given)
    return out
