"""Which findings to look at first: by how often their wait runs, and whether it is the one that costs."""

from __future__ import annotations

from syncscope.model.finding import Finding
from syncscope.model.heat import FOLLOWS, Reason

SURE = 2  # the confidence from which a finding comes before all that are less sure
UNNAMED = frozenset((Reason.MAYBE, Reason.CALLED, Reason.FOR_OTHERS))  # nothing says that it runs in every step
SEVERITY = {"error": 0, "warning": 1, "note": 2}
FEW = 3.0  # steps of "once in a few"


def turn(found: Finding) -> tuple[float, ...]:
    """The place of a finding among others, the smaller the earlier: those many times in a step, those in every step and those
    that may be many times in one, others that may be in one, those once in so many steps, those beside a wait that costs in
    their place, and those in no step; the graver and surer of each first, and what can be mended."""
    unsure, unnamed = found.confidence < SURE, found.heat.reason in UNNAMED
    return unsure, *_runs(found), SEVERITY.get(found.severity, 1), -found.confidence, unnamed, found.fix is None


def _runs(found: Finding) -> tuple[float, float]:
    reason, about = found.heat.reason, found.heat.about
    if not found.hot:
        return 5, 0.0
    if reason in FOLLOWS:
        return 4, 0.0
    if reason is Reason.SOMETIMES:
        return 3, float(about[1])
    if reason in (Reason.DELAYED, Reason.AROUND):
        return 3, FEW
    if reason not in UNNAMED:
        return (0 if found.repeats else 1), 0.0
    return (1 if found.repeats and reason is Reason.MAYBE else 2), 0.0
