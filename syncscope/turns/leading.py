"""Which loops are under way, and one of them led: what it is over comes again, and it is not left, as long as it is led.

Iterations are led from their top. There no function that the loop calls is under way, no expression is half evaluated: the only
thing that the loop holds besides the names of its function is what it is over.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any, Protocol

RETURN = -1  # for a site: all loops of a function are left
NEXT = 0  # for a frame: the one that begins the loop next
Key = tuple[int, int]  # the frame, and the loop's site


class LeftError(BaseException):
    """The loop would have been left here."""


class Leader(Protocol):
    """Who leads a loop."""

    def top(self) -> None:
        """An iteration begins. Here what has happened since may be put back, and what the loop is over rewound."""

    def is_over(self, made: bool) -> bool:
        """The loop has come to its end, before an iteration or after one was `made`. Whether the next begins all the same."""

    def failed(self, error: BaseException) -> bool:
        """This was raised in an iteration. Whether the next begins all the same."""


class Given:
    """What an iterator gives, kept so that it can be given once more. `keep` makes, of a value, what gives it again."""

    def __init__(self, give: Callable[[], Any], keep: Callable[[Any, Any], Callable[[], Any]], draw: Callable[[], Any]):
        self._give, self._keep, self._draw = give, keep, draw
        self._kept: list[Callable[[], Any]] = []
        self._at = 0

    @property
    def is_pending(self) -> bool:
        """Whether something is still to come once more."""
        return self._at < len(self._kept)

    def next(self, keeps: bool) -> Any:
        """The next one."""
        if self.is_pending:
            self._at += 1
            return self._kept[self._at - 1]()
        if not keeps:
            self._kept, self._at = [], 0
            return self._give()
        before = self._draw()
        value = self._give()
        self._kept.append(self._keep(value, before))
        self._at += 1
        return value

    def begin(self) -> None:
        """What has come once more is forgotten: only what comes from now on is to come again."""
        self._kept, self._at = self._kept[self._at :], 0

    def rewind(self) -> None:
        """All comes again."""
        self._at = 0


class Loops:
    """Asked by woven loops. `keep` and `draw` are those of `Given`."""

    def __init__(
        self,
        keep: Callable[[Any, Any], Callable[[], Any]] = lambda value, drawn: lambda: value,
        draw: Callable[[], Any] = lambda: None,
    ) -> None:
        self._keep, self._draw = keep, draw
        self._open: dict[Key, int] = {}  # when each was begun, or its last round was
        self._clock = 0
        self._leader: Leader | None = None
        self._head: Key | None = None
        self._keeps = False
        self._inside = 0  # of how many iterators something is asked right now: the outermost keeps it
        self._given: dict[int, tuple[Any, Given]] = {}

    # who leads

    def innermost(self, frame: FrameType | None) -> Key | None:
        """The innermost loop that is under way around what this frame does."""
        while frame is not None:
            here = [(at, key) for key, at in self._open.items() if key[0] == id(frame)]
            if here:
                return max(here)[1]
            frame = frame.f_back
        return None

    @property
    def is_led(self) -> bool:
        """Whether a loop is, that is still under way."""
        return self._head is not None

    def lead(self, head: Key, leader: Leader) -> None:
        """From its next iteration on this loop is led; of the `NEXT` frame, from its first on."""
        self._head, self._leader = head, leader

    def record(self) -> None:
        """What is given from now on is kept."""
        self._keeps, self._inside = True, 0
        for _, given in self._given.values():
            given.begin()

    def rewind(self) -> None:
        """It comes again."""
        for _, given in self._given.values():
            given.rewind()

    def release(self) -> None:
        """It comes once more, then what is new; nobody leads any more."""
        self.rewind()
        self._keeps, self._head, self._leader = False, None, None

    # what woven loops ask

    def over(self, values: Iterable[Any], site: int) -> Iterator[Any]:
        """What a loop is over."""
        return self._values(iter(values), (id(sys._getframe(1)), site))

    def _values(self, values: Iterator[Any], key: Key) -> Iterator[Any]:
        self._begins(key)
        try:
            while True:
                if self._head != key:
                    for value in values:  # as long as nobody leads it, that is all
                        yield value
                        if self._head == key:
                            break
                    else:
                        return
                given = self._of(values)
                while (leader := self._leading(key)) is not None or given.is_pending:
                    if leader is not None:
                        leader.top()
                    try:
                        value = self._next(given)
                    except StopIteration:
                        if (leader := self._leading(key)) is not None and leader.is_over(made=False):
                            continue
                        return
                    except BaseException as error:
                        if (leader := self._leading(key)) is not None and leader.failed(error):
                            continue
                        raise
                    yield value
                self._given.pop(id(values), None)
        finally:
            self._ended(key)

    def round(self, site: int) -> None:
        """A round of a `while` begins."""
        key = id(sys._getframe(1)), site
        self._begins(key)
        if (leader := self._leading(key)) is not None:
            leader.top()

    def more(self, site: int) -> bool:
        """Whether a `while` goes on though its condition does not hold any more."""
        key = id(sys._getframe(1)), site
        if (leader := self._leading(key)) is not None and leader.is_over(made=True):
            return True
        self._ended(key)
        return False

    def leave(self, site: int) -> None:
        """A loop, or the function that it stands in, is about to be left.

        Raises:
            LeftError: it is led, and is not.
        """
        frame = id(sys._getframe(1))
        left = [key for key in self._open if key[0] == frame and site in (RETURN, key[1])]
        if self._keeps and self._head in left:
            raise LeftError
        for key in left:
            self._ended(key)

    def caught(self, site: int) -> bool:
        """Whether what is being handled here ends an iteration, and not the loop."""
        leader, error = self._leading((id(sys._getframe(1)), site)), sys.exception()
        return leader is not None and error is not None and leader.failed(error)

    def given(self, iterator: Any, *default: Any) -> Any:
        """`next(iterator)`, or with a default."""
        if not self._keeps and not self._given:
            return next(iterator, *default)
        given = self._of(iterator)
        try:
            return self._next(given)
        except StopIteration:
            if default:
                return default[0]
            raise
        finally:
            if not self._keeps and not given.is_pending:
                self._given.pop(id(iterator), None)

    def _begins(self, key: Key) -> None:
        self._clock += 1
        self._open[key] = self._clock
        if self._head == (NEXT, key[1]):
            self._head = key

    def _leading(self, key: Key) -> Leader | None:
        return self._leader if self._head == key else None

    def _ended(self, key: Key) -> None:
        self._open.pop(key, None)
        if self._head == key:  # a frame to come may have its number
            self._head = self._leader = None

    def _of(self, iterator: Any) -> Given:
        if id(iterator) not in self._given:
            self._given[id(iterator)] = iterator, Given(iterator.__next__, self._keep, self._draw)
        return self._given[id(iterator)][1]

    def _next(self, given: Given) -> Any:
        keeps = self._keeps and not self._inside
        self._inside += 1
        try:
            return given.next(keeps)
        finally:
            self._inside -= 1
