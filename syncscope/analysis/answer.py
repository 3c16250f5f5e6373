"""Whether waits are worth fixing: one of four words, for a line and for all.

| | |
| --- | --- |
| *fix* | likely at least 3 % of a step, surely 1 %, and the rewrite adds nothing that may undo it |
| *leave* | likely under 1.5 % and at most 5 %; or no fix can give 3 %; or the rewrite costs more than it saves |
| *try* | anything between: to measure it settles it |
| *unknown* | no figure: the recording says nothing of it |
"""

from __future__ import annotations

from syncscope.model.answer import Answer, Decision
from syncscope.model.report import Report

LIKELY = 0.03  # the part of a step that is worth a change
SURELY = 0.01  # and what of it must be there in nine of ten recordings
LITTLE, AT_MOST = 0.015, 0.05  # likely less than the one, and in nine of ten recordings less than the other: leave it


def decide(share: float, low: float, high: float, bound: float, adds: bool = False) -> Decision:
    """What to do about waits that likely cost a `share` of a step, or what lies between `low` and `high`; `adds` says that a
    rewrite makes the device do more, by how much nobody knows before."""
    if bound < LIKELY or (share < LITTLE and high < AT_MOST):
        return Decision.LEAVE
    if share >= LIKELY and low > SURELY and not adds:
        return Decision.FIX
    return Decision.TRY


def answer(
    share: float, between: tuple[float, float], bound: float, adds: bool = False, loops: int = 0, measured: int = 0
) -> Answer:
    """The answer for waits that likely cost a `share` of a step, and that what it is `between`; neither passes the `bound`."""
    likely = min(share, bound)
    low, high = min(between[0], likely), min(max(between[1], likely), bound)
    decision = decide(likely, low, high, bound, adds)
    return Answer(decision, likely, low, high, bound, measured, loops, _why(decision, likely, low, high, bound, adds))


def _why(decision: Decision, share: float, low: float, high: float, bound: float, adds: bool) -> str:
    match decision:
        case Decision.FIX:
            return f"likely {share:.1%} of a step, and at least {low:.1%} in nine of ten recordings like this"
        case Decision.LEAVE if bound < LIKELY:
            return f"no fix can save more than {bound:.1%} of a step"
        case Decision.LEAVE:
            return (
                f"likely {max(0.0, share):.1%} of a step, and less than {high:.1%} in nine of ten recordings like this"
            )
        case _ if adds and share >= LIKELY and low > SURELY:
            return "the rewrite gives the device more to do, and how long that takes is only known once it is measured"
        case _:
            return f"it may be anything from {max(0.0, low):.1%} to {high:.1%} of a step: measuring it settles it"


def without_figure(report: Report, works: bool) -> Answer:
    """The answer where no replay tells what is saved: by what is known without one. `works` says that a device did."""
    bound = report.bound.share if report.bound else None
    if works and not report.lines:
        return Answer(Decision.LEAVE, 0.0, 0.0, 0.0, bound, why="the host never waits for the device")
    if bound is not None and bound < LIKELY:
        return Answer(Decision.LEAVE, bound=bound, why=f"no fix can save more than {bound:.1%} of a step")
    why = "record again: on a machine with nothing else to do, and as many steps as fit into a few seconds"
    if not works:
        why = "record on the device: no work of one is known here"
    return Answer(Decision.UNKNOWN, bound=bound, why=why)
