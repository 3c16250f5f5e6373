"""Running sums, and what is made of them: where a tensor is not zero, and which elements a mask selects."""

from __future__ import annotations

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import C_TYPE, kernel, supported

_GROUP = (16,)


def _size(items: int) -> tuple[int]:
    return (-(-items // _GROUP[0]) * _GROUP[0],)


def _chunk(rows: int, length: int) -> int:
    """Elements per item: about as many as there are chunks, so that no step is long; whole rows when there are many."""
    if rows >= 256:
        return max(length, 1)
    return min(max(64, 1 << (length.bit_length() + 1) // 2), max(length, 1))


class Running:
    """The sums before each chunk of each row, and each row's total, still on the device."""

    def __init__(self, x: Tensor, dim: int, state: torch.dtype, enter: str) -> None:
        """`x` row-major in all dimensions; `enter` is how an element counts: `x`, or `x != 0`."""
        length = x.shape[dim] if x.dim() else 1
        inner = 1
        for n in x.shape[dim + 1 :]:
            inner *= n
        self.x, self.length, self.inner = x, length, inner
        self.rows = x.numel() // max(length, 1)
        self.chunk = _chunk(self.rows, length)
        self.chunks = -(-length // self.chunk)
        self.macros = {"T": C_TYPE[x.dtype], "S": C_TYPE[state], "ENTER(x)": f"({enter})"}
        self.sums = storage.empty([self.rows * self.chunks], state)
        self.totals = storage.empty([self.rows], state)

    def run(self) -> Running:
        """Enqueues the first two steps. Rows of an inner dimension are taken plane by plane."""
        at = self.x.storage_offset()
        queue.launch(
            kernel("scan", "scan_chunk_sums", O="long", **self.macros), _size(self.rows * self.chunks), _GROUP,
            storage.buffer(self.x), at, self.length, 1, storage.buffer(self.sums),
            self.rows, self.length, self.chunk, self.chunks,
        )  # fmt: skip
        queue.launch(
            kernel("scan", "scan_sums", O="long", **self.macros), _size(self.rows), _GROUP,
            storage.buffer(self.sums), storage.buffer(self.totals), self.rows, self.chunks,
        )  # fmt: skip
        return self

    def write(self, out: Tensor) -> Tensor:
        """Enqueues the third step, into a row-major tensor of the same shape."""
        queue.launch(
            kernel("scan", "scan_chunks", O=C_TYPE[out.dtype], **self.macros), _size(self.rows * self.chunks), _GROUP,
            storage.buffer(self.x), self.x.storage_offset(), self.length, 1, storage.buffer(self.sums),
            storage.buffer(out), out.storage_offset(), self.length, 1,
            self.rows, self.length, self.chunk, self.chunks,
        )  # fmt: skip
        return out


def running_sum(x: Tensor, state: torch.dtype, out: torch.dtype, enter: str = "x") -> Tensor:
    """The inclusive running sum along the last dimension of a row-major tensor; no wait."""
    result = storage.empty(x.shape, out)
    if not x.numel():
        return result
    return Running(x, x.dim() - 1, state, enter).run().write(result)


@op("cumsum.out")
def cumsum(self: Tensor, dim: int, *, dtype: torch.dtype | None = None, out: Tensor) -> Tensor:
    """Running sum along a dimension."""
    if not supported(self.dtype) or not supported(out.dtype):
        raise NotNative
    if not out.numel():
        return out
    state = out.dtype if out.dtype.is_floating_point else torch.int64
    if not self.dim():
        out.copy_(self)
        return out
    moved = dense(self.movedim(dim, -1))
    summed = running_sum(moved, state, out.dtype).movedim(-1, dim)
    out.copy_(summed)
    return out


def flat_nonzero(self: Tensor, operator: str) -> tuple[Tensor, Tensor, int]:
    """The tensor row-major, the running counts of its chunks, and how many elements are not zero: the host waits once."""
    whole = dense(self)
    if whole.dtype in (torch.float16, torch.bfloat16):
        whole = whole.float()
    if not supported(whole.dtype):
        raise NotNative
    flat = Running(whole.view(-1), 0, torch.int64, "x != 0").run()
    return whole, flat.sums, int(storage.download(flat.totals, operator).item())


def nonzero_as(self: Tensor, operator: str, flat: bool) -> Tensor:
    """Coordinates of what is not zero, (count, dimensions), or places in row-major order, (count, 1): the host waits once."""
    if self.dim() > 8:
        raise NotNative
    if not self.numel():
        return storage.empty([0, 1 if flat else self.dim()], torch.int64)
    whole, sums, count = flat_nonzero(self, operator)
    shape = [whole.numel()] if flat else list(whole.shape)
    out = storage.empty([count, len(shape)], torch.int64)
    if count and shape:
        length = whole.numel()
        queue.launch(
            kernel("scan", "nonzero_scatter", T=C_TYPE[whole.dtype], S="long", O="long", **{"ENTER(x)": "(x)"}),
            _size(sums.numel()), _GROUP, storage.buffer(whole), whole.storage_offset(), storage.buffer(sums),
            storage.buffer(out), count, len(shape), *shape, *[1] * (8 - len(shape)),
            length, _chunk(1, length), sums.numel(),
        )  # fmt: skip
    return out


@op("nonzero")
def nonzero(self: Tensor) -> Tensor:
    """Coordinates of what is not zero, (count, dimensions): the host waits for the count."""
    return nonzero_as(self, "aten::nonzero", flat=False)


@op("nonzero.out")
def nonzero_out(self: Tensor, *, out: Tensor) -> Tensor:
    """`nonzero` into a tensor."""
    found = nonzero(self)
    return storage.resize(out, found.shape).copy_(found)
