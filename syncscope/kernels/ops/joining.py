"""Putting tensors together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import lists, queue, storage
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import as_words, dense
from syncscope.kernels.programs import C_TYPE, kernel

# A layer of work-groups for each index before the dimension; `width` elements of a tensor are `total` apart in the result.
_JOIN = lists.Listwise(
    "cat",
    "out[i] = x[i];",
    ("x",),
    shared=("out",),
    sizes=("width", "start", "total"),
    setup="x += (long)get_group_id(2) * width; out += (long)get_group_id(2) * total + start;",
)


def _join(tensors: Sequence[Tensor], dim: int, out: Tensor) -> Tensor:
    """Into a row-major `out`, in a few launches for all of them.

    Raises:
        NotNative: tensors of several dtypes, or of one that kernels do not compute in; or none lies row-major, and each were
            copied first.
    """
    if not any(x.is_contiguous() for x in tensors):
        raise NotNative
    inner = math.prod(out.shape[dim + 1 :])
    widths = [x.numel() // max(math.prod(out.shape[:dim]), 1) for x in tensors]
    starts = [sum(widths[:k]) for k in range(len(widths))]
    totals = [out.shape[dim] * inner] * len(widths)
    lists.run(
        _JOIN, ([dense(x) for x in tensors],), shared=(out,), sizes=(widths, starts, totals), counts=widths,
        turns=math.prod(out.shape[:dim]),
    )  # fmt: skip
    return out


@op("cat.out")
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor) -> Tensor:
    """Tensors one behind the other along a dimension."""
    parts = [
        x for x in tensors if x.dim() != 1 or x.numel() or out.dim() == 1
    ]  # an empty list joins anything: an old habit
    for x in parts:
        if x.device != out.device:
            raise storage.elsewhere(x)
    dim %= max(out.dim(), 1)
    if not out.numel():
        return out
    if out.is_contiguous() and all(x.dtype == out.dtype for x in parts):
        try:
            return _join(parts, dim, out)
        except NotNative:
            pass
    at = 0
    for x in parts:
        out.narrow(dim, at, x.shape[dim]).copy_(x)
        at += x.shape[dim]
    return out


def _stacked(tensors: Sequence[Tensor]) -> Tensor | None:
    """The same for a few tensors of one layout that is not row-major, in a launch; None where they are not such."""
    first, word = tensors[0], as_words(tensors[0])
    total = first.numel() * len(tensors)
    alike = all(x.stride() == first.stride() and not x.is_conj() and not x.is_neg() for x in tensors)
    if first.is_contiguous() or not alike or word is None or len(tensors) > 4 or first.dim() > 4 or total >= 1 << 31:
        return None
    out, pad = storage.empty([len(tensors), *first.shape], first.dtype), 4 - first.dim()
    shape, stride = [1] * pad + list(first.shape), [0] * pad + list(first.stride())
    given = [a for x in [*tensors, first, first, first][:4] for a in (storage.buffer(x), x.storage_offset())]
    queue.launch(
        kernel("placed", "stacked", T=C_TYPE[word.dtype]), (-(-total // 128) * 128,), (128,), *given, storage.buffer(out),
        total, first.numel(), *shape[1:], *stride,
    )  # fmt: skip
    return out


@op("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape side by side, along a new dimension."""
    first = tensors[0]
    dim %= first.dim() + 1
    alike = all(x.shape == first.shape and x.dtype == first.dtype and x.device == first.device for x in tensors)
    if alike and first.numel():
        if dim == 0 and (made := _stacked(tensors)) is not None:
            return made
        try:
            return _join(
                tensors, dim, storage.empty([*first.shape[:dim], len(tensors), *first.shape[dim:]], first.dtype)
            )
        except NotNative:
            pass
    return torch.cat([x.unsqueeze(dim) for x in tensors], dim)
