"""How versions of a program are run: what each run is asked, which files stand in for others, and what all of them took.

A version is a set of candidates of a `Plan`, or the one program that is compared with another.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncscope import kineto
from syncscope.errors import UserError
from syncscope.model.source import Place
from syncscope.model.trace import Trace
from syncscope.turns.weaving import CannotTakeTurnsError
from syncscope.verify.commits import Texts
from syncscope.verify.one_process import ENDLESS, OneProcess
from syncscope.verify.plan import Plan
from syncscope.verify.processes import Processes, RunFailedError, RunResult, TimeIsUpError
from syncscope.verify.request import TRACE, Kind, Program, Request
from syncscope.verify.results import PROCESSES, Verification
from syncscope.verify.spent import LOOKING, RECORDING, TURNS, VALUES
from syncscope.verify.values import PieceOf, pieces, pieces_of_two
from syncscope.verify.versions import AGAIN, AS_WRITTEN, Set

SHORTEST, LONGEST = 0.5, 3.0  # s of steps in a run whose number nobody has said
RUNS = 60  # so many of them are to fit into the budget, without what they do before their steps
RECORDS = 90.0  # s of a budget that holds a recording, too
ROOM = 5  # runs that are to be left for it: what is measured comes first
UNRECORDED, RECORDED = 6, 20  # steps before a recording, and at most in it
Tell = Callable[[str], None]


@dataclass
class Settings:
    """What the user said of how it is to be tried."""

    budget: float = 600.0  # s
    precision: float = 0.01
    steps: int | None = None
    seed: int = 0
    only: tuple[Place, ...] = ()
    rules: tuple[str, ...] = ()
    apart: bool = False  # each version in a process of its own
    copies: int = 4  # processes of the program that are in memory at once, if that holds them


@dataclass
class Runs:
    """Runs of a program and of its versions. `found` says at any moment how many there were, and what they took."""

    program: Program
    settings: Settings
    processes: Processes
    tell: Tell
    found: Verification
    other: Program | None = None  # instead of fixes: another version of the program
    texts: Texts | None = None  # where that is the same program with other texts of its files
    plan: Plan | None = None
    fewer: int = 0  # steps over which values are compared in whole runs, where these drift apart
    ends_by_itself: bool = False  # whether the program does, after the steps of a run
    more_steps: bool = False  # whether a run that is timed is to make more of them, as many as the next one tells
    in_one: bool = False  # whether versions take turns inside of one process
    foreseen: Sequence[Set] = ()  # versions that may be timed, of which the first has all changes
    aside: Callable[[], None] = lambda: None  # called before versions go apart; may raise, where some of them need not

    def __post_init__(self) -> None:
        self.failed: dict[Set, RunFailedError] = {}
        self.began = time.monotonic()
        self._took: dict[tuple[Kind, int | None], float] = {}  # s at least, by what it was and its steps
        self._one_process: OneProcess | None = None

    def run(self, kind: Kind, chosen: Set, **more: Any) -> RunResult:
        """One run of a version; `more` of its `Request` than all runs have.

        Raises:
            RunFailedError: it fails.
            TimeIsUpError: what is left of the budget is less than any such run took so far.
        """
        is_first = not self.processes.count
        what = LOOKING if is_first else {"values": VALUES, "trace": RECORDING}.get(kind, TURNS)
        request, files = self._request(kind, chosen, **more)
        alike = request.kind, request.steps
        if self.processes.left() < self._took.get(alike, 0.0):
            raise TimeIsUpError  # it would be cut before its end, and tell nothing
        with self.counted(), self.processes.spent.on(what):
            began = time.monotonic()
            result = self.processes.run(request, files)
            self._took[alike] = min(self._took.get(alike, math.inf), time.monotonic() - began)
            return result

    def run_together(self, versions: Sequence[Set]) -> list[RunResult]:
        """Runs that are timed, of several versions at once.

        Raises:
            RunFailedError: one of them fails.
        """
        with self.counted(), self.processes.spent.on(TURNS):
            steps = self.found.timed_steps or self.found.steps
            wanted = [self._request("time", chosen, steps=steps, beside=True) for chosen in versions]
            return self.processes.side_by_side(wanted)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """What runs took is noted when these end, however they do."""
        try:
            yield
        finally:
            self.found.runs = self.processes.count
            self.found.seconds = time.monotonic() - self.began
            self.found.importing, self.found.starting = self.processes.importing, self.processes.starting
            self.found.spent = self.processes.spent.seconds()
            self.found.remains, self.found.heard_by = self.processes.remains, self.processes.heard_by

    def one_process(self) -> OneProcess:
        """The one in which versions take turns, and in which they are compared."""
        if self._one_process is None:
            self._one_process = OneProcess(
                self.processes,
                self._as_written(),
                self._rewritten,
                lambda: self._request("turns", AS_WRITTEN, steps=ENDLESS),
            )
        return self._one_process

    def go_apart(self, why: CannotTakeTurnsError) -> None:
        """From now on each version has a process of its own."""
        self.aside()
        self.in_one, self.found.way, self.found.why_way = False, PROCESSES, str(why)

    def begin_anew(self, foreseen: Sequence[Set]) -> None:
        """Other versions are to take turns in one process."""
        self.processes.hush()
        self.in_one, self.foreseen, self._one_process = True, foreseen, None
        self.found.why_way = ""

    def pieces(self, chosen: Set) -> tuple[PieceOf, PieceOf]:
        """To which piece of text a line as written belongs, and one of this version."""
        if self.texts is not None:
            return pieces(self.texts.before, self.texts.after if min(chosen, default=-1) >= 0 else {})
        if self.other is not None and min(chosen, default=-1) >= 0:
            return pieces_of_two(self.program.target, self.other.target)
        version = self.plan.version(chosen) if self.plan is not None and min(chosen, default=-1) >= 0 else {}
        return pieces(self.plan.before if self.plan else {}, version)

    def words(self, chosen: Set) -> str:
        """A version, as it is called beside the others."""
        if chosen in (AS_WRITTEN, AGAIN):
            return "as written" if self.texts is None else f"as in {self.texts.commit}"
        if self.plan is None:
            return "the other version" if self.texts is None else "as it is now"
        if len(chosen) == 1:
            (one,) = chosen
            return f"with {self.plan.candidates[one].finding.rule} of line {self.plan.candidates[one].line}"
        return f"with {len(chosen)} fixes"

    def recording(self) -> Trace | None:
        """A short recording of the program as written; None where there is no device, or it cannot be made."""
        if self.found.device == "cpu" or self.found.steps < 4:
            few = f"{self.found.steps} steps are too few to be recorded"
            on_host = f"on a CPU nothing waits for a device: {self.program.to_a_device}"
            self.found.unpredicted = few if self.found.steps < 4 else on_host
            return None
        if self.settings.budget < RECORDS:
            self.found.unpredicted = f"a budget below {RECORDS:.0f} s goes to what is measured; --trace FILE predicts"
            return None
        each = (time.monotonic() - self.began - self.processes.importing) / max(1, self.processes.count)
        if self.processes.left() < ROOM * each:
            self.found.unpredicted = "what was left of the budget went to what is measured; --trace FILE predicts"
            return None
        self.tell("as written, recorded: what does a replay promise")
        skip = min(UNRECORDED, self.found.steps // 3)
        try:
            run = self.run("trace", AS_WRITTEN, skip=skip, steps=min(self.found.steps, skip + RECORDED))
            return kineto.read(run.folder / TRACE)
        except (RunFailedError, UserError) as error:
            self.found.unpredicted = f"no recording could be made: {error}"
            return None

    def run_late(self, steps: int) -> RunResult:
        """The program with reads answered late in every second block of steps."""
        return self.run("stale", AS_WRITTEN, steps=steps, lines=tuple((p.path, p.line) for p in self.settings.only))

    def _request(self, kind: Kind, chosen: Set, **more: Any) -> tuple[Request, Mapping[str, bytes]]:
        files: Mapping[str, bytes] = self.plan.edited_meanwhile() if self.plan is not None else {}
        for path in files:
            note = f"{os.path.relpath(path)} was changed meanwhile: it is tried as it was"
            if note not in self.found.notes:
                self.found.notes.append(note)
        program = self.program
        if self.texts is not None:
            files = self.texts.after if min(chosen, default=-1) >= 0 else self.texts.before
        if chosen not in (AS_WRITTEN, AGAIN):
            if self.other is not None:
                program = self.other
            elif self.plan is not None:
                files = {**files, **self.plan.version(chosen)}
        seconds = min(LONGEST, max(SHORTEST, self.settings.budget / RUNS))
        steps = self.found.steps or self.settings.steps
        if kind == "values" and self.fewer:
            steps = self.fewer
        elif kind == "values" and self.ends_by_itself:
            steps = self.found.steps + 1  # so that it does in each run, and all of them end in the same place
        more = {"steps": steps, "seed": self.settings.seed, "seconds": seconds} | more
        return Request(kind, program, "", **more), files

    def _as_written(self) -> Mapping[str, bytes]:
        """The files of which there are versions."""
        if self.plan is not None:
            return self.plan.before
        if self.texts is not None:
            return self.texts.before
        return {(path := os.path.realpath(self.program.target)): Path(path).read_bytes()}

    def _rewritten(self, chosen: Set) -> dict[str, bytes]:
        """Those of them that change in a version."""
        if self.plan is not None:
            return self.plan.version(chosen)
        if self.texts is not None:
            return self.texts.after
        assert self.other is not None
        return {os.path.realpath(self.program.target): Path(self.other.target).read_bytes()}
