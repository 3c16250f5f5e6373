"""How many ranks a job must have for its limits to hold: as many as are expected, else as the recordings say it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from syncscope.cli._limits import GivenLimit
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.analysis.absent import Absent

EXPECT = "--expect"


def option(what: str) -> Callable[[Any], Any]:
    """The option of how many ranks there must be; `what` says of what, and how many if it is not given."""
    return click.option(EXPECT, type=click.IntRange(min=1), metavar="N", help=what)


def missing(job: Absent) -> UserError | None:
    """What to say where fewer ranks are here than the job has."""
    if not job.known:
        return None
    which = f"; missing: {job.named}" if job.numbers else ""
    return UserError(
        f"{job.here:,} of {job.world:,} ranks {'is' if job.here == 1 else 'are'} here{which}",
        f"name the traces of all ranks; or, if no more were recorded on purpose, {EXPECT} {job.here}",
    )


def of_all_ranks(given: Iterable[GivenLimit], gone: UserError | None, expect: int | None) -> Iterator[GivenLimit]:
    """The limits, of which none holds where ranks are `gone`: any of these may be the one that breaks it. Where none was
    given, that fewer are here than are expected."""
    limits = list(given)
    if gone is not None and not limits and expect is not None:
        yield GivenLimit(f"{EXPECT} {expect}", unjudged=gone)
    for limit in limits:
        out = gone is not None and limit.held is not False
        yield replace(limit, unjudged=gone, aside="", at="") if out else limit
