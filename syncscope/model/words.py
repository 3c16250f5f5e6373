"""Words of strangers as a person may see them: nothing in them steers a terminal, begins a line or turns what is read."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
WORDLESS = frozenset({bool, bytes, float, int, type(None)})  # most of what a report holds


def visible(text: str) -> str:
    """The text on one line: control characters, line separators and marks of direction as Python would escape them."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or unicodedata.category(c) == "Zs" else c.encode("unicode_escape").decode() for c in text
    )


def all_visible(value: T, exact: tuple[type, ...] = (), known: dict[int, Any] | None = None) -> T:
    """The value with every text in it visible: in dataclasses, tuples, lists and mappings, their keys too.

    Values of the classes in `exact` stay as they are. What holds nothing to change is given back itself, and what stands in
    several places stays one object; `known` carries that from one call to the next.
    """
    if type(value) in WORDLESS:
        return value
    known = {} if known is None else known
    made: Any = value
    if isinstance(value, str):
        return visible(value) if type(value) is str else value  # type: ignore[return-value]  # a text again
    if isinstance(value, exact):
        return value
    before = known.get(id(value))
    if before is not None and before[0] is value:
        return before[1]  # type: ignore[no-any-return]  # what was made of it
    kind: Any = type(value)
    if names := _names(kind):
        pairs = [(name, getattr(value, name)) for name in names]
        changed = {name: new for name, old in pairs if (new := all_visible(old, exact, known)) is not old}
        if changed:
            made = replace(made, **changed)
    elif isinstance(value, (tuple, list)):
        parts = [part if type(part) in WORDLESS else all_visible(part, exact, known) for part in value]
        if any(new is not old for new, old in zip(parts, value, strict=True)):
            made = type(value)(parts)
    elif isinstance(value, Mapping):
        pairs = [(all_visible(k, exact, known), all_visible(v, exact, known)) for k, v in value.items()]
        if any(k is not old or v is not value[old] for (k, v), old in zip(pairs, value, strict=True)):
            made = dict(pairs)
    known[id(value)], known[id(made)] = (value, made), (made, made)  # kept alive: an id may be given anew
    return made  # type: ignore[no-any-return]  # of the type of `value`


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; of others none."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
