"""What loops that are under way have been given, kept so that they can be given it once more: the same batches again.

Kept is what an iterator gives after `record`, of loops of the program's own and of a loader's iterators, each where it was at
that moment. After `rewind` it comes again, and when it has all come, the iterator goes on where it was. After `release` nothing
is kept: so in the end nothing is lost, and nothing came twice.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class Tape:
    """All iterators that are heard. `ended` says whether one of them came to its end since `record`."""

    def __init__(self) -> None:
        self._open: weakref.WeakSet[Heard] = weakref.WeakSet()
        self._heard: weakref.WeakKeyDictionary[Any, Heard] = weakref.WeakKeyDictionary()
        self._ready = True  # whether loops that begin are heard
        self.keeps = False
        self.inside = 0  # of how many iterators something is asked right now: the outermost keeps it
        self.ended = False

    def loop(self, values: Iterable[Any]) -> Iterable[Any]:
        """What a loop is over, heard; a loop that begins when all is warm ends within a step, and is left alone."""
        return Loop(self, iter(values)) if self._ready else values

    def of(self, iterator: Any, give: Callable[[Any], Any]) -> Heard:
        """One that somebody else asks, as it is when it is asked first; `give` has it give one."""
        heard = self._heard.get(iterator)
        if heard is None:
            asked = weakref.ref(iterator)
            heard = self._heard[iterator] = Heard(self, lambda: give(asked()))
        return heard

    def record(self) -> None:
        """From now on what they give is kept."""
        self._ready = self.ended = False
        self.keeps, self.inside = True, 0
        for one in self._open:
            one.begin()

    def rewind(self) -> None:
        """It comes again."""
        for one in self._open:
            one.at = 0

    def release(self) -> None:
        """It comes once more, and then what comes is new."""
        self.rewind()
        self.stop()

    def stop(self) -> None:
        """Nothing is kept any more."""
        self.keeps = False

    def add(self, one: Heard) -> None:
        """One more that is heard."""
        self._open.add(one)


class Heard:
    """An iterator: what it has given since, and how much of that has come again."""

    def __init__(self, tape: Tape, give: Callable[[], Any]) -> None:
        self._tape, self._give = tape, give
        self._kept: list[Any] = []
        self._known = False  # whether it was under way when the recording began
        self._asked = False
        self.at = 0
        tape.add(self)

    def begin(self) -> None:
        """What comes now is kept, if nothing of it is being made just now: then a step is a part of that."""
        self._known, self._kept, self.at = not self._asked, self._kept[self.at :], 0

    def next(self) -> Any:
        """The next one."""
        tape = self._tape
        if self.at < len(self._kept):
            self.at += 1
            return self._kept[self.at - 1]
        before, self._asked = tape.inside, True
        # what the steps themselves are a part of keeps nothing, and leaves it to those inside
        tape.inside += self._known
        try:
            value = self._give()
        except StopIteration:
            tape.ended = tape.ended or (self._known and not before)
            raise
        finally:
            tape.inside, self._asked = before, False
        if tape.keeps and self._known and not before:
            self._kept.append(value)
            self.at += 1
        elif self._kept and not tape.keeps:
            self._kept, self.at = [], 0
        return value


class Loop(Heard):
    """What a `for` is over."""

    def __init__(self, tape: Tape, iterator: Iterator[Any]) -> None:
        super().__init__(tape, iterator.__next__)

    def __iter__(self) -> Loop:
        return self

    __next__ = Heard.next
