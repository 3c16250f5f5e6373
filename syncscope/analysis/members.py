"""Which ranks take part in a collective, as far as its recording says so: of its kernel, of the process groups that there are,
or by the arguments of the operator that asked for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from math import prod
from typing import Any

import numpy as np

from syncscope.analysis.nesting import Nesting
from syncscope.model.detail import Detail
from syncscope.model.trace import Kind, Meta, Trace

NUMBER = re.compile(r"[0-9]{1,9}")
ASKS = re.compile(r"^(?:c10d::|record_param_comms$)")
COMMS = "record_param_comms"
PARTED = re.compile(r"^c10d::_?(?:allgather|reduce_scatter)_base_?$")
"""Operators that take a tensor of all ranks and one of each: of how many ranks these are is by how much larger the one is."""


class SaidByOperators:
    """What the operators around the launches of collectives say of them, where their kernels do not."""

    def __init__(self, trace: Trace) -> None:
        asks = np.array([bool(ASKS.search(name)) for name in trace.names], bool)
        self._trace, self._asks = trace, trace.take(asks[trace.name]) if len(asks) else trace
        self._around = Nesting(self._asks, Kind.OP)

    def known(self, row: int, call: int) -> Detail:
        """What is known of the kernel that a call launched, -1 for none."""
        known, trace = self._trace.known(row), self._trace
        if call < 0 or (known.group_ranks and known.elements is not None):
            return known
        at = int(trace.start[call])
        around = self._around.around(int(trace.lane[call]), at, at)
        names = [self._asks.names[self._asks.name[row]] for row in around]
        alike = not any("alltoall" in name for name in names)
        for name, asked in zip(names, around, strict=True):
            known = _with(known, name, self._asks.known(asked), alike)
        return known


def _with(known: Detail, name: str, asked: Detail, alike: bool) -> Detail:
    """The same with what the arguments of an operator add to it; how much it sends only where that is `alike` on all ranks."""
    sizes = [_elements(dims) for dims in asked.input_dims[:2]]
    if PARTED.search(name) and len(sizes) == 2 and min(sizes):
        known = replace(known, group_size=known.group_size or max(sizes) // min(sizes))
        sizes = sizes[1:]
    if known.elements is None and sizes and sizes[0] and alike:
        known = replace(known, elements=sizes[0])
    if not known.group_ranks and (ranks := _range(asked.concrete_inputs[-3:] if name == COMMS else ())):
        known = replace(known, group_ranks=str(ranks), group_size=len(ranks))
    return known


def _range(told: Sequence[Any]) -> list[int]:
    """The ranks that `record_param_comms` is given as the first, how far apart they are, and how many; none where it is not."""
    if len(told) != 3 or not all(isinstance(each, str) and each.isdecimal() and len(each) < 6 for each in told):
        return []
    first, stride, count = map(int, told)
    return [first + n * stride for n in range(count)] if stride else []


def _elements(dims: Any) -> int:
    """How many elements a tensor has, or a list of tensors."""
    if not isinstance(dims, list) or not dims:
        return 0
    if all(isinstance(size, int) for size in dims):
        return prod(dims)
    return sum(_elements(each) for each in dims)


def group_of(known: Detail, meta: Meta) -> str | None:
    """The group of a collective in words, alike on all its ranks and on no others: its name, and which ranks it has where that
    are not all; None where nothing is said of it.

    Of ranks that split a group each calls its own part by the same name, and libraries that call NCCL themselves name none.
    """
    name, world = known.process_group, int(meta.get("world_size") or 0)
    groups = meta.get("groups") or {}
    ranks = tuple(map(int, NUMBER.findall(known.group_ranks))) or tuple(groups.get(name, ()))
    if not ranks and not name and len(several := {each for each in map(tuple, groups.values()) if len(each) > 1}) == 1:
        (ranks,) = several  # there is no other
    if world and (len(ranks) == world or known.group_size == world):
        return name
    return " ".join(filter(None, (name, in_short(ranks)))) or None


def in_short(ranks: Sequence[int]) -> str:
    """Rank numbers as ranges: `0-3`, `0-12/4` where they are 4 apart, `0,5`."""
    steps = [b - a for a, b in pairwise(ranks)]
    if len(ranks) > 2 and len(set(steps)) == 1 and steps[0] > 1:
        return f"{ranks[0]}-{ranks[-1]}/{steps[0]}"
    runs = [[n for _, n in run] for _, run in groupby(enumerate(ranks), lambda pair: pair[1] - pair[0])]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
