"""A loader whose batches are the steps of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from syncscope.tracers import dry_run
from syncscope.tracers.session import current

T = TypeVar("T")


def steps_of(loader: Iterable[T]) -> Iterator[T]:
    """The batches of a loader, each of them a step of the recording."""
    for batch in loader:
        yield dry_run.mark(batch)
        session = current()
        if session is not None:
            session.step()
