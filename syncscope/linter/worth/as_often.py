"""Fixes beside waits that stay: unless many times as many go as stay, a step takes as long as before, nearly.

The device still runs empty wherever the host waits in the same pass, and what could be asked for earlier is little: a fix of
one wait of two, safe as it may be, is a line to be read and reviewed for what nobody measures. What a called function waits for
counts as if it stood there, and so does what waits around each call of a function, and around those of its callers.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from syncscope.codemod.callees import callee
from syncscope.codemod.enclosure import LOOPS
from syncscope.heat.by_name import by_name
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
from syncscope.model.heat import FOLLOWS, SILENT, Heat, Reason
from syncscope.model.ops import VALUES, Op
from syncscope.project.conventions import PARTLY
from syncscope.project.syntax import name_of
from syncscope.rules import Function, View

_Place = tuple[ast.AST, ast.AST]  # a function, and the loop over steps in it, or the function again
_MANY, _DEEPEST = 8, 2  # as how many waits one in a loop counts, and in how many loops within one another
_ENOUGH = 4  # times as many waits have to go as stay for a step to be shorter, whatever the device still runs empty for
_FARTHEST = 3  # calls within calls that are followed
_SELDOM = frozenset((Reason.SOMETIMES, Reason.DELAYED, Reason.UNGIVEN, Reason.RARE, Reason.CHECKED))
_PASSES = PASSES | {Reason.LOOP}
_APPLIES = frozenset(("map", "multi_apply", "starmap"))
_NEEDED = frozenset((Op.CONDITION, Op.CPU, Op.NUMPY, Op.ASARRAY, Op.NONZERO, Op.ARGWHERE, Op.UNIQUE, Op.NMS))
"""What waits for a value, or for positions, that are needed there: in another file, where nobody asks what mends it, all the
same."""


class _Wait(NamedTuple):
    """A wait that stays: where it is, as a fix beside it says, what of the function comes by it, how often in a pass, and
    whether in each."""

    said: str
    node: ast.AST
    weight: int
    sure: bool = True


def as_often(cases: Sequence[FixAmongWaits], states: Mapping[int, Finding], view: View) -> dict[Fix, str]:
    """Why steps gain little by some of these fixes: too many waits stay in the same passes for what goes. `states` has what is
    said of each site, by its `id`."""
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
        staying += _in_calls(function, passes, left, view)
        staying += _around_calls(function, left, view, ()) if passes is function.scope else ()
        if staying:
            found |= _few(fixes, staying, function, passes)
    return found


def _in_calls(
    function: Function, passes: ast.AST, left: Mapping[int, Finding], view: View, depth: int = 1
) -> Iterator[_Wait]:
    """The waits that stay in the functions that one calls, and in those that these call, as far as they are sure to be come
    by there."""
    for call in function.every(ast.Call):
        if function.file.callers.get(call, function.file.tree) is not function.scope:
            continue
        called = _run_by(view, function, call) if passes in function.around(call) else None
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


def _run_by(view: View, function: Function, call: ast.Call) -> Function | None:
    """What a call runs: a function, or one that is handed to what calls it for each of several: `multi_apply(self.one, x)`."""
    if call.args and name_of(call.func) in _APPLIES:
        return callee(view, function, ast.Call(call.args[0], [], []))
    return callee(view, function, call, modules=True)


def _stays_elsewhere(site: Site) -> bool:
    """Whether a wait in another file is sure, and for a value that is needed there, or asked for as a number."""
    needed = site.op in _NEEDED or (site.op in VALUES and asked_for(site))
    return needed and counts(site) and site.heat.reason not in FOLLOWS | _SELDOM


def _around_calls(
    function: Function, left: Mapping[int, Finding], view: View, within: tuple[Function, ...]
) -> Sequence[_Wait]:
    """The waits that stay around the calls of a function that steps make in its file, of that call around which the fewest do,
    and around those of its callers; none where a call by its name may mean another."""
    scope = function.scope
    if not isinstance(scope, ast.FunctionDef) or len(within) > _FARTHEST:
        return ()
    calls = _calls(view).get(id(scope), [])
    known = {id(call) for _, call in calls}
    if scope.name != "forward" and any(id(call) not in known for call in view.calls.get(scope.name, ())):
        return ()
    found: list[list[_Wait]] = []
    callers = [each for each in calls if each[0] is not function and each[0] not in within]
    steps = [each for each in callers if _runs(each[0], view)]
    for caller, call in steps or [each for each in callers if _may_run(each[0], view)]:
        passes = caller.loop(call) or caller.scope
        beside = [
            _Wait(f"line {each.place.line}", each.node, _weight(caller, each.node, passes))
            for each in caller.sites
            if _stays(each, left, caller, passes)
        ]
        beside += (each for each in _in_calls(caller, passes, left, view) if each.node is not call)
        beside = _met(beside, [call], caller)
        if passes is caller.scope:
            beside += _around_calls(caller, left, view, (*within, function))
        found.append(beside)
    fewest = min(found, key=_counted, default=[])
    return [each._replace(node=scope) for each in fewest]


def _may_run(caller: Function, view: View) -> bool:
    """Whether a function may run in a step: something that waits there does, or its name and that of its class say so."""
    return any(site.heat.hot for site in caller.sites) or _named(caller, view).hot


def _runs(caller: Function, view: View) -> bool:
    """Whether it is a step, or part of one, by its name: `forward`, a loss."""
    said = _named(caller, view)
    return said.hot and said.reason not in PARTLY


def _named(caller: Function, view: View) -> Heat:
    scope = caller.scope
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return SILENT
    cls = view.class_around(scope)
    methods = [each.name for each in cls.body if isinstance(each, ast.FunctionDef)] if cls is not None else []
    return by_name(scope.name, cls.name if cls is not None else "", methods)


def _calls(view: View) -> dict[int, list[tuple[Function, ast.Call]]]:
    """The calls in a file of functions that it defines, by the `id` of what they run, with the function around each."""
    return view.once("calls of its functions", lambda: _resolved(view))


def _resolved(view: View) -> dict[int, list[tuple[Function, ast.Call]]]:
    found: dict[int, list[tuple[Function, ast.Call]]] = defaultdict(list)
    for call, around in view.callers.items():
        caller = view.of(around)
        called = callee(view, caller, call, modules=True) if caller.depth <= DEEPEST else None
        if called is not None and not called.elsewhere and called.depth <= DEEPEST:
            found[id(called.scope)].append((caller, call))
    return found


def _few(
    fixes: Mapping[Fix, Sequence[Site]],
    staying: Sequence[_Wait],
    function: Function,
    passes: ast.AST,
) -> dict[Fix, str]:
    """Those of the fixes in some passes beside which so much stays that what all of them mend is not many times as much."""
    found: dict[Fix, str] = {}
    for fix, own in fixes.items():
        beside = _met(staying, [site.node for site in own], function)
        gone = 0
        for other, sites in fixes.items():
            met = [site for site in sites if any(_may_meet(site.node, each.node, function) for each in own)]
            gone += sum(_weight(function, site.node, passes) for site in met)
            gone -= _left(other, met[0], function, passes) if met else 0
        if beside and gone <= _counted(beside):
            found[fix] = f"{beside[0].said} waits in the same step, and stays"
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


def _met(waits: Sequence[_Wait], nodes: Sequence[ast.AST], function: Function) -> list[_Wait]:
    """Those of some waits that one call may come by that comes by one of these nodes; surely, unless a test lies between."""
    ways = [dict(arms_around(function, node)) for node in nodes]
    found = []
    for wait in waits:
        arms = dict(arms_around(function, wait.node))
        meets = [way for way in ways if all(way.get(test, second) is second for test, second in arms.items())]
        if meets:
            sure = wait.sure and any(arms.keys() <= way.keys() for way in meets)
            found.append(wait._replace(sure=sure))
    return found


def _counted(waits: Sequence[_Wait]) -> int:
    """How many waits have at least to go for a step to be shorter: many times as many as are sure to stay."""
    return sum(wait.weight * (_ENOUGH if wait.sure else 1) for wait in waits)


def _may_meet(node: ast.AST, other: ast.AST, function: Function) -> bool:
    """Whether one call may come by both of two waits: they stand in no two arms of one test."""
    arms = dict(arms_around(function, node))
    return all(arms.get(test, second) is second for test, second in arms_around(function, other))
