"""What is known of calls, by their looks: forgotten all at once where there are too many."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

Known = TypeVar("Known")
MOST = 4096  # calls of different looks: a loss that selects by a mask has another shape on every step


class Memo(dict[Hashable, Known]):
    """A dictionary of at most `most` entries: one more, and it begins anew."""

    def __init__(self, most: int = MOST) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: Hashable, value: Known) -> None:
        if len(self) >= self.most:
            self.clear()
        super().__setitem__(key, value)
