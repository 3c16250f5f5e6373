"""Running sums, and what is made of them: where a tensor is not zero, and which elements a mask selects."""

from __future__ import annotations

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.device import fp64, is_gpu
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
    """What comes before each chunk of each row, and each row's total, on the device; the rows are the last dimension."""

    def __init__(self, x: Tensor, state: torch.dtype, enter: str) -> None:
        """Enqueues the first two steps; `x` is row-major, `enter` is how an element counts: `x`, or `x != 0`."""
        self.x, self.length = x, x.shape[-1]
        self.rows = x.numel() // max(self.length, 1)
        self.chunk = _chunk(self.rows, self.length)
        self.chunks = -(-self.length // self.chunk)
        self.sums = storage.empty([self.rows * self.chunks], state)
        self.totals = storage.empty([self.rows], state)
        self._macros = {"T": C_TYPE[x.dtype], "S": C_TYPE[state], "ENTER(x)": f"({enter})"}
        queue.launch(
            kernel("scan", "scan_chunk_sums", O="long", **self._macros), _size(self.rows * self.chunks), _GROUP,
            storage.buffer(x), x.storage_offset(), storage.buffer(self.sums), self.rows, self.length, self.chunk, self.chunks,
        )  # fmt: skip
        queue.launch(
            kernel("scan", "scan_sums", O="long", **self._macros), _size(self.rows), _GROUP,
            storage.buffer(self.sums), storage.buffer(self.totals), self.rows, self.chunks,
        )  # fmt: skip

    def write(self, out: Tensor) -> Tensor:
        """Enqueues the third step, into a row-major tensor of the same shape."""
        queue.launch(
            kernel("scan", "scan_chunks", O=C_TYPE[out.dtype], **self._macros), _size(self.rows * self.chunks), _GROUP,
            storage.buffer(self.x), self.x.storage_offset(), storage.buffer(self.sums),
            storage.buffer(out), out.storage_offset(), self.rows, self.length, self.chunk, self.chunks,
        )  # fmt: skip
        return out


@op("cumsum.out")
def cumsum(self: Tensor, dim: int, *, dtype: torch.dtype | None = None, out: Tensor) -> Tensor:
    """Running sum along a dimension."""
    if not supported(self.dtype) or not supported(out.dtype):
        raise NotNative
    if not out.numel():
        return out
    state = torch.int64
    if out.dtype.is_floating_point:  # an item of a CPU adds up one by one what a sum of its own would be made in parts
        state = torch.float64 if not is_gpu and fp64 else out.dtype
    if not self.dim():
        return out.copy_(self)
    moved = dense(self.movedim(dim, -1))
    summed = Running(moved, state, "x").write(storage.empty(moved.shape, out.dtype))
    return out.copy_(summed.movedim(-1, dim))


def coordinates(self: Tensor, operator: str) -> Tensor:
    """Where a tensor is not zero, (count, dimensions), in row-major order: the host waits once, for the count."""
    shape = list(self.shape)
    if len(shape) > 8:
        raise NotNative
    if not self.numel():
        return storage.empty([0, len(shape)], torch.int64)
    whole = dense(self.float() if self.dtype in (torch.float16, torch.bfloat16) else self)
    if not supported(whole.dtype):
        raise NotNative
    found = Running(whole.view(-1), torch.int64, "x != 0")
    count = int(storage.download(found.totals, operator).item())
    out = storage.empty([count, len(shape)], torch.int64)
    if out.numel():
        queue.launch(
            kernel("scan", "nonzero_scatter", T=C_TYPE[whole.dtype], S="long", O="long", **{"ENTER(x)": "(x)"}),
            _size(found.chunks), _GROUP, storage.buffer(whole), whole.storage_offset(), storage.buffer(found.sums),
            storage.buffer(out), count, len(shape), *shape, *[1] * (8 - len(shape)), found.length, found.chunk, found.chunks,
        )  # fmt: skip
    return out


@op("nonzero")
def nonzero(self: Tensor) -> Tensor:
    """Coordinates of what is not zero, (count, dimensions): the host waits for the count."""
    return coordinates(self, "aten::nonzero")


@op("nonzero.out")
def nonzero_out(self: Tensor, *, out: Tensor) -> Tensor:
    """`nonzero` into a tensor."""
    found = nonzero(self)
    return storage.resize(out, found.shape).copy_(found)
