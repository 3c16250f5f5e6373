"""Tensors whose content follows from a few numbers: most are made on the host and uploaded, without a wait; triangles."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.types import Number

from syncscope.kernels import queue, storage
from syncscope.kernels.operators import NotNative, native, op, overload
from syncscope.kernels.ops.copying import as_words, dense
from syncscope.kernels.ops.memory import check
from syncscope.kernels.programs import C_TYPE, kernel

_GROUP = 128


def _on_host(name: str) -> Callable[..., Tensor]:
    target = overload(name)

    def make(*args: object, out: Tensor, **kwargs: object) -> Tensor:
        host = target(*args, out=torch.empty(out.shape, dtype=out.dtype, device="cpu"), **kwargs)
        if out.shape != host.shape:
            storage.resize(out, host.shape)
        return out.copy_(host)

    return make


_arange_on_host = _on_host("arange.start_out")


@op("arange.start_out")
def arange(start: Number, end: Number, step: Number = 1, *, out: Tensor) -> Tensor:
    """Numbers one `step` apart; those that are no integers are the CPU's."""
    limit = {torch.int64: 1 << 63, torch.int32: 1 << 31}.get(out.dtype, 0)
    whole = all(type(x) is int and abs(x) < limit for x in (start, end, step))
    if not whole or not step or not out.is_contiguous():
        return _arange_on_host(start, end, step, out=out)
    count = max(-(-(int(end) - int(start)) // int(step)), 0)
    if out.numel() != count:
        storage.resize(out, [count])
    if 0 < count < 1 << 31:
        size = (-(-count // _GROUP) * _GROUP,)
        program = kernel("placed", "arange", T=C_TYPE[out.dtype])
        queue.launch(program, size, (_GROUP,), storage.buffer(out), out.storage_offset(), start, step, count)
    return out


@op("arange", "arange.start", "arange.start_step")
def arange_anew(
    *bounds: Number,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """The same in a tensor of its own; how many there are is known before, so that what is enqueued is noted down."""
    check(device)
    start, end, step = bounds if len(bounds) == 3 else (*((0,) if len(bounds) == 1 else ()), *bounds, 1)
    if all(type(x) is int for x in bounds) and dtype in (None, torch.int64, torch.int32) and step:
        count = -(-(int(end) - int(start)) // int(step))
        if count >= 0:
            return arange(start, end, step, out=storage.empty([count], dtype or torch.int64))
    return storage.upload(torch.arange(start, end, step, dtype=dtype, device="cpu"))


for _name in ("range.out", "linspace.out", "logspace.out", "eye.out", "eye.m_out"):
    native[_name] = _on_host(_name)


@op("tril_indices")
def tril_indices(row: int, col: int, offset: int = 0, dtype: torch.dtype | None = None, **_: object) -> Tensor:
    """Coordinates of the lower triangle."""
    return storage.upload(torch.tril_indices(row, col, offset, dtype=dtype or torch.int64, device="cpu"))


@op("triu_indices")
def triu_indices(row: int, col: int, offset: int = 0, dtype: torch.dtype | None = None, **_: object) -> Tensor:
    """Coordinates of the upper triangle."""
    return storage.upload(torch.triu_indices(row, col, offset, dtype=dtype or torch.int64, device="cpu"))


def _triangle(self: Tensor, diagonal: int, out: Tensor, upper: bool) -> Tensor:
    # An upload would make the host wait for what is queued, and attention under a causal mask asks for one in every layer.
    source = as_words(dense(self))
    if source is None:
        raise NotNative
    made = out if out.is_contiguous() and out is not self else storage.empty(self.shape, self.dtype)
    if self.numel():
        queue.launch(
            kernel("placed", "triangle", T=C_TYPE[source.dtype]), (-(-self.numel() // _GROUP) * _GROUP,), (_GROUP,),
            storage.buffer(source), source.storage_offset(), storage.buffer(made), made.storage_offset(), *self.shape[-2:],
            self.numel(), max(-(1 << 62), min(diagonal, 1 << 62)), int(upper),
        )  # fmt: skip
    return made if made is out else out.copy_(made)


@op("tril.out")
def tril(self: Tensor, diagonal: int = 0, *, out: Tensor) -> Tensor:
    """The lower triangle; zeros above."""
    return _triangle(self, diagonal, out, upper=False)


@op("triu.out")
def triu(self: Tensor, diagonal: int = 0, *, out: Tensor) -> Tensor:
    """The upper triangle; zeros below."""
    return _triangle(self, diagonal, out, upper=True)
