"""Whether what a report promises came true of a change that takes no line out, where a second recording shows it made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from syncscope.model.uses import Use

if TYPE_CHECKING:
    from syncscope.model.report import Report
    from syncscope.model.what_if import WhatIf

GOES = {"loader": Use.LOADER}
"""By the word of a row: for what the device is idle until that is done."""
LEFT = 0.5  # of that idle time: where more is left, nobody knows whether it was done
NAMED = 0.01  # of a step that the device is idle for it, below which no promise is worth a test


class Promised(NamedTuple):
    """The row of the first report, how long the device was idle for what it takes out, and what came, ns of a step."""

    what: WhatIf
    idle: tuple[float, float]
    came: float
    true: bool


def promised(before: Report, after: Report, noise: float) -> Promised | None:
    """What the first report promised of what was done by the second; None where nothing was. It came true within its interval,
    give or take the `noise`."""
    if before.uses is None or after.uses is None or not before.step or not after.step:
        return None
    for what in before.what_if:
        if (use := GOES.get(what.word)) is None:
            continue
        idle, left = (sum(part.time for part in uses.spent if part.use is use) for uses in (before.uses, after.uses))
        if idle > NAMED * before.step and left < LEFT * idle:
            came = before.step - after.step
            return Promised(what, (idle, left), came, what.low - noise <= came <= what.high + noise)
    return None
