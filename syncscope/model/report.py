"""What was concluded from a recording and from the source: all that an exporter ever gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from syncscope.model.answer import Answer, Decision
from syncscope.model.bound import SavingBound
from syncscope.model.coverage import Coverage
from syncscope.model.finding import Edit, Finding, Hazard
from syncscope.model.source import Place
from syncscope.model.uses import StepUses, Use
from syncscope.model.words import all_visible

if TYPE_CHECKING:  # a report of findings alone has none of them, and a trace needs numpy
    from syncscope.model.held_up import HeldUp
    from syncscope.model.line_use import LineUses
    from syncscope.model.memory import MemoryUse
    from syncscope.model.trace import Trace
    from syncscope.model.what_if import WhatIf
    from syncscope.model.work import Work

GATE = 0.05  # the part of a step that a replay may get wrong or leave unexplained; beyond it no line has a price


@dataclass(frozen=True, slots=True)
class Step:
    """One training step: host start and end, and how long the device worked in it, ns.

    In one that is not `settled`, kernels were compiled, or memory was asked of the driver: it is no measure of others. Nor is
    one of which the recording `lost` what the host asked of the device (not settled either), nor one in which other programs
    `disturbed` a device that is a processor more than in those beside it. Where a loop waits otherwise in every fourth step,
    those that are counted are `in_round`: they make whole rounds of it. One that took far longer than the others is `outlying`.
    """

    index: int
    start: int
    end: int
    busy: int
    settled: bool = True
    disturbed: bool = False
    in_round: bool = False
    lost: bool = False
    outlying: bool = False


def step_lengths(steps: Sequence[Step]) -> list[int]:
    """How long each step of a recording is, ns: from the end of the one before it to its own end, for what lies between steps
    (a loader, mostly) is the next one's. The first begins where it is marked."""
    ends = accumulate((step.end for step in steps), max, initial=steps[0].start if steps else 0)
    return [after - before for before, after in pairwise(ends)]


@dataclass(frozen=True, slots=True)
class Read:
    """One logical wait of the host: the several driver calls of one `.item()` merged into one. Times are ns.

    `function` is set where only the enclosing function is known: then `place` is the line on which it begins. `module` is the
    `nn.Module` in whose forward it happened; where neither it nor a place is known, the region (`record_function`) around.

    `blocked` is how long it waited for the device's work, `held` how long its calls held the host: longer where the driver
    copied from pageable memory into its own buffer, and waited for nothing.
    `waited_for` is the row of the device event whose end it needed (-1: none was found, the queue was empty), `ahead` how
    much device work was still queued when it began, `idle_after` how long the device had nothing to do for it.
    """

    op: str
    start: int
    end: int
    blocked: int
    thread: int | str
    place: Place | None = None
    column: int = -1
    module: str = ""
    bytes: int = -1
    step: int = -1
    waited_for: int = -1
    ahead: int = 0
    idle_after: int = 0
    fallback: bool = False
    calls: tuple[int, ...] = ()  # rows of the trace
    function: str = ""
    row: int = -1  # the row of the trace that stands for the whole expression or operator
    staged: int = 0  # what calls took that waited for nothing, but copied into the driver's own buffer
    besides: int = 0  # what the expression or operator took on the host besides its waiting calls
    caller: Place | None = None  # where `place` is a library's: the user's line that led there
    saved_alone: float | None = None  # ns, in all, if only this one read were not made

    @property
    def held(self) -> int:
        """How long its calls held the host, ns."""
        return self.blocked + self.staged


@dataclass(frozen=True, slots=True)
class Price:
    """What some reads cost a step, ns: saved if only they are fixed, saved if they are fixed last, Shapley share.

    The others are what is saved if only this is changed, but not removed: the value is read one step later; the reads of a
    step are made one, at the last of them; the copy is made beside the work and waited for at the end of the step.
    `low` and `high` are between what the share lies: by the spread of the steps, what takes the place of the reads, and what
    is not known of the recording.
    """

    alone: float
    last: float
    share: float
    share_error: float  # one standard error of the sampled share
    deferred: float | None = None
    merged: float | None = None
    asynchronous: float | None = None
    low: float | None = None
    high: float | None = None


class Advice(StrEnum):
    """What is best done about a line."""

    LEAVE = "leave"  # whatever takes its place makes a step longer, or no shorter
    REWRITE = "rewrite"
    LATER = "read later"  # the value of the step before is enough
    TRY = "try"  # what it saves cannot be foretold, only measured


@dataclass(frozen=True, slots=True)
class Line:
    """All reads of one op at one place. `count`, `blocked` and `idle_after` are per step, times in ns.

    It waits in `in_steps` of the steps that are counted; 0 where no step is marked, or that is not known.

    `advice` is the best of what can be done about it, `why` says it in words; both are empty where nobody knows. `answer` is
    whether to do it. `of_recording` says that it may be whoever records that waits there, and not the loop.
    """

    op: str
    place: Place | None
    count: float
    blocked: float
    idle_after: float
    module: str = ""
    price: Price | None = None
    rule: str = ""
    finding: Finding | None = None
    fallback: bool = False
    function: str = ""  # set where only the enclosing function is known: then `place` is the line on which it begins
    caller: Place | None = None  # where `place` is a library's: the user's line that led there
    advice: Advice | None = None
    why: str = ""
    answer: Answer | None = None
    in_steps: int = 0
    of_recording: bool = False

    @property
    def where(self) -> str:
        """The place in words, and of a library's the line that led there; "" where it is not known."""
        if self.place is None:
            return ""
        return f"{self.place} < {self.caller}" if self.caller else str(self.place)


@dataclass(frozen=True, slots=True)
class Group:
    """The reads of one function, module or line together. `count` and `blocked` are per step, times in ns."""

    kind: str  # "function", "module", "line" where several ops read on one, "caller" where a line leads to reads of libraries
    name: str
    count: float
    blocked: float
    price: Price


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit for CI by its `name`, and whether it was `held`; None where that cannot be judged. `words` say why not, or
    what was found, and `of` which recording or job among several it is of."""

    name: str
    held: bool | None
    words: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """Findings, prices, and the trace if there is one.

    `also` are the findings that wait in a step, too, and that nobody gains by reading more of than a line.

    `device_busy` is the share of the steps in which the device worked, of several: any of them; `busy_by_device` then has the
    number and the share of each. `fidelity` the relative error with which a replay
    reproduces the recording, `unexplained` the share of the steps in which the device stood still and something was late for
    no recorded reason, `silent` the share in which a thread waited for the device though no recorded call did, as its silence
    tells; None where they cannot be known. `late` is the share in which each queue and thread was late so.
    `coverage` is what the recording has and lacks, and why nothing can be judged by it where that is so: then no figure of a
    saving is there.
    `bound` is what no fix of waits can pass, known wherever work of a device is; `answer` what to do about all of them,
    and `of_waits` the same where no loop around them is taken out, too.
    `step` is how long the counted steps took as recorded, ns on the mean, `step_range` the shortest and the longest of these
    very steps; whatever was measured is a part of it. `saving_step` is what savings are parts of: how long a replay takes in
    which nothing is otherwise, per step, or over a recording without steps, without what the recorder took.
    `saving` is the ns per step that removing all reads would save, `saving_range` its least and most, by what takes their
    place, by what may have been the reason of the lateness, and by the spread of the steps; `plan_range` the same of the
    plan. `verdict` says all of it in words: `lead` is what of that stands in figures, too, `further` what does not.
    `notes` says in words what was lost, guessed or left out.
    `sources` is the content of the source files that were at hand, by the path that places name (a notebook's cells by
    `Finding.source_name`); `name` says what was recorded, as a title; `hazards` are what the linter looked for.
    `uses` is where a step goes, `by_line` the same by line, None without work of a device;
    `what_if` what helps how much, the most first; `memory` what devices held, where
    that was recorded; `held_up` what each event of `trace`, and each of `reads`, waited for last; `work` what the device did,
    where it was asked for; `verified` what `syncscope verify --format json` measured of the rewrites, as it wrote it.

    Its words are those of strangers (names in a recording, in source, of files), so it makes them `visible`: whatever an
    exporter writes of them stays on its line. The text of edits and sources is exact, and an exporter that shows a line of
    it takes it from `_diff` or `_source_frame`.
    """

    findings: tuple[Finding, ...] = ()
    also: tuple[Finding, ...] = ()
    steps: tuple[Step, ...] = ()
    reads: tuple[Read, ...] = ()
    lines: tuple[Line, ...] = ()
    device_busy: float | None = None
    busy_by_device: tuple[tuple[int, float], ...] = ()
    fidelity: float | None = None
    unexplained: float | None = None
    silent: float | None = None
    late: Mapping[str, float] = field(default_factory=dict)
    recurring: str = ""  # where the device stands still in every step, for what was not recorded
    saving: float | None = None
    saving_range: tuple[float, float] | None = None
    bound: SavingBound | None = None
    answer: Answer | None = None
    of_waits: Answer | None = None
    verdict: str = ""
    lead: str = ""
    further: str = ""
    notes: tuple[str, ...] = ()
    trace: Trace | None = field(default=None, repr=False)
    step: float | None = None
    step_range: tuple[float, float] | None = None
    saving_step: float | None = None
    steady: int = 0
    lean_step: float | None = None
    lean_saving: float | None = None
    plan: tuple[int, ...] = ()
    plan_saving: float | None = None
    plan_range: tuple[float, float] | None = None
    groups: tuple[Group, ...] = ()
    unseen: tuple[Finding, ...] = ()
    sources: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    name: str = ""
    hazards: tuple[Hazard, ...] = ()
    uses: StepUses | None = None
    by_line: LineUses | None = field(default=None, repr=False)
    what_if: tuple[WhatIf, ...] = ()
    work: Work | None = field(default=None, repr=False)
    memory: tuple[MemoryUse, ...] = field(default=(), repr=False)
    held_up: HeldUp | None = field(default=None, repr=False)
    verified: Mapping[str, Any] | None = field(default=None, repr=False)
    coverage: Coverage | None = None
    limits: tuple[Limit, ...] = field(default=(), repr=False)
    looked_at: dict[int, tuple[Any, Any]] = field(default_factory=dict, repr=False, compare=False)
    """What of it is known to be visible, also to reports that are made of this one."""

    @property
    def exchanged(self) -> float | None:
        """The part of a step in which the device only exchanges with other ranks or waits for them, where this is the recording
        of one rank of several; else None."""
        spent = self.uses.spent if self.uses is not None else ()
        alone = sum(one.time for one in spent if one.use is Use.COLLECTIVE)
        world = self.trace.meta.get("world_size") if self.trace is not None else None
        if not alone and not (isinstance(world, int) and world > 1):
            return None
        return alone / self.uses.step if self.uses is not None and self.uses.step else 0.0

    @property
    def syncs(self) -> float:
        """How many syncs a step has. What waits only because the device lacks an operator, which the CPU ran, is none: on CUDA
        the host goes on."""
        return sum(line.count for line in self.lines if not line.fallback)

    @property
    def busiest(self) -> float | None:
        """The share of the steps in which the device worked, of several: the one that worked most."""
        return max((share for _, share in self.busy_by_device), default=self.device_busy)

    @property
    def left_open(self) -> float:
        """The part of a step that a replay gets wrong, or cannot explain; 0 without one."""
        return max(self.fidelity, self.unexplained or 0.0, self.silent or 0.0) if self.fidelity is not None else 0.0

    @property
    def replay_holds(self) -> bool:
        """Whether a replay gives back the recording so well that savings of single lines are told."""
        return self.fidelity is not None and self.left_open <= GATE

    @property
    def only_together(self) -> bool:
        """Whether the waits are worth a change or a try all together, and none of several lines is alone."""
        known = [line.answer.decision for line in self.lines if line.answer is not None]
        worth = self.answer is not None and self.answer.decision in (Decision.FIX, Decision.TRY)
        return worth and len(known) > 1 and set(known) == {Decision.LEAVE}

    @property
    def refused(self) -> bool:
        """Whether the recording lacks what its waits would be seen by, so that none in it means nothing."""
        return self.coverage is not None and bool(self.coverage.refusal)

    @property
    def counts_hold(self) -> bool:
        """Whether the syncs of a step are those that it made: not where events of steps are missing."""
        return self.coverage is None or self.coverage.whole

    @property
    def of_a_job(self) -> str:
        """What a saving in the recording of one rank of several is not, and what tells more; "" of any other recording."""
        if self.exchanged is None or not (self.lines or self.what_if):
            return ""
        world = self.trace.meta.get("world_size") if self.trace is not None else None
        of = f"one of {world} ranks" if isinstance(world, int) and world > 1 else "one rank of several"
        return (
            f"{of}: what it saves is not the job's, which may wait for the others instead; "
            "`syncscope ranks FOLDER`, over the traces of all, says what the job gains"
        )

    def __repr__(self) -> str:
        """A line for a person: a report holds a whole recording."""
        name = f" of {self.name}" if self.name else ""
        return f"<Report{name}: {len(self.steps)} steps, {len(self.lines)} lines wait. {self.verdict}>"

    def __post_init__(self) -> None:
        """Makes its texts visible; a finding of a line stays the very finding of the report."""
        for name in (
            "findings",
            "lines",
            "groups",
            "answer",
            "of_waits",
            "verdict",
            "lead",
            "further",
            "notes",
            "unseen",
            "sources",
            "name",
            "uses",
            "by_line",
            "what_if",
            "work",
            "memory",
            "verified",
            "coverage",
        ):
            object.__setattr__(self, name, all_visible(getattr(self, name), (Edit,), self.looked_at))
