"""Operators that a few launches of others make, so that the host need not wait for the CPU to run them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import storage
from syncscope.kernels.operators import NotNative, op

_MOST = 1 << 22  # comparisons that are made at once: what has more is searched on the CPU


@op("glu.out")
def glu(self: Tensor, dim: int = -1, *, out: Tensor) -> Tensor:
    """The first half, as far as the second lets it through."""
    first, second = self.chunk(2, dim)
    return torch.mul(first, second.sigmoid(), out=out)


@op("glu_backward")
def glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    """To both halves."""
    first, second = self.chunk(2, dim)
    gate = second.sigmoid()
    passed = grad_output * gate
    return torch.cat([passed, passed * first * (1 - gate)], dim)


@op("_weight_norm_interface")
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Weights of direction `v` and length `g`, and the lengths of `v`."""
    norms = torch.linalg.vector_norm(v, 2, _others(v, dim), keepdim=True)
    return v * (g / norms), norms


@op("_weight_norm_interface_backward")
def weight_norm_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """What lies along `v` changes the length, the rest the direction."""
    along = (grad_w * saved_v).sum(_others(saved_v, dim), keepdim=True) / saved_norms
    return (saved_g / saved_norms) * (grad_w - saved_v * (along / saved_norms)), along


def _others(v: Tensor, dim: int) -> list[int]:
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    if not others:
        raise NotNative
    return others


@op("take")
def take(self: Tensor, index: Tensor) -> Tensor:
    """Elements by their place in the tensor as one row."""
    if not self.numel():
        raise NotNative
    made: Tensor = self.reshape(-1)[index]
    return made


@op("put_")
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes to such places, or adds to what is there."""
    if not self.is_contiguous() or not index.numel() or source.dtype != self.dtype:
        raise NotNative
    self.view(-1).index_put_([index.reshape(-1)], source.reshape(-1), accumulate)
    return self


@op("isin.Tensor_Tensor_out")
def isin(
    elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False, out: Tensor
) -> Tensor:
    """Which elements are among some others: each is compared with all of them."""
    if not out.numel() or not test_elements.numel() or elements.numel() * test_elements.numel() > _MOST:
        raise NotNative
    if elements.device != out.device or test_elements.device != out.device:
        raise NotNative
    found = (elements.unsqueeze(-1) == test_elements.reshape(-1)).any(-1)
    return out.copy_(~found if invert else found)


@op("searchsorted.Tensor")
def searchsorted(
    sorted_sequence: Tensor,
    self: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where values belong in a sorted row: behind all that are less, which are counted."""
    if sorter is not None or (right and side == "left") or not self.dim() or not sorted_sequence.numel():
        raise NotNative
    if self.numel() * sorted_sequence.shape[-1] > _MOST or self.device != sorted_sequence.device:
        raise NotNative
    if sorted_sequence.dim() == 1:
        row = sorted_sequence
    elif sorted_sequence.shape[:-1] == self.shape[:-1]:
        row = sorted_sequence.unsqueeze(-2)
    else:
        raise NotNative
    value = self.unsqueeze(-1)
    beyond = row > value if right or side == "right" else row >= value
    return (~beyond).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


@op("bucketize.Tensor")
def bucketize(self: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Between which boundaries values lie."""
    if boundaries.dim() != 1:
        raise NotNative
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


@op("median")
def median(self: Tensor) -> Tensor:
    """The lower of the two in the middle; NaN where there is one, which sorts last."""
    if not self.numel():
        raise NotNative
    row = self.reshape(-1).sort()[0]
    middle = row[(self.numel() - 1) // 2]
    return torch.where(row[-1].isnan(), row[-1], middle) if self.is_floating_point() else middle.clone()


@op("kthvalue.values")
def kthvalue(
    self: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, values: Tensor, indices: Tensor
) -> tuple[Tensor, Tensor]:
    """The k-th smallest along a dimension, and where it is."""
    if not self.dim() or not self.numel() or not 1 <= k <= self.shape[dim]:
        raise NotNative
    ordered, places = (x.narrow(dim, k - 1, 1) for x in self.sort(dim))
    if not keepdim:
        ordered, places = ordered.squeeze(dim), places.squeeze(dim)
    return values.copy_(ordered), indices.copy_(places)


@op("repeat_interleave.Tensor", keep=False)
def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """The place of each number as often as it says; without `output_size` the host waits for the sum."""
    if repeats.dim() != 1 or not repeats.numel() or repeats.dtype not in (torch.int32, torch.int64):
        raise NotNative
    size = output_size
    if size is None:
        least, size = storage.download(torch.stack([repeats.min(), repeats.sum()]), "aten::repeat_interleave").tolist()
        if least < 0:
            raise NotNative
    if not size:
        return repeats.new_empty(0)
    ends = repeats.cumsum(0)
    begun = repeats.new_zeros(size + 1).index_add_(0, ends, torch.ones_like(repeats))
    return begun[:-1].cumsum(0).to(repeats.dtype)


@op("histc")
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of so many equal parts; of integers, too, as on CUDA."""
    if not self.numel() or bins < 1 or min > max or self.dtype == torch.bool:
        raise NotNative
    x = self.reshape(-1) if self.is_floating_point() else self.reshape(-1).long()
    least, most = (x.new_tensor(min), x.new_tensor(max)) if min != max else (x.min(), x.max())
    alike = (least == most).to(x.dtype)
    least, most = least - alike, most + alike
    parts = (x - least) * bins / (most - least) if self.is_floating_point() else (x - least) * bins // (most - least)
    inside = (x >= least) & (x <= most)
    parts = torch.where(inside, parts, bins).long().clamp(0, bins)
    parts = torch.where(inside & (parts == bins), bins - 1, parts)
    counts = torch.zeros(bins + 1, dtype=torch.int32, device=self.device)
    return counts.index_add_(0, parts, torch.ones_like(parts, dtype=torch.int32))[:-1].to(self.dtype)


@op("unfold_backward")
def unfold_backward(grad_in: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """An element gets the sum of the gradients of all windows that it lies in."""
    made = grad_in.new_zeros(input_sizes)
    if not made.dim() or not grad_in.numel():
        raise NotNative
    dim %= made.dim()
    places = torch.arange(made.shape[dim], device=made.device).unfold(0, size, step).reshape(-1)
    return made.index_add_(dim, places, grad_in.movedim(-1, dim + 1).flatten(dim, dim + 1))
