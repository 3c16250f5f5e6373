"""Matrix products: one register-blocked kernel, with strides for transposes and a batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import C_TYPE, kernel, supported

_TILE = (4, 2, 1)  # blocks of 8 x 8 in a work-group
_DIRECT = (torch.float32, torch.float64, torch.int32, torch.int64)


def multiply(a: Tensor, b: Tensor, bias: Tensor | None, alpha: Any, beta: Any, out: Tensor) -> Tensor:
    """`alpha * a @ b + beta * bias` into `out`; `a`, `b` and `out` have a batch dimension, `bias` broadcasts to `out`."""
    if a.is_conj() or b.is_conj() or isinstance(alpha, complex) or isinstance(beta, complex):
        raise NotNative
    if out.dtype not in _DIRECT or not supported(out.dtype):
        inside = torch.float32 if out.dtype in (torch.float16, torch.bfloat16) else torch.int32
        if (
            (not out.dtype.is_floating_point and not supported(out.dtype))
            or out.dtype == torch.bool
            or out.dtype.is_complex
        ):
            raise NotNative
        if out.dtype.is_floating_point and inside is torch.int32:
            raise NotNative
        wide = storage.empty(out.shape, inside)
        multiply(a.to(inside), b.to(inside), None if bias is None else bias.to(inside), alpha, beta, wide)
        return out.copy_(wide)
    if not out.numel():
        return out
    if b.stride(2) != 1 and b.shape[2] != 1:
        b = dense(b)
    bias = bias if bias is not None and beta != 0 else None
    made = out if out.is_contiguous() else storage.empty(out.shape, out.dtype)
    batch, m, n = out.shape
    number = float if out.dtype.is_floating_point else int
    expanded = None if bias is None else bias.expand(out.shape)
    columns, rows = -(-n // 8), -(-m // 8)
    size = (-(-columns // _TILE[0]) * _TILE[0], -(-rows // _TILE[1]) * _TILE[1], batch)
    queue.launch(
        kernel("gemm", "gemm", T=C_TYPE[out.dtype], HAS_BIAS=int(bias is not None)), size, _TILE,
        storage.buffer(a), a.storage_offset(), *a.stride(), storage.buffer(b), b.storage_offset(), b.stride(0), b.stride(1),
        storage.buffer(a if bias is None else bias), 0 if bias is None else bias.storage_offset(),
        *((0, 0, 0) if expanded is None else expanded.stride()),
        storage.buffer(made), made.storage_offset(), m, n, a.shape[2], number(alpha), number(beta),
    )  # fmt: skip
    return out if made is out else out.copy_(made)


@op("mm.out")
def mm(self: Tensor, mat2: Tensor, *, out: Tensor) -> Tensor:
    """Matrix product."""
    multiply(self.unsqueeze(0), mat2.unsqueeze(0), None, 1, 0, out.unsqueeze(0))
    return out


@op("bmm.out")
def bmm(self: Tensor, mat2: Tensor, *, out: Tensor) -> Tensor:
    """Products of a batch of matrices."""
    return multiply(self, mat2, None, 1, 0, out)


@op("addmm.out")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor) -> Tensor:
    """`beta * self + alpha * mat1 @ mat2`."""
    multiply(mat1.unsqueeze(0), mat2.unsqueeze(0), self, alpha, beta, out.unsqueeze(0))
    return out


@op("baddbmm.out")
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor) -> Tensor:
    """`beta * self + alpha * batch1 @ batch2` for a batch of matrices."""
    return multiply(batch1, batch2, self, alpha, beta, out)


@op("addmv.out")
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor) -> Tensor:
    """`beta * self + alpha * mat @ vec`."""
    bias = self.unsqueeze(-1) if self.dim() else self
    multiply(mat.unsqueeze(0), vec.view(1, -1, 1), bias, alpha, beta, out.view(1, -1, 1))
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
