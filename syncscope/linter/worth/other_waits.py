"""Waits beside those that a fix mends, which stay: as long as the host waits there, a step gains little by it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscope.codemod.drained import drained_by, followed_by
from syncscope.linter.config import LEAST
from syncscope.linter.worth.among_waits import FixAmongWaits, counts, is_left
from syncscope.linter.worth.ways import REPEATED, waits_beside
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Finding, Safety, Way
from syncscope.model.heat import IN_TRAINING, Reason
from syncscope.model.ops import Family, Op
from syncscope.rules import Function

PASSES = frozenset((*IN_TRAINING, Reason.LOADER))
"""Of what stands in the loop over steps itself."""
_FOR_A_PASS = frozenset((Family.READ, Family.EXPLICIT))
"""What waits for all that a pass has asked for so far."""


def right_after(case: FixAmongWaits) -> int:
    """The line of a wait that stays, and follows what is copied, or the last of several reads that are joined; 0: none."""
    fix, sites = case.fix, case.sites
    copies = fix.safety is Safety.UNSAFE and len(sites) == 1 and sites[0].op.family is Family.COPY
    if not copies and fix.way is not Way.JOINS:
        return 0
    after = case.next_to(followed_by(case.view, sites[-1]))
    return after[0].place.line if after is not None and is_left(after[1]) else 0


def after_check(case: FixAmongWaits) -> int:
    """The line of a check that goes by hand alone, and after which nothing is in flight; 0: none."""
    before = case.next_to(drained_by(case.view, case.sites[0]))
    offered = before and (before[1].fix or before[1].advice)
    return before[0].place.line if before and offered and offered.way is Way.CHECKS else 0


def in_comprehension_before(case: FixAmongWaits) -> int:
    """The line before a list that is read at once, where each of its passes waits likewise, and goes on doing so; 0: none."""
    if case.fix.way is not Way.LISTS:
        return 0
    function, site = case.function, case.sites[0]
    statement = function.statement(site.node)
    block = function.block(statement) if statement is not None else []
    at = block.index(statement) if statement in block else 0
    if not at or not _in_comprehension(function, site):
        return 0
    before = block[at - 1]
    looped = isinstance(before, (ast.For, ast.While))
    stays = (
        other.place.line
        for other, said in case.told(function.sites_in(before))
        if counts(said) and is_left(said) and other.op.family is Family.READ
        if looped or _in_comprehension(function, other)
    )
    return next(stays, 0)


def _in_comprehension(function: Function, site: Site) -> bool:
    return any(isinstance(each, REPEATED) for each in function.around(site.node))


def in_passes_of_loop(case: FixAmongWaits) -> int:
    """The line in which each pass of a loop waits for another number than the one that is read before it; 0: none."""
    if case.fix.way is not Way.READS_BEFORE:
        return 0
    return next((line for site in case.sites for line in _each_pass_reads(case, site)), 0)


def _each_pass_reads(case: FixAmongWaits, site: Site) -> Iterator[int]:
    function = case.view.function(site)
    loop = function.loop(site.node)
    if loop is None:
        return
    for other, said in case.told(function.sites):
        if said.confidence < LEAST["medium"] or said.fix == case.fix or other.op.family is not Family.READ:
            continue
        if function.loop(other.node) is loop and is_left(said):
            chosen = next((n for n in function.around(other.node) if isinstance(n, ast.IfExp)), None)
            if not function.sometimes(chosen or other.node, loop):
                yield other.place.line


def beside_what_is_noted(case: FixAmongWaits) -> bool:
    """Whether the statement in which a tensor is noted reads another one, which nothing mends: `float(aug_loss)`."""
    return case.fix.way is Way.NOTES and any(_reads_beside(case, site) for site in case.sites)


def _reads_beside(case: FixAmongWaits, site: Site) -> bool:
    function = case.view.function(site)
    statement = function.statement(site.node)
    if statement is None:
        return False
    mended = {id(other.node) for other, said in case.told(function.sites_in(statement)) if not is_left(said)}
    for node in (each for each in ast.walk(statement) if each is not site.node):
        match node:
            case ast.Call(func=ast.Attribute(value=read, attr="item"), args=[], keywords=[]):
                pass
            case ast.Call(func=ast.Name(id="float" | "int"), args=[ast.Name() | ast.Attribute() as read], keywords=[]):
                pass
            case _:
                continue
        if id(node) not in mended and function.fact(read).kind in (Value.UNKNOWN, Value.TENSOR):
            return True
    return False


def beside_written_number(case: FixAmongWaits) -> bool:
    """Whether beside each number that is written something waits whose own fix steps gain little by."""
    return all(site.op is Op.NUMBER_WRITE and _waits_beside(case, site) for site in case.sites)


def _waits_beside(case: FixAmongWaits, site: Site) -> bool:
    others = case.told(waits_beside(case.view.function(site), site))
    return any(said.fix in case.idle and counts(said) for _, said in others)


def in_each_pass(case: FixAmongWaits) -> int:
    """The line that each pass of a training loop waits for anyway, where a fix of a read or of a copy in it changes what is to
    be reviewed: the host waits for the whole pass all the same; 0: none.
    """
    sites = case.sites
    if case.fix.safety is not Safety.UNSAFE or not all(map(_once_a_pass, case.findings, sites)):
        return 0
    function = case.function
    loop = function.loop(sites[0].node)
    if loop is None or any(site.op.family not in (Family.READ, Family.COPY) for site in sites):
        return 0
    for other, said in case.told(function.sites):
        if not counts(said) or other.op.family not in _FOR_A_PASS or other in sites:
            continue
        stays = is_left(said) or said.fix in case.idle
        if stays and loop in function.around(other.node) and not function.sometimes(other.node, loop):
            return other.place.line
    return 0


def _once_a_pass(finding: Finding, site: Site) -> bool:
    """Whether something waits once in each pass of a training loop; the parts of a batch may be sent one by one."""
    return finding.heat.reason in PASSES and (not finding.repeats or site.op.family is Family.COPY)
