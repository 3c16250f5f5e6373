"""What a step gains by a fix, in words: how many of its waits go."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from syncscope.codemod.evaluated import LEAVES
from syncscope.linter.source import DEEPEST
from syncscope.linter.worth import holds
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Safety, Stays
from syncscope.model.heat import Reason
from syncscope.rules import Function, View

ADDED_UP = frozenset(("add_up_on_device", "count_on_device"))
"""Rewrites of sums, which are read after the loop, or on some of its passes."""


def with_gains(findings: Sequence[Finding], sites: Sequence[Site | None], view: View) -> list[Finding]:
    """The findings, each fix with what it gains; of one that mends several, it is told of all of them together."""
    mended: dict[Fix, list[tuple[Finding, Site]]] = {}
    for finding, site in zip(findings, sites, strict=True):
        if finding.fix is not None and site is not None and finding.heat.whole:
            mended.setdefault(finding.fix, []).append((finding, site))
    said = {fix: gained(fix, places, view) for fix, places in mended.items() if fix.safety is not Safety.SUGGEST}
    return [f if f.fix not in said else replace(f, fix=replace(f.fix, gains=said[f.fix])) for f in findings]


def on_one_way(function: Function, nodes: Sequence[ast.AST]) -> int:
    """How many of these nodes of a function are met at most where it runs once: of two arms of an `if` one is gone into."""
    return _met([arms_around(function, node) for node in nodes], max)


def on_every_way(function: Function, nodes: Sequence[ast.AST]) -> int:
    """How many of them are met at least, wherever the arm is gone into that all of them stand in."""
    ways = [arms_around(function, node) for node in nodes]
    while all(ways) and len({way[0] for way in ways}) == 1:
        ways = [way[1:] for way in ways]
    return _met(ways, min)


_Arm = tuple[int, bool]  # the `id` of an `if`, and whether it is its second arm


def arms_around(function: Function, node: ast.AST) -> list[_Arm]:
    """The arms that a node stands in, from the outside in; behind an `if` that leaves it stands in the other one."""
    found: list[_Arm] = []
    inner = node
    for outer in function.around(node):
        if isinstance(inner, ast.stmt):
            found += _left_before(function, inner)
        if isinstance(outer, ast.If) and inner is not outer.test:
            found.append((id(outer), any(inner is each for each in outer.orelse)))
        elif isinstance(outer, ast.IfExp) and inner is not outer.test:
            found.append((id(outer), inner is outer.orelse))
        inner = outer
    return found[::-1]


def _left_before(function: Function, statement: ast.stmt) -> list[_Arm]:
    """The arms of the tests before a statement in its block that have to fail for it to be come to, the last first."""
    block = function.block(statement)
    before = block[: block.index(statement)] if statement in block else []
    tests = (each for each in before if isinstance(each, ast.If) and not each.orelse)
    return [(id(each), True) for each in tests if isinstance(each.body[-1], LEAVES)][::-1]


def _met(ways: Sequence[list[_Arm]], of: Callable[[int, int], int]) -> int:
    """How many nodes are met whose arms these are, where the fewer or the more `of` each two arms are gone into."""
    arms: dict[int, tuple[list[list[_Arm]], list[list[_Arm]]]] = {}
    for (choice, second), *rest in filter(None, ways):
        arms.setdefault(choice, ([], []))[second].append(rest)
    return sum(not way for way in ways) + sum(of(_met(one, of), _met(other, of)) for one, other in arms.values())


def gained(fix: Fix, places: Sequence[tuple[Finding, Site]], view: View) -> str:
    """What goes where a fix is made: `saves 2 of 3 waits in each step`, `waits once in each step, not for each element`."""
    finding, site = places[0]
    function = view.function(site)
    waits = on_one_way(function, [each.node for _, each in places])
    statement = function.statement(site.node) if function.depth <= DEEPEST else None
    loop = function.loop(statement) if statement is not None else None
    name = finding.function.rpartition(".")[2]
    where = f"in each call of {name}" if finding.heat.reason is Reason.MAYBE and name else "in each step"
    if loop is not None:
        where, around = "on each pass of the loop", function.file.span(loop)
        if fix.stays is not Stays.NONE and any(not holds(around, edit.span) for edit in fix.edits):
            return f"waits once, not {where}"
        if fix.rewrite in ADDED_UP and waits <= fix.left:
            return f"waits where the sum is shown, not {where}"
    if fix.stays is Stays.NONE:
        surely = on_every_way(function, [each.node for _, each in places])
        most = "up to " * (surely < waits)
        return f"saves {'a wait' if waits == 1 else f'{most}{waits} waits'} {where}"
    if waits > fix.left:
        return f"saves {waits - fix.left} of {waits} waits {where}"
    return f"waits once {where}, not for each element" if any(f.repeats for f, _ in places) else ""
