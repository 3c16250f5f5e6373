"""The process in which versions take turns, from outside: begun with all that may be timed, and asked for turns."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from syncscope.turns.loops import runs_once
from syncscope.turns.weaving import CannotTakeTurnsError
from syncscope.verify.in_turns import fewest_steps, most_steps, woven
from syncscope.verify.processes import Processes, RunFailedError, RunResult
from syncscope.verify.request import RESULT, Request
from syncscope.verify.spent import TURNS, VALUES, WARMING
from syncscope.verify.versions import Set

WOVEN = 24  # versions that are there at once
PART = 0.15  # of what is left of the budget, that the same steps of all versions are to take
ENDLESS = sys.maxsize  # steps of a run that ends when nothing more is asked of it


class Taken(NamedTuple):
    """ns of a step of each version: by the clock, of the processors where these do the work, and until its batch was there."""

    times: dict[Set, float]
    work: dict[Set, float]
    fed: dict[Set, float]


class NotComparedError(Exception):
    """Why versions cannot be compared inside of one process."""


class OneProcess:
    """Turns of versions inside of one process, which is begun again where the program ends, or a version is missing in it.

    `before` are the files of which there are versions, `rewritten` says what of them changes in one, and `request` is a run of
    the program with the files that stand in for its own.
    """

    def __init__(
        self,
        processes: Processes,
        before: Mapping[str, bytes],
        rewritten: Callable[[Set], dict[str, bytes]],
        request: Callable[[], tuple[Request, Mapping[str, bytes]]],
    ) -> None:
        self._processes, self._before, self._rewritten, self._request = processes, before, rewritten, request
        self._numbers: dict[Set, int] = {}  # of the versions that are there
        self._once: dict[int, str] = {}  # those of them that cannot take turns, and why
        self._turned = False

    def turn(self, order: Sequence[Set], changed: Sequence[Set], foreseen: Sequence[Set]) -> Taken:
        """What a step of each takes in a block of steps; nothing where the program ended meanwhile.

        `changed` are those that are not as written, `foreseen` others that may come, of which the first has all changes.

        Raises:
            CannotTakeTurnsError: why each is to have a process of its own.
        """
        turn = Taken({}, {}, {})
        try:
            self._have(changed, foreseen)
            with self._processes.spent.on(TURNS):
                self._processes.say({"order": [self._numbers.get(chosen, 0) for chosen in order]})
                for chosen in order:
                    said = self._processes.hear()
                    for times, name in zip(turn, ("step", "work", "fed"), strict=True):
                        if said[name] is not None:
                            times[chosen] = said[name]
        except RunFailedError as error:
            if error.code:
                raise CannotTakeTurnsError(_why(error)) from None
            if not self._turned:
                raise CannotTakeTurnsError(too_few(len(order))) from None
            return Taken({}, {}, {})
        self._turned = True
        return turn

    def compare(self, versions: Sequence[Set], foreseen: Sequence[Set]) -> list[RunResult]:
        """What the program computes as written, twice, and in each of these versions, by the same steps.

        Raises:
            NotComparedError: why that cannot be told in one process.
            CannotTakeTurnsError: why nothing can.
        """
        try:
            self._have(versions, foreseen)
            with self._processes.spent.on(VALUES):
                return self._compared(versions)
        except RunFailedError as error:
            raise NotComparedError(_why(error) if error.code else "the program ends before") from None

    def _compared(self, versions: Sequence[Set]) -> list[RunResult]:
        found: list[RunResult] = []
        numbers = [0, 0, *(self._numbers[chosen] for chosen in versions)]
        self._processes.say({"compare": numbers, "seconds": PART * max(0.0, self._processes.left())})
        while len(found) < len(versions) + 2:
            said = self._processes.hear()
            if said["compared"] is None:
                raise NotComparedError(said["why"])
            if said["missed"]:
                raise NotComparedError("not all that changes was reached in the steps that are compared")
            folder = Path(said["folder"])
            found.append(RunResult(folder, json.loads((folder / RESULT).read_text())))
        return found

    def once(self, chosen: Set) -> str:
        """Why a version cannot take turns in the process that was begun last; "" where it can, or was not there."""
        return self._once.get(self._numbers.get(chosen, 0), "")

    def _have(self, needed: Sequence[Set], foreseen: Sequence[Set]) -> None:
        """Has a process there with these versions, which is warm.

        Raises:
            CannotTakeTurnsError: one of them cannot take turns in it.
        """
        if not self._processes.talks or any(chosen not in self._numbers for chosen in needed):
            with self._processes.spent.on(WARMING):
                self._begin(needed, foreseen)
        if why := next(filter(None, map(self.once, needed)), ""):
            self._processes.hush()
            raise CannotTakeTurnsError(why)

    def _begin(self, needed: Sequence[Set], foreseen: Sequence[Set]) -> None:
        wanted = list(dict.fromkeys([*foreseen, *self._numbers, *needed]))[:WOVEN]
        wanted += [chosen for chosen in needed if chosen not in wanted]
        versions = self._that_can(wanted, needed)
        self._numbers = {chosen: number for number, chosen in enumerate(versions, 1)}
        files = [self._rewritten(chosen) for chosen in versions]
        self._processes.begin(*self._request(), files)
        said = self._processes.hear()
        self._once = {int(number): why for number, why in said["once"].items()}
        self._processes.starting += said["seconds"]

    def _that_can(self, wanted: Sequence[Set], needed: Sequence[Set]) -> Sequence[Set]:
        """Those of them that can be there together, of which some are needed.

        Raises:
            CannotTakeTurnsError: one that is needed cannot, or not beside the others.
        """
        try:
            woven(self._before, {number: self._rewritten(chosen) for number, chosen in enumerate(wanted, 1)})
            return wanted
        except CannotTakeTurnsError:
            if [*wanted] == [*needed]:
                raise
        found = []
        for chosen in wanted:
            try:
                woven(self._before, {1: self._rewritten(chosen)})
                found.append(chosen)
            except CannotTakeTurnsError:
                if chosen in needed:
                    raise
        woven(self._before, {number: self._rewritten(chosen) for number, chosen in enumerate(found, 1)})
        return found


def too_few(versions: int, steps: int | None = None) -> str:
    """That a program makes too few steps for so many versions to take a turn; how many, where that is known."""
    made = "too few steps" if steps is None else f"{steps} steps, too few"
    takes = f"a turn takes {fewest_steps(versions)} at least, and some {most_steps(versions)} where they are short or uneven"
    return (
        f"the program makes {made}: {takes}; let it make more (often --epochs or --steps of its own, behind its name)"
    )


def why_apart(before: Mapping[str, bytes], rewritten: Mapping[str, bytes]) -> str:
    """Why a version cannot take turns with the program as written, as far as its files tell; "" where it may."""
    try:
        files = woven(before, {1: rewritten})
    except CannotTakeTurnsError as error:
        return str(error)
    for path, one in files.items():
        for name, line, _ in one.passages.values():
            if runs_once(ast.parse(before[path]), line):
                return f"{name} (line {line}) runs once"
    return ""


def _why(error: RunFailedError) -> str:
    if "/torch/_dynamo/" in error.said:  # which cannot read what asks for the version
        return "torch.compile has compiled some of the program"
    return f"it fails there: {error.why}"
