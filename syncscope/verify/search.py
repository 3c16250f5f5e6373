"""How long the steps of versions take beside each other.

They are timed in turns: the program as written, once more as written (what do two equal versions differ by?), and the versions,
in an order that is drawn anew for each turn.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from statistics import median

from syncscope.turns.turns import Turns
from syncscope.turns.weaving import CannotTakeTurnsError
from syncscope.verify import timing
from syncscope.verify.budget import Budget
from syncscope.verify.compared import Compared
from syncscope.verify.failing import cannot_run
from syncscope.verify.in_turns import fewest_steps
from syncscope.verify.one_process import Taken, too_few
from syncscope.verify.processes import RunFailedError, RunResult
from syncscope.verify.results import IN_ONE
from syncscope.verify.runs import Runs
from syncscope.verify.timing import Ratio
from syncscope.verify.trial import MOST
from syncscope.verify.versions import AGAIN, AS_WRITTEN, Set
from syncscope.verify.worked import is_disturbed

MOST_TURNS = 30
MOST_IN_ONE = 1000  # the same inside of one process, where a turn takes some tenths of a second
BESIDE = 2  # versions that run side by side with the program as written, twice, where a device holds all four


def groups(versions: Sequence[Set], room: int) -> list[list[Set]]:
    """Which versions run side by side: with the program as written, twice, as many as there is room for on the device; where
    that is too little, each with the program as written, and with each other where they are two."""
    if room >= 2 + BESIDE or room < 2:
        firsts = range(0, max(1, len(versions)), BESIDE)
        return [[AS_WRITTEN, AGAIN, *versions[first : first + BESIDE]] for first in firsts]
    beside = [[*versions]] if len(versions) == BESIDE else []
    return [[AS_WRITTEN, AGAIN], *([AS_WRITTEN, chosen] for chosen in versions), *beside]


class Search:
    """One verification under way: its runs, what they compute, how long their steps take, and what is left of its time."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.found = runs.found  # at any moment what is known
        self.compared = Compared(runs)
        self.budget = Budget(runs)
        self.best: Set | None = None  # the version of which `found` speaks
        self.turned: Callable[[], None] = lambda: None  # called after each turn
        self.told: Callable[[], None] = lambda: None  # says of what is not decided why it is not
        self._in_one = Turns((AS_WRITTEN, AGAIN))  # turns in one process, which are not mixed with others
        self._in_processes = Turns((AS_WRITTEN, AGAIN))
        self._worked = Turns((AS_WRITTEN, AGAIN))  # the same in one process, of the processors
        self._fed: list[float] = []  # of blocks as written in one process, the part until batches were there
        self._is_over = False  # the time is up: nothing will be looked at again
        self._beside = True  # whether versions run side by side; two may not, for want of memory or of a port
        self._draw = random.Random(runs.settings.seed)
        self._turning = 0.0  # when the first turn in one process began
        self._warned = False  # that the clock is disturbed

    def begin(self, twice: bool) -> list[str]:
        """The program as written, which is the first to be run; the user's files in it. Says at once where no device works, and
        where the budget is too small for more.

        Raises:
            UserError: it does not run, or makes no steps.
        """
        files = self.compared.as_written(twice=twice)
        program = self.runs.program
        if self.found.device == "cpu" and program.device != "cpu" and not self.found.stale:
            self.runs.processes.warn(
                f"it works on the CPU, where no wait is for a device, so hardly a fix gains here: {program.to_a_device}"
            )
        if said := self.budget.forewarning():
            self.runs.processes.warn(said)
        return files

    @property
    def turns(self) -> Turns[Set]:
        """What a step of each version takes, by turn: ns of the clock, or of the processors."""
        if self.runs.in_one and self.found.by_processors:
            return self._worked
        return self._in_one if self.runs.in_one else self._in_processes

    def turn(self, versions: Sequence[Set]) -> None:
        """Each of these once, in an order that is drawn; a few of them side by side with the program as written, twice."""
        versions = [chosen for chosen in dict.fromkeys(versions) if chosen not in (AS_WRITTEN, AGAIN)]
        if self.runs.in_one:
            try:
                turn = self._in_one_process(self._drawn(versions))
                self._worked.add(turn.work)
                self._fed += [turn.fed[one] / turn.times[one] for one in (AS_WRITTEN, AGAIN) if one in turn.fed]
                self.found.fed = median(self._fed) if self._fed else None
                self._note_turn(self._in_one, turn.times)
                return
            except CannotTakeTurnsError as why:
                self.runs.go_apart(why)
        if not self._in_processes.turns and (said := self.budget.forewarning_of_turns()):
            self.runs.processes.warn(said)
        for group in groups([one for one in versions if one not in self.runs.failed], self.compared.room):
            self._draw.shuffle(group)
            self._note_turn(self._in_processes, self._times_of(group))

    def _drawn(self, versions: Sequence[Set]) -> list[Set]:
        """These and as written, twice, in the order of a turn."""
        order = [AS_WRITTEN, AGAIN, *(chosen for chosen in versions if chosen not in self.runs.failed)]
        self._draw.shuffle(order)
        return order

    def _note_turn(self, turns: Turns[Set], times: dict[Set, float]) -> None:
        turns.add(times)
        self.found.by_processors = self.runs.in_one and self._is_disturbed()
        if self.found.by_processors and not self._warned:
            self._warned = True
            self.runs.processes.warn(
                "others disturb the clock here: versions are told apart by processor time, in which no wait is, so what waits "
                "cost is not proved; for that run it where nothing else does"
            )
        self.found.same = self.ratio(AGAIN)
        if self.best is not None:
            self.note(self.best)
        self.turned()

    def _is_disturbed(self) -> bool:
        """Whether the clock tells less than the processors' time; not where it tells of a gain all the same."""
        clock, work = (
            [times[AGAIN] / times[AS_WRITTEN] for times in of.turns if {AGAIN, AS_WRITTEN} <= times.keys()]
            for of in (self._in_one, self._worked)
        )
        if not is_disturbed(clock, work):
            return False
        self.found.by_processors = False
        self.found.same = self.ratio(AGAIN)
        return self.best is None or not self.found.is_gain(self.ratio(self.best))

    def _times_of(self, order: Sequence[Set]) -> dict[Set, float]:
        """ns of a step of each version, as far as it ran."""
        times: dict[Set, float] = {}
        beside = self._beside and self.compared.room > 1
        self.found.copies = max(self.found.copies, len(order) if beside else 1)
        if beside:
            self.runs.tell("in turns: " + ", ".join(sorted({self.runs.words(chosen) for chosen in order})))
            try:
                for chosen, run in zip(order, self.runs.run_together(order), strict=True):
                    self._note_time(times, chosen, run)
                return times
            except RunFailedError as error:
                self._beside = False
                self.found.notes.append(
                    f"versions are run one after another, since side by side one fails: {error.why}"
                )
        for chosen in order:
            self.runs.tell(self.runs.words(chosen))
            try:
                self._note_time(
                    times, chosen, self.runs.run("time", chosen, steps=self.found.timed_steps or self.found.steps)
                )
            except RunFailedError as error:
                if chosen in (AS_WRITTEN, AGAIN):
                    raise cannot_run(self.runs.program, error) from None
                self.runs.failed[chosen] = error
        return times

    def _in_one_process(self, order: Sequence[Set]) -> Taken:
        """A block of steps of each, one after the other in one process; nothing where the program ended meanwhile.

        Raises:
            CannotTakeTurnsError: why each is to have a process of its own.
        """
        if self.runs.ends_by_itself and self.found.steps < fewest_steps(len(order)):
            raise CannotTakeTurnsError(too_few(len(order), self.found.steps))
        changed = [chosen for chosen in order if chosen not in (AS_WRITTEN, AGAIN)]
        self.runs.tell(f"steps of each version in turns: {self._open(changed)}")
        self._turning = self._turning or time.monotonic()
        with self.runs.counted():
            turn = self.runs.one_process().turn(order, changed, self.runs.foreseen)
        self.found.way = IN_ONE
        return turn

    def _open(self, versions: Sequence[Set]) -> str:
        """Which of some versions are open, and when they will not be; what is known of the others."""
        said = []
        each = (time.monotonic() - self._turning) / max(1, len(self.turns)) if self._turning else 0.0
        for chosen in versions:
            ratio = self.ratio(chosen)
            if ratio is not None and self.is_known(chosen):
                said.append(f"{self.runs.words(chosen)} {ratio.ratio:.3f}")
                continue
            left, seconds = self.runs.processes.left(), timing.turns_to_come(ratio) * each
            about = f", {seconds:.0f} s more" if 0 < seconds <= left else ""
            if left < seconds < math.inf:
                holds = timing.turns_to_come(ratio, timing.AT_LAST) * each <= left
                about = ", to be told when the budget is spent" if holds else ", more than the budget holds"
            said.append(f"{self.runs.words(chosen)}: not decided yet{about}")
        return "; ".join(said)

    def _note_time(self, times: dict[Set, float], chosen: Set, run: RunResult) -> None:
        taken = timing.step(run.found["lengths"])
        if taken is None:
            return
        times[chosen] = taken
        if self.runs.more_steps:  # which take as long as what comes before them: else most of the budget times nothing
            self.runs.more_steps = False
            start = run.found["ready"]
            left = self.runs.processes.left()
            turn = left / (2 * timing.FEWEST) / (2 + BESIDE)  # s of one run, so that six turns fit
            seconds = min(start, turn - start)
            self.found.timed_steps = max(self.found.steps, min(MOST, round(1e9 * seconds / taken)))

    def ratio(self, chosen: Set, beside: Set = AS_WRITTEN, since: int = 0) -> Ratio | None:
        """Of the steps of two versions, over the turns since then in which both ran. As written is what both such runs say.

        In one process it is looked at after every turn; a last time, where nothing was known before, when the time is up.
        """
        if not self.runs.in_one:
            return timing.ratio_of(self.turns.pairs(chosen, beside, since))
        logs = self.turns.ratios(chosen, None if beside == AS_WRITTEN else beside, since)
        ratio = timing.ratio_at_all_times(logs)
        return timing.ratio_at_all_times(logs, is_last=True) if self._is_over and not self._tells(ratio) else ratio

    def close(self) -> None:
        """The time is up: what is not known by now is looked at once more, and for the last time."""
        self._is_over = True
        self.found.same = self.ratio(AGAIN)
        if self.best is not None:
            self.note(self.best)

    def is_known(self, chosen: Set, since: int = 0) -> bool:
        """Whether further turns of a version are not worth their time, by those since then."""
        return self._tells(self.ratio(chosen, since=since))

    def _tells(self, ratio: Ratio | None) -> bool:
        if timing.narrow(ratio, self.runs.settings.precision):
            return True
        return self.runs.in_one and timing.decides(ratio) and (self.found.is_gain(ratio) or not (ratio and ratio.gains))

    @property
    def most_turns(self) -> int:
        """However wide an interval still is."""
        return MOST_IN_ONE if self.runs.in_one else MOST_TURNS

    def step(self, chosen: Set) -> float | None:
        """The median step of a version over all turns, ns of the clock."""
        turns = self._in_one if self.runs.in_one else self._in_processes
        times = [turn[chosen] for turn in turns.turns if chosen in turn]
        return median(times) if times else None

    def until_narrow(self, versions: Sequence[Set]) -> None:
        """Turns of those versions that are not yet known well, until all are or the budget is spent."""
        for _ in range(self.most_turns):
            open_ = [v for v in versions if v not in self.runs.failed and not self.is_known(v)]
            if not open_ or self.budget.spent() > 1:
                return
            self.turn(open_)

    def side_by_side(self, one: Set, other: Set, part: float) -> Ratio | None:
        """The step of one version over that of another, both in the same turns; as `until_narrow`."""
        precision = 2 * self.runs.settings.precision
        for _ in range(self.most_turns):
            beside = self.ratio(one, other)
            if timing.narrow(beside, precision) or self.budget.spent() > part or (beside and beside.loses):
                break
            if one in self.runs.failed or other in self.runs.failed:
                break
            if self.runs.in_one and beside and beside.high <= 1 + precision:
                break
            self.turn([one, other])
        return self.ratio(one, other)

    @property
    def is_short(self) -> bool:
        """Whether the search came to its end for want of time, and nothing is decided."""
        ratio = self.found.ratio
        return self.best is not None and self.budget.spent() > 0.5 and (ratio is None or ratio.turns < timing.FEWEST)

    def note(self, chosen: Set) -> None:
        """This version is what is known best so far."""
        found = self.found
        found.ratio = self.ratio(chosen)
        found.before, found.after = self.step(AS_WRITTEN), self.step(chosen)
        if (syncs := self.compared.syncs(chosen)) is not None:
            found.reads_before, found.reads_after, found.rounds = syncs
