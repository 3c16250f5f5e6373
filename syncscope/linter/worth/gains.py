"""What a step gains by a fix, in words: how many of its waits go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from syncscope.linter.worth.edits import holds
from syncscope.linter.worth.ways import on_every_way, on_one_way
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Safety, Stays, Way
from syncscope.model.heat import Reason
from syncscope.rules import View


def with_gains(findings: Sequence[Finding], sites: Sequence[Site | None], view: View) -> list[Finding]:
    """The findings, each fix with what it gains; of one that mends several, it is told of all of them together."""
    mended: dict[Fix, list[tuple[Finding, Site]]] = {}
    for finding, site in zip(findings, sites, strict=True):
        if finding.fix is not None and site is not None and finding.heat.whole:
            mended.setdefault(finding.fix, []).append((finding, site))
    said = {fix: gained(fix, places, view) for fix, places in mended.items() if fix.safety is not Safety.SUGGEST}
    return [f if f.fix not in said else replace(f, fix=replace(f.fix, gains=said[f.fix])) for f in findings]


def gained(fix: Fix, places: Sequence[tuple[Finding, Site]], view: View) -> str:
    """What goes where a fix is made: `saves 2 of 3 waits in each step`, `waits once in each step, not for each element`."""
    finding, site = places[0]
    function = view.function(site)
    waits = on_one_way(function, [each.node for _, each in places])
    statement = function.statement(site.node)
    loop = function.loop(statement) if statement is not None else None
    name = finding.function.rpartition(".")[2]
    where = f"in each call of {name}" if finding.heat.reason is Reason.MAYBE and name else "in each step"
    if loop is not None:
        where, around = "on each pass of the loop", function.file.span(loop)
        if fix.stays is not Stays.NONE and any(not holds(around, edit.span) for edit in fix.edits):
            return f"waits once, not {where}"
        if fix.way is Way.ADDS_UP and waits <= fix.left:
            return f"waits where the sum is shown, not {where}"
    if fix.stays is Stays.NONE:
        surely = on_every_way(function, [each.node for _, each in places])
        most = "up to " * (surely < waits)
        return f"saves {'a wait' if waits == 1 else f'{most}{waits} waits'} {where}"
    if waits > fix.left:
        return f"saves {waits - fix.left} of {waits} waits {where}"
    return f"waits once {where}, not for each element" if any(f.repeats for f, _ in places) else ""
