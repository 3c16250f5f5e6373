"""How much of a step the device works, where a table may say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncscope.model.report import Report

MOST = 0.5  # of the idle time, from which it is the reason


def busy_share(report: Report) -> float | None:
    """The share of the steps in which the device worked; None where it is not known, or most of its idle time went to work that
    was enqueued before the recording: that is not in the file, and the device was not idle."""
    if report.device_busy is None or report.uses is None:
        return report.device_busy
    idle = [one for one in report.uses.spent if one.use.is_idle]
    return None if report.uses.earlier > MOST * sum(one.time for one in idle) else report.device_busy
