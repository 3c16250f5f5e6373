"""Dropout and its like: one kernel that draws, and one that multiplies by what was kept."""

from __future__ import annotations

import struct

import torch
from torch import Generator, Tensor

from syncscope.kernels import generator as generators
from syncscope.kernels import programs, queue, storage
from syncscope.kernels.device import fp64
from syncscope.kernels.elementwise import Pointwise, apply
from syncscope.kernels.operators import op
from syncscope.kernels.streams import TEAM, Streams, dense, items

_WIDEST = "double" if fp64 else "float"
_BACKWARD = Pointwise("dropout_backward", "(T)(mask != 0) * g * scale", ("g", "mask"), ("scale",))


def _float(x: float) -> float:
    """As a float holds it."""
    rounded: float = struct.unpack("f", struct.pack("f", x))[0]
    return rounded


@op("native_dropout")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Zeroes elements with probability `p` and scales the others; gives the mask of those that stay."""
    if train is False or not input.numel():
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(input), torch.zeros_like(input, dtype=torch.bool)
    ours = generators.of(None)
    if ours is None or not programs.floating(input.dtype):
        kept = torch.empty_like(input, dtype=torch.bool, device="cpu")  # which is filled as it lies
        kept.bernoulli_(1 - p, generator=generators.on_host(None))
        mask = storage.upload(kept)
        return input * mask * (1 / (1 - p)), mask
    x = input if dense(input) else input.contiguous()
    out, mask = torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)
    total = x.numel()
    # Neighbours that a thread of CUDA's has at a time: as many as make 16 bytes, fewer where some would be left over.
    each = next(n for n in (8, 4, 2, 1) if n * x.dtype.itemsize <= 16 and total % n == 0)
    streams = Streams.of(total, 4)
    # Of two neighbours a thread uses two of the four numbers it draws, and counts as if it used all: we count them. Eight are
    # the work of two turns, also where there are fewer of them than threads.
    turns = {2: -(-total // (2 * streams.across)), 8: 2 * -(-total // (8 * streams.across))}.get(each, streams.turns)
    drawing = streams.across * turns if each == 1 else total // each
    keep = 1 - p if x.dtype == torch.float64 else _float(1 - p)
    macros: dict[str, str | int] = {
        "EACH": each,
        "ALIGNED": int(x.storage_offset() % 4 == 0),
        "PER_TURN": 4,
        "R": _WIDEST,
    }
    queue.launch(
        programs.kernel("dropout", "dropout", **programs.elements(x.dtype), **macros),
        items(drawing), TEAM,
        storage.buffer(x), x.storage_offset(), storage.buffer(out), storage.buffer(mask), total, streams.across,
        keep, 1 / keep, ours.draw(4 * turns),
    )  # fmt: skip
    return out, mask


@op("native_dropout_backward")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Gradient of dropout."""
    return apply(_BACKWARD, torch.empty_like(grad_output), (grad_output, mask), (scale,))


@op("rrelu_with_noise")
def rrelu(
    self: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Leaky ReLU with a slope drawn for each element in training, which goes to `noise`, else with the one in the middle."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        slope = (lower + upper) / 2
        return torch.nn.functional.leaky_relu(self, slope)
    ours = generators.of(generator)
    if ours is None or not programs.floating(self.dtype):
        host, slopes = self.cpu(), noise.cpu()
        made = torch.ops.aten.rrelu_with_noise(host, slopes, lower, upper, True, generators.on_host(generator))
        noise.copy_(slopes)
        return storage.upload(made)
    x = self if self.is_contiguous() else self.contiguous()
    out, slopes, wide = storage.empty(x.shape, x.dtype), storage.empty(x.shape, x.dtype), x.dtype == torch.float64
    if x.numel():
        per_turn = 2 if wide else 4
        streams = Streams.of(x.numel(), per_turn)
        queue.launch(
            programs.kernel("dropout", "rrelu", **programs.elements(x.dtype), PER_TURN=per_turn, EACH=4, ALIGNED=0, R=_WIDEST),
            items(streams.across * streams.turns), TEAM,
            storage.buffer(x), x.storage_offset(), storage.buffer(out), storage.buffer(slopes), x.numel(), streams.across,
            lower, upper - lower, ours.draw(streams.drawn),
        )  # fmt: skip
    noise.copy_(slopes)
    return out
