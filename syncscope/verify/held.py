"""What the program's own names hold as it runs: sums, counters, histories, the best so far, by the name and the moment.

What is read goes somewhere. A read that a version no longer makes, or makes of a sum, is the same where these numbers are. They
are looked at where a backward pass begins and where a step ends, in the frames of the program that are under way then, and in
what its own classes hold. A number is one of Python's or numpy's, or a tensor that has one element.
"""

from __future__ import annotations

import math
import os
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from types import FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from syncscope.tracers import places
from syncscope.verify.accumulating import adds_up

MOST = 2000  # values that are looked at in one moment, tensors and what holds others among them: some milliseconds
LAST = 32  # of a list, so many at its end
DEEP = 4  # lists in objects in lists
PYTHON, TENSOR = 0, 1  # what holds a number
NUMBERS = (bool, int, float, np.generic)
LISTS = (list, tuple, deque)
NO_HOLDERS = (ModuleType, type)  # of numbers
PLAIN = frozenset((str, bytes, type(None), FunctionType))  # most of what is neither
NOTHING = frozenset[int]()
END = 1 << 20  # the last moment of a step
Moment = tuple[int, int]  # the step, and how many backward passes were before in it, or END
Name = tuple[str, str]  # the file, and what holds the number in it


class HeldNumber(NamedTuple):
    """From this moment on a name holds this number."""

    moment: Moment
    by: int
    number: float


class NamesHeld:
    """In a run: notes what names hold, where that has changed."""

    def __init__(self) -> None:
        self._found: dict[Name, list[HeldNumber]] = defaultdict(list)
        self._moments: list[Moment] = []

    def look(self, frame: FrameType | None, step: int, ends: bool) -> None:
        """A moment of this step, perhaps its end, seen from a frame that the program waits for."""
        before = self._moments[-1] if self._moments else (-1, 0)
        place = END if ends else before[1] + 1 if before[0] == step else 0
        self._moments.append((step, place))
        seen = _Moment()
        seen.frames(frame)
        for name, by, number in seen.numbers:
            known = self._found[name]
            if not known or (known[-1].by, known[-1].number) != (by, number):
                known.append(HeldNumber((step, place), by, number))

    def found(self, steps: int) -> dict[str, Any]:
        """As JSON values, of so many steps."""
        moments = [moment for moment in self._moments if moment[0] < steps]
        return {"moments": moments, "held": [[*name, held] for name, held in self._found.items()]}


def held_of(found: Mapping[str, Any]) -> tuple[list[Moment], dict[Name, list[HeldNumber]]]:
    """The moments, and what names hold, of what was `found`."""
    numbers = {
        (path, name): [HeldNumber((step, place), by, number) for (step, place), by, number in held]
        for path, name, held in found.get("held", ())
    }
    return [(step, place) for step, place in found.get("moments", ())], numbers


class _Moment:
    """What is seen in one moment, of frames and of what their names hold, until MOST values have been looked at."""

    def __init__(self) -> None:
        self.numbers: list[tuple[Name, int, float]] = []
        self._left = MOST
        self._tensor: type = sys.modules["torch"].Tensor

    def frames(self, frame: FrameType | None) -> None:
        """The numbers of all frames, the innermost first, and of objects of the program's own that a library's frame holds, as
        a trainer holds a model, the first one of each class."""
        classes: set[type] = set()
        while frame is not None and self._left > 0:
            code = frame.f_code
            kind = places.kind_of_file(code.co_filename)
            if kind == places.USER:
                path = _real(code.co_filename)
                for name, value in list(frame.f_locals.items()):
                    if not name.startswith("__"):
                        self._value(path, value, f"{code.co_qualname}: {name}", 0, NOTHING)
            elif kind == places.LIBRARY:
                for value in list(frame.f_locals.values()):
                    if (file := _file_of(type(value))) and type(value) not in classes:
                        classes.add(type(value))
                        self._value(_real(file), value, f"{type(value).__qualname__}: self", 0, NOTHING)
            frame = frame.f_back

    def _value(self, path: str, value: Any, name: str, depth: int, above: frozenset[int]) -> None:
        """Numbers in it, by the name that holds it; `above` are the objects that hold that name."""
        if self._left <= 0:
            return
        self._left -= 1
        if isinstance(value, NUMBERS):
            self._number(path, value, name, PYTHON)
        elif isinstance(value, self._tensor):
            if value.numel() == 1 and not _is_captured(value):  # type: ignore[attr-defined]
                self._number(path, value, name, TENSOR)
        elif type(value) in PLAIN or depth == DEEP or isinstance(value, NO_HOLDERS) or id(value) in above:
            return
        elif isinstance(value, LISTS):
            self.numbers.append(((path, f"len({name})"), PYTHON, float(len(value))))
            inside = above | {id(value)}
            for at in range(max(0, len(value) - LAST), len(value)):
                self._value(path, value[at], f"{name}[{at}]", depth + 1, inside)
        elif isinstance(value, np.ndarray):
            for at, number in enumerate(value.flat[:LAST]):
                self._number(path, number, f"{name}[{at}]", PYTHON)
        elif isinstance(value, dict):
            inside = above | {id(value)}
            for key in [*islice(reversed(value), LAST)][::-1]:
                if isinstance(key, str | int):
                    self._value(path, value[key], f"{name}[{key!r}]", depth + 1, inside)
        elif _file_of(type(value)):
            inside = above | {id(value)}
            for key, part in list(getattr(value, "__dict__", {}).items()):
                if not key.startswith("_"):
                    self._value(path, part, f"{name}.{key}", depth + 1, inside)

    def _number(self, path: str, value: Any, name: str, by: int) -> None:
        if isinstance(value, np.complexfloating):  # numpy would warn, in the program's own log
            return
        with suppress(Exception):  # complex, text, larger than any float, or on no device
            number = float(value if by == PYTHON else value.detach())  # torch warns where autograd follows
            self.numbers.append(((path, name), by, number))


@cache
def _real(path: str) -> str:
    """The file itself, which stays the same though the program goes elsewhere; to ask the disk takes longer than all else."""
    return os.path.realpath(path)


def _is_captured(tensor: Any) -> bool:
    """Whether a graph is being recorded on the device, so that nothing can be read."""
    return bool(tensor.is_cuda and sys.modules["torch"].cuda.is_current_stream_capturing())


def _file_of(kind: type) -> str:
    """The file of a class of the program's own; "" of any other."""
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return path if isinstance(path, str) and places.kind_of_file(path) == places.USER else ""


def names_apart(
    one: Mapping[Name, list[HeldNumber]], other: Mapping[Name, list[HeldNumber]], moments: Iterable[Moment]
) -> dict[Name, float]:
    """How far names are apart that hold numbers of Python's in the first and any in the other; 0 is the same.

    A name may have its number later than in the first: at some place of a step it must be the same in all steps, or one step
    later in all. One that holds only the last of what it is given may be given less.
    """
    in_order = sorted(moments)
    apart: dict[Name, float] = {}
    for name in one.keys() & other.keys():
        mine, theirs = one[name], other[name]
        if any(held.by != PYTHON for held in mine):
            continue
        if mine == theirs:
            apart[name] = 0.0
            continue
        a, b = _over(mine, in_order), _over(theirs, in_order)
        apart[name] = min(_largest(a, b, place, late) for place in {place for _, place in in_order} for late in (0, 1))
        if apart[name] and not adds_up(*name):
            given = {held.moment: held.number for held in theirs}
            apart[name] = min(apart[name], *(_of_given(a, given, late) for late in (0, 1)))
    return apart


def _of_given(a: Mapping[Moment, float], given: Mapping[Moment, float], late: int) -> float:
    """The largest distance in those moments in which the other version gave the name a number."""
    both = [distance(a[step - late, place], b) for (step, place), b in given.items() if (step - late, place) in a]
    return max(both, default=math.inf)


def _over(held: list[HeldNumber], moments: Iterable[Moment]) -> dict[Moment, float]:
    """What it holds in each of these moments, from the first on."""
    found: dict[Moment, float] = {}
    left = deque(held)
    now: float | None = None
    for moment in moments:
        while left and left[0].moment <= moment:
            now = left.popleft().number
        if now is not None:
            found[moment] = now
    return found


def _largest(a: Mapping[Moment, float], b: Mapping[Moment, float], place: int, late: int) -> float:
    """The largest distance at one place of all steps in which both are there; inf where that is none."""
    mine = {step: number for (step, at), number in a.items() if at == place}
    both = [distance(number, b[step + late, place]) for step, number in mine.items() if (step + late, place) in b]
    return max(both, default=math.inf)


def distance(a: float, b: float) -> float:
    """Of two numbers, relative to the larger one; what is NaN in both is the same."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) / max(abs(a), abs(b)) if math.isfinite(a) and math.isfinite(b) else math.inf
