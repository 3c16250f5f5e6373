"""Fixes that no step gains by: who asks for all findings sees them, and may make them by hand; nobody has them made.

What runs once, or in no step, takes no time that anybody misses, and what waits beside a wait that stays gains nothing by
itself: such a change is a line to be read and reviewed, for nothing. Who knows better says so, by `hot` in the configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from syncscope.model.finding import Finding, Fix, Safety
from syncscope.model.heat import FOLLOWS, Reason

NOTHING_IN_FLIGHT = FOLLOWS | {
    Reason.ENVIRONMENT,
    Reason.GENERATION,
    Reason.BUFFER,
    Reason.SOLVER,
    Reason.ACTION,
    Reason.SCORE,
    Reason.ONE_NUMBER,
}
"""What waits in a step, and where the host waits as long when it is mended."""
OFFERED = frozenset((Reason.UNASKED, Reason.OFFERED))
"""Cold as far as the project says; who calls it may do so in every step."""


def without_gain(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; a fix of which none says that a step gains by it is left to people, with the reason first."""
    gained = {f.fix for f in findings if f.fix is not None and _gains(f, f.fix)}
    return [f if f.fix is None or f.fix in gained else _by_hand(f, f.fix) for f in findings]


def _gains(finding: Finding, fix: Fix) -> bool:
    """Whether a step may wait less, once it is made."""
    if finding.hot:
        return finding.heat.reason not in NOTHING_IN_FLIGHT
    return finding.heat.reason in OFFERED and fix.safety is Safety.SAFE


def _by_hand(finding: Finding, fix: Fix) -> Finding:
    """The finding with a fix that is shown, and not made."""
    told = f"no step gains by it: {finding.heat.words}" if finding.heat.words else "no step gains by it"
    said = "; ".join(filter(None, (told, fix.changes)))
    return replace(finding, fix=replace(fix, safety=Safety.SUGGEST, changes=said, gains=""))
