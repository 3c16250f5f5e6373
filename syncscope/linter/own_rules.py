"""Rules that users bring are code that may fail: it is said which did, and where; all others are asked all the same."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from syncscope.linter.config import shown
from syncscope.model.fact import Site
from syncscope.model.finding import Fix
from syncscope.rules import Rule, is_ours

FAILED: dict[str, str] = {}  # what failed in the file at hand, in words, and the place that was being looked at


def failed(name: str, rule: Rule, error: Exception, site: Site, path: str) -> None:
    """Note what a user's rule raised. Of ours it is a bug, and raises on; so does what is nested too deeply for either."""
    if is_ours(rule) or isinstance(error, (RecursionError, MemoryError)):
        raise error
    file = getattr(rule, "__file__", None) or name
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    said = f"{shown(file)}{f':{lines[-1]}' if lines else ''}: {type(error).__name__}: {error}"
    FAILED.setdefault(f"{said}: your rule {name} failed", f"{path}:{site.place.line}")


def of_kind(found: Any, kind: type, what: str) -> Any:
    """What a rule gave, if that is what it is to give.

    Raises:
        TypeError: it is neither that nor None.
    """
    if found is None or isinstance(found, kind):
        return found
    raise TypeError(f"{what} gave {found!r}, which is no {kind.__name__}")


def fix_of(found: Any) -> Fix | None:
    """What the rewrite of a rule gave; what it changes may be one text.

    Raises:
        TypeError: it is no fix.
    """
    fix: Fix | None = of_kind(found, Fix, "rewrite")
    said: object = fix.terms if fix is not None else ()
    return replace(fix, terms=(said,)) if fix is not None and isinstance(said, str) else fix


def told(every: Iterable[dict[str, str]]) -> list[str]:
    """A line for each failure in many files, with the first place at which it came."""
    places: dict[str, list[str]] = {}
    for one in every:
        for said, place in one.items():
            places.setdefault(said, []).append(place)
    return [
        f"{said} at {at[0]}" + (f", and in {len(at) - 1} more {'file' if len(at) == 2 else 'files'}" if at[1:] else "")
        for said, at in places.items()
    ]
