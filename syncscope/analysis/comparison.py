"""What is known of two recordings of one loop side by side: how far apart their steps are, and what equal ones may be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from syncscope.analysis.errors import student
from syncscope.analysis.experience import BUSY
from syncscope.analysis.fidelity import came_true
from syncscope.analysis.new_syncs import NewSyncs
from syncscope.analysis.promised import Promised, promised
from syncscope.analysis.steps import counted_time
from syncscope.analysis.work_changes import WorkChange
from syncscope.model.report import Line, Report
from syncscope.model.source import Place

SLIGHT = 0.01  # the part of a step by which a prediction may miss and be true
# the part by which what is waited for at one line may differ from what was at another, to be the same wait
AS_MUCH = 0.25
FELT = 2.0  # times the difference of its calls: what a step may differ by (benchmarks/equal_recordings.py)
FEWEST = 4  # steps of either, which by chance are all longer in one of seventy
CHANCE = 20  # once in so many a sentence of a few steps may be wrong
MOST_STEPS = 2000  # more nobody records
# of the device's work: of pairs of nine programs kernels of both did at most 0.18, of one recorded twice 0.95
COMMON = 0.2
UNCOUNTED = 2  # the first step of a recording, and the last


@dataclass(frozen=True, slots=True)
class Change:
    """A line before and after; None where it is not."""

    before: Line | None
    after: Line | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one recording to another. Times are ns per step.

    Their steps are those without a recording where both runs were also timed so, else those that were recorded.

    `spread` is half the 95 % interval of the step of either, by the spread of its steps; None with too few of them.
    `drift` is how far apart their recorded steps and the others of the same runs are on the change, in parts of a step.
    `predicted` is the step that a replay of the first recording gives without the reads that the second no longer makes,
    `predicted_range` the least and the most that it may be (`fidelity.bounds`), `error` its distance from the measured one,
    relative; None where no read went, the first cannot be replayed, or what runs over all rows then may be anything
    (`unforeseen`), or where reads may only stand in a file of another name (`renamed`). `work` is how long the device works in
    a step, `pieces` on how many kernels, copies and fills, `calls` how many of them the host launches: in the first, without
    the reads of the prediction, and in the second. What differs there is what else was changed, which no replay can know.
    """

    before: Report
    after: Report
    gone: tuple[Line, ...]
    new: tuple[Line, ...]
    changed: tuple[Change, ...]
    same: tuple[Change, ...]
    predicted: float | None
    error: float | None
    predicted_range: tuple[float, float] | None = None
    work: tuple[float, float] = (0.0, 0.0)
    pieces: tuple[float, float] = (0.0, 0.0)
    calls: tuple[float, float] = (0.0, 0.0)
    spread: tuple[float, float] | None = None
    refusal: str = ""  # why the first recording has no prices
    vague: str = ""  # why what a replay gives without these reads is too wide to be measured against
    pace: float = 1.0  # so many times as long the driver's calls that wait for nothing take in the second (`pace`)
    drift: float = 0.0  # of a step
    unforeseen: bool = False  # reads went, but what runs over all rows in their place may be anything
    # a read in a file of the first alone, and such a one in a file of the second alone
    renamed: tuple[Place, Place] | None = None
    devices: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # the names of those of either
    strangers: bool = False  # no kernel and no line that waits is in both
    worlds: tuple[int, int] | None = None  # how many ranks the jobs have that these are of, where that differs
    common: float = 1.0  # the part of the device's work that kernels do which both have
    # whether the step of either is as timed without a recording, for no replay fits
    timed: tuple[bool, bool] = False, False
    more: NewSyncs = field(default_factory=NewSyncs)  # what a step waits for more often
    as_recorded: str = ""  # why a step is another here than in the report of one of them
    kernels: tuple[WorkChange, ...] = ()  # of the device's work what takes longer or less, the largest difference first
    one_recording: bool = False  # the same events at the same times: nothing is by chance

    @property
    def of_others(self) -> str:
        """Why what differs is no change of one program: other devices, or other programs; "" where it may be one."""
        one, other = self.devices
        if one and other and set(one) != set(other):
            named = f"{' and '.join(one)} and {' and '.join(other)}"
            return f"two different machines, {named}: what differs is no change of the program alone"
        if self.strangers:
            return "no kernel and no line that waits is in both, so they seem to be of two programs"
        if self.worlds is not None:
            return (
                "one is of a job of {:,} ranks and one of {:,}: what differs is no change of the program alone".format(
                    *self.worlds
                )
            )
        return ""

    @property
    def promised(self) -> Promised | None:
        """What the first report promised of what was done by the second, though no line went."""
        return None if self.of_others or self.perhaps_others else promised(self.before, self.after, self.noise or 0.0)

    @property
    def perhaps_others(self) -> str:
        """Why they may be of two programs; "" where a line that waits is in both, or much of the work, or it is sure."""
        if self.of_others or self.changed or self.same or self.common >= COMMON:
            return ""
        return (
            f"these may be two programs: kernels that both have do {self.common:.1%} of the device's work, and no line that "
            "waits is in both"
        )

    @property
    def of_ranks(self) -> str:
        """That the two are of different ranks of a job; "" where they are not, or do not say."""
        one, other = (report.trace.meta if report.trace is not None else {} for report in (self.before, self.after))
        first, second = one.get("rank"), other.get("rank")
        if first is None or second is None or first == second or 1 in (one.get("world_size"), other.get("world_size")):
            return ""
        return f"the two are rank {first} and rank {second} of a job: what differs may be their parts in it"

    @property
    def moved(self) -> tuple[tuple[Line, Line], ...]:
        """Lines whose waits are gone, or are fewer, each with the line for which the host is blocked so much longer since: what
        it no longer waits for there, it waits for here."""
        pairs = [(c.before, c.after) for c in self.changed if c.before is not None and c.after is not None]
        lost = [(line, line.blocked) for line in self.gone]
        lost += [(a, a.blocked - b.blocked) for a, b in pairs if b.count < a.count]
        longer = {b: b.blocked - a.blocked for a, b in pairs if b.blocked > a.blocked}
        found = list[tuple[Line, Line]]()
        for line, less in sorted(lost, key=lambda pair: -pair[1]):
            near = [other for other, more in longer.items() if abs(more - less) <= AS_MUCH * less]
            if near and less > SLIGHT * (self.before.step or 0.0) and not self.of_others:
                other = min(near, key=lambda one: abs(longer[one] - less))
                found.append((line, other))
                del longer[other]
        return tuple(found)

    @property
    def noise(self) -> float | None:
        """What the steps of two equal recordings may differ by, ns: by the spread of each at 95 %, by a machine that got faster
        or slower within a run (`drift`), and by a host that is not as fast, which steps feel up to `FELT` times as much as the
        calls by which it is known. The larger of what it may be on either side."""
        if (margins := self._margins) is None or self.after.step is None:
            return None
        return max(margins) * self.after.step

    @property
    def _margins(self) -> tuple[float, float] | None:
        """By how much of a step the change of the program may be less than what was measured, and more; alike whichever of both
        is the first."""
        if (spreads := self._spreads) is None:
            return None
        less, more = self._of_machine
        return math.hypot(*spreads, less), math.hypot(*spreads, more)

    @property
    def _of_machine(self) -> tuple[float, float]:
        """The same by the machine alone, which more steps do not tell. A slower host makes a step longer, and a faster one
        shorter, never the other way round: of a step that a faster host makes the change may only be more."""
        felt = FELT * math.log(self.pace)
        return math.hypot(self.drift, max(felt, 0.0)), math.hypot(self.drift, min(felt, 0.0))

    @property
    def _spreads(self) -> tuple[float, float] | None:
        """The spread of either, as a part of its own step."""
        if self.spread is None or not self.before.step or not self.after.step:
            return None
        return self.spread[0] / self.before.step, self.spread[1] / self.after.step

    @property
    def _apart(self) -> float:
        """How far apart the two steps are, as a part of a step; the same whichever is the first."""
        return abs(math.log(self.after.step / self.before.step)) if self.after.step and self.before.step else 0.0

    @property
    def change(self) -> tuple[float, float, float] | None:
        """By what part of the first step the second is longer: at least, likely, and at most; None where nobody knows."""
        if self._margins is None or not self.after.step or not self.before.step:
            return None
        (less, more), apart = self._margins, math.log(self.after.step / self.before.step)
        return math.expm1(apart - less), math.expm1(apart), math.expm1(apart + more)

    @property
    def within_noise(self) -> bool | None:
        """Whether the two steps may be the same; None where nobody knows."""
        if self._margins is None:
            return None
        less, more = self._margins
        return self._apart <= less if self._longer else self._apart <= more

    @property
    def _longer(self) -> bool:
        """Whether the second step is the longer one."""
        return (self.after.step or 0.0) > (self.before.step or 0.0)

    @property
    def every_step(self) -> str:
        """What every counted step of the second recording is, beside every one of the first: "longer" or "shorter"; "" where
        neither, and where fewer than four of either make that chance."""
        one, other = self.lengths
        if min(len(one), len(other)) < FEWEST:
            return ""
        return "longer" if min(other) > max(one) else "shorter" if max(other) < min(one) else ""

    @property
    def each_step(self) -> tuple[float, float] | None:
        """By what part each counted step of the second is longer than each of the first, at least and at most, where they are
        too few for an interval of their mean, or these too far apart. None of so few that chance alone puts all of one above
        all of the other more often than once in twenty: of three and three once in twenty."""
        if self.each_as_recorded is None or self.orders < CHANCE:
            return None
        (least, most), (less, more) = map(math.log1p, self.each_as_recorded), self._of_machine
        return math.expm1(least - less), math.expm1(most + more)

    @property
    def each_as_recorded(self) -> tuple[float, float] | None:
        """The same, as they were recorded: whatever the machine, or a host that was not as fast in both, made of them."""
        one, other = self.lengths
        if min([*one, *other], default=0) <= 0:
            return None
        return min(other) / max(one) - 1, max(other) / min(one) - 1

    @property
    def orders(self) -> int:
        """In how many orders the counted steps of both can come, if those of either are all alike."""
        one, other = map(len, self.lengths)
        return math.comb(one + other, one)

    def steps_to_know(self, within: float) -> int | None:
        """How many steps of either recorded would tell the change give or take such a part of a step, if they vary as these do;
        None where no number does, or nobody knows how they vary."""
        spreads, found = self._spreads or (None, None), 0.0
        for lengths, spread in zip(self.lengths, spreads, strict=True):
            if len(lengths) < 2:
                return None
            logs = np.log(np.maximum(lengths, 1))
            found += (spread / student(len(lengths) - 1)) ** 2 * len(lengths) if spread else float(logs.var(ddof=1))
        for count in range(max(2, FEWEST - UNCOUNTED), MOST_STEPS):
            if math.hypot(student(count - 1) * math.sqrt(found / count), max(self._of_machine)) <= within:
                return count + UNCOUNTED
        return None

    @property
    def lengths(self) -> tuple[list[int], list[int]]:
        """How long each counted step of either was recorded to take, ns."""
        one, other = (counted_time(report.steps)[-1] if report.steps else [] for report in (self.before, self.after))
        return one, other

    @property
    def widest(self) -> str:
        """What the difference may be made by other than a change, in words: the most of what goes into `noise`."""
        spreads = self._spreads or (0.0, 0.0)
        felt = FELT * math.log(self.pace)
        if (felt if self._longer else -felt) >= max(*spreads, self.drift):
            return f"the host's calls took {self.pace:.2f} times as long in the second, so the machine was not as fast in both"
        if self.drift > max(spreads):
            return "the machine got faster or slower within a run"
        which = spreads.index(max(spreads))
        return f"the middle of the {('first', 'second')[which]} recording's steps is known to {spreads[which]:.0%} only"

    @property
    def incomparable(self) -> str:
        """Why two steps that are further apart than the spread of either tell nothing of what was changed: the machine was
        another in both; "" where it is not so."""
        if not self.within_noise or self._spreads is None or self._apart <= math.hypot(*self._spreads):
            return ""
        others = [float(one.trace.meta.get("others") or 0.0) if one.trace else 0.0 for one in (self.before, self.after)]
        if max(others) > BUSY:
            return (
                f"other programs had the processors, which are the device, for {others[0]:.0%} of its time in the first and "
                f"{others[1]:.0%} in the second"
            )
        return "the machine was not as fast in both"

    @property
    def came_true(self) -> bool | None:
        """Whether the measured step lies in what was predicted; None without a prediction, or where that is too vague to tell.

        Give or take the noise, and what is worth nothing anyway.
        """
        if self.predicted_range is None or self.predicted is None or self.after.step is None:
            return None
        step = self.after.step
        give = max(self.noise or 0.0, SLIGHT * step)
        return came_true(self.predicted, self.predicted_range, (step - give, step + give), self.before.step or math.inf)
