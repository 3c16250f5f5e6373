"""Fixes beside waits that stay: where as many of a function's waits stay as go, a step takes as long as before, nearly.

The device still runs empty wherever the host waits in the same pass, and what could be asked for earlier is little. A fix of
one wait of two is a line to be read and reviewed for what nobody measures; one of three of four is another matter. What a
called function waits for counts as if it stood there, and so does what waits around each call of a function, beside fixes that
need a look: a safe one is soon made.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from syncscope.codemod.callees import callee
from syncscope.codemod.enclosure import LOOPS
from syncscope.linter.overlaps import Overlaps
from syncscope.linter.source import DEEPEST
from syncscope.linter.worth import by_default
from syncscope.linter.worth.among_waits import FixAmongWaits, counts
from syncscope.linter.worth.edits import holds, written_again
from syncscope.linter.worth.idle import asked_for
from syncscope.linter.worth.other_waits import PASSES
from syncscope.linter.worth.ways import REPEATED, arms_around
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.model.heat import FOLLOWS, Reason
from syncscope.model.ops import VALUES, Op
from syncscope.rules import Function, View

_Place = tuple[ast.AST, ast.AST]  # a function, and the loop over steps in it, or the function again
_MANY, _DEEPEST = 4, 2  # as how many waits one in a loop counts, and in how many loops within one another
_FARTHEST = 3  # calls within calls that are followed
_SELDOM = frozenset((Reason.SOMETIMES, Reason.DELAYED, Reason.UNGIVEN, Reason.RARE, Reason.CHECKED))
_PASSES = PASSES | {Reason.LOOP}
_NEEDED = frozenset((Op.CONDITION, Op.CPU, Op.NUMPY, Op.ASARRAY))
"""What waits for a value that is needed there: in another file, where nobody asks what mends it, all the same."""


class _Wait(NamedTuple):
    """A wait that stays: where it is, as a fix beside it says, what of the function comes by it, and how often in a pass."""

    said: str
    node: ast.AST
    weight: int


def as_often(cases: Sequence[FixAmongWaits], states: Mapping[int, Finding], view: View) -> dict[Fix, str]:
    """Why steps gain little by some of these fixes: as many waits stay in the same passes as go. `states` has what is said of
    each site, by its `id`."""
    made = {
        case.fix: own
        for case in cases
        if case.fix.safety is not Safety.SUGGEST
        if (own := [s for f, s in zip(case.findings, case.sites, strict=False) if f.heat.whole])
    }
    places: dict[_Place, dict[Fix, list[Site]]] = defaultdict(dict)
    for fix, own in made.items():
        around = {_place(view.function(site), site, states) for site in own}
        if len(around) == 1:
            places[around.pop()][fix] = own
    mended = {id(site) for own in made.values() for site in own}
    left = {at: said for at, said in states.items() if at not in mended}
    found: dict[Fix, str] = {}
    for (_, passes), fixes in places.items():
        function = view.function(next(iter(fixes.values()))[0])
        gone = Overlaps((edit.span, edit) for fix in fixes for edit in fix.edits)
        staying = [
            _Wait(f"line {each.place.line}", each.node, _weight(function, each.node, passes))
            for each in function.sites
            if _stays(each, left, function, passes)
            and all(written_again(edit, each, view.code) for edit in gone.of(each.span))
        ]
        called = list[_Wait]()
        if any(fix.safety is not Safety.SAFE for fix in fixes):
            called += _in_calls(function, passes, left, view)
            called += _around_calls(function, left, view) if passes is function.scope else ()
        if staying or called:
            found |= _few(fixes, staying, called, function, passes)
    return found


def _in_calls(
    function: Function, passes: ast.AST, left: Mapping[int, Finding], view: View, depth: int = 1
) -> Iterator[_Wait]:
    """The waits that stay in the functions that one calls, and in those that these call, as far as they are sure to be come
    by there."""
    for call in function.every(ast.Call):
        if function.file.callers.get(call, function.file.tree) is not function.scope:
            continue
        called = callee(view, function, call) if passes in function.around(call) else None
        if called is None or called is function or called.depth > DEEPEST:
            continue
        around = _loops(function, call, passes)
        for site in called.sites:
            if arms_around(called, site.node):
                continue
            if _stays_elsewhere(site) if called.elsewhere else _stays(site, left, called, called.scope):
                where = f"line {site.place.line}" + f" of {Path(site.place.path).name}" * called.elsewhere
                yield _Wait(where, call, _often(around + _loops(called, site.node, called.scope)))
        if depth < _FARTHEST:
            for wait in _in_calls(called, called.scope, left, view, depth + 1):
                if not arms_around(called, wait.node):
                    yield _Wait(wait.said, call, max(wait.weight, _often(around)))


def _stays_elsewhere(site: Site) -> bool:
    """Whether a wait in another file is sure, and for a value that is needed there, or asked for as a number."""
    needed = site.op in _NEEDED or (site.op in VALUES and asked_for(site))
    return needed and counts(site) and site.heat.reason not in FOLLOWS | _SELDOM


def _around_calls(function: Function, left: Mapping[int, Finding], view: View) -> Sequence[_Wait]:
    """The waits that stay around the calls of a function that its file alone makes, of that call around which the fewest do."""
    scope = function.scope
    if not isinstance(scope, ast.FunctionDef):
        return ()
    own = scope.name.startswith("_") or view.class_around(scope) is not None
    found: list[list[_Wait]] = []
    for call in view.calls.get(scope.name, ()) if own else ():
        caller = view.of(view.callers.get(call, view.tree))
        if caller is function or caller.depth > DEEPEST or callee(view, caller, call) is not function:
            return ()
        passes = caller.loop(call) or caller.scope
        beside = [
            _Wait(f"line {each.place.line}", each.node, _weight(caller, each.node, passes))
            for each in caller.sites
            if _stays(each, left, caller, passes)
        ]
        beside += (each for each in _in_calls(caller, passes, left, view) if each.node is not call)
        found.append([each for each in beside if _may_meet(each.node, call, caller)])
    fewest = min(found, key=lambda waits: sum(each.weight for each in waits), default=[])
    return [each._replace(node=scope) for each in fewest]


def _few(
    fixes: Mapping[Fix, Sequence[Site]],
    staying: Sequence[_Wait],
    called: Sequence[_Wait],
    function: Function,
    passes: ast.AST,
) -> dict[Fix, str]:
    """Those of the fixes in some passes beside which as much stays there, or in what is `called`, as all of them mend."""
    found: dict[Fix, str] = {}
    for fix, own in fixes.items():
        around = staying if fix.safety is Safety.SAFE else (*staying, *called)
        beside = [each for each in around if any(_may_meet(each.node, site.node, function) for site in own)]
        gone = 0
        for other, sites in fixes.items():
            met = [site for site in sites if any(_may_meet(site.node, each.node, function) for each in own)]
            gone += sum(_weight(function, site.node, passes) for site in met)
            gone -= _left(other, met[0], function, passes) if met else 0
        if beside and gone <= sum(each.weight for each in beside):
            found[fix] = f"{beside[0].said} waits as often, and stays"
    return found


def _weight(function: Function, node: ast.AST, passes: ast.AST) -> int:
    """How often a wait comes by in a pass, as far as loops tell."""
    return _often(_loops(function, node, passes))


def _often(loops: int) -> int:
    return int(_MANY ** min(_DEEPEST, loops))


def _left(fix: Fix, site: Site, function: Function, passes: ast.AST) -> int:
    """How often what is left of the waits that a fix mends, at one of which it is asked, comes by in a pass."""
    statement, loop = function.statement(site.node), function.loop(site.node)
    if statement is None or not fix.left:
        return 0
    if loop is not None and any(not holds(function.file.span(loop), edit.span) for edit in fix.edits):
        return fix.left if loop is not passes else 0
    return fix.left * _weight(function, statement, passes)


def _loops(function: Function, node: ast.AST, passes: ast.AST) -> int:
    """In how many loops and comprehensions a node stands within what makes passes."""
    number, inner = 0, node
    for outer in function.around(node):
        if outer is passes:
            break
        number += isinstance(outer, REPEATED) or (isinstance(outer, LOOPS) and inner in outer.body)
        inner = outer
    return number


def _place(function: Function, site: Site, states: Mapping[int, Finding]) -> _Place:
    """The function around a wait, and the loop in it whose passes are steps; the function itself where none is."""
    said = states.get(id(site))
    loop = function.loop(site.node) if said is not None and said.heat.reason in _PASSES else None
    return function.scope, loop if loop is not None else function.scope


def _stays(site: Site, left: Mapping[int, Finding], function: Function, passes: ast.AST) -> bool:
    """Whether a wait within what makes passes is sure, waits for what is queued, and is mended by nothing that is made."""
    said = left.get(id(site))
    if said is None or not counts(said) or said.heat.reason in FOLLOWS | _SELDOM:
        return False
    if passes not in function.around(site.node):
        return False
    return not any(judge(said, site, function) for judge in by_default.JUDGES)


def _may_meet(node: ast.AST, other: ast.AST, function: Function) -> bool:
    """Whether one call may come by both of two waits: they stand in no two arms of one test."""
    arms = dict(arms_around(function, node))
    return all(arms.get(test, second) is second for test, second in arms_around(function, other))
