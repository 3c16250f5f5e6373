"""Why a fix that was tried stays, or goes, in words."""

from __future__ import annotations

from syncscope.verify.processes import RunFailedError
from syncscope.verify.timing import FEWEST, WIDE, Ratio

NEXT = (
    "of the step as written. Which of them it takes is looked for until that is known, or the budget spent; Ctrl-C ends this "
    "and shows what is known"
)
"""What is done once all fixes together are known to gain."""


def is_timed(ratio: Ratio | None) -> bool:
    """Whether it ran in so many turns that something can be said."""
    return ratio is not None and ratio.turns >= FEWEST


def why_it_stays(ratio: Ratio | None) -> str:
    """Why one of several fixes stays."""
    if ratio is None or not is_timed(ratio):
        return "all together gain; what the step is without it was not timed"
    if ratio.loses:
        return "the step is longer without it"
    return "all together gain; whether the step is longer without it is open"


def why_it_is_left(
    ratio: Ratio | None, values: str | None, failed: RunFailedError | None, whole: Ratio | None, gains: bool
) -> str:
    """As `why_it_goes`; of one that was not timed by itself by what is known of all together, which gain or not."""
    if ratio is None and whole is not None and is_timed(whole) and not gains:
        return "whether all together gain is open" if _is_open(whole) else "all together do not gain"
    return why_it_goes(ratio, values, failed)


def why_it_goes(ratio: Ratio | None, values: str | None, failed: RunFailedError | None) -> str:
    """Why a fix does not stay; `failed`: its version does not run."""
    if values is None:
        return "it was not tried before the end"
    if failed:
        return f"it fails: {failed.why}"
    if ratio is None:
        return "it was not timed before the end"
    if ratio.turns < FEWEST:
        return f"it was timed in {ratio.turns} turn{'s' * (ratio.turns != 1)} only"
    if ratio.loses:
        return "it makes the step longer"
    if ratio.gains:
        return "that it gains by itself may be chance, or is as little as two equal versions differ by"
    return "whether it gains is open" if _is_open(ratio) else "it does not gain"


def _is_open(ratio: Ratio) -> bool:
    return ratio.half > WIDE or ratio.is_open
