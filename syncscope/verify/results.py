"""What is known of a program and its fixes at the end, or when it was interrupted."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

from syncscope.analysis.fidelity import came_true
from syncscope.errors import UserError
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.verify.plan import Candidate, Plan
from syncscope.verify.timing import FEWEST, SLIGHT, Ratio
from syncscope.verify.undo import Remains
from syncscope.verify.values import Difference

EQUAL, WITHIN, CHANGED = "equal", "within", "changed"
HUNGRY = 0.5  # of a step until its batch is there: more is worth a word
PROCESSORS = ("cpu", "ocl")
IN_ONE, PROCESSES, IN_THE_RUN = "one process", "processes", "run"
CLOCK, PROCESSOR_TIME = "time", "processor time"
MOST_TIMES = 50  # as many steps as were made, that anybody would wait for
GAIN, NO_GAIN, UNDECIDED = 0, 1, 3  # exit codes; 2 is that of an error


@dataclass
class TriedFix:
    """One fix: what it does by itself (with what it needs), and whether it stays. `values` is None where that was not tried.
    `without` is the step without it over that of all that were to stay. `good`: it changes no value beyond its text, and stands
    in the patch of what is not decided. `remedy` is what tries one that is not tried for that `why`."""

    path: str
    line: int
    finding: Finding
    fix: Fix
    kept: bool = False
    good: bool = False
    ratio: Ratio | None = None
    without: Ratio | None = None
    values: str | None = None
    difference: Difference | None = None
    why: str = ""
    remedy: str = ""

    @property
    def told(self) -> str:
        """Why it stays or not, and what tries it all the same."""
        return "; ".join(filter(None, (self.why, self.remedy)))

    @property
    def lines(self) -> tuple[str, range]:
        """The file, with links resolved, and the lines that it mends."""
        return os.path.realpath(self.path), range(self.line, self.finding.end_line + 1)

    @property
    def is_proved(self) -> bool:
        """Whether it is known that the step is shorter with it: by itself, or beside the others."""
        return bool((self.ratio and self.ratio.gains) or (self.without and self.without.loses))

    @property
    def apart(self) -> float:
        """How far it is from the program as written, as far as that was compared."""
        return self.difference.largest if self.difference else 0.0


def listed(plan: Plan, candidate: Candidate) -> TriedFix:
    """A fix of which nothing is known yet; `why` is why it is not tried, if it is not."""
    path, why = os.path.relpath(candidate.path), plan.untried(candidate)
    return TriedFix(path, candidate.line, candidate.finding, candidate.fix, why=why, remedy=candidate.remedy)


def by_hand(finding: Finding) -> TriedFix:
    """A suggestion that nobody asked for, or what is not safe in a library."""
    assert finding.fix is not None
    by_hand = finding.fix.safety is Safety.SUGGEST
    path, line = os.path.relpath(finding.place.path), finding.place.line
    why = "it is to be made by hand" if by_hand else "it is not safe, in a library"
    return TriedFix(path, line, finding, finding.fix, why=why, remedy=f"--line {path}:{line} tries it")


@dataclass
class Verification:
    """All that is known. Times are ns; `ratio` is the rewritten step over that as written, `same` that of two equal versions.

    `noise` is how far two runs as written are apart, `last_bit` how far one is that differs in the last bit of every parameter
    after the first step; None where it was not asked.
    """

    program: str
    device: str = ""
    stale: bool = False
    steps: int = 0
    timed_steps: int = 0  # of a run that is timed, where that is more
    runs: int = 0
    seconds: float = 0.0
    importing: float = 0.0  # s of these: imports, once for all runs
    starting: float = 0.0  # s of these: what each run does before its first step has ended
    spent: dict[str, float] = field(default_factory=dict)  # s of the whole command, by what they went to: `spent`
    way: str = ""  # how versions took turns: IN_ONE process, or each in a process of its own
    why_way: str = ""  # why not in one
    copies: int = 1  # of the program that were in memory at once
    compared_steps: int = 0  # that were compared in one process, from one snapshot
    fewer_steps: int = 0  # of a run that are compared, where two as written drift apart
    why_values: str = ""  # why values were not compared so
    by_processors: bool = False  # whether ratios are of processor time, and not of the clock
    ratio: Ratio | None = None
    same: Ratio | None = None
    before: float | None = None
    after: float | None = None
    values: str | None = None
    difference: Difference | None = None
    noise: Difference | None = None
    last_bit: Difference | None = None
    fed: float | None = None  # the part of a step as written until its batch is there
    reads_before: float | None = None
    reads_after: float | None = None
    rounds: str = ""  # what is to be said of the steps of which these are, where they do not wait alike
    predicted: Ratio | None = None
    unpredicted: str = ""  # why nothing is
    enough: int | None = None  # minutes of a budget that likely decides, where this one did not
    fixes: list[TriedFix] = field(default_factory=list)
    patch: str = ""
    notes: list[str] = field(default_factory=list)
    heard_by: str = ""  # who told of what runs changed of files: kernel, python
    remains: Remains = field(default_factory=Remains)  # of files: what could not be taken back
    interrupted: bool = False
    refused: bool = False  # something changed values beyond its text, or did not run
    files: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)  # that change: before and after
    # the same of what is good, but not decided
    open_files: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    error: UserError | None = None  # why it ended

    @property
    def steps_of_values(self) -> int:
        """The steps of which values were compared."""
        return self.compared_steps or self.fewer_steps or self.steps

    def promise(self, said: Ratio | str) -> None:
        """What a recording promises, or why it does not."""
        self.predicted, self.unpredicted = (None, said) if isinstance(said, str) else (said, "")

    @property
    def came_true(self) -> bool | None:
        """Whether what was predicted and what was measured may be the same; None where one is missing or too wide."""
        if self.predicted is None or self.ratio is None or self.ratio.turns < 2:
            return None
        slight = 0.01  # of a step: worth nothing anyway
        said, measured = self.predicted, (self.ratio.low - slight, self.ratio.high + slight)
        return came_true(said.ratio, (said.low, said.high), measured, 1.0)

    @property
    def gains(self) -> bool:
        """Whether the step is surely shorter, by more than two equal versions differ."""
        return self.is_gain(self.ratio)

    def is_gain(self, ratio: Ratio | None) -> bool:
        """Whether a step of that ratio is surely shorter, by more than two equal versions differ."""
        return ratio is not None and ratio.gains and not self._is_noise(ratio)

    @property
    def loses(self) -> bool:
        """Whether it is surely longer."""
        return self.ratio is not None and self.ratio.loses and not self._is_noise(self.ratio)

    def _is_noise(self, ratio: Ratio) -> bool:
        """Whether it is no more than what two equal versions differ by, or may differ by."""
        same = self.same
        if same is None:
            return False
        spread = same.turns > 1 and same.low <= ratio.ratio <= same.high
        return spread or abs(1 - ratio.ratio) <= abs(1 - same.ratio)

    @property
    def is_in_the_noise(self) -> bool:
        """Whether what looks like a gain is not shown, for two equal versions may differ by as much."""
        ratio = self.ratio
        return ratio is not None and ratio.ratio < 1 - SLIGHT / 2 and not self.gains and self._is_noise(ratio)

    @property
    def times_the_steps(self) -> float:
        """About how many times as many steps would show a gain of this size, if they vary as these did: an interval becomes
        half as wide by four times as many. inf where no number would, as equal versions surely differ, or nobody can say."""
        ratio, same = self.ratio, self.same
        if ratio is None or same is None or self.drifts or min(ratio.turns, same.turns) < FEWEST:
            return math.inf
        gain = 1 - ratio.ratio
        widest = max(ratio.half, same.half)
        return (widest / gain) ** 2 if gain > 0 and math.isfinite(widest) else math.inf

    @property
    def lacks_turns_of_the_same(self) -> bool:
        """Whether a gain is not shown only since equal versions had too few turns to bound how far they differ."""
        return self.is_in_the_noise and not self.drifts and self.same is not None and not self.same.is_bounded

    @property
    def drifts(self) -> bool:
        """Whether equal versions surely differ: steps change by themselves, and a gain may be hidden in that."""
        return self.same is not None and (self.same.gains or self.same.loses)

    @property
    def is_hungry(self) -> bool:
        """Whether most of a step passes until its batch is there."""
        return self.fed is not None and self.fed > HUNGRY

    @property
    def decided(self) -> bool:
        """Whether it is known what the step becomes, as it is where nothing is left that could be timed."""
        if self.interrupted:
            return False
        if self.ratio is None:
            return self.refused and not any(fix.values in (EQUAL, WITHIN) for fix in self.fixes)
        if self.gains and not self.is_given:
            return False
        if (self.stale or self.by_processors) and self.drifts and not (self.gains or self.loses):
            return False
        return self.ratio.turns >= FEWEST and (self.gains or self.loses or not self.ratio.is_open)

    @property
    def is_open(self) -> bool:
        """Whether all is known of good fixes but what they save, which a processor that does other things cannot tell, or
        nobody waited for."""
        good = self.values in (EQUAL, WITHIN) and not self.refused and bool(self.open_files)
        return good and (self.device in PROCESSORS or self.interrupted) and not self.decided

    def stands(self, fix: TriedFix) -> str:
        """What becomes of a fix: it is `kept`, `unproved`, which stays since all together gain, `open`, which is in the
        patch all the same, or `left out`."""
        if fix.kept:
            return "kept" if fix.is_proved or sum(each.kept for each in self.fixes) == 1 else "unproved"
        return "open" if fix.good and self.is_open else "left out"

    @property
    def is_given(self) -> bool:
        """Whether there is what the gain comes from: a fix that stays, another version, or reads that are answered late."""
        return not self.fixes or any(fix.kept for fix in self.fixes)

    @property
    def code(self) -> int:
        """The exit code: 0 where there is a gain and no value changed, 1 where a fix was refused or nothing gains, 3 where
        that is not decided."""
        if self.refused or self.values == CHANGED:
            return NO_GAIN
        return GAIN if self.gains and self.is_given else NO_GAIN if self.decided else UNDECIDED


def as_object(found: Verification) -> dict[str, Any]:
    """As JSON values: ratios are of the rewritten step over that as written, times in ms; null is not known."""
    difference = found.difference
    return {
        "schema": 1,
        "program": found.program,
        "device": found.device,
        **_ratio(found.ratio),
        "ratio_of": PROCESSOR_TIME if found.by_processors else CLOCK,
        "decided": found.decided,
        "enough_minutes": None if found.decided else found.enough,
        "values": found.values,
        "reads_before": _number(found.reads_before),
        "reads_after": _number(found.reads_after),
        "reads_of": found.rounds or None,
        "predicted_ratio": found.predicted.ratio if found.predicted else None,
        "predicted_low": found.predicted.low if found.predicted else None,
        "predicted_high": found.predicted.high if found.predicted else None,
        "unpredicted": found.unpredicted or None,
        "came_true": found.came_true,
        **{f"same_{name}": value for name, value in _ratio(found.same).items()},
        "step_ms_before": None if found.before is None else found.before / 1e6,
        "step_ms_after": None if found.after is None else found.after / 1e6,
        "fed": None if found.fed is None else round(found.fed, 3),
        "difference": None if difference is None else _number(difference.largest),
        "noise": None if found.noise is None else _number(found.noise.largest),
        "last_bit": None if found.last_bit is None else _number(found.last_bit.largest),
        "steps": found.steps,
        "timed_steps": found.timed_steps or found.steps,
        "runs": found.runs,
        "seconds": round(found.seconds, 1),
        "importing": round(found.importing, 1),
        "starting": round(found.starting, 1),
        "spent": {what: round(seconds, 2) for what, seconds in found.spent.items()},
        "way": found.way or None,
        "copies": found.copies,
        "why_processes": found.why_way or None,
        "compared_steps": found.steps_of_values,
        "why_compared_apart": found.why_values or None,
        "stale": found.stale,
        "interrupted": found.interrupted,
        "error": found.error.message if found.error else None,
        "hint": found.error.hint or None if found.error else None,
        "notes": found.notes,
        "heard_by": found.heard_by or None,
        "stays": found.remains.stays,
        "changed": found.remains.changed,
        "left": found.remains.left,
        "lost": found.remains.lost,
        "patch": found.patch,
        "patch_is_open": found.is_open,
        "fixes": [
            {
                "path": fix.path,
                "line": fix.line,
                "rule": fix.finding.rule,
                "safety": fix.fix.safety.value,
                "kept": fix.kept,
                "stands": found.stands(fix),
                **_ratio(fix.ratio),
                **{f"without_{name}": value for name, value in _ratio(fix.without).items()},
                "values": fix.values,
                "why": fix.told,
                "title": fix.fix.title,
                "changes": fix.fix.changes,
            }
            for fix in found.fixes
        ],
    }


def _ratio(ratio: Ratio | None) -> dict[str, float | None]:
    known = ratio is not None and ratio.turns > 1 and math.isfinite(ratio.high)
    return {
        "ratio": ratio.ratio if ratio else None,
        "low": ratio.low if ratio and known else None,
        "high": ratio.high if ratio and known else None,
    }


def _number(value: float | None) -> float | None:
    """A number that JSON knows; null is also what cannot be said in one."""
    return None if value is None or value == float("inf") else value
