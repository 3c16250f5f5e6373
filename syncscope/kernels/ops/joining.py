"""Putting tensors together."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from syncscope.kernels import storage
from syncscope.kernels.operators import op


@op("cat.out")
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor) -> Tensor:
    """Tensors one behind the other along a dimension."""
    at = 0
    for x in tensors:
        if x.dim() == 1 and not x.numel() and out.dim() != 1:
            continue  # an old habit of PyTorch: an empty list joins anything
        if x.device != out.device:
            raise storage.elsewhere(x)
        out.narrow(dim, at, x.shape[dim]).copy_(x)
        at += x.shape[dim]
    return out
