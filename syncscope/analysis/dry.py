"""A dry recording: what would wait for a device, heard on the CPU. It has lines and how often, and no times to tell."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from syncscope.analysis.rounds import whole_rounds
from syncscope.analysis.steps import COUNTED
from syncscope.model.finding import Finding
from syncscope.model.ops import Op
from syncscope.model.report import Line, Step
from syncscope.model.source import Place
from syncscope.model.trace import Kind, Trace

Key = tuple[Place | None, int, str]  # where, in which column, and in which way


@dataclass(frozen=True, slots=True)
class DryWaits:
    """How often each line would wait in the counted steps, the most first; without steps, in the recording (`steps` is 0).

    `which` are the first and the last of these steps, from 1; `words` says of what the rounds are, where they are longer.
    """

    counts: tuple[tuple[Key, int], ...]
    steps: int
    which: tuple[int, ...] = ()
    words: str = ""

    @property
    def uncounted(self) -> str:
        """What is not heard on the CPU."""
        copies = "copies to the device are not among these, for none is made on the CPU: `syncscope lint` tells of them"
        if not any(op == Op.MASK_READ for (_, _, op), _ in self.counts):
            return copies
        return (
            f"{copies}; {Op.MASK_READ} counts no backward pass: on CUDA that waits once more for each selection by a mask "
            "through which a gradient goes"
        )


def dry_waits(trace: Trace, steps: Sequence[Step]) -> DryWaits:
    """What waits in a dry recording, in whole rounds of its steps; the first is left out, for before its end it sets up."""
    ends = [step.end for step in steps]
    by_step: list[Counter[Key]] = [Counter() for _ in ends or [0]]
    for read in (event for event in trace if event.kind == Kind.READ):
        step = bisect_left(ends, read.start) if ends else 0
        if step < len(by_step):  # else it comes after the last step, and the rest of that is not recorded
            by_step[step][read.place, read.column, read.name] += 1
    rounds = whole_rounds(by_step, range(int(len(ends) >= COUNTED), len(by_step)))
    found = sum((by_step[step] for step in rounds.counted), Counter[Key]())
    which = (steps[rounds.counted[0]].index + 1, steps[rounds.counted[-1]].index + 1) if ends else ()
    return DryWaits(tuple(found.most_common()), len(rounds.counted) if ends else 0, which, rounds.words)


def dry_lines(
    found: DryWaits, finding_of: Callable[[str, Place | None, int], tuple[Finding | None, str]]
) -> tuple[Line, ...]:
    """The lines of a report, by how often they would wait; `finding_of` knows of an op at a place and column what the linter
    says of it, and the rule."""
    lines: dict[tuple[str, Place | None], Line] = {}
    for (place, column, op), count in found.counts:
        often = count / max(1, found.steps)
        before = lines.get((op, place))
        if before is not None:
            often += before.count
        finding, rule = finding_of(op, place, column)
        lines[op, place] = Line(op, place, often, 0.0, 0.0, rule=rule, finding=finding)
    return tuple(lines.values())
