"""Which fix a finding is shown with: the one that its rule offers, unless nobody gains by it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from syncscope.linter import own_rules
from syncscope.linter.config import LEAST, Config
from syncscope.linter.repeats import repeats
from syncscope.linter.rulesets import ruleset
from syncscope.linter.source import DEEPEST, SourceFile, disjoint, with_newlines
from syncscope.linter.worth.by_comment import by_comment
from syncscope.linter.worth.edits import still_writes
from syncscope.linter.worth.idle import is_idle
from syncscope.linter.worth.ways import waits_beside
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Finding, Safety
from syncscope.model.heat import Reason
from syncscope.model.ops import Op
from syncscope.model.source import Span
from syncscope.project.compiled import is_scripted, says_it_is_scripted
from syncscope.rules import CannotRewrite, View, mended

MOST = 500  # waits of a function that are mended: one with more was written by a program, which would write it again


def mended_or_idle(source: SourceFile, finding: Finding, site: Site | None, view: View, config: Config) -> Finding:
    """The finding with its fix, told in a line where nobody gains by reading more."""
    # with an optimizer that is in sight there is a form that does not wait
    scaled = finding.heat.reason is Reason.BY_DESIGN
    if site is None or (finding.short and not config.all and not scaled):
        return finding
    if finding.hot and view.function(site).depth <= DEEPEST:
        finding = replace(finding, repeats=repeats(site, view.function(site), view))
    finding = with_fix(source, finding, site, view, config)
    if scaled:
        return replace(finding, heat=Reason.NOT_FUSED()) if finding.fix is not None else finding
    function = view.function(site)
    if not finding.heat.whole or function.depth > DEEPEST or not is_idle(finding, site, function):
        return finding
    return finding.cooled(Reason.IDLE(of=finding.heat))


def with_fix(source: SourceFile, finding: Finding, site: Site, view: View, config: Config) -> Finding:
    """The finding with the rewrite that its rule offers, if it offers one that can be trusted to be Python."""
    function = view.function(site)
    if function.depth > DEEPEST or len(function.sites) > MOST:
        return finding
    rule = ruleset(config.rules)[finding.rule]
    try:
        fix = own_rules.fix_of(mended(rule, site, function))
        if fix is not None and (
            is_scripted(finding.function, source.path, source.code) or says_it_is_scripted(site.function, source.code)
        ):
            whole, fix = fix, mended(rule, site, function, compiles=True)
            if fix is None:
                function.declines(site.node, f"TorchScript compiles it, which may not take this: {whole.title}")
    except CannotRewrite as why:
        return replace(finding, why_not=str(why))
    except Exception as error:
        own_rules.failed(finding.rule, rule, error, site, source.path)
        return finding
    if fix is None or not fix.edits or not disjoint(fix.edits):
        return replace(finding, why_not=function.why_not(site.node))
    if fix.safety is not Safety.SUGGEST and (said := by_comment(source, site, fix)):
        fix = replace(fix, safety=Safety.SUGGEST, terms=(said, *fix.terms), hint=True)
    if fix.hint and not config.all:
        return replace(finding, advice=fix)
    also = fix.also and replace(fix.also, edits=with_newlines(fix.also.edits, source.newline))
    return replace(finding, fix=replace(fix, edits=with_newlines(fix.edits, source.newline), also=also))


def freed(
    source: SourceFile, finding: Finding, site: Site | None, states: Mapping[int, Finding], view: View, config: Config
) -> Finding:
    """The finding told in a line, and without its safe fix, where its line waits all the same for something that nothing mends.

    Python's own functions wait once for each element: of these one wait is left. What a user's rule tells is told.
    """
    if site is None or finding.fix is None or finding.fix.safety is Safety.SUGGEST or site.op is Op.BUILTIN:
        return finding
    if finding.heat.reason is Reason.OWN:
        return finding
    gone, safe = finding.fix.edits, finding.fix.safety is Safety.SAFE
    for other in waits_beside(view.function(site), site):
        said = states.get(id(other))
        if said is None or said.confidence < LEAST["medium"]:
            continue
        words = source.code[other.span.start : other.span.end].decode()  # which an edit may only write down again
        if isinstance(other.node, ast.Call):  # also with other arguments
            words = ast.unparse(other.node.func)
        if other.op is Op.NUMBER_WRITE and any(_holds(e, _of_value(view, other)) for e in gone):
            continue  # it is made on the device
        if any(_holds(e, other.span) and words not in e.text and not still_writes(e, other) for e in gone):
            continue
        mended = (said if said.fix is not None else with_fix(source, said, other, view, config)).fix
        if mended is None or (safe and mended.safety is Safety.SUGGEST):
            heat = Reason.STAYS() if finding.heat.hot else finding.heat  # what is cold stays so
            return (replace(finding, fix=None) if safe else finding).cooled(heat)
    return finding


def _of_value(view: View, site: Site) -> Span:
    """Where the number stands that is written at positions."""
    return site.span if site.operand is None else view.function(site).file.span(site.operand)


def _holds(edit: Edit, span: Span) -> bool:
    """Whether an edit replaces what stands there."""
    return edit.span.start <= span.start and span.end <= edit.span.end
