"""What versions of a program compute, beside what it computes as written.

In whole runs its own distance from itself is the yardstick: of two runs as written, and of one whose last bits are others. In
one process, in which versions make the same steps, every bit must be the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from syncscope.errors import UserError
from syncscope.model.source import Place
from syncscope.turns.weaving import CannotTakeTurnsError
from syncscope.verify.counted import Syncs, Waits, of_same_steps
from syncscope.verify.failing import STEP, cannot_run
from syncscope.verify.fewer_steps import IN_COMMON, steps_in_common
from syncscope.verify.held import Name
from syncscope.verify.of_libraries import real
from syncscope.verify.one_process import NotComparedError
from syncscope.verify.own_files import imported_by, may_change_environment
from syncscope.verify.paired import LAST_BIT
from syncscope.verify.processes import RunFailedError, RunResult
from syncscope.verify.request import Program
from syncscope.verify.results import CHANGED, EQUAL, WITHIN
from syncscope.verify.runs import Runs
from syncscope.verify.trial import LIBRARIES, TRAINERS
from syncscope.verify.values import (
    Difference,
    PieceOf,
    Values,
    difference,
    names_of,
    pieces,
    pieces_of_woven,
    values_of,
)
from syncscope.verify.versions import AGAIN, AS_WRITTEN, THIRD, Set

BITS = 4.0  # of a value, that a sum in another order may change
NOISE = 2.0  # the same of what two runs as written differ by
ENOUGH = 4  # processes: no more run at once
FAR = 0.1  # where so much may come of rounding, values prove little
CHANGED_BITS: Set = frozenset({-3})  # as written, with other last bits
INCOMPARABLE = (
    "{} of two runs as written have nothing in common in the end, so that they prove nothing: seed it, choose deterministic "
    "algorithms, or compare fewer steps (--steps)"
)
ELSEWHERE = "ocl stands in for cuda, and the program trains on the CPU: have it ask for cuda"


class Compared:
    """What runs compute: of whole ones in `values`, of the same steps in one process in `alongside` and `beside`."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.found = runs.found
        self.values: dict[Set, Values] = {}
        self.waits: dict[Set, Waits] = {}  # by the whole run of each that made most steps
        self.started: dict[str, set[int]] | None = None  # lines that ran in steps, by file
        self.libraries: set[Place] = set()  # lines of installed packages that waited in steps
        self.room = ENOUGH  # how many processes of the program may be in memory at once
        self.last_bit: Difference | None = None
        self.alongside: dict[Set, tuple[Values, Values]] = {}  # what was: as written, and the version
        self.beside: dict[Set, Difference] = {}  # of these two
        self._loose: set[Name] = set()

    @property
    def trains_elsewhere(self) -> bool:
        """Whether `ocl` stands in for a GPU, and the program trains on the CPU all the same."""
        return self.runs.program.device == "ocl" and self.found.device == "cpu"

    def as_written(self, twice: bool = True) -> list[str]:
        """The program itself, with what it computes: how many steps a run has, and which files are the user's.

        Raises:
            UserError: it does not run, or makes no steps.
        """
        self.runs.tell("as written: does it run, and what does it compute")
        libraries = LIBRARIES if may_change_environment(self.runs.program) else (*LIBRARIES, *TRAINERS)
        self._import_before(imported_by(self.runs.program, libraries))
        run = self.must_run(AS_WRITTEN, self.runs.program)
        self.found.steps = run.found["steps"]
        if self.found.steps < 2:
            raise UserError(
                f"{self.runs.program} made {self.found.steps or 'no'} step{'s' * (not self.found.steps)}",
                f"{STEP}, and several are compared; those of processes that it starts "
                "(mp.spawn, torchrun) are not seen: let it train in its own, as a single rank",
            )
        self.note(AS_WRITTEN, run)
        waits = self.waits[AS_WRITTEN]
        self.found.reads_before, _, self.found.rounds = of_same_steps(waits, waits)
        self.found.notes += filter(None, [self.values[AS_WRITTEN].of_fallbacks(), self.values[AS_WRITTEN].of_nan()])
        if (started := run.found["started"]) is not None:
            self.started = {path: set(lines) for path, lines in started.items()}
        self.found.device = run.found["device"]
        self.room = min(run.found["room"] or ENOUGH, self.runs.settings.copies)
        if self.trains_elsewhere:
            self.found.notes.append(ELSEWHERE)
        files: list[str] = run.found["files"]
        self.runs.ends_by_itself = not run.found["cut"]
        self.runs.more_steps = run.found["cut"] and self.runs.settings.steps is None
        only = self.runs.settings.only
        self.libraries |= set() if only else real(Place(path, line) for path, line in run.found["libraries"])
        self._import_before([name for name in run.found["imports"] if name.partition(".")[0] in libraries])
        if twice:
            self.own_noise()
        return files

    def _import_before(self, modules: Sequence[str]) -> None:
        """Libraries are imported once for all runs, but for those of which lines may be tried: these are read in each run."""
        tried = {*self.runs.settings.only, *self.libraries}
        named = {part.removesuffix(".py") for place in tried for part in Path(place.path).parts}
        self.runs.processes.import_before([name for name in modules if name.partition(".")[0] not in named])

    def must_run(self, chosen: Set, program: Program) -> RunResult:
        """A run that must not fail, with what it computes; `program` is what it runs.

        Raises:
            UserError: it does not run, or makes no steps.
        """
        try:
            return self.runs.run("values", chosen)
        except RunFailedError as error:
            if chosen not in (AS_WRITTEN, AGAIN):
                self.own_noise()  # it may be the program, which runs only once
            raise cannot_run(program, error, again=chosen == AGAIN) from None

    def own_noise(self) -> Difference:
        """How far runs as written are apart: two, or three where they differ.

        Raises:
            UserError: the program does not run a second time.
        """
        if self.found.noise is not None and AGAIN in self.values:
            return self.found.noise
        self.runs.tell("as written, once more: is it deterministic")
        noise = self._of_own_runs()
        if noise.largest > IN_COMMON:
            noise = self._over_fewer_steps(noise)
        self.found.noise = noise
        if noise.apart:
            self.found.notes.append(INCOMPARABLE.format(" and ".join(noise.apart)))
        return noise

    def _of_own_runs(self) -> Difference:
        self.values[AGAIN] = values_of(self.must_run(AGAIN, self.runs.program))
        self._are_loose(AS_WRITTEN, AGAIN)
        noise = self._difference(AGAIN)
        if noise.largest:  # one pair says little of how far two runs may be apart
            with contextlib.suppress(RunFailedError):
                run = self.runs.run("values", AGAIN)
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
        self.runs.fewer = found.fewer_steps = fewer
        self.runs.tell(f"as written over {fewer} steps, in which its runs have something in common")
        for known in (AS_WRITTEN, AGAIN, THIRD):
            self.values.pop(known, None)
        self._loose.clear()
        self.values[AS_WRITTEN] = values_of(self.must_run(AS_WRITTEN, self.runs.program))
        noise = self._of_own_runs()
        found.notes.append(
            f"runs as written drift apart: values are compared over the first {fewer} of {found.steps} steps, in which two of "
            f"them differ by {noise.largest:.1e}"
        )
        return noise

    def begin_anew(self, foreseen: Sequence[Set]) -> None:
        """Other versions are to be compared in one process."""
        self.runs.begin_anew(foreseen)
        self.found.why_values = ""
        self.beside.clear()
        self.alongside.clear()

    def compare(self, versions: Sequence[Set]) -> None:
        """Compares those that have not been with the program as written, in the same steps of one process, if that can be."""
        open_ = [chosen for chosen in versions if chosen not in self.beside]
        if not open_ or not self.runs.in_one or self.found.why_values:
            return
        self.runs.tell("the same steps by each version in one process: what do they compute")
        try:
            with self.runs.counted():
                one, again, *others = map(values_of, self.runs.one_process().compare(open_, self.runs.foreseen))
        except NotComparedError as why:
            self.found.why_values = str(why)
            return
        except CannotTakeTurnsError as why:
            self.runs.go_apart(why)
            return
        itself = pieces({}, {})
        loose = {name for name, by in names_of(one, again, itself[1]).items() if by}
        if (noise := difference(one, again, *itself, loose)).largest:
            where = f", most at {noise.where}" if noise.where else ""
            self.found.why_values = f"the same steps as written twice differ by {noise.largest:.1e}{where}"
            return
        for chosen, its in zip(open_, others, strict=True):
            self.alongside[chosen] = one, its
            self.beside[chosen] = difference(*self.both(chosen), loose)

    @property
    def equal_beside(self) -> set[Set]:
        """Versions of which that is known already."""
        return {chosen for chosen, apart in self.beside.items() if not apart.largest}

    def is_equal_beside(self, chosen: Set) -> bool:
        """Whether a version changes no bit in the same steps of one process: it says nothing of the program's first steps."""
        self.compare([chosen])
        return chosen in self.beside and not self.beside[chosen].largest

    def is_equal(self, chosen: Set) -> bool:
        """Whether a version changes no bit in a whole run: then nothing needs to be known of how far two runs are apart."""
        self._whole_run(chosen)
        if chosen not in self.values:
            return False
        if _is_of_names_alone(self._difference(chosen)) and self.found.noise is None:
            self.own_noise()  # what tells the time is another in each run
        return not self._difference(chosen).largest

    def judge(self, chosen: Set, rounds: bool, safe: bool) -> tuple[str, str, Difference | None]:
        """Whether a version computes in a whole run what the program does, and why not. `rounds`: last bits may be others.

        Raises:
            UserError: the program itself does not run a second time.
        """
        self._whole_run(chosen)
        if chosen in self.runs.failed:
            return CHANGED, f"it fails: {self.runs.failed[chosen].why}", None
        apart = self._difference(chosen)
        if apart.largest and self.found.noise is None:
            self.own_noise()  # else both were the same bit for bit, and so is the program twice
            apart = self._difference(chosen)
        only_held = _is_of_names_alone(apart)
        if only_held and not safe and apart.held <= BITS * (self.runs.fewer or self.found.steps) * LAST_BIT:
            return WITHIN, f"what names hold differs by {apart.held:.1e}, as rounding may", apart
        if only_held and not self._is_settled(chosen):
            apart = self._difference(chosen)
        if not apart.largest:
            return EQUAL, "", apart
        noise = self.found.noise or Difference()
        if apart.within(noise, NOISE):
            return WITHIN, "values differ by no more than in two runs as written", apart
        largest = f"{apart.largest:.1e}" if apart.largest < float("inf") else "more than can be said in a number"
        where = f", most at {apart.where}" if apart.where else ""
        if rounds and not safe:
            # It happens in every step, and no step carries it further than the first one, by which one bit is known.
            if self._over_steps_of_one_bit():
                return self.judge(chosen, rounds, safe)
            bit = self._one_last_bit() | noise | Difference(LAST_BIT, LAST_BIT, LAST_BIT, state=LAST_BIT, held=LAST_BIT)
            rounding = BITS * max(1, self.runs.fewer or self.found.steps)
            if apart.within(bit, rounding):
                return WITHIN, f"values differ by {largest}{where}, no farther than one last bit carries", apart
            kind, by, one = apart.beyond(bit, rounding)
            own = f"{kind} by {by:.1e}" if by < float("inf") else kind
            carried = f"one last bit of each parameter carries {one:.1e} far in these"
            most = f"up to {rounding * one:.1e} passes for rounding"
            return CHANGED, f"values differ by {largest}{where}; {own}, where {most}: {carried}", apart
        said = "it is said to be safe" if safe else "its text does not say so"
        return CHANGED, f"values differ by {largest}{where}, and {said}", apart

    def both(self, chosen: Set) -> tuple[Values, Values, PieceOf, PieceOf]:
        """What the program and a version compute, in whole runs or else in one process, and how their lines meet."""
        as_written, rewritten = self.runs.pieces(chosen)
        if chosen in self.values:
            return self.values[AS_WRITTEN], self.values[chosen], as_written, rewritten
        path = self.runs.other.target if self.runs.other and not self.runs.texts else ""
        return *self.alongside[chosen], *pieces_of_woven(as_written, rewritten, path)

    def apart(self, chosen: Set) -> Difference:
        """How far a whole run of a version is from the program as written."""
        return self._difference(chosen)

    def note(self, chosen: Set, run: RunResult) -> None:
        """A whole run of a version has been made."""
        self.values[chosen] = values_of(run)
        self.waits[chosen] = max(self.waits.get(chosen, ()), self.values[chosen].waits, key=len)

    def syncs(self, chosen: Set) -> Syncs | None:
        """How often the program and a version wait in the same steps; None where that is not known.

        In one process steps are those of the innermost loop, perhaps: what changes there is told of the program's own steps.
        """
        as_written = self.waits.get(AS_WRITTEN)
        if as_written is None:
            return None
        if chosen in self.waits:
            return of_same_steps(as_written, self.waits[chosen])
        if chosen not in self.alongside:
            return None
        own = of_same_steps(as_written, as_written)
        beside = of_same_steps(*(values.waits for values in self.alongside[chosen]))
        return own._replace(after=max(0.0, own.before + beside.after - beside.before))

    def read_at(self, path: str, lines: range) -> bool:
        """Whether the program read something at one of these lines as written."""
        return self.waits_at(path, lines) > 0

    def waits_at(self, path: str, lines: range) -> int:
        """How often it did, in all steps that were compared."""
        counts = self.values[AS_WRITTEN].counts.items() if AS_WRITTEN in self.values else ()
        return sum(count for (place, _), count in counts if place.path == path and place.line in lines)

    def ran_at(self, path: str, lines: range) -> bool:
        """Whether one of these lines ran in its steps, as far as that was seen."""
        return self.started is None or not self.started.get(path, set()).isdisjoint(lines)

    def _whole_run(self, chosen: Set) -> None:
        """Has what a version computes, or that it fails, in `values` or `failed`."""
        if chosen not in self.values and chosen not in self.runs.failed:
            try:
                self.note(chosen, self.runs.run("values", chosen))
            except RunFailedError as error:
                self.own_noise()  # it may be the program, which runs only once
                self.runs.failed[chosen] = error

    def _is_settled(self, chosen: Set) -> bool:
        """Whether what names hold is the same in a second run of a version: what tells the time differs there, too."""
        before, again = len(self._loose), frozenset({-4})
        with contextlib.suppress(RunFailedError):
            self.values[again] = values_of(self.runs.run("values", chosen))
            self._are_loose(chosen, again)
        return len(self._loose) == before

    def _one_last_bit(self) -> Difference:
        """How far the program is from itself once the last bit of every parameter was changed in the first step."""
        if self.last_bit is None:
            self.runs.tell("as written, with other last bits: how far does rounding carry")
            try:
                self.values[CHANGED_BITS] = values_of(self.runs.run("values", AS_WRITTEN, perturb=True))
                self.last_bit = self.found.last_bit = self._difference(CHANGED_BITS)
            except RunFailedError as error:
                self.found.notes.append(
                    f"how far rounding carries is not known: with other last bits it fails: {error.why}"
                )
                self.last_bit = Difference()
        return self.last_bit

    def _over_steps_of_one_bit(self) -> bool:
        """Where one last bit carries so far that all would pass for rounding, fewer steps are compared from now on; whether."""
        steps = self.runs.fewer or self.found.steps
        if BITS * steps * self._one_last_bit().largest <= FAR or CHANGED_BITS not in self.values:
            return False
        fewer = steps_in_common(self.values[AS_WRITTEN], [self.values[CHANGED_BITS]])
        if not 0 < fewer < steps:
            return False
        self.runs.fewer = self.found.fewer_steps = fewer
        self.runs.tell(f"as written over {fewer} steps, in which one last bit carries less far")
        self.values.clear()
        self._loose.clear()
        self.last_bit = self.found.last_bit = None
        self.values[AS_WRITTEN] = values_of(self.must_run(AS_WRITTEN, self.runs.program))
        self.found.noise = self._of_own_runs()
        self.found.notes.append(
            f"one last bit carries far: values are compared over the first {fewer} of {steps} steps"
        )
        return True

    def _difference(self, chosen: Set) -> Difference:
        before, after = self.runs.pieces(chosen)
        return difference(self.values[AS_WRITTEN], self.values[chosen], before, after, self._loose)

    def _are_loose(self, one: Set, again: Set) -> None:
        """Names that hold something else in another run of the same version, such as the time, prove nothing.

        Where all values vary, those that vary no more than others may are compared all the same, as these are.
        """
        mine, theirs = self.values[one], self.values[again]
        itself = pieces({}, {})
        names = names_of(mine, theirs, itself[1])
        varies = replace(difference(mine, theirs, *itself), held=0.0).largest
        self._loose |= {name for name, by in names.items() if by > (IN_COMMON if varies else 0.0)}


def _is_of_names_alone(apart: Difference) -> bool:
    """Whether nothing differs but what names hold."""
    return replace(apart, held=0.0).largest == 0.0 < apart.held
