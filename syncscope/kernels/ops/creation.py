"""Tensors whose content follows from a few numbers: made on the host and uploaded, without a wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels import storage
from syncscope.kernels.operators import native, op, overload


def _on_host(name: str) -> Callable[..., Tensor]:
    target = overload(name)

    def make(*args: Any, out: Tensor, **kwargs: Any) -> Tensor:
        host = target(*args, out=torch.empty(out.shape, dtype=out.dtype, device="cpu"), **kwargs)
        if out.shape != host.shape:
            storage.resize(out, host.shape)
        return out.copy_(host)

    return make


for _name in ("arange.start_out", "range.out", "linspace.out", "logspace.out", "eye.out", "eye.m_out"):
    native[_name] = _on_host(_name)


@op("tril_indices")
def tril_indices(row: int, col: int, offset: int = 0, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Coordinates of the lower triangle."""
    return storage.upload(torch.tril_indices(row, col, offset, dtype=dtype or torch.int64, device="cpu"))


@op("triu_indices")
def triu_indices(row: int, col: int, offset: int = 0, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Coordinates of the upper triangle."""
    return storage.upload(torch.triu_indices(row, col, offset, dtype=dtype or torch.int64, device="cpu"))


def _triangle(self: Tensor, mask: Tensor, out: Tensor) -> Tensor:
    kept = torch.where(storage.upload(mask), self, torch.zeros((), dtype=self.dtype, device="cpu"))
    return out.copy_(kept)


@op("tril.out")
def tril(self: Tensor, diagonal: int = 0, *, out: Tensor) -> Tensor:
    """The lower triangle; zeros above."""
    return _triangle(self, torch.ones(self.shape[-2:], dtype=torch.bool, device="cpu").tril(diagonal), out)


@op("triu.out")
def triu(self: Tensor, diagonal: int = 0, *, out: Tensor) -> Tensor:
    """The upper triangle; zeros below."""
    return _triangle(self, torch.ones(self.shape[-2:], dtype=torch.bool, device="cpu").triu(diagonal), out)
