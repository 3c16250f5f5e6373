"""Limits of `syncscope diff` for CI: by how much a step may have grown, and how many syncs may have come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from syncscope.cli._diff_tables import WorkRow, kernels
from syncscope.cli._diff_words import PACE, change
from syncscope.cli._gate import syncs, where
from syncscope.cli._limits import GivenLimit, judged
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.analysis.comparison import Comparison

SLOWER, NEW = "--max-slowdown", "--max-new-syncs"
FEW = 24  # steps to record where there were fewer than half of that
NAMED = 5  # kernels that take longer
ROOM = 0.1  # of a step: a gate that may miss more than that above its limit judges nothing


def limits(found: Comparison, most_slower: float | None, most_new: float | None) -> Iterator[GivenLimit]:
    """Each limit that was given, with the lines that break it.

    `most_slower` is a part of the first step, which the lower end of what the second one is longer by must not exceed, nor the
    upper end by more than `ROOM`, from where nobody can judge, unless every step is shorter;
    `most_new` how many syncs of a step may have come, over all lines that have more. What the device's fallbacks read is no
    sync of the user's.
    """
    if most_new is not None:
        yield judged(f"{NEW} {most_new:g}", lambda: _with_more_syncs(found, most_new))
    if most_slower is not None:
        yield judged(f"{SLOWER} {100 * most_slower:g}%", lambda: _slower(found, most_slower))


def _slower(found: Comparison, most: float) -> Iterator[str]:
    if found.of_others:
        raise UserError(found.of_others, "record one program twice on one machine")
    if found.change is None:
        raise UserError(
            "how far steps vary is not known of fewer than four",
            f"`syncscope run --active {FEW}` records more",
        )
    (low, likely, high), said = found.change, change(found)
    if likely > most and found.incomparable:
        raise UserError(f"{said}, and {found.incomparable}", "record both while nothing else runs")
    if low > most:
        yield f"{said}, more than the {100 * most:.2g} % allowed:"
        yield from (f"  {where(line)}: {more:+.3g} per step" for line, more in found.more.lines)
        longer = [row for row, each in zip(kernels(found), found.kernels, strict=True) if each.more > 0]
        yield from map(_of_work, longer[:NAMED])
        if not found.more.lines and not longer:
            yield "  no line has more syncs, and no kernel takes longer: it is other work of the host"
    elif high > most + ROOM and not _surely_shorter(found):
        every = f", and every counted step is {found.every_step}" if found.every_step else ""
        raise UserError(
            f"{said}{every}: that may be above the {100 * most:.2g} % allowed by more than {100 * ROOM:.2g} % of a step, "
            f"and within it, for {found.widest}",
            f"record both on one machine while nothing else runs, with more steps: "
            f"`syncscope run --active {more_steps(found)}`",
        )


def _surely_shorter(found: Comparison) -> bool:
    """Whether every counted step is shorter, and no faster machine made it so: then none is longer, however far steps vary."""
    return found.every_step == "shorter" and found.pace > 1 - PACE


def _of_work(row: WorkRow) -> str:
    at = f" of {row.place}" if row.place else ""
    before, after = ((ns or 0.0) / 1e6 for ns in row.times)
    return f"  {row.word}: {row.name}{at}, {before:.2f} ms to {after:.2f} ms a step"


def more_steps(found: Comparison) -> int:
    """How many steps to record where those of the shorter recording vary too much."""
    return max(FEW, 2 * min(len(found.before.steps), len(found.after.steps)))


def _with_more_syncs(found: Comparison, most: float) -> Iterator[str]:
    if found.strangers:
        raise UserError(found.of_others, "record one program twice")
    if found.renamed:
        one, other = found.renamed
        raise UserError(
            f"the sync at {one} is gone, and one of its kind is at {other}",
            "record both under one name, if it is the same file",
        )
    more = found.more
    if more.surely > most:
        yield f"{syncs(more.surely)} new, more than the {most:.3g} allowed:"
        yield from (f"  {where(line)}: {by:+.3g} per step" for line, by in more.lines)
    elif more.count > most:
        raise UserError(
            f"{syncs(more.count)} new if no line has moved, {more.surely:.3g} if lines have, "
            "and the first recording or the second does not know the texts of its lines",
            "record both with this version of syncscope, each before its files are edited",
        )
