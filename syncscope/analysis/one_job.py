"""Whether recordings can be the ranks of one job: by what they say of it, by when they were made, and on what."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from syncscope.analysis.rank import Rank
from syncscope.errors import UserError
from syncscope.model.durations import about_ms

UNIX = 10**18  # ns, in 2001: a clock that says less counts from the start of its machine
NAMED = 2  # files of a program
BADLY_SET = 3600 * 10**9  # ns by which the clocks of two machines may be apart, where their ranks met in collectives
NEARLY_SET = 60 * 10**9  # and where nothing else joins them


class NotOneJobError(UserError):
    """Recordings that are no ranks of one job."""


def refuse_strangers(ranks: Sequence[Rank]) -> None:
    """Nothing, where these may be the ranks of one job.

    Raises:
        NotOneJobError: they cannot be, with the reason.
    """
    if why := _why_not(ranks):
        raise NotOneJobError(
            f"these are not the ranks of one job: {why}", "name the traces of one job; `syncscope report` takes any"
        )


def _why_not(ranks: Sequence[Rank]) -> str:
    first = ranks[0]
    met = [{c.key for c in rank.collectives} for rank in ranks]
    for rank, keys in zip(ranks[1:], met[1:], strict=True):
        together = bool(met[0] & keys)
        if rank.world and first.world and rank.world != first.world:
            return f"{first.name} is one of {first.world} ranks, {rank.name} one of {rank.world}"
        if (rank.number < 0) != (first.number < 0):
            told, other = (rank, first) if first.number < 0 else (first, rank)
            return f"{told.name} is rank {told.number} of a job, {other.name} says nothing of one"
        gap = max(first.origin, rank.origin) - min(_end(first), _end(rank))
        if min(first.origin, rank.origin) >= UNIX and gap > (BADLY_SET if together else NEARLY_SET):
            return f"{first.name} was recorded {_when(first)}, {rank.name} {_when(rank)}: {_long(gap)} lie between them"
        if not together and rank.number < 0 and (why := _two_programs(first, rank, gap)):
            return why
        if not together and first.devices and rank.devices and not set(first.devices) & set(rank.devices):
            return (
                f"{first.name} is of {first.devices[0]}, {rank.name} of {rank.devices[0]}, and no collective is in both"
            )
    double = [number for number, times in Counter(r.number for r in ranks if r.number >= 0).items() if times > 1]
    if double:
        return f"rank {double[0]} is there twice: {', '.join(r.name for r in ranks if r.number == double[0])}"
    return ""


def _two_programs(first: Rank, rank: Rank, gap: float) -> str:
    """Why these, which name no rank and have no collective in common, are of two programs; "" where they need not be."""
    if first.files and rank.files and not first.files & rank.files:
        ran, other = (", ".join(sorted(map(os.path.basename, one.files))[:NAMED]) for one in (first, rank))
        return (
            f"{first.name} ran {ran}, {rank.name} {other}; neither says that it is a rank, and no collective is in both"
        )
    if first.machine and first.machine == rank.machine and min(first.origin, rank.origin) >= UNIX and gap > 0:
        early, late = sorted((first, rank), key=lambda one: one.origin)
        return (
            f"{early.name} was over before {late.name} began, on one machine; neither says that it is a rank, and no "
            "collective is in both"
        )
    return ""


def _end(rank: Rank) -> int:
    return rank.origin + round(rank.graph.end)


def _when(rank: Rank) -> str:
    return f"{datetime.fromtimestamp(rank.origin / 1e9, UTC):on %Y-%m-%d at %H:%M}"


def _long(ns: float) -> str:
    for unit, name in ((86400e9, "days"), (3600e9, "hours"), (60e9, "minutes")):
        if ns >= 2 * unit:
            return f"{ns / unit:,.0f} {name}"
    return about_ms(ns)
