"""Reductions over any dimensions: a table of folds, and one template in two stages.

A fold is a state, how an element enters it, how two states meet, and what the result is. Few outputs with many elements each
are folded in shares first, then the shares are folded; many outputs go in one stage.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.device import device, fp64, is_gpu
from syncscope.kernels.elementwise import c_storage, compute_dtype, load, storable, store
from syncscope.kernels.generate.text import template
from syncscope.kernels.operators import NotNative
from syncscope.kernels.walks import collapse

TEAMS = is_gpu  # whether several items work on one output, as GPUs like it; else an item makes one or eight outputs
_TEAM_GROUP = 256
_GROUP = 16
_LANES = 8
_WAYS, _LONG = 8, 64  # states of an output that has so many elements
_PART = 64  # elements that enter a state before it is put to the others
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


_ADDED = "acc + other"
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
        Fold("sum", "0", "x", _ADDED),
        Fold("mean", "0", "x", _ADDED, "acc / count"),
        Fold("prod", "1", "x", "acc * other"),
        Fold("nansum", "0", "x != x ? 0 : x", _ADDED),
        Fold("amax", _LOWEST, "x", "acc > other || acc != acc ? acc : other"),
        Fold("amin", _HIGHEST, "x", "acc < other || acc != acc ? acc : other"),
        Fold("any", "0", "x != 0", "(acc != 0) | (other != 0)"),
        Fold("all", "1", "x != 0", "(acc != 0) & (other != 0)"),
        Fold("count_nonzero", "0", "x != 0", _ADDED),
        Fold("argmax", _LOWEST, "x", "", place=True, better=_MORE),
        Fold("argmin", _HIGHEST, "x", "", place=True, better=_LESS),
        Fold("max", _LOWEST, "x", "", place=True, better=_MORE),
        Fold("min", _HIGHEST, "x", "", place=True, better=_LESS),
        Fold("norm_0", "0", "x != 0", _ADDED),
        Fold("norm_1", "0", "x < 0 ? -x : x", _ADDED),
        Fold("norm_2", "0", "x * x", _ADDED, "sqrt(acc)"),
        Fold("norm_inf", "0", "x < 0 ? -x : x", "acc > other || acc != acc ? acc : other"),
        Fold("sum_of_squares", "0", "x * x", _ADDED),
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
    fold: Fold,
    state: str,
    inside: torch.dtype,
    outside: torch.dtype,
    first: bool,
    last: bool,
    lanes: int,
    ways: int,
    team: Team | None,
) -> str:
    """One stage. The first reads elements and the last writes results; between them lie states, and places if wanted.

    Without a team an item makes `lanes` neighbouring outputs: down the columns of a matrix it would otherwise fetch a line of
    the cache for each element. Or it makes one, from `ways` states.
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
    read = load(inside, "in", "spot", state) if first else "in[spot]"
    start = fold.start.replace("LOWEST", f"({low})").replace("HIGHEST", f"({high})")
    meet = (
        f"if (none || {fold.better}) {{ acc = other; at = other_at; none = 0; }}"
        if fold.place
        else f"acc = {fold.meet};"
    )
    place = "const long other_at = " + ("k" if first else "in_places[spot]") + "; " if fold.place else ""
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
    enter = f"const {state} x = {read}; const {state} other = {fold.enter if first else 'x'}; {place}{meet}"
    if team is None:
        body = _alone(fold, state, start, enter, lanes, ways)
    else:
        body = _in_team(fold, state, start, enter, meet, team)
    return f"""
__kernel void {fold.name}_{state}{"" if last else "_shares"}({", ".join(parameters)}) {{
{body}
        {" ".join(writes)}
    }}
}}
"""


_PLACE = "long at = 0x7fffffffffffffffL; int none = 1;"


def _alone(fold: Fold, state: str, start: str, enter: str, lanes: int, ways: int) -> str:
    """An item walks all elements of its outputs."""
    if max(lanes, ways) == 1:
        return template("fold_single")(state=state, start=start, enter=enter, place=_PLACE if fold.place else "")
    states = max(lanes, ways)

    def walk(step: str) -> str:
        here = "from + j" if lanes > 1 or step == "1" else f"from + j * {step}"
        each = f"const long spot = {here}; {state} acc = states[j]; {enter} states[j] = acc;"
        head = f"for (; k + {ways} <= stop; k += {ways}, from += {ways} * {step})"
        return f"{head}\n#pragma unroll\nfor (int j = 0; j < {states}; j++) {{ {each} }}"

    walks = walk("rs1")
    if ways > 1:
        last = f"const long spot = from; {state} acc = states[0]; {enter} states[0] = acc;"
        walks = f"if (rs1 == 1) {{ {walk('1')} }}\nelse {{ {walks} }}\nfor (; k < stop; k++, from += rs1) {{ {last} }}"
    wide = "double" if fold.meet == _ADDED and state == "float" and fp64 else state
    return template("fold_alone")(
        lanes=lanes,
        ways=ways,
        states=states,
        state=state,
        wide=wide,
        start=start,
        part=_PART * ways,
        walk=walks,
        meet=fold.meet,
    )


def _in_team(fold: Fold, state: str, start: str, enter: str, meet: str, team: Team) -> str:
    """`deep` items share an output."""
    next_ = 1 if team.along else team.wide
    places = f"__local long spots[{team.wide * team.deep}]; __local int nones[{team.wide * team.deep}];"
    where = (
        f"x = me / {team.deep}, y = me % {team.deep}" if team.along else f"x = me % {team.wide}, y = me / {team.wide}"
    )
    return template("fold_team")(
        state=state, wide=team.wide, deep=team.deep, where=where, start=start, enter=enter, next=next_, meet=meet,
        places=places if fold.place else "", place=_PLACE if fold.place else "",
        leave="spots[me] = at; nones[me] = none;" if fold.place else "",
        there=f" && !nones[me + half_ * {next_}]" if fold.place else "",
        other_place=f"const long other_at = spots[me + half_ * {next_}];" if fold.place else "",
    )  # fmt: skip


class Team(NamedTuple):
    """The shape of a work-group: outputs, items for each, and whether neighbours lie along what is folded."""

    wide: int
    deep: int
    along: bool


def _team(outputs: int, count: int, along: bool) -> Team:
    """A whole line of the cache at a time, and no more items for an output than it has work for."""
    deep = 1
    while deep < _TEAM_GROUP // (1 if along else 32) and deep * (4 if along else 16) < count:
        deep *= 2
    return Team(_TEAM_GROUP // deep, deep, along)


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
    lanes = _LANES if side_by_side and not what.place and not TEAMS else 1
    across = bool(ns and rs) and n_steps[0][-1] == 1 and r_steps[0][-1] != 1
    team = _team(outputs, count, not across) if TEAMS else None
    shares = _shares(outputs // lanes, count, team)
    dims_and_steps = [*_padded(ns, 1), *_padded(rs, 1), *_padded(n_steps[0], 0), *_padded(r_steps[0], 0)]
    if count == 0:
        dims_and_steps[_RANK : 2 * _RANK] = [0, 1]
    source: list[queue.Argument] = [storage.buffer(x), x.storage_offset()]
    target: list[queue.Argument] = [storage.buffer(out), out.storage_offset()]
    if what.place and places is not None:
        target += [storage.buffer(places), places.storage_offset()]
    if shares > 1:
        length = -(-count // shares)
        parts = storage.empty([outputs * shares], state)
        middle: list[queue.Argument] = [storage.buffer(parts), 0]
        spots = None
        if what.place:
            spots = storage.empty([outputs * shares], torch.int64)
            middle += [storage.buffer(spots), 0]
        ways = _ways(what, c_state, lanes, length)
        shared = _source(what, c_state, x.dtype, out.dtype, True, False, lanes, ways, team)
        _launch(
            shared, f"{which}_{c_state}_shares", source + middle, count, outputs, lanes, shares, length, dims_and_steps, team
        )  # fmt: skip
        source = [storage.buffer(parts), 0]
        if spots is not None:
            source.append(storage.buffer(spots))
        dims_and_steps = [1, outputs, 1, shares, 0, shares, 0, 1]
        first, length, lanes = False, shares, 1
        team = _team(outputs, shares, True) if TEAMS else None
    else:
        first, length = True, count
    text = _source(what, c_state, x.dtype, out.dtype, first, True, lanes, _ways(what, c_state, lanes, length), team)
    _launch(text, f"{which}_{c_state}", source + target, count, outputs, lanes, 1, length, dims_and_steps, team)


def _launch(
    source: str,
    name: str,
    buffers: list[queue.Argument],
    count: int,
    outputs: int,
    lanes: int,
    shares: int,
    length: int,
    rest: Sequence[int],
    team: Team | None,
) -> None:
    items = _GROUP if team is None else team.wide * team.deep
    rows = -(-(outputs // lanes * shares) // _GROUP) if team is None else -(-outputs // team.wide)
    size, group = (rows * items, 1 if team is None else shares), (items, 1)
    queue.launch(programs.build(source, name), size, group, *buffers, count, outputs, shares, length, *rest)


def _shares(outputs: int, count: int, team: Team | None) -> int:
    """How many items, or teams, share one output: enough for every core, none with fewer than 256 elements."""
    if team is not None:
        groups = -(-outputs // team.wide)
        wanted = min(int(device.max_compute_units) * 8 // groups, count // (team.deep * 16), 1024)
        return wanted if wanted > 2 else 1  # two are as long as one and the second launch
    wanted = -(-int(device.max_compute_units) * 8 * _GROUP // outputs)
    return max(1, min(wanted, count // 256, 4096))


def _ways(what: Fold, state: str, lanes: int, length: int) -> int:
    """States of one output. What is made of integers comes to the same in any order, which compilers know."""
    whole = state not in ("float", "double")
    return 1 if TEAMS or what.place or lanes > 1 or whole or length < _LONG else _WAYS


def _padded(values: list[int], filler: int) -> list[int]:
    return [filler] * (_RANK - len(values)) + values
