"""Convolutions of 3 x 3 taps by Winograd's F(2 x 2, 3 x 3): tiles transformed, sixteen products of matrices, and back again.

Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015. There are 2.25 times fewer products to make, and
about four times as much to move: whether that pays depends on a device's arithmetic beside its memory, and on how many channels
share the moving. A device does it from as many channels as its table says (`syncscope tune` measures that), else never.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from syncscope.kernels import memory, queue, storage
from syncscope.kernels.generate import run, tensor_cores
from syncscope.kernels.generate.convolutions import Geometry
from syncscope.kernels.generate.ir import Access, Contraction, Index
from syncscope.kernels.programs import computed, elements, kernel
from syncscope.kernels.tuning import store

PASSES = ("conv_forward", "conv_backward_input", "conv_backward_weight")
_GROUP = 128
_SHARE = 4  # of the device's memory that the transformed tensors may take: a quarter


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The tiles of 2 x 2 pixels over images of so many rows and columns, and how many there is room for."""

    down: int
    across: int
    count: int
    room: int

    @staticmethod
    def over(shape: tuple[int, ...]) -> _Tiles:
        down, across = -(-shape[2] // 2), -(-shape[3] // 2)
        count = shape[0] * down * across
        return _Tiles(down, across, count, -(-count // 4) * 4)


def pays(which: str, g: Geometry, dtype: torch.dtype) -> bool:
    """Whether a pass is made this way."""
    if (
        run.SHAPE != "gpu" or not possible(g) or (dtype.itemsize == 2 and tensor_cores.serve(dtype))
    ):  # which are faster yet
        return False
    least = store.numbers().get(f"winograd {which}")
    return least is not None and channels(g) >= least and _bytes(g, dtype.itemsize) * _SHARE <= memory.ROOM


def possible(g: Geometry) -> bool:
    """Whether the windows are such as this is for."""
    same = g.weight[2:] == (3, 3) and g.stride == g.dilation == (1, 1)
    return same and g.groups == 1 and max(g.padding) <= 2


def channels(g: Geometry) -> float:
    """Channels read and made, as one number: products grow with one times the other, what is moved with their sum."""
    read, made = g.image[1], g.made[1]
    return 2 * read * made / (read + made)


def _bytes(g: Geometry, itemsize: int) -> int:
    return 16 * max(_Tiles.over(x).room for x in (g.image, g.made)) * (g.image[1] + g.made[1]) * itemsize


def forward(g: Geometry, image: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    """The convolution; `out` is row-major."""
    return _convolved(PASSES[0], image, weight, bias, out, g.padding, turned=False)


def backward_input(g: Geometry, grad: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    """The gradient of the image: a convolution by the weight turned around."""
    return _convolved(PASSES[1], grad, weight, bias, out, (2 - g.padding[0], 2 - g.padding[1]), turned=True)


def backward_weight(g: Geometry, image: Tensor, grad: Tensor, out: Tensor) -> Tensor:
    """The gradient of the weight."""
    tiles = _Tiles.over(g.made)
    seen = _transformed("winograd_seen", image, tiles, g.padding)
    slopes = _transformed("winograd_grad", grad, tiles, (0, 0))
    made, read, inside = g.made[1], g.image[1], computed(out.dtype)
    sums = storage.empty([16, made, read], inside)
    _product(PASSES[2], made, read, tiles.room, (tiles.room, 1), (1, tiles.room), inside)(slopes, seen, None, sums)
    queue.launch(
        kernel("winograd", "winograd_to_weight", **elements(out.dtype), TURNED=0), (_round(made * read),), (_GROUP,),
        storage.buffer(sums), storage.buffer(out), out.storage_offset(), made * read,
    )  # fmt: skip
    return out


def _convolved(
    name: str, image: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor, padding: tuple[int, ...], turned: bool
) -> Tensor:
    tiles = _Tiles.over(tuple(out.shape))
    read, made, inside = image.shape[1], out.shape[1], computed(out.dtype)
    factors = storage.empty([16, made, read], inside)
    queue.launch(
        kernel("winograd", "winograd_weight", **elements(out.dtype), TURNED=int(turned)), (_round(made * read),), (_GROUP,),
        storage.buffer(weight), weight.storage_offset(), storage.buffer(factors), *weight.shape[:2],
    )  # fmt: skip
    seen = _transformed("winograd_seen", image, tiles, padding)
    sums = storage.empty([16, made, tiles.room], inside)
    _product(name, made, tiles.room, read, (read, 1), (tiles.room, 1), inside)(factors, seen, None, sums)
    given = out if bias is None else bias
    queue.launch(
        kernel("winograd", "winograd_made", **elements(out.dtype), TURNED=0), (_round(tiles.room), made), (_GROUP, 1),
        storage.buffer(sums), storage.buffer(out), out.storage_offset(), storage.buffer(given), given.storage_offset(),
        int(bias is not None), *out.shape[2:], tiles.down, tiles.across, tiles.count, tiles.room,
    )  # fmt: skip
    return out


def _transformed(name: str, x: Tensor, tiles: _Tiles, padding: tuple[int, ...]) -> Tensor:
    made = storage.empty([16, x.shape[1], tiles.room], computed(x.dtype))
    queue.launch(
        kernel("winograd", name, **elements(x.dtype), TURNED=0), (_round(tiles.room), x.shape[1]), (_GROUP, 1),
        storage.buffer(x), x.storage_offset(), storage.buffer(made), *x.shape[2:], *padding, tiles.down, tiles.across,
        tiles.count, tiles.room,
    )  # fmt: skip
    return made


@functools.lru_cache(1024)
def _product(name: str, m: int, n: int, k: int, a: tuple[int, int], b: tuple[int, int], dtype: torch.dtype) -> run.Plan:
    return run.plan(_sixteen(name, m, n, k, a, b), dtype, (True, True, True))


def _sixteen(name: str, m: int, n: int, k: int, a: tuple[int, int], b: tuple[int, int]) -> Contraction:
    """Products of matrices with the given steps of row and column, into row-major ones."""
    first = Access(Index(0, z=(m * k,), m=a[:1], k=a[1:]))
    second = Access(Index(0, z=(k * n,), k=b[:1], n=b[1:]))
    return Contraction(name, (16,), (m,), (n,), (k,), first, second, Index(0, z=(m * n,), m=(n,), n=(1,)))


def product(g: Geometry, which: str) -> Contraction:
    """The products that a pass comes to, for the tuner."""
    made, read, room = g.made[1], g.image[1], _Tiles.over(g.image if which == PASSES[1] else g.made).room
    if which == PASSES[2]:
        return _sixteen(which, made, read, room, (room, 1), (1, room))
    rows, depth = (read, made) if which == PASSES[1] else (made, read)
    return _sixteen(which, rows, room, depth, (depth, 1), (room, 1))


def _round(n: int) -> int:
    return -(-n // _GROUP) * _GROUP
