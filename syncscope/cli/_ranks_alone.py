"""Ranks of a job that no job was made of, as one lies alone or others beside them: whether those that are here are all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from syncscope.analysis.absent import absent_of
from syncscope.cli import _expected
from syncscope.cli._jobs import worlds
from syncscope.errors import UserError

HINT = "bring them all, each job in a folder of its own; or, if no more were recorded on purpose, name the files"


def not_all(paths: Sequence[str]) -> dict[str, UserError]:
    """Why no limit holds of these recordings, of each that says it is one of several ranks: a rank of as many is not here, or
    some are here more often than others, so that nobody knows which belong together."""
    gone: dict[str, UserError] = {}
    for world, own in worlds(paths).items():
        if (why := _why(world, list(own.values()))) is not None:
            gone |= dict.fromkeys(own, why)
    return gone


def _why(world: int, numbers: Sequence[int]) -> UserError | None:
    missing = _expected.missing(absent_of(set(numbers), world))
    if missing is not None:
        return UserError(missing.message, HINT)
    times = Counter(numbers)
    (most, often), (least, seldom) = times.most_common()[0], times.most_common()[-1]
    if often == seldom:
        return None
    return UserError(
        f"which recordings are of one job is not known: of rank {most} there are {often}, of rank {least} {seldom}",
        HINT,
    )
