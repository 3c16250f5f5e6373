"""Fixes of sums of a loop: several of them are one."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.patterns.numbers import python_number
from syncscope.codemod.patterns.totals import Addition, Summed
from syncscope.codemod.together import together
from syncscope.model.finding import Fix, Safety

IN_FLOAT32 = ", and added up in float32: the last bits may differ"


class Total(NamedTuple):
    """The fix of one sum, whatever is added up beside it."""

    name: str
    fix: Fix
    more: tuple[str, ...] = ()  # what else must hold
    in_float32: bool = False  # where the device may have no float64, in which Python adds up


def all_of(totals: list[Total]) -> Fix:
    """One fix of several sums of a loop: as long as one of them is read there, the host waits."""
    fix = together([each.fix for each in totals])
    if fix.safety is Safety.SAFE:
        return fix
    *names, last = dict.fromkeys(each.name for each in totals)
    where = f"tensors inside the loop{IN_FLOAT32 * any(each.in_float32 for each in totals)}"
    more = dict.fromkeys(condition for each in totals for condition in each.more)
    return replace(fix, terms=(f"{', '.join(names)} and {last} are {where}", *more))


def musts_of(function: Function, tensor: ast.expr, added: Addition, sum_of: Summed) -> tuple[str, ...]:
    """What must hold for the sum to be the same, and where it may differ all the same."""
    whole, counted, factor = sum_of.whole, sum_of.counted, added.factor
    musts = []
    if whole and counted is not None:
        musts.append(f"{function.file.quote(counted)} must hold whole numbers")
    if not whole and not sum_of.surely:
        musts.append(f"{function.file.quote(tensor)} must be real")
    if "/" in added.template:
        musts.append("a GPU divides by a number less exactly than Python, in the last bit")
    if "**" in added.template:
        musts.append("a power may differ in its last bit")
    if factor is not None and not python_number(function, factor):
        musts.append(f"{function.file.text(factor)} must be a number of Python")
    return tuple(musts)
