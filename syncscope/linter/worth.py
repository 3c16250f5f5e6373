"""Findings of hot code that nobody gains by reading more of than a line."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from syncscope.codemod.drained import drained_by, followed_by
from syncscope.linter.config import LEAST
from syncscope.linter.overlaps import Overlaps
from syncscope.linter.sizes import is_brought_along, is_size
from syncscope.linter.source import DEEPEST
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Finding, Safety
from syncscope.model.heat import Heat, Reason
from syncscope.model.ops import COPIES, COSTS_MORE, VALUES, Family, Op
from syncscope.model.source import Span
from syncscope.project.syntax import each_of, statements, walk
from syncscope.rules import Function, View

NOTED = VALUES | COPIES  # what they fetch is often only noted, and can be later
# what waits where nothing is in flight
DRAINED = {Reason.DRAINED, Reason.DRAINED_IN, Reason.ASKED_AFTER, Reason.SAME_STATEMENT, Reason.ENVIRONMENT}
REPEATED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NUMBERS = {"int", "float", "bool", "ndarray"}  # in what a function says that it gives, where nothing else is but these:
HELD = {*NUMBERS, *"str None list tuple dict List Tuple Dict Optional Sequence np numpy".split()}
SAMPLES = re.compile(r"(^|_)(sample|sampling|decode|decoding|search|select_actions?|get_actions?|simulate)(_|$)")


def is_idle(finding: Finding, site: Site, function: Function) -> bool:
    """Whether its function is not known to run in every step, the value is needed where it is, or asked for, and there is
    nothing to write instead. Any other number that is read can be read later, or by somebody else; and where a step comes by
    many times, that is the first thing to know.
    """
    if finding.fix is not None or finding.advice is not None or finding.heat.reason is Reason.OWN:
        return False
    if site.op in VALUES and is_brought_along(site, function):
        return True
    if finding.repeats or finding.heat.reason not in (Reason.MAYBE, Reason.CALLED):
        return False
    needed = site.op in (Op.CONDITION, Op.LINALG_CHECK) or site.op.family in (Family.SHAPE, Family.COPY)
    return needed or (site.op in VALUES and (asked_for(site) or is_size(site, function)))


def asked_for(site: Site) -> bool:
    """Whether a number is what a function is to give, or is drawn or decoded by it, for somebody who runs on the host."""
    function = site.function
    if function is None:
        return False
    gives = set(re.findall(r"\w+", ast.unparse(function.returns))) if function.returns is not None else set()
    if SAMPLES.search(function.name) or (gives & NUMBERS and gives <= HELD):
        return True
    given = (s.value for s in statements(function) if isinstance(s, ast.Return) and s.value is not None)
    around = (value for value in given if any(node is site.node for node in walk(value)))
    return any(not site.fact_of(value).is_tensor for value in around)


def beside_others(
    findings: Sequence[Finding], sites: Sequence[Site | None], states: Mapping[int, Finding], view: View
) -> list[Finding]:
    """The findings, in short where another wait right before or right after stays, or goes away with this one.

    `states` has what is said of each site, with its fix where it is shown. Of waits that stand side by side one is told whole.
    """
    pairs = [(f, s) for f, s in zip(findings, sites, strict=True) if s is not None and f.heat.whole]
    pairs = [(f, s) for f, s in pairs if f.heat.reason is not Reason.OWN and s.op not in COSTS_MORE]
    pairs = [(f, s) for f, s in pairs if view.function(s).depth <= DEEPEST]
    before: dict[int, Site] = {}  # by the `id` of a site: what has waited
    gone = replaced(states)
    for finding, site in pairs:
        others = (s for s in drained_by(view, site) if not goes_along(s, states, gone))
        found = next((s for s in others if leaves_nothing(finding, site, s, states, view)), None)
        if found is not None:
            before[id(site)] = found
    beside = dict(before)  # ... or waits after it
    for finding, site in reversed(pairs):
        if id(site) in beside or not (finding.fix or site.op in NOTED):
            continue
        others = (s for s in followed_by(view, site) if not goes_along(s, states, gone))
        later = (s for s in others if stays(finding, site, s, states, before, view.code))
        found = next((s for s in later if not leads_to(site, s, beside)), None)
        if found is not None:
            beside[id(site)] = found
    said = {at: named(site, view, Reason.BEFORE, Reason.BEFORE_IN) for at, site in beside.items()}
    said |= {at: named(site, view, Reason.DRAINED, Reason.DRAINED_IN) for at, site in before.items()}
    return [
        cooled(f, said[id(s)]) if f.heat.whole and id(s) in said else f for f, s in zip(findings, sites, strict=True)
    ]


def replaced(states: Mapping[int, Finding]) -> Overlaps[Edit]:
    """What the fixes of all findings replace."""
    return Overlaps((e.span, e) for f in states.values() if f.fix is not None for e in f.fix.edits)


def goes_along(site: Site, states: Mapping[int, Finding], gone: Overlaps[Edit]) -> bool:
    """Whether it is a number put at positions which the fix of another no longer looks for: told with that one alone."""
    own = states.get(id(site))
    if site.op is not Op.NUMBER_WRITE or own is None or own.fix is not None:
        return False
    return any(
        e.span.start <= own.span.start and own.span.end <= e.span.end and not still_writes(e, site)
        for e in gone.of(own.span)
    )


def still_writes(edit: Edit, site: Site) -> bool:
    """Whether an edit in which a number is written at positions writes it at the same ones, wherever they are made then."""
    try:
        (statement,) = ast.parse(edit.text.strip()).body
    except (SyntaxError, ValueError):
        return False
    match statement, site.node:
        case ast.Assign(targets=[ast.Subscript(slice=index)]), ast.Subscript(slice=before):
            return [*map(_wherever, each_of(index))] == [*map(_wherever, each_of(before))]
    return False


def _wherever(part: ast.expr) -> str:
    """A part of an index, without what says where it lives: `torch.arange(n)` of `torch.arange(n, device=d)`."""
    match part:
        case ast.Call(func=ast.Attribute(value=sent, attr="to")):
            return _wherever(sent)
        case ast.Call(func=func, args=args, keywords=keywords):
            return ast.unparse(ast.Call(func, args, [each for each in keywords if each.arg != "device"]))
    return ast.unparse(part)


def leaves_nothing(finding: Finding, site: Site, before: Site, states: Mapping[int, Finding], view: View) -> bool:
    """Whether a finding gains nothing for what has waited before it: that stays, or goes away with this one."""
    first = states.get(id(before))
    if not counts(first or before):
        return False
    if site.op is Op.NUMBER_WRITE and not (first and first.fix and first.fix.safety is not Safety.SUGGEST):
        return True
    if first is None:
        return elsewhere(before, site) and (finding.fix is None or before.op not in VALUES)
    if first.fix is None or not first.heat.whole:
        otherwise = before.op in VALUES and (first.fix or first.advice)  # a number that is noted can be noted otherwise
        return finding.fix is None or not otherwise
    gone = (edit for edit in first.fix.edits if not written_again(edit, site, view.code))
    return first.fix != finding.fix and any(holds(edit.span, finding.span) for edit in gone)


def counts(wait: Finding | Site) -> bool:
    """Whether a wait can be told in place of another: it is sure enough, and runs in every step, as far as is known."""
    return wait.heat.hot and wait.confidence >= LEAST["medium"]


def written_again(edit: Edit, site: Site, code: bytes) -> bool:
    """Whether an edit that a wait stands in writes it down again, perhaps of something else: `y.sum().item()` is still read."""
    old = code[edit.span.start : edit.span.end].decode()
    if code[site.span.start : site.span.end].decode() in edit.text:
        return True
    match site.node:
        case ast.Call(func=ast.Attribute(attr=name)):
            word = f".{name}("
        case ast.Call(func=ast.Name(id=name)):
            word = f"{name}("
        case _:
            return False
    return edit.text.count(word) >= old.count(word)


def stays(
    finding: Finding, site: Site, after: Site, states: Mapping[int, Finding], before: Mapping[int, Site], code: bytes
) -> bool:
    """Whether what waits after a finding does so whether that is mended or not."""
    other = states.get(id(after))
    if not counts(other or after):
        return False
    if elsewhere(after, site):
        return finding.fix is not None
    if other is None or after.heat.reason in DRAINED:
        return False
    if finding.fix is None:
        return other.fix is None and other.heat.whole and id(after) not in before  # one of both is told
    near = (edit for edit in finding.fix.edits if edit.span.start < other.span.end and other.span.start < edit.span.end)
    if any(not written_again(edit, after, code) for edit in near):
        return False
    return other.fix is None or not other.heat.whole or id(after) in before


def named(site: Site, view: View, here: Reason, elsewhere: Reason) -> Heat:
    """A reason that names a wait: by its line, in another file by its file, too."""
    line = str(site.place.line)
    own = bool(view.sites) and site.place.path == view.sites[0].place.path
    return here(line) if own else elsewhere(line, Path(site.place.path).name)


def elsewhere(one: Site, other: Site) -> bool:
    """Whether two waits are in different files."""
    return one.place.path != other.place.path


def waits_beside(function: Function, site: Site) -> list[Site]:
    """The other waits of a statement that surely run where this one does: not in another arm of an expression."""
    statement = function.statement(site.node)
    others = function.sites_in(statement) if statement is not None else []
    ways = _ways(function, site.node)
    return [other for other in others if other is not site and _ways(function, other.node) <= ways]


def _ways(function: Function, node: ast.AST) -> set[tuple[int, int]]:
    """The parts of expressions around a node that may be left out, by `id` and which part it is."""
    found, child = set(), node
    for outer in function.around(node):
        if isinstance(outer, ast.stmt):
            break
        parts: list[ast.expr] = []
        match outer:
            case ast.IfExp(body=body, orelse=orelse):
                parts = [body, orelse]
            case ast.BoolOp(values=[_, *values]):
                parts = values
        if child in parts or isinstance(outer, REPEATED):
            found.add((id(outer), parts.index(child) if isinstance(child, ast.expr) and child in parts else 0))
        child = outer
    return found


def leads_to(site: Site, other: Site | None, beside: Mapping[int, Site]) -> bool:
    """Whether one wait is told in short for another, or for one that is so for it, and so on."""
    seen: set[int] = set()  # a function may call itself
    while other is not None and other is not site and id(other) not in seen:
        seen.add(id(other))
        other = beside.get(id(other))
    return other is site


def is_safe(finding: Finding) -> bool:
    """Whether its fix changes nothing: that is worth its line, whatever waits beside it."""
    return finding.fix is not None and finding.fix.safety is Safety.SAFE


def holds(outer: Span, inner: Span) -> bool:
    """Whether a span lies in another, and is not the whole of it."""
    return outer.start <= inner.start and inner.end <= outer.end and outer != inner


def cooled(finding: Finding, heat: Heat) -> Finding:
    """The finding as one that is told in a line."""
    return replace(finding, heat=heat, severity="note")
