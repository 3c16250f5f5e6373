"""Operators that are an index and an assignment by another name."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.types import Number

from syncscope.kernels import queue, storage
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.index import index_put_


def _at(self: Tensor, dim: int, index: Tensor) -> list[Tensor | None]:
    if not self.dim():
        raise NotNative
    return [*[None] * (dim % self.dim()), index.view(-1)]


def _start(self: Tensor, out: Tensor) -> Tensor:
    return out if out.data_ptr() == self.data_ptr() else out.copy_(self)


@op("index_add.out")
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1, out: Tensor) -> Tensor:
    """Adds slices at the places of an index along a dimension."""
    where = _at(self, dim, index)
    if self.dtype != source.dtype:
        raise NotNative
    return (
        index_put_(_start(self, out), where, source if alpha == 1 else source * alpha, True) if index.numel() else out
    )


@op("index_copy.out")
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor) -> Tensor:
    """Writes slices at the places of an index along a dimension."""
    where = _at(self, dim, index)
    return index_put_(_start(self, out), where, source) if index.numel() else _start(self, out)


@op("index_fill_.int_Scalar")
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Number) -> Tensor:
    """Writes one value at the places of an index along a dimension."""
    where = _at(self, dim, index)
    return (
        index_put_(self, where, torch.full((), value, dtype=self.dtype, device=self.device)) if index.numel() else self
    )


@op("index_fill_.int_Tensor")
def index_fill_tensor_(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    """Writes one value at the places of an index along a dimension."""
    return index_put_(self, _at(self, dim, index), value.to(self.dtype)) if index.numel() else self


@op("flip")
def flip(self: Tensor, dims: list[int]) -> Tensor:
    """The dimensions backwards."""
    for d in dims if self.dim() else ():
        backwards = storage.upload(torch.arange(self.shape[d] - 1, -1, -1, device="cpu"))
        self = self.index_select(d, backwards)
    return self if dims and self.dim() else self.clone()


@op("roll")
def roll(self: Tensor, shifts: list[int], dims: list[int] = ()) -> Tensor:  # type: ignore[assignment]  # PyTorch's default
    """The elements moved around a dimension; without dimensions, around the flattened tensor."""
    if not dims:
        return roll(self.reshape(-1), shifts, [0]).view(self.shape)
    for shift, d in zip(shifts, dims, strict=True):
        size = self.shape[d]
        cut = size - shift % size if size else 0
        self = torch.cat((self.narrow(d, cut, size - cut), self.narrow(d, 0, cut)), d)
    return self if dims else self.clone()


@op("equal")
def equal(self: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements: the host waits."""
    if self.shape != other.shape:
        return False
    if self.dtype != other.dtype:
        raise NotNative
    same = torch.all(torch.eq(self, other))
    answer = torch.empty((), dtype=torch.bool, device="cpu")
    queue.read(storage.buffer(same), same.storage_offset(), storage.host_bytes(answer), "aten::equal")
    return bool(answer.item())
