"""Which version runs, asked by woven code at the top of each passage that differs."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from syncscope.turns.filled import Lists
from syncscope.turns.leading import Loops
from syncscope.turns.tape import Tape

NAME = "__syncscope_turns__"  # under which woven code finds the selector, among the builtins


class Selector:
    """`version` is the one that runs, 0 as written. `entered` counts how often each passage was begun, by it and version.

    Where the passage `head` begins, `headed` is called, which may choose another: what lies in it is all of one version then,
    so that what one has put into a list is not met by the other.
    """

    def __init__(self) -> None:
        self.version = 0
        self.head: int | None = None
        self.headed: Callable[[], None] = lambda: None
        self.entered: dict[tuple[int, int], int] = {}
        self.tape = Tape()
        self.over: Any = self.tape.loop  # asked by each loop what it is over
        self._begun = 0  # passages so far
        self._last: dict[int, int] = {}  # of them the last one of each version but that as written
        self._plain: set[tuple[int, str]] = set()  # names that hold numbers as written
        self._lists = Lists()
        self.alike, self.finish = self._lists.alike, self._lists.finish

    def install(self) -> None:
        """From now on woven code asks this one."""
        setattr(builtins, NAME, self)

    def follow(self, loops: Loops) -> None:
        """Loops are led by these."""
        self.over, self.round, self.more = loops.over, loops.round, loops.more
        self.leave, self.caught, self.given = loops.leave, loops.caught, loops.given

    def restored(self) -> None:
        """What lists hold is put back: no version has seen them."""
        self._lists.forget()

    def forget(self) -> None:
        """No version but that as written has run."""
        self.version = 0
        self._last.clear()
        self._lists.forget()

    def at(self, passage: int) -> int:
        """The version for a passage that begins."""
        self.top(passage)
        self._begun += 1
        if self.version:
            self._last[self.version] = self._begun
        return self.version

    def top(self, passage: int) -> None:
        """A passage begins, or what several belong to."""
        if passage == self.head:
            self.headed()
        key = passage, self.version
        self.entered[key] = self.entered.get(key, 0) + 1

    def mark(self) -> int:
        """The moment before a loop, for `since`."""
        return self._begun

    def since(self, mark: int) -> int:
        """The version for what follows the loop: the one that ran in it; of several the first one, which has all changes."""
        return min((version for version, last in self._last.items() if last > mark), default=0)

    def plain(self, passage: int, name: str, value: Any) -> Any:
        """A value that is added to as written: as a number again, where it is a tensor only since another version ran."""
        if isinstance(value, int | float):
            if not self._last:
                self._plain.add((passage, name))
        elif (passage, name) in self._plain and hasattr(value, "untyped_storage") and value.numel() == 1:
            return value.item()
        return value
