"""Reductions over any dimensions: a table of folds, and one template in two stages.

A fold is a state, how an element enters it, how two states meet, and what the result is. Few outputs with many elements each
are folded in shares first, then the shares are folded; many outputs go in one stage.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.device import device
from syncscope.kernels.operators import NotNative, into_out, native, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.ops.pointwise import c_storage, collapse, compute_dtype, load, storable, store

Dims = Sequence[int] | int | None
_GROUP = 16
_RANK = 2  # kept and reduced dimensions, after collapsing, that the kernel walks; what has more is copied first


@dataclass(frozen=True, slots=True)
class Fold:
    """`acc` is the state, `x` an element, `other` another state; `k` the element's place, `at` and `other_at` the places."""

    name: str
    start: str
    enter: str  # an element's own state
    meet: str  # acc and other to acc
    result: str = "acc"  # from acc and `count`, the number of elements
    place: bool = False  # the state remembers the place of the element that won
    better: str = ""  # with a place: whether `other` beats `acc`


_LOWEST, _HIGHEST = "LOWEST", "HIGHEST"
# A NaN wins against all; of equals the first wins.
_MORE = (
    "(other != other ? acc == acc || other_at < at : acc == acc && (other > acc || (other == acc && other_at < at)))"
)
_LESS = (
    "(other != other ? acc == acc || other_at < at : acc == acc && (other < acc || (other == acc && other_at < at)))"
)
FOLDS = {
    fold.name: fold
    for fold in (
        Fold("sum", "0", "x", "acc + other"),
        Fold("mean", "0", "x", "acc + other", "acc / count"),
        Fold("prod", "1", "x", "acc * other"),
        Fold("nansum", "0", "x != x ? 0 : x", "acc + other"),
        Fold("amax", _LOWEST, "x", "acc != acc ? acc : other != other ? other : acc > other ? acc : other"),
        Fold("amin", _HIGHEST, "x", "acc != acc ? acc : other != other ? other : acc < other ? acc : other"),
        Fold("any", "0", "x != 0", "acc || other"),
        Fold("all", "1", "x != 0", "acc && other"),
        Fold("count_nonzero", "0", "x != 0", "acc + other"),
        Fold("argmax", _LOWEST, "x", "", place=True, better=_MORE),
        Fold("argmin", _HIGHEST, "x", "", place=True, better=_LESS),
        Fold("max", _LOWEST, "x", "", place=True, better=_MORE),
        Fold("min", _HIGHEST, "x", "", place=True, better=_LESS),
        Fold("norm_0", "0", "x != 0", "acc + other"),
        Fold("norm_1", "0", "x < 0 ? -x : x", "acc + other"),
        Fold("norm_2", "0", "x * x", "acc + other", "sqrt(acc)"),
        Fold(
            "norm_inf", "0", "x < 0 ? -x : x", "acc != acc ? acc : other != other ? other : acc > other ? acc : other"
        ),
        Fold("sum_of_squares", "0", "x * x", "acc + other"),
    )
}
_LIMITS = {
    "float": ("-INFINITY", "INFINITY"),
    "double": ("-(double)INFINITY", "(double)INFINITY"),
    "long": ("LONG_MIN", "LONG_MAX"),
    "int": ("INT_MIN", "INT_MAX"),
    "short": ("SHRT_MIN", "SHRT_MAX"),
    "char": ("CHAR_MIN", "CHAR_MAX"),
    "uchar": ("0", "UCHAR_MAX"),
}


@functools.cache
def _source(fold: Fold, state: str, inside: torch.dtype, outside: torch.dtype, first: bool, last: bool) -> str:
    """One stage. The first reads elements and the last writes results; between them lie states, and places if wanted."""
    low, high = _LIMITS[state]
    dims = [f"uint {p}{d}" for p in ("n", "r") for d in range(_RANK)]
    steps = [f"int {p}s{d}" for p in ("n", "r") for d in range(_RANK)]
    kind = c_storage(inside) if first else state
    parameters = [f"__global const {kind} *in", "long in_at"]
    if fold.place and not first:
        parameters.append("__global const long *in_places")
    out_kind = c_storage(outside) if last else state
    writes_place_only = last and fold.name.startswith("arg")
    parameters.append(f"__global {'long' if writes_place_only else out_kind} *out")
    parameters.append("long out_at")
    if fold.place and not writes_place_only:
        parameters += ["__global long *places", "long places_at"]
    parameters += ["long count", "uint outputs", "uint shares", "uint length", *dims, *steps]
    read = load(inside, "in", "from", state) if first else "in[from]"
    start = fold.start.replace("LOWEST", f"({low})").replace("HIGHEST", f"({high})")
    enter = fold.enter if first else "x"
    if fold.place:
        state_declaration = "    long at = 0x7fffffffffffffffL;\n    int none = 1;"
        place = "k" if first else "in_places[from]"
        meet = f"const long other_at = {place}; if (none || {fold.better}) {{ acc = other; at = other_at; none = 0; }}"
    else:
        state_declaration = ""
        meet = f"acc = {fold.meet};"
    out_index = "out_at + o" if last else "out_at + i"
    writes = []
    if writes_place_only:
        writes.append("out[out_at + o] = at;")
    elif last:
        writes.append(store(outside, "out", out_index, fold.result))
    else:
        writes.append(f"out[{out_index}] = acc;")
    if fold.place and not writes_place_only:
        writes.append(f"places[places_at + {'o' if last else 'i'}] = at;")
    return f"""
__kernel void {fold.name}_{state}{"" if last else "_shares"}({", ".join(parameters)}) {{
    const uint i = get_global_id(0);
    if (i >= outputs * shares) return;
    const uint o = i / shares, share = i % shares;
    const uint o1 = o % n1, o0 = o / n1;
    const long base = in_at + (long)o0 * ns0 + (long)o1 * ns1;
    {state} acc = {start};
{state_declaration}
    const uint begin = share * length, end = min(begin + length, (uint)(r0 * r1));
    uint k0 = begin / r1, k1 = begin % r1;
    for (uint k = begin; k < end;) {{
        const uint run = min(end - k, r1 - k1);
        long from = base + (long)k0 * rs0 + (long)k1 * rs1;
        for (const uint stop = k + run; k < stop; k++, from += rs1) {{
            const {state} x = {read};
            const {state} other = {enter};
            {meet}
        }}
        k0++;
        k1 = 0;
    }}
    {" ".join(writes)}
}}
"""


def fold(
    which: str, x: Tensor, dims: Sequence[int], out: Tensor, state: torch.dtype, places: Tensor | None = None
) -> None:
    """Folds `x` over `dims` into `out` (row-major, as many elements as the other dimensions have), computing in `state`."""
    what = FOLDS[which]
    state = compute_dtype(state)
    compute_dtype(x.dtype)
    if not storable(out.dtype) or x.is_conj() or x.is_neg():
        raise NotNative
    if not out.numel():
        return
    if not out.is_contiguous():
        plain = storage.empty(out.shape, out.dtype)
        fold(which, x, dims, plain, state, places)
        out.copy_(plain)
        return
    reduced, kept = list(dims), [d for d in range(x.dim()) if d not in set(dims)]
    ns, n_steps = collapse(tuple(x.shape[d] for d in kept), [tuple(x.stride(d) for d in kept)], sort=False)
    rs, r_steps = collapse(
        tuple(x.shape[d] for d in reduced), [tuple(x.stride(d) for d in reduced)], sort=not what.place
    )
    if len(ns) > _RANK or len(rs) > _RANK:
        moved = dense(x.permute(kept + reduced))
        fold(which, moved, range(len(kept), x.dim()), out, state, places)
        return
    count = math.prod(x.shape[d] for d in reduced)
    outputs = out.numel()
    c_state = programs.C_TYPE[state]
    shares = _shares(outputs, count)
    dims_and_steps = [*_padded(ns, 1), *_padded(rs, 1), *_padded(n_steps[0], 0), *_padded(r_steps[0], 0)]
    if count == 0:
        dims_and_steps[_RANK : 2 * _RANK] = [0, 1]
    source: list[Any] = [storage.buffer(x), x.storage_offset()]
    target: list[Any] = [storage.buffer(out), out.storage_offset()]
    if what.place and places is not None:
        target += [storage.buffer(places), places.storage_offset()]
    if shares > 1:
        length = -(-count // shares)
        parts = storage.empty([outputs * shares], state)
        middle: list[Any] = [storage.buffer(parts), 0]
        spots = None
        if what.place:
            spots = storage.empty([outputs * shares], torch.int64)
            middle += [storage.buffer(spots), 0]
        _launch(_source(what, c_state, x.dtype, out.dtype, True, False), f"{which}_{c_state}_shares", source + middle,
                count, outputs, shares, length, dims_and_steps)  # fmt: skip
        source = [storage.buffer(parts), 0]
        if spots is not None:
            source.append(storage.buffer(spots))
        dims_and_steps = [1, outputs, 1, shares, 0, shares, 0, 1]
        first, length = False, shares
    else:
        first, length = True, count
    _launch(_source(what, c_state, x.dtype, out.dtype, first, True), f"{which}_{c_state}", source + target,
            count, outputs, 1, length, dims_and_steps)  # fmt: skip


def _launch(
    source: str, name: str, buffers: list[Any], count: int, outputs: int, shares: int, length: int, rest: Any
) -> None:
    size = (-(-outputs * shares // _GROUP) * _GROUP,)
    queue.launch(programs.build(source, name), size, (_GROUP,), *buffers, count, outputs, shares, length, *rest)


def _shares(outputs: int, count: int) -> int:
    """How many items share one output: enough for every core, none with fewer than 256 elements."""
    wanted = -(-int(device.max_compute_units) * 8 * _GROUP // outputs)
    return max(1, min(wanted, count // 256, 4096))


def _padded(values: list[int], filler: int) -> list[int]:
    return [filler] * (_RANK - len(values)) + values


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
def sum_out(self: Tensor, dim: Dims, keepdim: bool = False, *, dtype: Any = None, out: Tensor) -> Tensor:
    """Sum over dimensions."""
    fold("sum", self, normalise(dim, self.dim()), out, _state(self.dtype, out.dtype))
    return out


@op("mean.out")
def mean_out(self: Tensor, dim: Dims, keepdim: bool = False, *, dtype: Any = None, out: Tensor) -> Tensor:
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
def prod_out(self: Tensor, dim: int, keepdim: bool = False, *, dtype: Any = None, out: Tensor) -> Tensor:
    """Product over one dimension."""
    fold("prod", self, normalise(dim, self.dim()), out, _state(self.dtype, out.dtype))
    return out


@op("nansum.out")
def nansum_out(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor) -> Tensor:
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
    self: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor
) -> Tensor:
    """Norms of order 0, 1, 2 and infinity over dimensions."""
    if float(ord) not in _NORMS:
        raise NotNative
    fold(_NORMS[float(ord)], self, normalise(dim, self.dim()), out, _state(self.dtype, out.dtype))
    return out


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
