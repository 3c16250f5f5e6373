"""Sorting, always stable, and what stands on it: topk and unique."""

from __future__ import annotations

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.device import device, is_gpu
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.ops.scan import Running
from syncscope.kernels.programs import C_TYPE, kernel, supported

_RUN = 32  # elements sorted by insertion
# Elements that one item merges: a power of two, and never more than a pair of runs. A processor has few items at work.
_SEGMENTS = (2 * _RUN, 2 * _RUN if is_gpu else 4096)
_GROUP = (16,)


def _size(items: int) -> tuple[int]:
    return (-(-items // _GROUP[0]) * _GROUP[0],)


def _kernel(name: str, dtype: torch.dtype, descending: bool = False) -> object:
    return kernel("sort", name, T=C_TYPE[dtype], DESCENDING=int(descending), RUN=_RUN)


def _segment(elements: int) -> int:
    """As many as leave each unit eight groups of items, within bounds."""
    least, most = _SEGMENTS
    each = elements // (8 * _GROUP[0] * device.max_compute_units)
    return int(max(least, min(most, 1 << max(each, 1).bit_length() - 1)))


def sort_rows(x: Tensor, descending: bool) -> tuple[Tensor, Tensor]:
    """The last dimension of a row-major tensor sorted, and where each element came from (int64); no wait."""
    length = x.shape[-1]
    rows = x.numel() // max(length, 1)
    keys, places = storage.empty(x.shape, x.dtype), storage.empty(x.shape, torch.int64)
    if not x.numel():
        return keys, places
    runs = -(-length // _RUN)
    queue.launch(
        _kernel("merge_sort_runs", x.dtype, descending), _size(rows * runs), _GROUP,
        storage.buffer(x), x.storage_offset(), storage.buffer(keys), storage.buffer(places), rows, length, runs,
    )  # fmt: skip
    run = _RUN
    if run < length:
        spare, spare_places = storage.empty(x.shape, x.dtype), storage.empty(x.shape, torch.int64)
    while run < length:
        segment = min(2 * run, _segment(rows * length))
        segments = -(-length // segment)
        queue.launch(
            _kernel("merge_sort_merge", x.dtype, descending), _size(rows * segments), _GROUP,
            storage.buffer(keys), storage.buffer(places), storage.buffer(spare), storage.buffer(spare_places),
            rows, length, run, segment, segments,
        )  # fmt: skip
        keys, places, spare, spare_places = spare, spare_places, keys, places
        run *= 2
    return keys, places


def _sortable(x: Tensor) -> Tensor:
    if x.dtype in (torch.float16, torch.bfloat16):
        return x.float()
    if not supported(x.dtype):
        raise NotNative
    return x


@op("sort.values_stable")
def sort_out(
    self: Tensor,
    *,
    stable: bool | None = False,
    dim: int = -1,
    descending: bool = False,
    values: Tensor,
    indices: Tensor,
) -> tuple[Tensor, Tensor]:
    """Sorts along a dimension."""
    x = _sortable(self)
    if not self.dim():
        return values.copy_(self), indices.zero_()
    keys, places = sort_rows(dense(x.movedim(dim, -1)), descending)
    return values.copy_(keys.movedim(-1, dim)), indices.copy_(places.movedim(-1, dim))


@op("topk.values")
def topk_out(
    self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, values: Tensor, indices: Tensor
) -> tuple[Tensor, Tensor]:
    """The first `k` of the sorted dimension."""
    x = _sortable(self)
    if not self.dim():
        return values.copy_(self), indices.zero_()
    keys, places = sort_rows(dense(x.movedim(dim, -1)), largest)
    return values.copy_(keys[..., :k].movedim(-1, dim)), indices.copy_(places[..., :k].movedim(-1, dim))


def _distinct(
    keys: Tensor, places: Tensor | None, operator: str, inverse: bool, counts: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs of equal neighbours in a row-major list: one of each, the run of every element, their lengths. One wait."""
    length = keys.numel()
    none = storage.empty([0], torch.int64)
    if not length:
        return storage.empty([0], keys.dtype), none, none
    flags = storage.empty([length], torch.int64)
    items = (-(-length // 64) * 64,)
    dtype = keys.dtype
    at = keys.storage_offset()
    queue.launch(_kernel("unique_flags", dtype), items, (64,), storage.buffer(keys), at, storage.buffer(flags), length)
    running = Running(flags, torch.int64, "x")
    ranks = running.write(storage.empty([length], torch.int64))
    found = int(storage.download(running.totals, operator).item())
    out, starts = storage.empty([found], dtype), storage.empty([found], torch.int64)
    queue.launch(
        _kernel("unique_scatter", dtype), items, (64,),
        storage.buffer(keys), at, storage.buffer(ranks), storage.buffer(out), storage.buffer(starts), length,
    )  # fmt: skip
    where, lengths = none, none
    if inverse and places is None:
        where = ranks - 1
    elif inverse and places is not None:
        where = storage.empty([length], torch.int64)
        queue.launch(
            _kernel("unique_inverse", dtype), items, (64,),
            storage.buffer(ranks), storage.buffer(places), storage.buffer(where), length,
        )  # fmt: skip
    if counts:
        lengths = storage.empty([found], torch.int64)
        queue.launch(
            _kernel("unique_counts", dtype), (-(-found // 64) * 64,), (64,),
            storage.buffer(starts), storage.buffer(lengths), found, length,
        )  # fmt: skip
    return out, where, lengths


@op("_unique2")
def unique2(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct elements in order, where each element went, and how often each occurs: the host waits for their number."""
    x = _sortable(self)
    keys, places = sort_rows(dense(x).view(-1), descending=False)
    out, inverse, counts = _distinct(keys, places, "aten::_unique2", return_inverse, return_counts)
    return out.to(self.dtype), inverse.view(self.shape) if return_inverse else inverse, counts


@op("unique_consecutive")
def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """One of each run of equal neighbours, which run each element is in, and their lengths: the host waits for their number."""
    if dim is not None:
        raise NotNative
    x = _sortable(self)
    out, inverse, counts = _distinct(dense(x).view(-1), None, "aten::unique_consecutive", return_inverse, return_counts)
    return out.to(self.dtype), inverse.view(self.shape) if return_inverse else inverse, counts
