"""Fixes of several rules in one statement: what is mended by each, and is as safe, is mended by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from syncscope.codemod.together import apart, together
from syncscope.linter.source import DEEPEST
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.rules import View


def joined(findings: Sequence[Finding], sites: Sequence[Site | None], view: View) -> list[Finding]:
    """The findings, those of a statement with one fix, where each of theirs mends nothing elsewhere, and all are as safe."""
    places: dict[Fix, set[int]] = defaultdict(set)
    found: dict[tuple[int, Safety], dict[Fix, None]] = defaultdict(dict)  # of a statement, by its `id`
    for finding, site in zip(findings, sites, strict=True):
        fix = finding.fix
        if site is None or fix is None or not finding.heat.whole or view.function(site).depth > DEEPEST:
            continue
        at = id(view.function(site).statement(site.node))
        places[fix].add(at)
        if fix.safety is not Safety.SUGGEST and fix.also is None:
            found[at, fix.safety][fix] = None
    one: dict[Fix, Fix] = {}
    for (at, _), fixes in found.items():
        own = [fix for fix in fixes if places[fix] == {at}]
        if len(own) > 1 and apart(own):
            title = "; ".join(dict.fromkeys(fix.title for fix in own))
            one |= dict.fromkeys(own, replace(together(own), title=title))
    return [f if f.fix is None else replace(f, fix=one.get(f.fix, f.fix)) for f in findings]
