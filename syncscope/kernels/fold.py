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
from syncscope.kernels.elementwise import c_storage, collapse, compute_dtype, load, storable, store
from syncscope.kernels.operators import NotNative

_GROUP = 16
_LANES = 8
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
def _source(
    fold: Fold, state: str, inside: torch.dtype, outside: torch.dtype, first: bool, last: bool, lanes: int
) -> str:
    """One stage. The first reads elements and the last writes results; between them lie states, and places if wanted.

    An item makes `lanes` neighbouring outputs: down the columns of a matrix it would otherwise fetch a line of the cache for
    each element.
    """
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
    read = load(inside, "in", "from + lane", state) if first else "in[from]"
    start = fold.start.replace("LOWEST", f"({low})").replace("HIGHEST", f"({high})")
    enter = fold.enter if first else "x"
    if fold.place:
        state_declaration = "    long at = 0x7fffffffffffffffL;\n    int none = 1;"
        place = "k" if first else "in_places[from]"
        meet = f"const long other_at = {place}; if (none || {fold.better}) {{ acc = other; at = other_at; none = 0; }}"
    else:
        state_declaration = ""
        meet = f"acc = {fold.meet};"
    out_index = "out_at + o + lane" if last else "out_at + (o + lane) * shares + share"
    writes = []
    if writes_place_only:
        writes.append(f"out[{out_index}] = at;")
    elif last:
        writes.append(store(outside, "out", out_index, fold.result))
    else:
        writes.append(f"out[{out_index}] = acc;")
    if fold.place and not writes_place_only:
        writes.append(f"places[{out_index.replace('out_at', 'places_at')}] = at;")
    return f"""
__kernel void {fold.name}_{state}{"" if last else "_shares"}({", ".join(parameters)}) {{
    const uint i = get_global_id(0);
    if (i >= outputs / {lanes} * shares) return;
    const uint o = i / shares * {lanes}, share = i % shares;
    const uint o1 = o % n1, o0 = o / n1;
    const long base = in_at + (long)o0 * ns0 + (long)o1 * ns1;
    {state} states[{lanes}];
    for (int lane = 0; lane < {lanes}; lane++) states[lane] = {start};
{state_declaration}
    const uint begin = share * length, end = min(begin + length, (uint)(r0 * r1));
    uint k0 = begin / r1, k1 = begin % r1;
    for (uint k = begin; k < end;) {{
        const uint run = min(end - k, r1 - k1);
        long from = base + (long)k0 * rs0 + (long)k1 * rs1;
        for (const uint stop = k + run; k < stop; k++, from += rs1) {{
#pragma unroll
            for (int lane = 0; lane < {lanes}; lane++) {{
                {state} acc = states[lane];
                const {state} x = {read};
                const {state} other = {enter};
                {meet}
                states[lane] = acc;
            }}
        }}
        k0++;
        k1 = 0;
    }}
    for (int lane = 0; lane < {lanes}; lane++) {{
        const {state} acc = states[lane];
        {" ".join(writes)}
    }}
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
    if not out.is_contiguous() or not (places is None or places.is_contiguous()):
        plain, spots = (
            storage.empty(out.shape, out.dtype),
            None if places is None else storage.empty(out.shape, places.dtype),
        )
        fold(which, x, dims, plain, state, spots)
        out.copy_(plain)
        if places is not None:
            places.copy_(spots)
        return
    reduced, kept = list(dims), [d for d in range(x.dim()) if d not in set(dims)]
    ns, n_steps = collapse(tuple(x.shape[d] for d in kept), [tuple(x.stride(d) for d in kept)], sort=False)
    rs, r_steps = collapse(
        tuple(x.shape[d] for d in reduced), [tuple(x.stride(d) for d in reduced)], sort=not what.place
    )
    if len(ns) > _RANK or len(rs) > _RANK:
        moved = x.permute(kept + reduced).contiguous()
        fold(which, moved, range(len(kept), x.dim()), out, state, places)
        return
    count = math.prod(x.shape[d] for d in reduced)
    outputs = out.numel()
    c_state = programs.C_TYPE[state]
    side_by_side = bool(ns and rs) and ns[-1] % _LANES == 0 and n_steps[0][-1] == 1 and r_steps[0][-1] != 1
    lanes = _LANES if side_by_side and not what.place else 1
    shares = _shares(outputs // lanes, count)
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
        _launch(_source(what, c_state, x.dtype, out.dtype, True, False, lanes), f"{which}_{c_state}_shares", source + middle,
                count, outputs, lanes, shares, length, dims_and_steps)  # fmt: skip
        source = [storage.buffer(parts), 0]
        if spots is not None:
            source.append(storage.buffer(spots))
        dims_and_steps = [1, outputs, 1, shares, 0, shares, 0, 1]
        first, length, lanes = False, shares, 1
    else:
        first, length = True, count
    _launch(_source(what, c_state, x.dtype, out.dtype, first, True, lanes), f"{which}_{c_state}", source + target,
            count, outputs, lanes, 1, length, dims_and_steps)  # fmt: skip


def _launch(
    source: str,
    name: str,
    buffers: list[Any],
    count: int,
    outputs: int,
    lanes: int,
    shares: int,
    length: int,
    rest: Any,
) -> None:
    size = (-(-(outputs // lanes * shares) // _GROUP) * _GROUP,)
    queue.launch(programs.build(source, name), size, (_GROUP,), *buffers, count, outputs, shares, length, *rest)


def _shares(outputs: int, count: int) -> int:
    """How many items share one output: enough for every core, none with fewer than 256 elements."""
    wanted = -(-int(device.max_compute_units) * 8 * _GROUP // outputs)
    return max(1, min(wanted, count // 256, 4096))


def _padded(values: list[int], filler: int) -> list[int]:
    return [filler] * (_RANK - len(values)) + values
