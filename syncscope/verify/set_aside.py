"""Fixes that would have each version begin in a process of its own, the others, too, which may take turns in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from syncscope.verify.results import TriedFix
from syncscope.verify.versions import Set


class SetAsideError(Exception):
    """Some were, once versions had begun to take turns: the others begin anew."""


def set_aside(
    tried: Mapping[int, TriedFix], closed: Callable[[Iterable[int]], Set], why_apart: Callable[[Set], str]
) -> bool:
    """Says of those fixes why they are not tried, by what keeps the version of each alone from turns, unless it is all of
    them; whether it was any."""
    open_ = [number for number, fix in tried.items() if not fix.why]
    once = {number: why for number in open_ if (why := why_apart(closed({number})))}
    if not 0 < len(once) < len(open_):
        return False
    for number, why in once.items():
        tried[number].why = f"{why}: --apart tries it, as does --line by itself"
    return True
