"""Answers that hold on to the tree of a file: they are kept while one file is linted, and let go of with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

MANY = 1000  # functions and classes of a file and of those that it imports: no program that people write asks of more
P = ParamSpec("P")
T = TypeVar("T")

_LET_GO: list[Callable[[], None]] = []


def kept(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep the answers to so many questions, until another file is linted."""

    def keep(of: Callable[P, T]) -> Callable[P, T]:
        asked = lru_cache(maxsize=most)(of)
        _LET_GO.append(asked.cache_clear)
        return asked  # type: ignore[return-value]  # it is called as what it asks

    return keep


def let_go() -> None:
    """Forget all of them."""
    for forget in _LET_GO:
        forget()
