"""Which reads of two runs are the same read: those of one step and one piece of text, by function and kind, in their order.

A read that a version no longer makes has no counterpart: the next one that remains is not it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from syncscope.model.ops import Op
from syncscope.verify.held import distance
from syncscope.verify.request import HEAD

LAST_BIT = 2.0**-23  # of a number of 32 bits
SIZE = "size"  # the kind of what tells how much a selection leaves; others are numpy's: b, i, u, f
SELECTIONS = frozenset(
    {
        Op.NONZERO,
        Op.ARGWHERE,
        Op.WHERE,
        Op.MASKED_SELECT,
        Op.UNIQUE,
        Op.UNIQUE_CONSECUTIVE,
        Op.REPEAT_INTERLEAVE,
        Op.BINCOUNT,
        Op.COALESCE,
    }
)


class NotedValue(NamedTuple):
    """A value at a moment: what tells it from any other, and its first numbers; a sum stands for those behind `HEAD`."""

    step: int
    digest: str
    head: Sequence[float]
    kind: str = ""
    function: str = ""  # that reads it

    @property
    def is_cut(self) -> bool:
        """Whether it has numbers that are not kept one by one."""
        return len(self.head) > HEAD


class Pair(NamedTuple):
    """Reads of one run, those of the other that they are, and how far these are apart; None where they have no counterpart."""

    mine: Sequence[NotedValue]
    theirs: Sequence[NotedValue]
    apart: float | None


def paired(mine: Sequence[NotedValue], theirs: Sequence[NotedValue]) -> Iterator[Pair]:
    """What was read in a piece of text in one step. Numbers that are read at once are those read one by one, of any kind."""
    apart = apart_of(mine, theirs)
    if apart is not None and (apart <= LAST_BIT or _are_at_once((*mine, *theirs)) or all(map(_meet, mine, theirs))):
        yield Pair(mine, theirs, apart)
        return
    for key in (_function_and_kind, _kind):
        groups, others = _grouped(mine, key), _grouped(theirs, key)
        for each in groups.keys() & others.keys():
            if (apart := apart_of(groups[each], others[each])) is not None:
                yield Pair(groups[each], others[each], apart)
                del groups[each], others[each]
        mine, theirs = ([value for each in of.values() for value in each] for of in (groups, others))
    if mine or theirs:
        yield Pair(mine, theirs, None)


def apart_of(mine: Sequence[NotedValue], theirs: Sequence[NotedValue]) -> float | None:
    """How far values are apart, number by number; None where they are not as many."""
    if [v.digest for v in mine] == [v.digest for v in theirs]:
        return 0.0
    apart = _of_numbers([x for v in mine for x in v.head], [x for v in theirs for x in v.head])
    is_another = any(v.is_cut for v in (*mine, *theirs)) or [len(v.head) for v in mine] == [len(v.head) for v in theirs]
    return LAST_BIT if apart == 0.0 and is_another else apart  # it is what is not kept, or their dtype


def same_numbers(mine: Sequence[NotedValue], theirs: Sequence[NotedValue], steps: int) -> int:
    """How many numbers that are read one by one here are read at once there; 0 where those are others, as it seems.

    Of all but two steps: what is read at the end of one here may be read in the next there.
    """
    one, other = (
        Counter(repr(x) for value in values if not value.is_cut for x in value.head) for values in (mine, theirs)
    )
    both = (one & other).total()
    return both if both >= min(one.total(), other.total()) * (1 - 2 / steps) else 0


def _of_numbers(mine: Sequence[float], theirs: Sequence[float]) -> float | None:
    if len(mine) != len(theirs) or not mine:
        return None
    return max(distance(a, b) for a, b in zip(mine, theirs, strict=True))


def _are_at_once(values: Sequence[NotedValue]) -> bool:
    """Whether some are lists, which have one kind whatever was put into them."""
    return any(len(value.head) > 1 and value.kind != SIZE for value in values)


def _meet(mine: NotedValue, theirs: NotedValue) -> bool:
    """Whether two may be the same read: a count may have become a float, but then it is a whole one."""
    if mine.function != theirs.function:
        return False
    kinds = {mine.kind, theirs.kind}
    return len(kinds) == 1 or (kinds <= {"i", "u", "f"} and all(x % 1 == 0 for x in (*mine.head, *theirs.head)))


def _function_and_kind(value: NotedValue) -> str:
    return f"{value.function} {value.kind}"


def _kind(value: NotedValue) -> str:
    return value.kind


def _grouped(values: Sequence[NotedValue], key: Callable[[NotedValue], str]) -> dict[str, list[NotedValue]]:
    found: dict[str, list[NotedValue]] = defaultdict(list)
    for value in values:
        found[key(value)].append(value)
    return found
