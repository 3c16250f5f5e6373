"""Limits of `syncscope diff` for CI: by how much a step may have grown, and how many syncs may have come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from syncscope.cli._diff_tables import WorkRow, kernels
from syncscope.cli._diff_words import PACE, change
from syncscope.cli._gate import syncs, where
from syncscope.cli._limits import GivenLimit, judged
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.analysis.comparison import Comparison

SLOWER, NEW = "--max-slowdown", "--max-new-syncs"
FEW = 24  # steps to record where nobody knows how they vary
NAMED = 5  # kernels that take longer
ROOM = 0.1  # of a step: a gate that may miss more than that above its limit judges nothing


def limits(found: Comparison, most_slower: float | None, most_new: float | None) -> Iterator[GivenLimit]:
    """Each limit that was given, with the lines that break it.

    `most_slower` is a part of the first step, which the lower end of what the second one is longer by must not exceed, nor the
    upper end by more than `ROOM`, from where nobody can judge, unless every step is shorter, or longer by more than the limit;
    `most_new` how many syncs of a step may have come, over all lines that have more. What the device's fallbacks read is no
    sync of the user's.
    """
    if most_new is not None:
        yield judged(f"{NEW} {most_new:g}", lambda: _with_more_syncs(found, most_new), lambda: _new(found))
    if most_slower is not None:
        yield judged(f"{SLOWER} {100 * most_slower:g}%", lambda: _slower(found, most_slower), lambda: _length(found))


def _new(found: Comparison) -> str:
    """How many syncs are new, of a limit that holds."""
    return f"{syncs(found.more.count)} new" if found.more.count else "no sync is new"


def _length(found: Comparison) -> str:
    """How much longer a step is, or each of few, of a limit that holds."""
    return change(found) or (_each(found, *found.each_step) if found.each_step is not None else "")


def unjudged(why: str, most_slower: float | None, most_new: float | None) -> Iterator[GivenLimit]:
    """Each limit that was given, of two recordings of which nothing can be said."""
    error = UserError(why, "record one program twice on one machine")
    if most_new is not None:
        yield GivenLimit(f"{NEW} {most_new:g}", unjudged=error)
    if most_slower is not None:
        yield GivenLimit(f"{SLOWER} {100 * most_slower:g}%", unjudged=error)


def as_junit(limits: Iterable[GivenLimit], of: str) -> str:
    """The limits as tests.

    Raises:
        UserError: none was given.
    """
    from syncscope.exporters import junit
    from syncscope.model.report import Report

    shown = tuple(replace(limit.shown, of=of) for limit in limits)
    if not shown:
        raise UserError("--format junit has the limits as tests, and none was given", f"add {SLOWER} 5%, or {NEW} 0")
    return junit.export(Report(name=of, limits=shown))


def _slower(found: Comparison, most: float) -> Iterator[str]:
    if found.of_others:
        raise UserError(found.of_others, "record one program twice on one machine")
    if found.change is None:
        yield from _of_few(found, most)
        return
    (low, likely, high), said = found.change, change(found)
    if likely > most and found.incomparable:
        raise UserError(f"{said}, and {found.incomparable}", "record both while nothing else runs")
    if low > most:
        yield f"{said}, more than the {100 * most:.6g} % allowed:"
        yield from _what_is_longer(found)
    elif high > most + ROOM and not _surely_shorter(found):
        if likely > most and found.each_step is not None and found.each_step[0] > most:
            yield from _each_longer(found, most)
            return
        every = f", and every counted step is {found.every_step}" if found.every_step else ""
        raise UserError(
            f"{said}{every}: a step may be within the {100 * most:.6g} % allowed, or longer than that by more than "
            f"{100 * ROOM:.2g} % of a step, for {found.widest}",
            f"record both on one machine while nothing else runs: {_more_steps(found, most)}",
        )


def _of_few(found: Comparison, most: float) -> Iterator[str]:
    """By the shortest and the longest of steps that are too few for an interval of their mean, as torch.profiler's schedules
    often leave: all of them are longer by more than the limit, or none by so much that a slow-down might hide."""
    one, other = map(len, found.lengths)
    if found.each_step is None:
        raise UserError(
            f"of {one} and {other} steps nobody can tell what chance is; three of each may be enough",
            _more_steps(found, most),
        )
    low, high = found.each_step
    if low > most:
        yield from _each_longer(found, most)
    elif high > most + ROOM:
        raise UserError(
            f"{_each(found, low, high)}: that may be above the {100 * most:.6g} % allowed by more than {100 * ROOM:.2g} % of "
            "a step, and within it",
            _more_steps(found, most),
        )


def _each(found: Comparison, low: float, high: float) -> str:
    one, other = map(len, found.lengths)
    least, most = map(_longer, found.each_as_recorded or (low, high))
    equal = f"{_longer(low)} to {_longer(high)}"
    of_machine = f" (had the machine been as fast in both: {equal})" if equal != f"{least} to {most}" else ""
    return f"each of {other} steps is {least} to {most} than each of {one} before{of_machine}"


def _each_longer(found: Comparison, most: float) -> Iterator[str]:
    """Where every step is longer by more than the limit, and that is hardly chance."""
    chance = f"by chance that is so once in {found.orders:,} times"
    yield f"{_each(found, *(found.each_step or (0.0, 0.0)))}, more than the {100 * most:.6g} % allowed, and {chance}:"
    yield from _what_is_longer(found)


def _longer(part: float) -> str:
    return f"{100 * abs(part):.1f} % {'longer' if part >= 0 else 'shorter'}"


def _what_is_longer(found: Comparison) -> Iterator[str]:
    yield from (f"  {where(line)}: {more:+.3g} per step" for line, more in found.more.lines)
    longer = [row for row, each in zip(kernels(found), found.kernels, strict=True) if each.more > 0]
    yield from map(_of_work, longer[:NAMED])
    if not found.more.lines and not longer:
        yield "  no line has more syncs, and no kernel takes longer: it is other work of the host"


def _surely_shorter(found: Comparison) -> bool:
    """Whether every counted step is shorter, and no faster machine made it so, for a step is shorter by more than the host's
    calls are: then none is longer, however far steps vary."""
    one, other = found.before.step or 0.0, found.after.step or 0.0
    return found.every_step == "shorter" and (found.pace > 1 - PACE or other < found.pace * one)


def _of_work(row: WorkRow) -> str:
    at = f" of {row.place}" if row.place else ""
    before, after = ((ns or 0.0) / 1e6 for ns in row.times)
    return f"  {row.word}: {row.name}{at}, {before:.2f} ms to {after:.2f} ms a step"


def _more_steps(found: Comparison, most: float) -> str:
    """How many steps would decide: the interval then lies on one side of the limit, or below what may hide above it."""
    one, other = found.before.step or 0.0, found.after.step or 0.0
    likely = other / one - 1 if one and other else most
    count = found.steps_to_know(max(abs(likely - most), most + ROOM - likely, ROOM / 2))
    if count is None and min(map(len, found.lengths)) < 2:
        count = FEW
    if count is None:
        return f"more steps do not decide, for {found.widest}"
    count = max(count, 1 + min(len(found.before.steps), len(found.after.steps)))
    return f"{count} steps of each would decide, if they vary as these do: `syncscope run --active {count}`"


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
