"""Versions of a program run side by side: what they compute, and how long their steps take.

A version is a set of candidates of a `Plan`. Values are compared with those of the program as written, whose own distance from
itself is the yardstick. Steps are timed in turns: the program as written, once more as written (what do two equal versions
differ by?), and the versions, in an order that is drawn anew for each turn.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from syncscope import kineto
from syncscope.errors import UserError
from syncscope.model.source import Place
from syncscope.model.trace import Trace
from syncscope.turns.weaving import CannotTakeTurnsError
from syncscope.verify import timing
from syncscope.verify.failing import STEP, cannot_run
from syncscope.verify.fewer_steps import WEAK, steps_in_common
from syncscope.verify.held import Name
from syncscope.verify.one_process import ENDLESS, NotComparedError, OneProcess
from syncscope.verify.plan import Plan
from syncscope.verify.processes import Processes, RunFailedError, RunResult
from syncscope.verify.request import TRACE, Kind, Program, Request
from syncscope.verify.results import CHANGED, EQUAL, IN_ONE, PROCESSES, WITHIN, Verification
from syncscope.verify.timing import Ratio
from syncscope.verify.trial import MOST
from syncscope.verify.values import (
    LAST_BIT,
    Difference,
    PieceOf,
    Values,
    difference,
    names_of,
    pieces,
    pieces_of_two,
    pieces_of_woven,
    values_of,
)

BITS = 4.0  # of a value, that a sum in another order may change
NOISE = 2.0  # the same of what two runs as written differ by
MOST_TURNS = 30
MOST_IN_ONE = 1000  # the same inside of one process, where a turn takes some tenths of a second
BESIDE = 2  # versions that run side by side with the program as written, twice: a device holds all four
SHORTEST, LONGEST = 0.5, 3.0  # s of steps in a run whose number nobody has said
RUNS = 60  # so many of them are to fit into the budget, without what they do before their steps
UNRECORDED, RECORDED = 6, 20  # steps before a recording, and at most in it
INCOMPARABLE = (
    "{} of two runs as written have nothing in common in the end, so that they prove nothing: seed it, choose deterministic "
    "algorithms, or compare fewer steps (--steps)"
)
ELSEWHERE = "ocl stands in for cuda, and the program trains on the CPU: have it ask for cuda"
Tell = Callable[[str], None]
Set = frozenset[int]
AS_WRITTEN: Set = frozenset()
AGAIN: Set = frozenset({-1})  # as written, too: what equal versions differ by
THIRD: Set = frozenset({-2})


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


@dataclass
class Search:
    """One verification under way. `found` is at any moment what is known."""

    program: Program
    settings: Settings
    processes: Processes
    tell: Tell
    found: Verification
    plan: Plan | None = None
    turns: list[dict[Set, float]] = field(default_factory=list)
    values: dict[Set, Values] = field(default_factory=dict)
    started: dict[str, set[int]] | None = None  # lines of the functions that ran in steps, by file; None: not known
    last_bit: Difference | None = None
    other: Program | None = None  # instead of fixes: another version of the program
    failed: dict[Set, RunFailedError] = field(default_factory=dict)
    least: int = 3 + 3 * timing.FEWEST  # runs by which something can be decided
    best: Set | None = None  # the version of which `found` speaks
    turned: Callable[[], None] = lambda: None  # called after each turn
    beside: bool = True  # whether versions run side by side; two may not, for want of memory or of a port
    in_one: bool = False  # whether versions take turns inside of one process
    compared: dict[Set, Difference] = field(default_factory=dict)  # in one process
    alongside: dict[Set, tuple[Values, Values]] = field(default_factory=dict)  # what was: as written, and the version
    beside_it: dict[Set, Values] = field(
        default_factory=dict
    )  # the same steps as written, of those that are equal there
    fewer: int = 0  # steps over which values are compared in whole runs, where these drift apart
    foreseen: Sequence[Set] = ()  # versions that may be timed, of which the first has all changes
    told: Callable[[], None] = lambda: None  # says of what is not decided why it is not

    def __post_init__(self) -> None:
        self._draw = random.Random(self.settings.seed)
        self._more_steps = False
        self._ends_by_itself = False
        self._turning = 0.0  # when the first turn in one process began
        self._one_process: OneProcess | None = None
        self._loose: set[Name] = set()
        self._began = time.monotonic()

    # running

    def _request(self, kind: Kind, chosen: Set, **more: Any) -> tuple[Request, Mapping[str, bytes]]:
        files: Mapping[str, bytes] = self.plan.edited_meanwhile() if self.plan is not None else {}
        for path in files:
            note = f"{os.path.relpath(path)} was changed meanwhile: it is tried as it was"
            if note not in self.found.notes:
                self.found.notes.append(note)
        program = self.program
        if chosen not in (AS_WRITTEN, AGAIN):
            if self.other is not None:
                program = self.other
            elif self.plan is not None:
                files = {**files, **self.plan.version(chosen)}
        seconds = min(LONGEST, max(SHORTEST, self.settings.budget / RUNS))
        steps = self.found.steps or self.settings.steps
        if kind == "values" and self.fewer:
            steps = self.fewer
        elif kind == "values" and self._ends_by_itself:
            steps = self.found.steps + 1  # so that it does in each run, and all of them end in the same place
        more = {"steps": steps, "seed": self.settings.seed, "seconds": seconds} | more
        return Request(kind, program, "", **more), files

    def _run(self, kind: Kind, chosen: Set, **more: Any) -> RunResult:
        with self._counted():
            return self.processes.run(*self._request(kind, chosen, **more))

    def _run_together(self, versions: Sequence[Set]) -> list[RunResult]:
        with self._counted():
            steps = self.found.timed_steps or self.found.steps
            wanted = [self._request("time", chosen, steps=steps, beside=True) for chosen in versions]
            return self.processes.side_by_side(wanted)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.found.runs = self.processes.count
            self.found.seconds = time.monotonic() - self._began
            self.found.importing, self.found.starting = self.processes.importing, self.processes.starting
            self.found.remains, self.found.heard_by = self.processes.remains, self.processes.heard_by

    def runs(self, chosen: Set, program: Program) -> RunResult:
        """A run that must not fail, with what it computes; `program` is what it runs.

        Raises:
            UserError: it does not run, or makes no steps.
        """
        try:
            return self._run("values", chosen)
        except RunFailedError as error:
            if chosen not in (AS_WRITTEN, AGAIN):
                self.own_noise()  # it may be the program, which runs only once
            raise cannot_run(program, error, again=chosen == AGAIN) from None

    def as_written(self, twice: bool = True) -> list[str]:
        """The program itself, with what it computes: how many steps a run has, and which files are the user's.

        Raises:
            UserError: it does not run, or makes no steps.
        """
        self.tell("as written: does it run, and what does it compute")
        run = self.runs(AS_WRITTEN, self.program)
        self.found.steps = run.found["steps"]
        if self.found.steps < 2:
            raise UserError(
                f"{self.program} made {self.found.steps or 'no'} step{'s' * (not self.found.steps)}",
                f"{STEP}, and several are compared; those of processes that it starts "
                "(mp.spawn, torchrun) are not seen: let it train in its own, as a single rank",
            )
        self.values[AS_WRITTEN] = values_of(run)
        self.found.reads_before = self.values[AS_WRITTEN].reads_a_step
        self.found.notes += filter(None, [self.values[AS_WRITTEN].of_fallbacks(), self.values[AS_WRITTEN].of_nan()])
        if (started := run.found["started"]) is not None:
            self.started = {path: set(lines) for path, lines in started.items()}
        self.found.device = run.found["device"]
        if self.program.device == "ocl" and self.found.device == "cpu":
            self.found.notes.append(ELSEWHERE)
        files: list[str] = run.found["files"]
        self._ends_by_itself = not run.found["cut"]
        self._more_steps = run.found["cut"] and self.settings.steps is None
        named = {part for place in self.settings.only for part in Path(place.path).parts}  # is to be read in each run
        self.processes.import_before([name for name in run.found["imports"] if name not in named])
        if twice:
            self.own_noise()
        return files

    def own_noise(self) -> Difference:
        """How far runs as written are apart: two, or three where they differ.

        Raises:
            UserError: the program does not run a second time.
        """
        if self.found.noise is not None and AGAIN in self.values:
            return self.found.noise
        self.tell("as written, once more: is it deterministic")
        noise = self._of_own_runs()
        if noise.largest >= WEAK:
            noise = self._over_fewer_steps(noise)
        self.found.noise = noise
        if noise.apart:
            self.found.notes.append(INCOMPARABLE.format(" and ".join(noise.apart)))
        return noise

    def _of_own_runs(self) -> Difference:
        self.values[AGAIN] = values_of(self.runs(AGAIN, self.program))
        self._are_loose(AS_WRITTEN, AGAIN)
        noise = self._difference(AGAIN)
        if noise.largest:  # one pair says little of how far two runs may be apart
            with contextlib.suppress(RunFailedError):
                run = self._run("values", AGAIN)
                self.values[THIRD] = values_of(run)
                self._are_loose(AS_WRITTEN, THIRD)
                noise |= self._difference(THIRD)
        return noise

    def _over_fewer_steps(self, noise: Difference) -> Difference:
        """How far runs as written are apart over as many steps as they have in common, which are compared from now on."""
        found = self.found
        others = [self.values[other] for other in (AGAIN, THIRD) if other in self.values]
        fewer = steps_in_common(self.values[AS_WRITTEN], others)
        if not 0 < fewer < found.steps:
            return noise
        self.fewer = found.fewer_steps = fewer
        self.tell(f"as written over {fewer} steps, in which its runs have something in common")
        for known in (AS_WRITTEN, AGAIN, THIRD):
            self.values.pop(known, None)
        self.values[AS_WRITTEN] = values_of(self.runs(AS_WRITTEN, self.program))
        noise = self._of_own_runs()
        found.notes.append(
            f"runs as written drift apart: values are compared over the first {fewer} of {found.steps} steps, in which two of "
            f"them differ by {noise.largest:.1e}"
        )
        return noise

    def _difference(self, chosen: Set) -> Difference:
        before, after = self.pieces(chosen)
        return difference(self.values[AS_WRITTEN], self.values[chosen], before, after, self._loose)

    def _are_loose(self, one: Set, again: Set) -> None:
        """Names that hold something else in another run of the same version, such as the time, prove nothing."""
        names = names_of(self.values[one], self.values[again], lambda place: (place.path, place.line))
        self._loose |= {name for name, by in names.items() if by}

    def pieces(self, chosen: Set) -> tuple[PieceOf, PieceOf]:
        """To which piece of text a line as written belongs, and one of this version."""
        if self.other is not None and min(chosen, default=-1) >= 0:
            return pieces_of_two(self.program.target, self.other.target)
        version = self.plan.version(chosen) if self.plan is not None and min(chosen, default=-1) >= 0 else {}
        return pieces(self.plan.before if self.plan else {}, version)

    def both(self, chosen: Set) -> tuple[Values, Values, PieceOf, PieceOf]:
        """What the program and a version compute, in whole runs or else in one process, and how their lines meet."""
        as_written, rewritten = self.pieces(chosen)
        if chosen in self.values:
            return self.values[AS_WRITTEN], self.values[chosen], as_written, rewritten
        path = self.other.target if self.other else ""
        return *self.alongside[chosen], *pieces_of_woven(as_written, rewritten, path)

    def recording(self) -> Trace | None:
        """A short recording of the program as written; None where there is no device, or it cannot be made."""
        if self.found.device == "cpu" or self.found.steps < 4:
            few = f"{self.found.steps} steps are too few to be recorded"
            self.found.unpredicted = few if self.found.steps < 4 else "on a CPU nothing waits for a device"
            return None
        self.tell("as written, recorded: what does a replay promise")
        skip = min(UNRECORDED, self.found.steps // 3)
        try:
            run = self._run("trace", AS_WRITTEN, skip=skip, steps=min(self.found.steps, skip + RECORDED))
            return kineto.read(run.folder / TRACE)
        except (RunFailedError, UserError) as error:
            self.found.unpredicted = f"no recording could be made: {error}"
            return None

    def run_late(self, steps: int) -> RunResult:
        """The program with reads answered late in every second block of steps."""
        return self._run("stale", AS_WRITTEN, steps=steps, lines=tuple((p.path, p.line) for p in self.settings.only))

    # values

    def begin_anew(self, foreseen: Sequence[Set]) -> None:
        """Other versions are to take turns in one process."""
        self.processes.hush()
        self.in_one, self.foreseen, self._one_process = True, foreseen, None
        self.found.why_values = self.found.why_way = ""
        self.compared.clear()
        self.alongside.clear()

    def compare(self, versions: Sequence[Set]) -> None:
        """Compares those that have not been with the program as written, in the same steps of one process, if that can be."""
        open_ = [chosen for chosen in versions if chosen not in self.compared]
        if not open_ or not self.in_one or self.found.why_values:
            return
        self.tell("the same steps by each version in one process: what do they compute")
        try:
            with self._counted():
                one, again, *others = map(values_of, self._process().compare(open_, self.foreseen))
        except NotComparedError as why:
            self.found.why_values = str(why)
            return
        except CannotTakeTurnsError as why:
            self._go_apart(why)
            return
        itself = pieces({}, {})
        loose = {name for name, by in names_of(one, again, itself[1]).items() if by}
        if (noise := difference(one, again, *itself, loose)).largest:
            where = f", most at {noise.where}" if noise.where else ""
            self.found.why_values = f"the same steps as written twice differ by {noise.largest:.1e}{where}"
            return
        for chosen, its in zip(open_, others, strict=True):
            self.alongside[chosen] = one, its
            self.compared[chosen] = difference(*self.both(chosen), loose)

    def is_equal_beside(self, chosen: Set) -> bool:
        """Whether a version changes no bit in the same steps of one process: it says nothing of the program's first steps."""
        self.compare([chosen])
        return chosen in self.compared and not self.compared[chosen].largest

    def _whole_run(self, chosen: Set) -> None:
        """Has what a version computes, or that it fails, in `values` or `failed`."""
        if chosen not in self.values and chosen not in self.failed:
            try:
                self.values[chosen] = values_of(self._run("values", chosen))
            except RunFailedError as error:
                self.own_noise()  # it may be the program, which runs only once
                self.failed[chosen] = error

    def is_equal(self, chosen: Set) -> bool:
        """Whether a version changes no bit in a whole run: then nothing needs to be known of how far two runs are apart."""
        self._whole_run(chosen)
        return chosen in self.values and not self._difference(chosen).largest

    def judge(self, chosen: Set, rounds: bool, safe: bool) -> tuple[str, str, Difference | None]:
        """Whether a version computes in a whole run what the program does, and why not. `rounds`: last bits may be others.

        Raises:
            UserError: the program itself does not run a second time.
        """
        self._whole_run(chosen)
        if chosen in self.failed:
            return CHANGED, f"it fails: {self.failed[chosen].why}", None
        apart = self._difference(chosen)
        if apart.largest and self.found.noise is None:
            self.own_noise()  # else both were the same bit for bit, and so is the program twice
            apart = self._difference(chosen)
        only_held = replace(apart, held=0.0).largest == 0.0 < apart.held
        if only_held and not safe and apart.held <= BITS * (self.fewer or self.found.steps) * LAST_BIT:
            return WITHIN, f"by {apart.held:.1e} of what names hold, as rounding may", apart
        if only_held and not self._is_settled(chosen):
            apart = self._difference(chosen)
        if not apart.largest:
            return EQUAL, "", apart
        noise = self.found.noise or Difference()
        if apart.within(noise, NOISE):
            return WITHIN, "by no more than two runs as written", apart
        largest = f"{apart.largest:.1e}" if apart.largest < float("inf") else "more than can be said in a number"
        where = f", most at {apart.where}" if apart.where else ""
        if rounds and not safe:
            # It happens in every step, and no step carries it further than the first one, by which one bit is known.
            bit = self._one_last_bit() | noise | Difference(LAST_BIT, LAST_BIT, LAST_BIT, state=LAST_BIT, held=LAST_BIT)
            if apart.within(bit, BITS * max(1, self.fewer or self.found.steps)):
                return WITHIN, f"by {largest}, as rounding may", apart
            least = self._one_last_bit().largest
            return CHANGED, f"values differ by {largest}{where}; one last bit carries {least:.1e} far", apart
        said = "it is said to be safe" if safe else "its text does not say so"
        return CHANGED, f"values differ by {largest}{where}, and {said}", apart

    def _is_settled(self, chosen: Set) -> bool:
        """Whether what names hold is the same in a second run of a version: what tells the time differs there, too."""
        before, again = len(self._loose), frozenset({-4})
        with contextlib.suppress(RunFailedError):
            self.values[again] = values_of(self._run("values", chosen))
            self._are_loose(chosen, again)
        return len(self._loose) == before

    def _one_last_bit(self) -> Difference:
        """How far the program is from itself once the last bit of every parameter was changed in the first step."""
        if self.last_bit is None:
            self.tell("as written, with other last bits: how far does rounding carry")
            changed: Set = frozenset({-3})
            try:
                self.values[changed] = values_of(self._run("values", AS_WRITTEN, perturb=True))
                self.last_bit = self.found.last_bit = self._difference(changed)
            except RunFailedError as error:
                self.found.notes.append(
                    f"how far rounding carries is not known: with other last bits it fails: {error.why}"
                )
                self.last_bit = Difference()
        return self.last_bit

    # time

    def turn(self, versions: Sequence[Set]) -> None:
        """Each of these once, in an order that is drawn; a few of them side by side with the program as written, twice."""
        versions = [chosen for chosen in dict.fromkeys(versions) if chosen not in (AS_WRITTEN, AGAIN)]
        if self.in_one:
            try:
                self._note_turn(self._in_one_process(self._drawn(versions)))
                return
            except CannotTakeTurnsError as why:
                self._go_apart(why)
        for first in range(0, max(1, len(versions)), BESIDE):
            self._note_turn(self._times_of(self._drawn(versions[first : first + BESIDE])))

    def _go_apart(self, why: CannotTakeTurnsError) -> None:
        """From now on each version has a process of its own."""
        self.in_one, self.found.way, self.found.why_way = False, PROCESSES, str(why)
        self.turns.clear()

    def _drawn(self, versions: Sequence[Set]) -> list[Set]:
        """These and as written, twice, in the order of a turn."""
        order = [AS_WRITTEN, AGAIN, *(chosen for chosen in versions if chosen not in self.failed)]
        self._draw.shuffle(order)
        return order

    def _note_turn(self, times: dict[Set, float]) -> None:
        self.turns.append(times)
        self.found.same = self.ratio(AGAIN)
        if self.best is not None:
            self.note(self.best)
        self.turned()

    def _times_of(self, order: Sequence[Set]) -> dict[Set, float]:
        """ns of a step of each version, as far as it ran."""
        times: dict[Set, float] = {}
        if self.beside:
            self.tell("in turns: " + ", ".join(sorted({self._words(chosen) for chosen in order})))
            try:
                for chosen, run in zip(order, self._run_together(order), strict=True):
                    self._note_time(times, chosen, run)
                return times
            except RunFailedError as error:
                self.beside = False
                self.found.notes.append(
                    f"versions are run one after another, since side by side one fails: {error.why}"
                )
        for chosen in order:
            self.tell(self._words(chosen))
            try:
                self._note_time(
                    times, chosen, self._run("time", chosen, steps=self.found.timed_steps or self.found.steps)
                )
            except RunFailedError as error:
                if chosen in (AS_WRITTEN, AGAIN):
                    raise cannot_run(self.program, error) from None
                self.failed[chosen] = error
        return times

    def _in_one_process(self, order: Sequence[Set]) -> dict[Set, float]:
        """A block of steps of each, one after the other in one process; nothing where the program ended meanwhile.

        Raises:
            CannotTakeTurnsError: why each is to have a process of its own.
        """
        changed = [chosen for chosen in order if chosen not in (AS_WRITTEN, AGAIN)]
        self.tell(f"in turns in one process: {self._open(changed)}")
        self._turning = self._turning or time.monotonic()
        with self._counted():
            times = self._process().turn(order, changed, self.foreseen)
        self.found.way = IN_ONE
        return times

    def _process(self) -> OneProcess:
        if self._one_process is None:
            self._one_process = OneProcess(
                self.processes,
                self._as_written(),
                self._rewritten,
                lambda: self._request("turns", AS_WRITTEN, steps=ENDLESS),
            )
        return self._one_process

    def _open(self, versions: Sequence[Set]) -> str:
        """Which of some versions are open, and when they will not be; what is known of the others."""
        said = []
        each = (time.monotonic() - self._turning) / max(1, len(self.turns)) if self._turning else 0.0
        for chosen in versions:
            ratio = self.ratio(chosen)
            if ratio is not None and self.is_known(chosen):
                said.append(f"{self._words(chosen)} {ratio.ratio:.3f}")
                continue
            seconds = timing.turns_to_come(ratio) * each
            about = f", {seconds:.0f} s more" if 0 < seconds <= self.processes.left() else ""
            about = ", more than the budget holds" if self.processes.left() < seconds < math.inf else about
            said.append(f"{self._words(chosen)} is open{about}")
        return "; ".join(said)

    def _as_written(self) -> Mapping[str, bytes]:
        """The files of which there are versions."""
        if self.plan is not None:
            return self.plan.before
        return {(path := os.path.realpath(self.program.target)): Path(path).read_bytes()}

    def _rewritten(self, chosen: Set) -> dict[str, bytes]:
        """Those of them that change in a version."""
        if self.plan is not None:
            return self.plan.version(chosen)
        assert self.other is not None
        return {os.path.realpath(self.program.target): Path(self.other.target).read_bytes()}

    def _note_time(self, times: dict[Set, float], chosen: Set, run: RunResult) -> None:
        taken = timing.step(run.found["lengths"])
        if taken is None:
            return
        times[chosen] = taken
        if self._more_steps:  # which take as long as what comes before them: else most of the budget times nothing
            self._more_steps = False
            start = run.found["ready"]
            turn = self.processes.left() / (2 * timing.FEWEST) / (2 + BESIDE)  # s of one run, so that six turns fit
            seconds = min(start, turn - start)
            self.found.timed_steps = max(self.found.steps, min(MOST, round(1e9 * seconds / taken)))

    def _words(self, chosen: Set) -> str:
        if chosen in (AS_WRITTEN, AGAIN):
            return "as written"
        if self.plan is None:
            return "the other version"
        if len(chosen) == 1:
            (one,) = chosen
            return f"with {self.plan.candidates[one].finding.rule} of line {self.plan.candidates[one].line}"
        return f"with {len(chosen)} fixes"

    def ratio(self, chosen: Set, beside: Set = AS_WRITTEN, since: int = 0) -> Ratio | None:
        """Of the steps of two versions, over the turns since then in which both ran. As written is what both such runs say."""

        def of(times: dict[Set, float], which: Set) -> float:
            if which == AS_WRITTEN and AGAIN in times and chosen != AGAIN:
                return float((times[AS_WRITTEN] * times[AGAIN]) ** 0.5)
            return times[which]

        both = [times for times in self.turns[since:] if chosen in times and beside in times]
        pairs = [(of(times, beside), of(times, chosen)) for times in both]
        return timing.ratio_at_all_times(pairs) if self.in_one else timing.ratio_of(pairs)

    def is_known(self, chosen: Set, precision: float | None = None, since: int = 0) -> bool:
        """Whether further turns of a version are not worth their time, by those since then."""
        ratio = self.ratio(chosen, since=since)
        if timing.narrow(ratio, self.settings.precision if precision is None else precision):
            return True
        return self.in_one and timing.decides(ratio) and (self.found.is_gain(ratio) or not (ratio and ratio.gains))

    @property
    def most_turns(self) -> int:
        """However wide an interval still is."""
        return MOST_IN_ONE if self.in_one else MOST_TURNS

    def step(self, chosen: Set) -> float | None:
        """The median step of a version over all turns, ns."""
        times = [turn[chosen] for turn in self.turns if chosen in turn]
        return median(times) if times else None

    def until_narrow(self, versions: Sequence[Set], part: float = 1.0, precision: float | None = None) -> None:
        """Turns of those versions that are not yet known well, until all are or this part of the budget is spent."""
        for _ in range(self.most_turns):
            open_ = [v for v in versions if v not in self.failed and not self.is_known(v, precision)]
            if not open_ or self.spent() > part:
                return
            self.turn(open_)

    def side_by_side(self, one: Set, other: Set, part: float) -> Ratio | None:
        """The step of one version over that of another, both in the same turns; as `until_narrow`."""
        for _ in range(self.most_turns):
            beside = self.ratio(one, other)
            if timing.narrow(beside, 2 * self.settings.precision) or self.spent() > part or (beside and beside.loses):
                break
            if one in self.failed or other in self.failed:
                break
            if self.in_one and beside and beside.high <= 1 + 2 * self.settings.precision:
                break
            self.turn([one, other])
        return self.ratio(one, other)

    def spent(self) -> float:
        """The part of the budget."""
        return 1 - self.processes.left() / self.settings.budget

    @property
    def is_short(self) -> bool:
        """Whether the search came to its end for want of time, and nothing is decided."""
        ratio = self.found.ratio
        return self.best is not None and self.spent() > 0.5 and (ratio is None or ratio.turns < timing.FEWEST)

    def shortage(self) -> str:
        """What the budget went to, and how much is enough for the `least` number of runs."""
        found, runs = self.found, max(1, self.processes.count)
        found.seconds = time.monotonic() - self._began
        spent = f"imports took {found.importing:.0f} s"
        if not found.steps:
            last = f". It printed last: {printed}" if (printed := self.processes.printed) else ""
            if not self.processes.stepped:
                return f"{spent}, and the first run had not ended a single step by then: {STEP}{last}"
            return f"{spent}, and the first run had not made all its steps by then: --steps makes fewer{last}"
        each, first = (found.seconds - found.importing) / runs, found.starting / runs
        if runs >= self.least:
            return f"{spent} and a run {each:.1f} s; four times the budget makes an interval about half as wide"
        return (
            f"{spent} and a run {each:.1f} s, {first:.1f} s of it up to the end of its first step. {self.least} runs are the "
            f"least that decides: --budget {self.minutes(self.least)}m may hold them"
        )

    def minutes(self, runs: int) -> int:
        """The budget that may hold so many runs."""
        importing = self.processes.importing
        each = (time.monotonic() - self._began - importing) / max(1, self.processes.count)
        return math.ceil((importing + runs * each) / 60)

    def runs_left(self, part: float) -> float:
        """How many more runs fit into this part of the budget, as long as they were so far."""
        each = (time.monotonic() - self._began) / max(1, self.processes.count)
        return (part - self.spent()) * self.settings.budget / each

    def note(self, chosen: Set) -> None:
        """This version is what is known best so far."""
        found = self.found
        found.ratio = self.ratio(chosen)
        found.before, found.after = self.step(AS_WRITTEN), self.step(chosen)
        if chosen in self.values or chosen in self.alongside:
            found.reads_after = self.both(chosen)[1].reads_a_step
