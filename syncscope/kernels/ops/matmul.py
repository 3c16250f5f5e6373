"""Matrix products: one register-blocked kernel, with strides for transposes and a batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.programs import C_TYPE, kernel, supported

Steps = tuple[int, int, int]
_TILE = (4, 2, 1)  # blocks of 8 x 8 in a work-group
_PACK = 24  # rows of the left matrix from which packing the right one pays
_DIRECT = (torch.float32, torch.float64, torch.int32, torch.int64)


def multiply(a: Tensor, b: Tensor, bias: Tensor | None, alpha: Any, beta: Any, out: Tensor) -> Tensor:
    """`alpha * a @ b + beta * bias` into `out`; all with a batch dimension or all without, `bias` broadcasts to `out`."""
    if a.is_conj() or b.is_conj() or isinstance(alpha, complex) or isinstance(beta, complex):
        raise NotNative
    if out.dtype not in _DIRECT or not supported(out.dtype):
        return _widened(a, b, bias, alpha, beta, out)
    if not out.numel():
        return out
    made = out if out.is_contiguous() else storage.empty(out.shape, out.dtype)
    if beta == 0:
        bias = None  # then not even a NaN of it counts
    bias_steps = (0, 0, 0) if bias is None else _steps(bias.expand(out.shape))
    batches = out.shape[0] if out.dim() == 3 else 1
    packed = out.shape[-2] >= _PACK or (b.stride(-1) != 1 and b.shape[-1] != 1)
    panels, where = _pack(b, batches) if packed else (b, (b.storage_offset(), *_steps(b)[:2], 8))
    gemm(
        a, _steps(a), panels, where, packed, bias, bias_steps, made,
        (*out.shape[-2:], a.shape[-1], batches), alpha, beta,
    )  # fmt: skip
    return out if made is out else out.copy_(made)


def gemm(
    a: Tensor,
    a_steps: Steps,
    c: Tensor,
    c_where: tuple[int, int, int, int],
    packed: bool,
    bias: Tensor | None,
    bias_steps: Steps,
    out: Tensor,
    size: tuple[int, int, int, int],
    alpha: Any = 1,
    beta: Any = 1,
) -> None:
    """Enqueues the product into a row-major `out`.

    Steps, in elements, are of a batch, a row and a column; of `c` its offset and its steps of a batch, a row and a panel of
    eight columns; the size is rows, columns, inner length and batches.
    """
    m, n, k, batches = size
    number = float if out.dtype.is_floating_point else int
    added = a if bias is None else bias
    queue.launch(
        kernel("gemm", "gemm", T=C_TYPE[out.dtype], HAS_BIAS=int(bias is not None), PACKED=int(packed)),
        (_round(-(-n // 8), _TILE[0]), _round(-(-m // 8), _TILE[1]), batches), _TILE,
        storage.buffer(a), a.storage_offset(), *a_steps, storage.buffer(c), *c_where,
        storage.buffer(added), added.storage_offset(), *bias_steps,
        storage.buffer(out), out.storage_offset(), m, n, k, number(alpha), number(beta),
    )  # fmt: skip


def _pack(b: Tensor, batches: int) -> tuple[Tensor, tuple[int, int, int, int]]:
    """The right matrix in panels of eight columns; with its offset, and its steps of a batch, a row and a panel."""
    k, n = b.shape[-2:]
    steps = _steps(b)
    copies = batches if steps[0] else 1
    count = -(-n // 8)
    panels = storage.empty([copies, count, k, 8], b.dtype)
    total = copies * count * k
    if total:
        queue.launch(
            kernel("gemm", "gemm_pack", T=C_TYPE[b.dtype], HAS_BIAS=0, PACKED=1), (_round(total, 64),), (64,),
            storage.buffer(b), b.storage_offset(), *steps, storage.buffer(panels), n, k, total,
        )  # fmt: skip
    return panels, (0, count * k * 8 if copies > 1 else 0, 8, k * 8)


def _widened(a: Tensor, b: Tensor, bias: Tensor | None, alpha: Any, beta: Any, out: Tensor) -> Tensor:
    """Half precision in float, small integers (which wrap around alike) in int32."""
    if out.dtype in (torch.float16, torch.bfloat16):
        inside = torch.float32
    elif supported(out.dtype) and out.dtype != torch.bool:
        inside = torch.int32
    else:
        raise NotNative
    wide = storage.empty(out.shape, inside)
    multiply(a.to(inside), b.to(inside), None if bias is None else bias.to(inside), alpha, beta, wide)
    return out.copy_(wide)


def _steps(x: Tensor) -> Steps:
    batch, row, column = x.stride() if x.dim() == 3 else (0, *x.stride())
    return batch, row, column


def _round(n: int, step: int) -> int:
    return -(-n // step) * step


@op("mm.out")
def mm(self: Tensor, mat2: Tensor, *, out: Tensor) -> Tensor:
    """Matrix product."""
    return multiply(self, mat2, None, 1, 0, out)


@op("bmm.out")
def bmm(self: Tensor, mat2: Tensor, *, out: Tensor) -> Tensor:
    """Products of a batch of matrices."""
    return multiply(self, mat2, None, 1, 0, out)


@op("addmm.out")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor) -> Tensor:
    """`beta * self + alpha * mat1 @ mat2`."""
    return multiply(mat1, mat2, self, alpha, beta, out)


@op("baddbmm.out")
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor) -> Tensor:
    """`beta * self + alpha * batch1 @ batch2` for a batch of matrices."""
    return multiply(batch1, batch2, self, alpha, beta, out)


@op("addmv.out")
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor) -> Tensor:
    """`beta * self + alpha * mat @ vec`."""
    bias = self.unsqueeze(-1) if self.dim() else self
    multiply(mat, vec.unsqueeze(1), bias, alpha, beta, out.unsqueeze(1))
    return out


@op("dot", "vdot")
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    """Sum of products."""
    if self.dtype not in _DIRECT or not supported(self.dtype):
        raise NotNative
    if self.shape != tensor.shape or self.dtype != tensor.dtype:
        raise RuntimeError(
            f"inconsistent tensor size or dtype: {self.shape} {self.dtype}, {tensor.shape} {tensor.dtype}"
        )
    return (self * tensor).sum(dtype=self.dtype)
