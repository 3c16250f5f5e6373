"""What two runs have computed, side by side: the parameters, the losses, and what both have read, line by line."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.model.ops import SINGLE, Op
from syncscope.model.source import Place
from syncscope.turns.weaving import LINES
from syncscope.verify.counted import Waits, rounds_of, total
from syncscope.verify.held import PYTHON, HeldNumber, Moment, Name, held_of, names_apart
from syncscope.verify.lines import LineMap
from syncscope.verify.paired import LAST_BIT, SELECTIONS, SIZE, NotedValue, apart_of, paired, same_numbers
from syncscope.verify.processes import RunResult
from syncscope.verify.request import PARAMETERS, STATE

Piece = tuple[str, int]
PieceOf = Callable[[Place], Piece]
State = Mapping[str, list[tuple[str, NDArray[Any]]]]
APART = 1.0  # two numbers as far apart as they are large: one more run may as well give none at all (NaN)
KINDS = ("parameters", "losses", "numbers that are read", "numbers that modules hold", "numbers that names hold")
SELDOM = 0.5  # of the steps in which something is read as written
SHOWN = 3  # lines that are named in a sentence


@dataclass(frozen=True)
class Values:
    """What one run has computed. Reads and their numbers are by line of the files as that run had them."""

    steps: int
    losses: list[NotedValue]
    reads: dict[Place, list[NotedValue]]
    waits: Waits  # of each step
    digests: list[bytes]
    parameters: list[NDArray[Any]]
    state: State = field(default_factory=dict)  # what else modules hold, by name
    held: Mapping[Name, list[HeldNumber]] = field(default_factory=dict)  # what the program's own names hold
    moments: Sequence[Moment] = ()  # in which that was looked at
    told: Sequence[str] = ()  # dtype and shape of each parameter

    @cached_property
    def counts(self) -> Counter[tuple[Place, str]]:
        """How often each line waits, without the first step, and what went before it."""
        return total(self.waits[1:])

    def of_nan(self) -> str:
        """From where on nothing can be told from a change, since no number is left; "" where numbers are."""
        steps = [loss.step for loss in self.losses if any(math.isnan(number) for number in loss.head)]
        if not steps:
            return ""
        return f"the loss is NaN in step {min(steps) + 1}, and all that comes of it is, too: equal values prove little"

    def stay(self) -> str:
        """Which waits a run in which single values are answered late has all the same, the most frequent first; "" for none."""
        counted = rounds_of(self.waits).counted
        others = Counter(
            {
                line: count
                for line, count in total(self.waits, counted).items()
                if line[1] not in (*SINGLE, Op.TOLIST, Op.OCL_FALLBACK)
            }
        )
        if not others:
            return ""
        named = [
            f"{op} at {os.path.relpath(place.path)}:{place.line} ({count / len(counted):.3g} a step)"
            for (place, op), count in others.most_common(SHOWN)
        ]
        more = f" and {len(others) - SHOWN} more lines" if len(others) > SHOWN else ""
        return f"only reads of single values were answered late; these waits stayed: {', '.join(named)}{more}"

    def of_fallbacks(self) -> str:
        """Which waits are none of the program's, but of a device that has no kernel for an operator; "" without one."""
        counted = rounds_of(self.waits).counted
        lines = {place: count for (place, op), count in total(self.waits, counted).items() if op == Op.OCL_FALLBACK}
        if not lines:
            return ""
        named = [f"{os.path.relpath(place.path)}:{place.line}" for place in sorted(lines)]
        more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
        each = sum(lines.values()) / len(counted)
        return (
            f"{each:.3g} waits a step as written are not counted: ocl has no kernel for an operator at "
            f"{', '.join(named[:SHOWN])}{more}; on CUDA the host does not wait there"
        )


def values_of(run: RunResult) -> Values:
    """What a run has left."""
    reads: dict[Place, list[NotedValue]] = defaultdict(list)
    for path, line, op, *of in run.found["reads"]:
        value = NotedValue(*of)
        place = Place(os.path.realpath(path), line)
        reads[place].append(value._replace(kind=SIZE) if op in SELECTIONS else value)
    waits: list[Counter[tuple[Place, str]]] = []
    for step in run.found["counts"]:
        waits.append(Counter())
        for path, line, op, count in step:  # a line may read several times
            waits[-1][Place(os.path.realpath(path), line), op] += count
    with np.load(Path(run.folder, PARAMETERS)) as file:
        number = len(file.files) // 3
        digests = [file[f"digest{n}"].tobytes() for n in range(number)]
        parameters = [file[f"values{n}"] for n in range(number)]
        told = [str(file[f"told{n}"]) for n in range(number)]
    state: dict[str, list[tuple[str, NDArray[Any]]]] = defaultdict(list)
    if (held := Path(run.folder, STATE)).is_file():
        with np.load(held) as file:
            for number, (name, digest) in enumerate(run.found["state"]):
                state[name].append((digest, file[f"values{number}"]))
    losses = [NotedValue(*v) for v in run.found["losses"]]
    moments, names = held_of(run.found)
    return Values(run.found["steps"], losses, reads, waits, digests, parameters, state, names, moments, told)


@dataclass(frozen=True)
class Difference:
    """The largest relative differences of two runs, 0 where all is bit for bit the same, inf where it cannot be the same.

    That of a parameter is relative to its largest element, as is that of `state`, what modules hold beside. `compared` of the
    `read` values that were read as written have a counterpart in the other version.
    """

    parameters: float = 0.0
    losses: float = 0.0
    reads: float = 0.0
    compared: int = 0
    read: int = 0
    where: str = ""  # the line whose value differs most, or what a module holds
    state: float = 0.0
    held: float = 0.0
    names: int = 0  # that hold numbers in both

    @property
    def largest(self) -> float:
        """Of all."""
        return max(self._kinds())

    @property
    def apart(self) -> list[str]:
        """The kinds of values that have nothing in common."""
        return [kind for kind, by in zip(KINDS, self._kinds(), strict=True) if by >= APART]

    def within(self, other: Difference, times: float) -> bool:
        """Whether no kind of value differs by more than so many times as much, or there nothing is in common."""
        kinds = zip(self._kinds(), other._kinds(), strict=True)
        return all(mine <= times * theirs or theirs >= APART for mine, theirs in kinds)

    def beyond(self, other: Difference, times: float) -> tuple[str, float, float]:
        """The kind of values that keeps it from being `within`, the one that is farthest off: how far it is, and the other."""
        kinds = zip(KINDS, self._kinds(), other._kinds(), strict=True)
        far = [(kind, mine, theirs) for kind, mine, theirs in kinds if mine > times * theirs and theirs < APART]
        return max(far, key=lambda of: of[1] / of[2] if of[2] else math.inf)

    def _kinds(self) -> tuple[float, ...]:
        return self.parameters, self.losses, self.reads, self.state, self.held

    def __or__(self, other: Difference) -> Difference:
        """The larger of each."""
        weights, losses, reads, state, held = map(max, self._kinds(), other._kinds())
        where = self.where or other.where
        return Difference(weights, losses, reads, self.compared, self.read, where, state, held, self.names)


def difference(
    one: Values, other: Values, piece: PieceOf, of_other: PieceOf, loose: Collection[Name] = ()
) -> Difference:
    """How far two runs are apart; `piece` says to which piece of text a line of the first belongs, `of_other` of the second.
    What `loose` names hold is another in each run.
    """
    if one.steps != other.steps:
        return Difference(math.inf, where=f"{other.steps} steps instead of {one.steps}")
    weights, where = _of_parameters(one, other)
    losses = apart_of(one.losses, other.losses)
    at = ""
    before, after = _by_piece(one.reads, piece), _by_piece(other.reads, of_other)
    worst, compared = 0.0, 0
    # by file: what is read in another piece, perhaps in another step
    moved: dict[str, list[NotedValue]] = defaultdict(list)
    summed = {held.number for noted in one.held.values() for held in noted if held.by == PYTHON}
    for key, mine in before.items():
        is_later = sum(step in after.get(key, {}) for step in mine) < SELDOM * len(mine)
        for step, values in mine.items():
            left: list[NotedValue] = []
            for of_mine, theirs, apart in paired(values, after.get(key, {}).pop(step, [])):
                if apart and is_later and all(x in summed for value in theirs for x in value.head):
                    apart = None  # a sum is read at the end of an epoch, and what is added up is no longer
                if apart is None:
                    moved[key[0]] += of_mine
                    left += theirs
                    continue
                compared += len(of_mine)
                if apart > worst:
                    worst, at = apart, f"{os.path.relpath(key[0])}:{_line_of(one.reads, piece, key)}"
            after[key][step] = left
    for path, values in moved.items():
        others = [
            value for key, steps in after.items() if key[0] == path for found in steps.values() for value in found
        ]
        compared += same_numbers(values, others, one.steps)
    read = sum(map(len, one.reads.values()))
    state, name = max(_of_state(one.state, other.state), default=(0.0, ""))
    if losses is None:  # other backward passes than as written, whatever they come to
        losses, where = math.inf, where or f"{len(other.losses)} losses instead of {len(one.losses)}"
    names = {key: by for key, by in names_of(one, other, of_other).items() if key not in loose}
    held, (_, holder) = max(((by, key) for key, by in names.items()), default=(0.0, ("", "")))
    return Difference(
        weights, losses, worst, compared, read, where or at or name or holder * bool(held), state, held, len(names)
    )


def names_of(one: Values, other: Values, of_other: PieceOf) -> dict[Name, float]:
    """How far names are apart that hold numbers in two runs; `of_other` says which file of the first one of the second is."""
    renamed = {(of_other(Place(path, 1))[0], name): held for (path, name), held in other.held.items()}
    return names_apart(one.held, renamed, one.moments)


def _of_parameters(one: Values, other: Values) -> tuple[float, str]:
    """How far, and what of them is no number: one of another dtype rounds differently in each step, whatever it holds now."""
    if len(one.parameters) != len(other.parameters):
        return math.inf, f"{len(other.parameters)} parameters instead of {len(one.parameters)}"
    for number, (mine, theirs) in enumerate(zip(one.told, other.told, strict=True), 1):
        if mine != theirs:
            return math.inf, f"parameter {number}, which is {theirs} instead of {mine}"
    worst = 0.0
    for a, b, x, y in zip(one.parameters, other.parameters, one.digests, other.digests, strict=True):
        if x != y:
            worst = max(worst, relative(a, b) or LAST_BIT)  # what is not kept differs
    return worst, ""


def _of_state(one: State, other: State) -> Iterator[tuple[float, str]]:
    """Of names that both have, in as many modules: others are of modules that happened to be there still."""
    for name in one.keys() & other.keys():
        mine, theirs = one[name], other[name]
        if len(mine) == len(theirs) and sorted(told for told, _ in mine) != sorted(told for told, _ in theirs):
            pairs = zip(mine, theirs, strict=True)
            yield max(relative(a, b) or LAST_BIT for (x, a), (y, b) in pairs if x != y), name


def relative(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The largest difference of two arrays, relative to the largest element; what is NaN or inf in both is the same."""
    a, b = a.astype(float), b.astype(float)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    apart = float(np.abs(np.where(same, 0.0, a - b)).max())
    largest = float(np.abs(np.where(np.isfinite(a), a, 0.0)).max())
    return math.inf if not math.isfinite(apart) or largest == 0.0 else apart / largest


def _by_piece(reads: Mapping[Place, Iterable[NotedValue]], piece: PieceOf) -> dict[Piece, dict[int, list[NotedValue]]]:
    """Values by the piece of text in which they are read and the step, in their order."""
    found: dict[Piece, dict[int, list[NotedValue]]] = defaultdict(lambda: defaultdict(list))
    for place in sorted(reads):
        for value in reads[place]:
            found[piece(place)][value.step].append(value)
    return found


def _line_of(reads: Iterable[Place], piece: PieceOf, key: Piece) -> int:
    return min(place.line for place in reads if piece(place) == key)


def pieces(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[PieceOf, PieceOf]:
    """How lines of two versions of some files meet; other files are the same in both."""
    maps = {path: LineMap(before[path], after[path]) for path in after if after[path] != before[path]}

    def as_written(place: Place) -> Piece:
        known = maps.get(place.path)
        return place.path, place.line if known is None else known.piece_before(place.line)

    def rewritten(place: Place) -> Piece:
        known = maps.get(place.path)
        return place.path, place.line if known is None else known.piece_after(place.line)

    return as_written, rewritten


def pieces_of_two(before: str, after: str) -> tuple[PieceOf, PieceOf]:
    """The same for two scripts that are versions of one another, and for what lies beside each, where in two folders."""
    one, other = os.path.realpath(before), os.path.realpath(after)

    @cache
    def lines(own: str, its: str) -> LineMap | None:
        """How lines meet of two files; None where one is missing."""
        if not (os.path.isfile(own) and os.path.isfile(its)):
            return None
        return LineMap(Path(own).read_bytes(), Path(its).read_bytes())

    def met(path: str, script: str, its: str) -> str:
        """The counterpart of a file; "" where it has none."""
        if path == script:
            return its
        here, there = os.path.dirname(script), os.path.dirname(its)
        return there + path.removeprefix(here) if here != there and path.startswith(here + os.sep) else ""

    def of_one(place: Place) -> Piece:
        its = met(place.path, one, other)
        known = lines(place.path, its) if its else None
        return place.path, place.line if known is None else known.piece_before(place.line)

    def of_other(place: Place) -> Piece:
        own = met(place.path, other, one)
        known = lines(own, place.path) if own else None
        return (place.path, place.line) if known is None else (own, known.piece_after(place.line))

    return of_one, of_other


def pieces_of_woven(as_written: PieceOf, rewritten: PieceOf, path: str = "") -> tuple[PieceOf, PieceOf]:
    """The same where both run in one process: a line says of which version it is. `path`: where the other one stands."""

    def of_either(place: Place) -> Piece:
        if place.line < LINES:
            return as_written(place)
        return rewritten(Place(os.path.realpath(path) if path else place.path, place.line % LINES))

    return as_written, of_either
