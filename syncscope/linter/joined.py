"""Fixes of one statement, or of statements beside each other, as one: mended alone, each leaves the wait of another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from syncscope.codemod.drained import drained_by
from syncscope.codemod.together import MOST_TITLES, apart, together
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Safety, Stays
from syncscope.rules import View


def joined(findings: Sequence[Finding], sites: Sequence[Site | None], view: View, apart_lines: bool) -> list[Finding]:
    """The findings, those of a statement with one fix, where each of theirs mends nothing elsewhere, and all are as safe; and
    so, unless lines are to stay apart, those of statements of one block, where what one waits for has just come when the next
    begins.
    """
    findings = in_statement(findings, sites, view)
    one: dict[Fix, Fix] = {}
    for fixes in () if apart_lines else beside_each_other(findings, sites, view):
        if apart(fixes):
            one |= dict.fromkeys(fixes, as_one(fixes))
    return with_one(findings, one)


def in_statement(findings: Sequence[Finding], sites: Sequence[Site | None], view: View) -> list[Finding]:
    """The findings, those of a statement with one fix."""
    places: dict[Fix, set[int]] = defaultdict(set)
    found: dict[tuple[int, Safety], dict[Fix, None]] = defaultdict(dict)  # of a statement, by its `id`
    for finding, site in zip(findings, sites, strict=True):
        fix = finding.fix
        if site is None or fix is None or not finding.heat.whole:
            continue
        at = id(view.function(site).statement(site.node))
        places[fix].add(at)
        if fix.safety is not Safety.SUGGEST and fix.also is None:
            found[at, fix.safety][fix] = None
    one: dict[Fix, Fix] = {}
    for (at, _), fixes in found.items():
        own = [fix for fix in fixes if places[fix] == {at}]
        if len(own) > 1 and apart(own):
            one |= dict.fromkeys(own, as_one(own))
    return with_one(findings, one)


def beside_each_other(findings: Sequence[Finding], sites: Sequence[Site | None], view: View) -> Iterable[Sequence[Fix]]:
    """Fixes that are as safe, each of a wait that follows that of another in its block, and after which none of both waits."""
    told = {
        id(site): finding.fix
        for finding, site in zip(findings, sites, strict=True)
        if site is not None and finding.fix is not None and finding.heat.whole and goes_whole(finding.fix)
    }
    group: dict[Fix, list[Fix]] = {fix: [fix] for fix in told.values()}
    for site in (s for s in sites if s is not None and id(s) in told):
        function, fix = view.function(site), told[id(site)]
        if (statement := function.statement(site.node)) is None:
            continue
        block = function.block(statement)
        for before in drained_by(view, site):
            other = told.get(id(before))
            if other is None or function.statement(before.node) not in block:
                break
            if other.safety is fix.safety and group[other] is not group[fix]:
                group[other] += group[fix]
                for each in group[fix]:
                    group[each] = group[other]
    seen = {id(fixes): fixes for fixes in group.values() if len(fixes) > 1}
    return seen.values()


def goes_whole(fix: Fix) -> bool:
    """Whether nothing waits after a fix, of which no other way is told, and which who asks for it may have made."""
    return fix.safety is not Safety.SUGGEST and fix.also is None and fix.stays is Stays.NONE and not fix.takes


def as_one(fixes: Sequence[Fix]) -> Fix:
    """Several fixes as one."""
    titles = dict.fromkeys(fix.title for fix in fixes)
    return replace(together(fixes), title="; ".join([*titles][:MOST_TITLES]))


def with_one(findings: Sequence[Finding], one: dict[Fix, Fix]) -> list[Finding]:
    """The findings, with what stands for their fixes."""
    return [f if f.fix is None or f.fix not in one else replace(f, fix=one[f.fix]) for f in findings]
