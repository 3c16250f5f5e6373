"""Indexing by integers and masks, gather and scatter: a mask costs one wait for its count, everything else none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.types import Number

from syncscope.kernels import queue, storage
from syncscope.kernels.device import atomics64
from syncscope.kernels.elementwise import assign_where
from syncscope.kernels.operators import NotNative, into_out, native, op
from syncscope.kernels.ops.copying import as_words, dense
from syncscope.kernels.ops.scan import Running, coordinates
from syncscope.kernels.programs import C_TYPE, kernel, supported

_GROUP = (64,)
_MASKS = (torch.bool, torch.uint8)
_RANK = 6  # dimensions that gather and scatter walk
_ADDABLE = (torch.float32, torch.int32, *((torch.float64, torch.int64) if atomics64 else ()))


def _size(items: int, group: int = _GROUP[0]) -> tuple[int]:
    return (-(-items // group) * group,)


def _moved(x: Tensor) -> Tensor:
    """The tensor in a dtype that kernels can move: itself, or its bytes as integers."""
    if supported(x.dtype):
        return x
    words = as_words(x)
    if words is None:
        raise NotNative
    return words


def _layout(self: Tensor, indices: Sequence[Tensor | None]) -> tuple[Tensor, list[Tensor], int]:
    """The tensor with its indexed dimensions side by side, those indices broadcast together, and where they begin."""
    at = [d for d, index in enumerate(indices) if index is not None]
    chosen = torch.broadcast_tensors(*[indices[d] for d in at])
    if at != list(range(at[0], at[0] + len(at))):
        self = self.permute(at + [d for d in range(self.dim()) if d not in at])
        at = list(range(len(at)))
    if len(at) > 4:
        raise NotNative
    chosen = [dense(i.to(torch.int64)) for i in chosen]
    return self, [i.clone() if i.storage_offset() else i for i in chosen], at[0]


def _masks_to_indices(self: Tensor, indices: Sequence[Tensor | None], operator: str) -> list[Tensor | None]:
    """Every mask replaced by the coordinates of what it selects: one wait each."""
    result: list[Tensor | None] = []
    for index in indices:
        if index is None or index.dtype not in _MASKS:
            if index is not None and index.device.type != storage.NAME:
                index = index.to(self.device)
            result.append(index)
            continue
        for d in range(index.dim()):
            if index.shape[d] != self.shape[len(result) + d]:
                raise IndexError(
                    f"The shape of the mask {list(index.shape)} at index {d} does not match the shape of the indexed tensor "
                    f"{list(self.shape)} at index {len(result) + d}"
                )
        result.extend(coordinates(index.to(self.device), operator).unbind(1))
    return result


def _only_mask(self: Tensor, indices: Sequence[Tensor | None]) -> tuple[int, Tensor] | None:
    """Where the one index that is a mask stands, if there is no other index; a mask without dimensions is no such case."""
    given = [(d, index) for d, index in enumerate(indices) if index is not None]
    if len(given) != 1 or given[0][1].dtype not in _MASKS or not given[0][1].dim() or self.is_conj() or self.is_neg():
        return None
    at, mask = given[0]
    if list(mask.shape) != list(self.shape[at : at + mask.dim()]) or not self.numel():
        return None
    return at, dense(mask.to(self.device)) if mask.dtype == torch.bool else dense(mask.to(self.device)).ne(0)


def _around(self: Tensor, at: int, dims: int) -> tuple[int, int, int]:
    return math.prod(self.shape[:at]), math.prod(self.shape[at : at + dims]), math.prod(self.shape[at + dims :])


def _mask_count(mask: Tensor) -> Running:
    return Running(mask.view(-1), torch.int64, "x != 0")


def _select(self: Tensor, at: int, mask: Tensor, operator: str) -> Tensor:
    """What a mask over the dimensions from `at` on selects: the host waits for the count."""
    source = _moved(dense(self))
    running = _mask_count(mask)
    count = int(storage.download(running.totals, operator).item())
    before, length, after = _around(self, at, mask.dim())
    out = storage.empty([*self.shape[:at], count, *self.shape[at + mask.dim() :]], self.dtype)
    if out.numel():
        queue.launch(
            kernel("index", "mask_gather", T=C_TYPE[source.dtype], MODE="set"), _size(running.chunks, 16), (16,),
            storage.buffer(source), source.storage_offset(), storage.buffer(mask), mask.storage_offset(),
            storage.buffer(running.sums), storage.buffer(out), before, length, after, count, running.chunk, running.chunks,
        )  # fmt: skip
    return out


@op("index.Tensor")
def take(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """`self[i, j, ...]`: by integers without waiting; by a mask the host waits once for the count."""
    if self.is_conj() or self.is_neg():
        raise NotNative
    alone = _only_mask(self, indices)
    if alone is not None:
        return _select(self, *alone, "aten::index")
    _moved(self)
    source, chosen, first = _layout(self, _masks_to_indices(self, indices, "aten::index"))
    source = _moved(dense(source))
    _, length, after = _around(source, first, len(chosen))
    shape = [*source.shape[:first], *chosen[0].shape, *source.shape[first + len(chosen) :]]
    out = storage.empty(shape, self.dtype)
    if out.numel():
        if not length:
            raise IndexError("index is out of bounds for a dimension with size 0")
        queue.launch(
            kernel("index", "index_gather", T=C_TYPE[source.dtype], MODE="set", INDICES=len(chosen)),
            _size(out.numel()), _GROUP, storage.buffer(source), source.storage_offset(),
            *_index_arguments(source, chosen, first), length * after, chosen[0].numel(), after,
            storage.buffer(out), out.numel(),
        )  # fmt: skip
    return out


def _index_arguments(x: Tensor, chosen: list[Tensor], first: int) -> list[queue.Argument]:
    """Four index buffers, sizes and steps; what is not needed repeats the first. Indices begin where their buffers do."""
    fill = 4 - len(chosen)
    dims = range(first, first + len(chosen))
    return [
        *[storage.buffer(i) for i in chosen + chosen[:1] * fill],
        *[x.shape[d] for d in dims], *[1] * fill,
        *[math.prod(x.shape[d + 1 :]) for d in dims], *[0] * fill,
    ]  # fmt: skip


@op("_index_put_impl_")
def index_put_(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    """`self[i, j, ...] = values`, or `+=` if `accumulate`.

    Integers need no wait. A mask and one value need none either; a mask and many values wait once, to compare the counts,
    except in a backward pass (`accumulate`), where the values come from the same mask.
    """
    if self.is_conj() or self.is_neg() or values.is_conj() or values.is_neg() or not self.numel():
        raise NotNative
    if accumulate and self.dtype not in _ADDABLE:
        if not self.dtype.is_floating_point or self.dtype == torch.float64:
            raise NotNative
        wide = self.float()
        return self.copy_(index_put_(wide, indices, values.float(), True))
    values = values.to(self.device)
    alone = _only_mask(self, indices)
    if alone is not None:
        at, mask = alone
        if values.numel() == 1 and not accumulate:
            lifted = mask.view([*mask.shape, *[1] * (self.dim() - at - mask.dim())])
            return assign_where(lifted, values.view([]), self)
        return _put_masked(self, at, mask, values, accumulate)
    view, chosen, first = _layout(self, _masks_to_indices(self, indices, "aten::index_put_"))
    target = dense(view)
    _, length, after = _around(target, first, len(chosen))
    shape = [*view.shape[:first], *chosen[0].shape, *view.shape[first + len(chosen) :]]
    total = math.prod(shape)
    if not total:
        return self
    one = values.numel() == 1
    values = values if one else dense(values.expand(shape))
    to, what = _moved(target), _moved(values)
    queue.launch(
        kernel("index", "index_put", T=C_TYPE[to.dtype], MODE="add" if accumulate else "set", INDICES=len(chosen)),
        _size(total), _GROUP, storage.buffer(to), to.storage_offset(), *_index_arguments(to, chosen, first),
        length * after, chosen[0].numel(), after, storage.buffer(what), what.storage_offset(), int(not one), total,
    )  # fmt: skip
    return self if target is view else view.copy_(target)


def _put_masked(self: Tensor, at: int, mask: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    running = _mask_count(mask)
    rest = self.shape[at + mask.dim() :]
    lead = self.shape[:at]
    if accumulate and list(values.shape[:at]) == list(lead) and values.dim() == len(lead) + 1 + len(rest):
        count = values.shape[at]
    else:
        count = int(storage.download(running.totals, "aten::index_put_").item())
    values = dense(values.expand([*lead, count, *rest]))
    target = dense(self)
    before, length, after = _around(target, at, mask.dim())
    to, what = _moved(target), _moved(values)
    if values.numel():
        queue.launch(
            kernel("index", "mask_put", T=C_TYPE[to.dtype], MODE="add" if accumulate else "set"),
            _size(running.chunks, 16), (16,), storage.buffer(to), to.storage_offset(),
            storage.buffer(mask), mask.storage_offset(), storage.buffer(running.sums),
            storage.buffer(what), what.storage_offset(), before, length, after, count, running.chunk, running.chunks,
        )  # fmt: skip
    return self if target is self else self.copy_(target)


@op("masked_select")
def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """What a mask selects, as a list: the host waits for the count."""
    shape = torch.broadcast_shapes(self.shape, mask.shape)
    if not math.prod(shape) or not self.dim() or self.is_conj() or self.is_neg():
        raise NotNative
    flat = dense(self.expand(shape)).view(-1)
    return _select(flat, 0, dense(mask.expand(shape)).view(-1), "aten::masked_select")


@op("masked_scatter_")
def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Where the mask is true, the elements of `source` in order; no wait."""
    if self.is_conj() or self.is_neg() or source.is_conj() or source.is_neg() or self.dtype != source.dtype:
        raise NotNative
    if not self.numel() or not source.numel():
        return self
    mask = dense(mask.expand(self.shape)).view(-1)
    target = dense(self)
    to, what = _moved(target), _moved(dense(source))
    running = _mask_count(mask)
    queue.launch(
        kernel("index", "mask_put", T=C_TYPE[to.dtype], MODE="set"), _size(running.chunks, 16), (16,),
        storage.buffer(to), to.storage_offset(), storage.buffer(mask), mask.storage_offset(), storage.buffer(running.sums),
        storage.buffer(what), what.storage_offset(), 1, to.numel(), 1, what.numel(), running.chunk, running.chunks,
    )  # fmt: skip
    return self if target is self else self.copy_(target)


@op("index_select")
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Rows of a dimension, by number. As on CUDA, and other than in `x[index]`, the numbers must be on the device, too."""
    if index.device != self.device:
        raise storage.elsewhere(index)
    if not self.dim():
        raise NotNative
    return take(self, [None] * (dim % self.dim()) + [index.view(-1)])


def _along(shape: Sequence[int], x: Tensor, dim: int) -> list[int]:
    """Sizes and steps by which a kernel walks `x` in the shape of an index, standing still along `dim`."""
    if len(shape) > _RANK:
        raise NotNative
    pad = _RANK - len(shape)
    steps = [0 if d == dim else x.stride(d) for d in range(x.dim())]
    return [*[1] * pad, *shape, *[0] * pad, *steps, x.shape[dim] if x.dim() else 1, x.stride(dim) if x.dim() else 1]


@op("gather.out")
def gather_out(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor) -> Tensor:
    """One element per index, along a dimension."""
    if self.is_conj() or self.is_neg() or not out.is_contiguous():
        raise NotNative
    if not index.numel():
        return out
    source, index = _moved(self), dense(index.to(torch.int64))
    walk = _along(index.shape, source, dim % max(self.dim(), 1)) if self.dim() == index.dim() else None
    if walk is None:
        raise NotNative
    queue.launch(
        kernel("index", "gather_along", T=C_TYPE[source.dtype], MODE="set"), _size(index.numel()), _GROUP,
        storage.buffer(source), source.storage_offset(), storage.buffer(index), index.storage_offset(),
        storage.buffer(out), index.numel(), *walk,
    )  # fmt: skip
    return out


def _scatter(out: Tensor, dim: int, index: Tensor, values: Tensor, mode: str) -> Tensor:
    if mode == "add" and out.dtype not in _ADDABLE:
        raise NotNative
    if not index.numel():
        return out
    if out.dim() != index.dim():
        raise NotNative
    to, what, index = _moved(out), _moved(values), dense(index.to(torch.int64))
    one = values.numel() == 1 and values.dim() == 0
    if not one:
        what = dense(what.as_strided(index.shape, what.stride()))
    queue.launch(
        kernel("index", "scatter_along", T=C_TYPE[to.dtype], MODE=mode), _size(index.numel()), _GROUP,
        storage.buffer(to), to.storage_offset(), storage.buffer(index), index.storage_offset(),
        storage.buffer(what), what.storage_offset(), int(not one), index.numel(),
        *_along(index.shape, to, dim % max(out.dim(), 1)),
    )  # fmt: skip
    return out


def _start(self: Tensor, out: Tensor) -> Tensor:
    return out if out.data_ptr() == self.data_ptr() else out.copy_(self)


@op("scatter.src_out")
def scatter_src(self: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor) -> Tensor:
    """Writes one element per index, along a dimension."""
    _moved(self)
    return _scatter(_start(self, out), dim, index, src, "set")


@op("scatter.value_out")
def scatter_value(self: Tensor, dim: int, index: Tensor, value: Number, *, out: Tensor) -> Tensor:
    """Writes one value at each index, along a dimension."""
    _moved(self)
    return _scatter(_start(self, out), dim, index, torch.full((), value, dtype=self.dtype, device=self.device), "set")


@op("scatter_add.out")
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor) -> Tensor:
    """Adds one element at each index, along a dimension."""
    if self.dtype not in _ADDABLE:
        raise NotNative
    return _scatter(_start(self, out), dim, index, src, "add")


native["index.Tensor_out"] = into_out(take)
native["index_select.out"] = into_out(index_select)
native["masked_select.out"] = into_out(masked_select)


@op("embedding_dense_backward")
def embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """Adds each position's gradient to its row of the table."""
    if scale_grad_by_freq or grad_output.dtype not in _ADDABLE:
        raise NotNative
    rows = grad_output.reshape(indices.numel(), -1)
    where = indices.reshape(-1)
    if padding_idx >= 0:
        rows = rows * where.ne(padding_idx).unsqueeze(1)
    table = torch.zeros(num_weights, rows.shape[1], dtype=rows.dtype, device=rows.device)
    return index_put_(table, [where], rows, True) if rows.numel() else table
