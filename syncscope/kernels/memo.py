"""What is known of calls, by their looks: forgotten all at once where there are too many."""

from __future__ import annotations

from typing import Any, TypeVar

Known = TypeVar("Known")
MOST = 4096  # calls of different looks: a loss that selects by a mask has another shape on every step


class Memo(dict[Any, Known]):
    """A dictionary of at most 4,096 entries: one more, and it begins anew."""

    def __setitem__(self, key: Any, value: Known) -> None:
        if len(self) >= MOST:
            self.clear()
        super().__setitem__(key, value)
