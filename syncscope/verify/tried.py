"""Which rehearsals tell what fixes compute and save, and what they tell: values first, then turns until enough is known."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Collection, Generator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from syncscope.turns.turns import Turns
from syncscope.verify import timing, values
from syncscope.verify.compared import BITS, NOISE
from syncscope.verify.counted import of_same_steps
from syncscope.verify.noted import Noted
from syncscope.verify.offers import ALL, Offer, Offers
from syncscope.verify.paired import LAST_BIT
from syncscope.verify.periods import Periods
from syncscope.verify.plan import HEARD
from syncscope.verify.rehearsal import Rehearsal, Rehearsals
from syncscope.verify.request import Program, Request
from syncscope.verify.results import CHANGED, EQUAL, WITHIN, Verification
from syncscope.verify.timing import Ratio
from syncscope.verify.values import Difference, Values
from syncscope.verify.why_kept import why_it_goes

LASTS = 1e8  # ns that the steps of a rehearsal take together, as far as these numbers allow:
SHORT, MANY = 6, 40  # steps
LONGEST = 200  # steps, where what differs is begun once in many
PRECISION = 0.01
WEAK = 2.0**-10  # what the same steps may differ by on a device that adds in any order
AS_WRITTEN, AGAIN = 0, -1  # versions


class Tried:
    """The trial of some offers. `steps` is how many each rehearsal has, `asks` how more time is asked for."""

    def __init__(
        self,
        program: Program,
        offers: Offers,
        optimizers: dict[int, Any],
        found: Verification,
        budget: float,
        asks: str = "`--try-budget {}`",
    ) -> None:
        self.steps = SHORT
        self._asks = asks
        self._request, self._optimizers = Request("turns", program, ""), optimizers
        self._offers, self._found, self._budget = offers, found, budget
        self._skip = 1  # steps of a rehearsal that are not timed
        self._made = 0  # steps of this rehearsal
        self._noted: Noted | None = None  # what they compute, if that is noted
        self._entered: dict[int, int] = {}  # passages that were begun as written
        self._values: dict[int, tuple[str, str, Difference | None]] = {}  # of versions: the word, why, how far apart
        self._loose: set[Any] = set()
        self._failed: set[int] = set()  # versions that cannot be timed
        self._turns = Turns((AS_WRITTEN, AGAIN))  # ns of a step of each version, by turn
        self._is_over = False
        self._folder = Path()
        self._began = 0.0
        self._before_turns: float | None = None  # s, once turns have begun
        self._draw = random.Random(0)

    def plan_steps(self, usual: float, periods: Periods) -> None:
        """How many steps are rehearsed, by how long they usually are (ns), so that all that differs is begun in them."""
        begun = [periods.of(passage) or 1 for offer in self._offers.tried for passage in offer.passages]
        self._skip = max([1, *(period for period in begun if period <= LONGEST)])
        counted = round(min(MANY, max(SHORT, LASTS / usual)))
        self.steps = self._skip + -(-counted // self._skip) * self._skip

    def begin(self, folder: Path) -> None:
        """Now; `folder` is one of ours."""
        self._folder, self._began = folder, time.monotonic()

    def step(self) -> None:
        """The program has made a step of a rehearsal."""
        self._made += 1
        if self._noted is not None:
            self._noted.step()

    def rehearsals(self) -> Rehearsals:
        """All that are wanted, as long as there is time."""
        one, _ = yield from self._computed(AS_WRITTEN)
        again, _ = yield from self._computed(AS_WRITTEN)
        if one and again and one.steps != again.steps:  # the loop ended in the first
            one = again
            again, _ = yield from self._computed(AS_WRITTEN)
        if one is None or again is None or not self._are_same(one, again):
            return
        self._found.steps = self._found.compared_steps = one.steps
        self._found.reads_before, _, self._found.rounds = of_same_steps(one.waits, one.waits)
        good = []
        for offer in self._offers.tried:
            offer.fix.why = self._idle(offer, one)
            if not offer.fix.why and self._is_late():
                offer.fix.why = f"there was no time left: {self._shortage()}"
            if not offer.fix.why and (yield from self._compare(offer.number, [offer], one)):
                good.append(offer)
        wanted = [offer.number for offer in good]
        if len(good) > 1 and (yield from self._compare(ALL, good, one)):
            wanted.append(ALL)
        yield from self._in_turns(wanted)

    # what they compute

    def _computed(self, version: int) -> Generator[Rehearsal, Rehearsal, tuple[Values | None, str]]:
        """What a version computes; None where it fails, and why."""
        noted = Noted(self._request, self._folder / f"noted{len(list(self._folder.iterdir()))}", self._optimizers)

        def before() -> None:
            self._made, self._noted = 0, noted
            noted.begin()

        def after() -> None:
            self._noted = None
            noted.end()

        made = yield Rehearsal(version, before, self._is_long, after)
        if not version:
            self._entered = made.entered
        return (None, f"it fails: {made.error}") if made.error else (noted.values(), "")

    def _is_long(self) -> bool:
        return self._made >= self.steps

    def _are_same(self, one: Values, again: Values) -> bool:
        """Whether the program computes the same twice, so that others can be compared, and all is as it was in the end."""
        itself = values.pieces({}, {})
        self._loose = {name for name, by in values.names_of(one, again, itself[1]).items() if by}
        noise = self._found.noise = values.difference(one, again, *itself, self._loose)
        if noise.largest <= (0.0 if self._found.device == "cpu" else WEAK):
            return True
        where = f", most at {noise.where}" if noise.where else ""
        self._found.notes.append(
            f"nothing was tried: the same steps, made twice as written, differ by {noise.largest:.1e}{where}. Either a step "
            "computes something else each time, or something could not be put back: then the run from here on is another than "
            "without --try"
        )
        for offer in self._offers.tried:
            offer.fix.why = "the same steps, made twice as written, differ"
        return False

    def _idle(self, offer: Offer, one: Values) -> str:
        """Why a fix is not worth trying."""
        if offer.passages and offer.passages.isdisjoint(self._entered):
            return f"it is not reached in the {one.steps} steps that were rehearsed"
        lines = range(offer.candidate.line, offer.candidate.end_line + 1)
        waits = any(place.path == offer.candidate.path and place.line in lines for place, _ in one.counts)
        if offer.candidate.family in HEARD and not waits:
            return "its line did not wait in these steps"
        return ""

    def _compare(self, version: int, offers: Sequence[Offer], one: Values) -> Generator[Rehearsal, Rehearsal, bool]:
        """Whether a version computes what the program does."""
        its, why = yield from self._computed(version)
        word, apart = CHANGED, None
        if its is not None:
            apart = values.difference(one, its, *self._pieces(version, offers), self._loose)
            word, why = self._judged(apart, offers)
            if version == ALL or len(self._offers.tried) == 1:
                self._found.reads_before, self._found.reads_after, self._found.rounds = of_same_steps(
                    one.waits, its.waits
                )
        self._values[version] = word, why, apart
        for offer in offers if version != ALL else ():
            offer.fix.values, offer.fix.difference = word, apart
            self._found.refused |= word == CHANGED
        return word != CHANGED

    def _judged(self, apart: Difference, offers: Collection[Offer]) -> tuple[str, str]:
        noise = self._found.noise or Difference()
        if not apart.largest:
            return EQUAL, ""
        if apart.within(noise, NOISE):
            return WITHIN, "values differ by no more than in the same steps as written"
        rounds = any(offer.plan.candidates[number].fix.rounds for offer in offers for number in offer.members)
        if rounds and apart.largest <= BITS * self.steps * LAST_BIT:
            return WITHIN, f"values differ by {apart.largest:.1e}, as rounding may"
        return CHANGED, f"values differ by {apart.largest:.1e}" + (f", most at {apart.where}" if apart.where else "")

    def _pieces(self, version: int, offers: Sequence[Offer]) -> tuple[values.PieceOf, values.PieceOf]:
        before, after = self._offers.files(None if version == ALL else offers[0])
        return values.pieces_of_woven(*values.pieces(before, after))

    # what they save

    def _in_turns(self, versions: Sequence[int]) -> Rehearsals:
        """Each in turns with the program as written, twice, until it is known what it saves, or the time is up."""
        self._before_turns = time.monotonic() - self._began
        while not self._is_late():
            open_ = [version for version in versions if not self._is_known(version)]
            if not open_:
                return
            order = [AS_WRITTEN, AGAIN, *open_]
            self._draw.shuffle(order)
            times: dict[int, float] = {}
            for version in order:
                if not self._is_late() and (taken := (yield from self._timed(version))) is not None:
                    times[version] = taken
            self._turns.add(times)
            self._found.same = self._ratio(AGAIN)

    def _timed(self, version: int) -> Generator[Rehearsal, Rehearsal, float | None]:
        """ns of an iteration of a version; None where it failed, or kernels were built."""
        from syncscope.tracers.step_times import StepTimes

        times = StepTimes(kept=None, queued=True, apart=0)

        def before() -> None:
            self._made = 0
            times.boundary()

        def after_each() -> bool:
            times.boundary()
            return self._is_long()

        made = yield Rehearsal(max(version, AS_WRITTEN), before, after_each, times.pause)
        if made.error:
            self._failed.add(version)
        lengths = times.every()[min(self._skip, made.made // 2) :]
        known = [length for length in lengths if length is not None]
        return fmean(known) if known and len(known) == len(lengths) else None

    def _ratio(self, version: int) -> Ratio | None:
        """By all looks, of which that behind the last turn is the last one where nothing was known before."""
        logs = self._turns.ratios(version)
        ratio = timing.ratio_at_all_times(logs)
        return timing.ratio_at_all_times(logs, is_last=True) if self._is_over and not self._tells(ratio) else ratio

    def _is_known(self, version: int) -> bool:
        return version in self._failed or self._tells(self._ratio(version))

    def _tells(self, ratio: Ratio | None) -> bool:
        if timing.narrow(ratio, PRECISION):
            return True
        return timing.decides(ratio) and (self._found.is_gain(ratio) or not (ratio and ratio.gains))

    def _is_late(self) -> bool:
        return time.monotonic() - self._began > self._budget

    # what is said

    def said(self) -> str:
        """In one line."""
        fixes = [offer.fix for offer in self._offers.tried]
        each = [
            f"with the fix at {fix.path}:{fix.line} a step is {fix.ratio} of what it was" for fix in fixes if fix.ratio
        ]
        if not each:
            return f"not timed: {next((fix.why for fix in fixes if fix.why), '')}"
        return f"tried for {self._found.seconds:.1f} s: {'; '.join(each)}"

    def _shortage(self) -> str:
        """What the time went to, and which would hold the turns that tell more."""
        turns, before, most = len(self._turns), self._before_turns, self._budget
        if before is None:
            held, more = "all of it went to what fixes compute", 4 * most
        elif turns < timing.FEWEST:
            held = f"it held {turns} turn{'s' * (turns != 1)}, and {timing.FEWEST} are the least that decides"
            more = before + 2 * timing.FEWEST * max(0.0, most - before) / turns if turns else 4 * most
        else:
            held, more = f"it held {turns} turns", before + 4 * max(0.0, most - before)
        asked = self._asks.format(f"{math.ceil(max(more, 2 * most) / 60)}m")
        return f"of {most:.0f} s {held}; {asked} holds more"

    def end(self) -> None:
        """What is known by now is said of each fix, and of all."""
        found = self._found
        found.runs, found.seconds = 1, time.monotonic() - self._began
        self._is_over = self._is_late()
        for offer in self._offers.tried:
            fix = offer.fix
            fix.ratio = self._ratio(offer.number)
            word, why, _ = self._values.get(offer.number, (None, "", None))
            fix.kept = word in (EQUAL, WITHIN) and found.is_gain(fix.ratio)
            if word == CHANGED:
                fix.why = why
            elif fix.kept:
                fix.why = "the step is shorter with it"
            elif not fix.why:
                fix.why = why_it_goes(fix.ratio, word, None)
                if self._is_over and not self._is_known(offer.number):
                    fix.why += f": {self._shortage()}"
        timed = [offer.number for offer in self._offers.tried if offer.fix.ratio is not None]
        best = ALL if self._ratio(ALL) is not None else timed[0] if len(timed) == 1 else None
        if best is not None:
            found.ratio, found.values, found.difference = (
                self._ratio(best),
                self._values[best][0],
                self._values[best][2],
            )
            found.before, found.after = self._step(AS_WRITTEN), self._step(best)

    def _step(self, version: int) -> float:
        return median(times[version] for times in self._turns.turns if version in times)
