"""Gradients of what was taken out of a tensor: zeros around them, in one launch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.operators import op
from syncscope.kernels.ops.copying import as_words, dense
from syncscope.kernels.programs import C_TYPE, kernel

_GROUP = 128


def _amid_zeros(grad: Tensor, sizes: Sequence[int], dim: int, start: int, step: int, count: int) -> Tensor:
    """A tensor of `sizes`, zero but for every `step`-th along a dimension, `count` of them, which come from `grad`."""
    total, words = math.prod(sizes), as_words(grad)
    if not total or not grad.numel() or words is None or total >= 1 << 31:
        made = torch.zeros(sizes, dtype=grad.dtype, device=grad.device)
        made.narrow(dim, start, (count - 1) * step + 1 if count else 0)[
            (slice(None),) * dim + (slice(None, None, step),)
        ] = grad
        return made
    words, made = dense(words), storage.empty(sizes, grad.dtype)
    inner, at, moved = math.prod(sizes[dim + 1 :]), words.storage_offset(), C_TYPE[words.dtype]
    # To find where something belongs takes longer than to move it: words are moved together.
    for wide, size in (("long2", 16), ("long", 8)):
        together = size // words.dtype.itemsize
        if inner % together == at % together == 0:
            total, inner, at, moved = total // together, inner // together, at // together, wide
            break
    queue.launch(
        kernel("placed", "amid_zeros", T=moved), (-(-total // _GROUP) * _GROUP,), (_GROUP,),
        storage.buffer(words), at, storage.buffer(made), total, inner, sizes[dim], start, step, count,
    )  # fmt: skip
    return made


@op("select_backward")
def select_backward(grad_output: Tensor, input_sizes: Sequence[int], dim: int, index: int) -> Tensor:
    """Of one index along a dimension."""
    dim %= len(input_sizes)
    return _amid_zeros(grad_output.unsqueeze(dim), input_sizes, dim, index % input_sizes[dim], 1, 1)


@op("slice_backward")
def slice_backward(
    grad_output: Tensor, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Tensor:
    """Of a range along a dimension."""
    dim %= len(input_sizes)
    size = input_sizes[dim]
    begin = min(max(start + size if start < 0 else start, 0), size)
    return _amid_zeros(grad_output, input_sizes, dim, begin, step, grad_output.shape[dim])
