"""Fixes beside waits that stay: where as many of a function's waits stay as go, a step takes as long as before, nearly.

The device still runs empty wherever the host waits in the same pass, and what could be asked for earlier is little. A fix of
one wait of two is a line to be read and reviewed for what nobody measures; one of three of four is another matter.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence

from syncscope.codemod.enclosure import LOOPS
from syncscope.linter.config import LEAST
from syncscope.linter.gains import arms_around, on_one_way
from syncscope.linter.overlaps import Overlaps
from syncscope.linter.source import DEEPEST
from syncscope.linter.worth import REPEATED, written_again
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.model.heat import FOLLOWS, Reason
from syncscope.rules import Function, View

_Place = tuple[ast.AST, ast.AST]  # a function, and the loop or the comprehension in it that makes passes


def beside_what_stays(
    findings: Sequence[Finding],
    sites: Sequence[Site | None],
    states: Mapping[int, Finding],
    idle: Mapping[Fix, str],
    view: View,
) -> dict[Fix, str]:
    """Why steps gain little by these fixes, beside those that are `idle`: as many waits stay in the same passes as go."""
    told: dict[Fix, list[Site]] = defaultdict(list)
    for finding, site in zip(findings, sites, strict=True):
        if finding.heat.reason is Reason.OWN:  # whether it is worth a line is for whoever wrote the rule to say
            continue
        if site is not None and finding.fix is not None and finding.heat.whole and view.function(site).depth <= DEEPEST:
            told[finding.fix].append(site)
    made = {fix: own for fix, own in told.items() if fix.safety is not Safety.SUGGEST and fix not in idle}
    places: dict[_Place, dict[Fix, list[Site]]] = defaultdict(dict)
    for fix, own in made.items():
        around = {_place(view.function(site), site.node) for site in own}
        if len(around) == 1:
            places[around.pop()][fix] = own
    mended = {id(site): fix for fix, own in made.items() for site in own}
    found: dict[Fix, str] = {}
    for (_, passes), fixes in places.items():
        function = view.function(next(iter(fixes.values()))[0])
        gone = Overlaps((edit.span, edit) for fix in fixes for edit in fix.edits)
        staying = [
            each
            for each in function.sites
            if id(each) not in mended
            and _stays(each, states, function, passes)
            and all(written_again(edit, each, view.code) for edit in gone.of(each.span))
        ]
        for fix, own in fixes.items() if staying else ():
            beside = [each for each in staying if any(_runs_with(each, site, function) for site in own)]
            others = [site for each in fixes.values() for site in each]
            left = on_one_way(function, [each.node for each in beside])
            if beside and on_one_way(function, [site.node for site in others]) <= left:
                found[fix] = f"line {beside[0].place.line} waits as often, and stays"
    return found


def _place(function: Function, node: ast.AST) -> _Place:
    """The function around a node, and what makes passes around it; the function itself where nothing does."""
    inner = node
    for outer in function.around(node):
        if isinstance(outer, REPEATED) or (isinstance(outer, LOOPS) and inner in outer.body):
            return function.scope, outer
        inner = outer
    return function.scope, function.scope


def _stays(site: Site, states: Mapping[int, Finding], function: Function, passes: ast.AST) -> bool:
    """Whether a wait within what makes passes is sure, waits for what is queued, and is mended by nothing that is made."""
    said = states.get(id(site))
    if said is None or not said.hot or said.confidence < LEAST["medium"] or said.heat.reason in FOLLOWS:
        return False
    return said.heat.reason is not Reason.CHECKED and passes in function.around(site.node)


def _runs_with(site: Site, other: Site, function: Function) -> bool:
    """Whether a wait comes by whenever another does: in no arm that is not around that one, too."""
    optional = any(isinstance(each, (ast.BoolOp, ast.Lambda)) for each in function.around(site.node))
    return not optional and {*arms_around(function, site.node)} <= {*arms_around(function, other.node)}
