"""Sums, extremes, counts and norms over any dimensions: what PyTorch calls, in terms of folds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import storage
from syncscope.kernels.elementwise import compute_dtype
from syncscope.kernels.fold import fold
from syncscope.kernels.operators import NotNative, into_out, native, op

Dims = Sequence[int] | int | None


def normalise(dims: Dims, rank: int) -> list[int]:
    """Dimensions as sorted non-negative numbers; None and the empty list are all of them."""
    if dims is None:
        return list(range(rank))
    listed = [dims] if isinstance(dims, int) else list(dims)
    return sorted(d % rank if rank else 0 for d in listed)[: rank or 0] if listed else list(range(rank))


def _state(x: torch.dtype, out: torch.dtype) -> torch.dtype:
    """Sums of integers are made in int64, of floats in the wider of the two dtypes."""
    if not out.is_floating_point:
        return torch.int64
    return torch.float64 if torch.float64 in (x, out) else torch.float32


def _into(out: Tensor, x: Tensor, dims: list[int], keepdim: bool) -> Tensor:
    shape = [1 if d in dims else n for d, n in enumerate(x.shape)] if keepdim else [
        n for d, n in enumerate(x.shape) if d not in dims
    ]  # fmt: skip
    return out if list(out.shape) == shape else storage.resize(out, shape)


@op("sum.IntList_out")
def sum_out(self: Tensor, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None, out: Tensor) -> Tensor:
    """Sum over dimensions."""
    fold("sum", self, normalise(dim, self.dim()), out, _state(self.dtype, out.dtype))
    return out


@op("mean.out")
def mean_out(
    self: Tensor, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None, out: Tensor
) -> Tensor:
    """Mean over dimensions."""
    fold("mean", self, normalise(dim, self.dim()), out, _state(self.dtype, out.dtype))
    return out


@op("sum")
def sum_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Sum of all elements."""
    return _all(self, "sum", dtype or (self.dtype if self.dtype.is_floating_point else torch.int64))


@op("prod")
def prod_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Product of all elements."""
    return _all(self, "prod", dtype or (self.dtype if self.dtype.is_floating_point else torch.int64))


def _all(self: Tensor, which: str, dtype: torch.dtype) -> Tensor:
    compute_dtype(self.dtype)
    out = storage.empty([], dtype)
    fold(which, self, range(self.dim()), out, _state(self.dtype, dtype))
    return out


@op("prod.int_out")
def prod_out(self: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None, out: Tensor) -> Tensor:
    """Product over one dimension."""
    fold("prod", self, normalise(dim, self.dim()), out, _state(self.dtype, out.dtype))
    return out


@op("nansum.out")
def nansum_out(
    self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None, out: Tensor
) -> Tensor:
    """Sum over dimensions, NaN taken as zero."""
    dims = normalise(dim, self.dim())
    fold("nansum", self, dims, _into(out, self, dims, keepdim), _state(self.dtype, out.dtype))
    return out


@op("nansum")
def nansum(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Sum over dimensions, NaN taken as zero."""
    compute_dtype(self.dtype)
    dtype = dtype or (self.dtype if self.dtype.is_floating_point else torch.int64)
    return nansum_out(self, dim, keepdim, out=storage.empty([0], dtype))


@op("amax.out")
def amax_out(self: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Tensor) -> Tensor:
    """Largest element over dimensions; NaN wins."""
    fold("amax", self, normalise(dim, self.dim()), out, self.dtype)
    return out


@op("amin.out")
def amin_out(self: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Tensor) -> Tensor:
    """Smallest element over dimensions; NaN wins."""
    fold("amin", self, normalise(dim, self.dim()), out, self.dtype)
    return out


@op("max")
def max_all(self: Tensor) -> Tensor:
    """Largest of all elements."""
    if not self.numel():
        raise NotNative
    out = storage.empty([], self.dtype)
    fold("amax", self, range(self.dim()), out, self.dtype)
    return out


@op("min")
def min_all(self: Tensor) -> Tensor:
    """Smallest of all elements."""
    if not self.numel():
        raise NotNative
    out = storage.empty([], self.dtype)
    fold("amin", self, range(self.dim()), out, self.dtype)
    return out


@op("any.out", "any.dims_out")
def any_out(self: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor) -> Tensor:
    """Whether any element is true."""
    fold("any", self, normalise(dim, self.dim()), out, self.dtype)
    return out


@op("any.all_out")
def any_all_out(self: Tensor, *, out: Tensor) -> Tensor:
    """Whether any element is true."""
    fold("any", self, range(self.dim()), out, self.dtype)
    return out


@op("all.out", "all.dims_out")
def all_out(self: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor) -> Tensor:
    """Whether all elements are true."""
    fold("all", self, normalise(dim, self.dim()), out, self.dtype)
    return out


@op("all.all_out")
def all_all_out(self: Tensor, *, out: Tensor) -> Tensor:
    """Whether all elements are true."""
    fold("all", self, range(self.dim()), out, self.dtype)
    return out


@op("count_nonzero.dim_IntList")
def count_nonzero(self: Tensor, dim: Sequence[int]) -> Tensor:
    """How many elements are not zero."""
    compute_dtype(self.dtype)
    dims = normalise(dim, self.dim())
    out = storage.empty([n for d, n in enumerate(self.shape) if d not in dims], torch.int64)
    source = self.to(torch.float32) if self.dtype in (torch.float16, torch.bfloat16) else self
    wide = source if not source.dtype.is_floating_point else source.ne(0)
    fold("count_nonzero", wide, dims, out, torch.int64)
    return out


def _arg(which: str, self: Tensor, dim: int | None, out: Tensor) -> Tensor:
    fold(which, self, normalise(dim, self.dim()), out, self.dtype)
    return out


@op("argmax.out")
def argmax_out(self: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor) -> Tensor:
    """Place of the largest element, the first of equals; NaN wins."""
    return _arg("argmax", self, dim, out)


@op("argmin.out")
def argmin_out(self: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor) -> Tensor:
    """Place of the smallest element, the first of equals; NaN wins."""
    return _arg("argmin", self, dim, out)


@op("max.dim_max")
def max_dim(self: Tensor, dim: int, keepdim: bool = False, *, max: Tensor, max_values: Tensor) -> tuple[Tensor, Tensor]:
    """Largest element along a dimension, and its place."""
    fold("max", self, normalise(dim, self.dim()), max, self.dtype, max_values)
    return max, max_values


@op("min.dim_min")
def min_dim(
    self: Tensor, dim: int, keepdim: bool = False, *, min: Tensor, min_indices: Tensor
) -> tuple[Tensor, Tensor]:
    """Smallest element along a dimension, and its place."""
    fold("min", self, normalise(dim, self.dim()), min, self.dtype, min_indices)
    return min, min_indices


_NORMS = {0.0: "norm_0", 1.0: "norm_1", 2.0: "norm_2", math.inf: "norm_inf"}


@op("linalg_vector_norm.out")
def vector_norm_out(
    self: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: Tensor,
) -> Tensor:
    """Norms of order 0, 1, 2 and infinity over dimensions."""
    if float(ord) not in _NORMS:
        raise NotNative
    fold(_NORMS[float(ord)], self, normalise(dim, self.dim()), out, _state(self.dtype, out.dtype))
    return out


@op("norm.out")
def norm_out(self: Tensor, p: float | None, dim: Dims, keepdim: bool = False, *, out: Tensor) -> Tensor:
    """Likewise, by its older name."""
    return vector_norm_out(self, 2 if p is None else p, dim, keepdim, out=out)


@op("aminmax.out")
def aminmax_out(
    self: Tensor, *, dim: int | None = None, keepdim: bool = False, min: Tensor, max: Tensor
) -> tuple[Tensor, Tensor]:
    """Both extremes."""
    dims = [] if dim is None else [dim]
    return torch.amin(self, dims, keepdim, out=min), torch.amax(self, dims, keepdim, out=max)


def _variance(self: Tensor, dim: Dims, correction: float | None, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Variance and mean in two passes: the mean first, then the squares of what is left."""
    compute_dtype(self.dtype)
    dims = normalise(dim, self.dim())
    count = math.prod(self.shape[d] for d in dims)
    mean = self.mean(dims, keepdim=True)
    rest = self - mean
    shape = [1 if d in dims else n for d, n in enumerate(self.shape)]
    squares = storage.empty(shape, self.dtype)
    fold("sum_of_squares", rest, dims, squares, _state(self.dtype, self.dtype))
    spread = squares / max(count - (1 if correction is None else correction), 0)
    if not keepdim:
        kept = [n for d, n in enumerate(self.shape) if d not in dims]
        spread, mean = spread.view(kept), mean.reshape(kept)
    return spread, mean


@op("var.correction")
def var(self: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    """Variance over dimensions."""
    return _variance(self, dim, correction, keepdim)[0]


@op("std.correction")
def std(self: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    """Standard deviation over dimensions."""
    return _variance(self, dim, correction, keepdim)[0].sqrt()


native["max.unary_out"] = into_out(max_all)
native["min.unary_out"] = into_out(min_all)
native["var.correction_out"] = into_out(var)
native["std.correction_out"] = into_out(std)


@op("var_mean.correction")
def var_mean(
    self: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Variance and mean over dimensions."""
    return _variance(self, dim, correction, keepdim)
