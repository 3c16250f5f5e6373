"""Matrix products, with or without a batch, of any strides: contractions with one loop on an axis."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.types import Number

from syncscope.kernels import elementwise, precision, storage
from syncscope.kernels.generate import run
from syncscope.kernels.generate.ir import Access, Contraction, Index
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import computed, floating, supported

Steps = tuple[int, int, int]  # from a matrix of the batch, a row and a column to the next
_DIRECT = (torch.int32, torch.int64)  # beside floating point


def multiply(
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    alpha: Number,
    beta: Number,
    out: Tensor,
    padded: bool = False,
    tf32: Callable[[], bool] = precision.products,
) -> Tensor:
    """`alpha * a @ b + beta * bias` into `out`; all with a batch dimension or all without, `bias` broadcasts to `out`.
    `padded` says that the neighbours of `a` go on with zeros behind their end, and `tf32` how float32 is multiplied."""
    if a.is_conj() or b.is_conj() or isinstance(alpha, complex) or isinstance(beta, complex):
        raise NotNative
    if out.dtype not in _DIRECT and not floating(out.dtype):
        return _widened(a, b, bias, alpha, beta, out)
    if not out.numel():
        return out
    if beta == 0:
        bias = None  # then not even a NaN of it counts
    size = (out.shape[0] if out.dim() == 3 else 1, *out.shape[-2:], a.shape[-1])
    bias_steps = None if bias is None else _steps(bias.expand(out.shape))
    plan = _plan(
        size, _steps(a), _steps(b), _steps(out), bias_steps, out.dtype, run.aligned(a, b, out), run.SHAPE,
        out.dtype is torch.float32 and tf32(), padded,
    )  # fmt: skip
    plan(a, b, bias, out, alpha, beta)
    return out


@functools.lru_cache(4096)
def _plan(
    size: tuple[int, int, int, int],
    a: Steps,
    b: Steps,
    out: Steps,
    bias: Steps | None,
    dtype: torch.dtype,
    aligned: tuple[bool, ...],
    shape: str,
    tf32: bool,
    padded: bool,
) -> run.Plan:
    z, m, n, k = ((x,) for x in size)
    contraction = Contraction(
        "gemm", z, m, n, k,
        Access(Index(0, z=a[:1], m=a[1:2], k=a[2:]), padded=padded), Access(Index(0, z=b[:1], k=b[1:2], n=b[2:])),
        _result(out), None if bias is None else _result(bias),
    )  # fmt: skip
    return run.plan(contraction, dtype, aligned, tf32=tf32)


def _result(steps: Steps) -> Index:
    return Index(0, z=steps[:1], m=steps[1:2], n=steps[2:])


def _widened(a: Tensor, b: Tensor, bias: Tensor | None, alpha: Number, beta: Number, out: Tensor) -> Tensor:
    """Small integers (which wrap around alike) in int32."""
    if not supported(out.dtype) or out.dtype.is_floating_point or out.dtype == torch.bool:
        raise NotNative
    inside = torch.int32
    wide = storage.empty(out.shape, inside)
    multiply(a.to(inside), b.to(inside), None if bias is None else bias.to(inside), alpha, beta, wide)
    return out.copy_(wide)


def _steps(x: Tensor) -> Steps:
    batch, row, column = x.stride() if x.dim() == 3 else (0, *x.stride())
    return batch, row, column


@op("mm.out", asks=precision.products)
def mm(self: Tensor, mat2: Tensor, *, out: Tensor) -> Tensor:
    """Matrix product."""
    return multiply(self, mat2, None, 1, 0, out)


@op("bmm.out", asks=precision.products)
def bmm(self: Tensor, mat2: Tensor, *, out: Tensor) -> Tensor:
    """Products of a batch of matrices."""
    return multiply(self, mat2, None, 1, 0, out)


@op("addmm.out", asks=precision.products)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor) -> Tensor:
    """`beta * self + alpha * mat1 @ mat2`."""
    return multiply(mat1, mat2, self, alpha, beta, out)


@op("baddbmm.out", asks=precision.products)
def baddbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor
) -> Tensor:
    """`beta * self + alpha * batch1 @ batch2` for a batch of matrices."""
    return multiply(batch1, batch2, self, alpha, beta, out)


@op("addmv.out", asks=precision.products)
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor) -> Tensor:
    """`beta * self + alpha * mat @ vec`."""
    bias = self.unsqueeze(-1) if self.dim() else self
    multiply(mat, vec.unsqueeze(1), bias, alpha, beta, out.unsqueeze(1))
    return out


@op("linear", asks=precision.products)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.t() + bias`: PyTorch's own way makes a view for each transpose, and every view comes here."""
    given = (weight,) if bias is None else (weight, bias)
    if not input.dim() or input.shape[-1] != weight.shape[-1] or any(x.dtype != input.dtype for x in given):
        raise NotNative  # PyTorch has the words
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise NotNative
    out = storage.empty([*input.shape[:-1], *weight.shape[:-1]], input.dtype)
    columns = weight if weight.dim() == 2 else weight.unsqueeze(0)
    multiply(_rows(input), columns.t(), bias, 1, 1, _rows(out, weight.dim() == 1))
    return out


@op("linear_backward", asks=precision.products)
def linear_backward(
    self: Tensor, grad_output: Tensor, weight: Tensor, output_mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of input, weight and bias."""
    columns = weight if weight.dim() == 2 else weight.unsqueeze(0)
    grad, rows = _rows(grad_output, weight.dim() == 1), _rows(self)
    even = _padded(grad) if rows.shape[1] >= _PADDED else grad
    to_input = _product(even, columns.conj(), self, even is not grad) if output_mask[0] else None
    to_weight = _product(even.t(), rows.conj(), weight, even is not grad) if output_mask[1] else None
    return to_input, to_weight, grad.sum(0).view(weight.shape[:-1]) if output_mask[2] else None


_PADDED = 128  # columns of the other operand from which a copy pays


def _padded(x: Tensor) -> Tensor:
    """Rows that can be read in fours, of halves in eights: a copy that goes on with zeros, where they cannot and are many."""
    run_of = 8 if x.dtype.itemsize == 2 else 4
    rows, columns = x.shape
    if run.SHAPE == "cpu" or columns % run_of == 0 or x.numel() < 1 << 20 or not floating(x.dtype):
        return x
    wide = storage.empty([rows, -(-columns // 8) * 8], x.dtype)
    elementwise.copy(wide[:, :columns], x)
    elementwise.apply(elementwise.COPY, wide[:, columns:], (0.0,), dtype=computed(x.dtype))
    return wide[:, :columns]


def _product(a: Tensor, b: Tensor, like: Tensor, padded: bool = False) -> Tensor:
    """A product in the shape of another tensor."""
    if like.dtype.is_complex:
        return (a @ b).view(like.shape)
    out = storage.empty(like.shape, like.dtype)
    multiply(a, b, None, 1, 0, out.view(a.shape[0], b.shape[1]), padded)
    return out


def _rows(x: Tensor, singles: bool = False) -> Tensor:
    """A matrix of the last dimension's rows, or of single numbers."""
    if x.dim() == 2 and not singles:
        return x
    columns = 1 if singles else x.shape[-1]
    return dense(x).view(math.prod(x.shape if singles else x.shape[:-1]), columns)


@op("dot", "vdot")
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    """Sum of products."""
    if self.dtype not in _DIRECT and (not supported(self.dtype) or not self.dtype.is_floating_point):
        raise NotNative
    if self.shape != tensor.shape or self.dtype != tensor.dtype:
        raise RuntimeError(
            f"inconsistent tensor size or dtype: {self.shape} {self.dtype}, {tensor.shape} {tensor.dtype}"
        )
    return (self * tensor).sum(dtype=self.dtype)
