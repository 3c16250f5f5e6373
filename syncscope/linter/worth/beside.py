"""Findings of hot code that nobody gains by reading more of than a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from syncscope.codemod.drained import drained_by, followed_by
from syncscope.linter.source import DEEPEST
from syncscope.linter.worth.among_waits import counts
from syncscope.linter.worth.edits import goes_along, holds, replaced, written_again
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Safety
from syncscope.model.heat import Heat, Reason
from syncscope.model.ops import COPIES, COSTS_MORE, VALUES, Op
from syncscope.rules import View

NOTED = VALUES | COPIES  # what they fetch is often only noted, and can be later
# what waits where nothing is in flight
DRAINED = {Reason.DRAINED, Reason.DRAINED_IN, Reason.ASKED_AFTER, Reason.SAME_STATEMENT, Reason.ENVIRONMENT}


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
        f.cooled(said[id(s)]) if f.heat.whole and id(s) in said else f for f, s in zip(findings, sites, strict=True)
    ]


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


def leads_to(site: Site, other: Site | None, beside: Mapping[int, Site]) -> bool:
    """Whether one wait is told in short for another, or for one that is so for it, and so on."""
    seen: set[int] = set()  # a function may call itself
    while other is not None and other is not site and id(other) not in seen:
        seen.add(id(other))
        other = beside.get(id(other))
    return other is site
