"""What is best done about a line: leave it, rewrite it, or read its value a step later."""

from __future__ import annotations

from dataclasses import replace

from syncscope.model.durations import about_ms
from syncscope.model.ops import COPIES, VALUES
from syncscope.model.report import Advice, Line

MUCH = 0.1  # the part of a step that the host works on what it copied, for a word about it
WORTH = 0.001  # the part of a step that must be saved to say a word about it


def advised(line: Line, step: float, left: bool, kept: float | None, pause: float) -> Line:
    """The line with the best of what can be done about it.

    `step` is its length, ns; `left` says that a step without the line's reads would be longer, and `kept` is the share of the
    rows that they select, where that is known.
    `pause` is how long the device then has nothing to do until the host goes on, whatever the host does, ns per step.
    """
    price = line.price
    if price is None:
        return line
    if left:
        share = f"{kept:.0%} of the rows are kept" if kept is not None else "few rows are kept"
        why = (
            f"{share}, and over all of them a step takes up to {about_ms(-min(price.alone, price.last))} more; "
            "positions that the data loader makes select without a wait"
        )
        return replace(line, advice=Advice.LEAVE, why=why)
    rewritten, later = max(price.share, price.alone), price.deferred
    besides = pause - max(rewritten, price.last, later or 0.0)
    if line.op in COPIES and besides >= MUCH * step:
        why = f"the host then works for {about_ms(besides)} while the device idles: on the device that goes, too"
        return replace(line, advice=Advice.REWRITE, why=why)
    if max(rewritten, price.last) < WORTH * step:
        return replace(line, advice=Advice.LEAVE, why="a step would be no shorter")
    offered = line.finding is not None and line.finding.fix is not None
    if (
        later is not None
        and line.op in VALUES | COPIES
        and (later > rewritten or not offered)
        and later >= WORTH * step
    ):
        return replace(
            line,
            advice=Advice.LATER,
            why=f"with the value of the step before, and the other waits as they are, a step takes {about_ms(later)} less",
        )
    return replace(line, advice=Advice.REWRITE)


def unforeseen(line: Line, kept: float | None) -> Line:
    """The line without a price, why, and what tells more: its step over all rows, of which `kept` are, may take anything."""
    share = f"{kept:.1%} of the rows are kept" if kept is not None else "few rows are kept"
    why = (
        f"no saving is known: {share}, and what a step takes over all of them lies further apart than a step is long; "
        "`syncscope verify` measures the rewrite, and positions that the data loader makes select without a wait"
    )
    return replace(line, price=None, advice=Advice.TRY, why=why)
