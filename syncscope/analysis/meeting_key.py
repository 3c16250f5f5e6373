"""By what a collective of one rank is known again on the others."""

from __future__ import annotations

from typing import NamedTuple

OUTSIDE = -1  # the step of what belongs to none

OfKind = tuple[int, str, str]
"""A key without its ordinal."""


class MeetingKey(NamedTuple):
    """The step, the process group ("" where it is not told), the kind, and which of these it is by each rank's own counting."""

    step: int
    group: str
    kind: str
    ordinal: int

    @property
    def of_kind(self) -> OfKind:
        """All but which it is."""
        return self.step, self.group, self.kind

    def __str__(self) -> str:
        return "/".join(map(str, self))

    @classmethod
    def of(cls, text: str) -> MeetingKey:
        """The key that a string is of, as files have it; no kind has a slash."""
        before, _, ordinal = text.rpartition("/")
        step, _, rest = before.partition("/")
        group, _, kind = rest.rpartition("/")
        return cls(int(step), group, kind, int(ordinal))
