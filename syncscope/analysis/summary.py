"""A recording, and what the linter found -> the whole `Report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from syncscope.analysis.join import Join, mapped
from syncscope.analysis.reads import reads
from syncscope.analysis.steps import busy_share, steps
from syncscope.analysis.waits import launches, waits
from syncscope.model.finding import Finding, Hazard
from syncscope.model.report import Line, Read, Report, Step
from syncscope.model.source import Place
from syncscope.model.trace import Trace

Key = tuple[str, Place | None, str, str, bool]


def summarize(
    trace: Trace,
    findings: Sequence[Finding] = (),
    hazards: Sequence[Hazard] = (),
    *,
    source: str | None = None,
    prices: bool = True,
    **options: Any,
) -> Report:
    """Everything that can be said of a recording: steps, reads, lines with their prices, and what to do first.

    `findings` and `hazards` are the linter's and meet the lines of the recording; `source` is a directory in which the
    files of the recording lie under shorter paths. Without `prices` nothing is replayed.
    """
    launched = launches(trace)
    waiting = waits(trace, launched)
    found_steps = steps(trace, launched)
    found = reads(trace, waiting, launched, found_steps)
    if source is not None:
        found = tuple(replace(read, place=mapped(read, source)) for read in found)
    steady = steady_steps(found_steps)
    counted = [r for r in found if r.step in {s.index for s in steady}] if steady else list(found)
    join = Join(findings, hazards)
    lines = tuple(_line(key, members, max(1, len(steady)), join) for key, members in _by_line(counted).items())
    lines = tuple(sorted(lines, key=lambda line: -line.blocked))
    return Report(
        findings=tuple(findings),
        steps=found_steps,
        reads=found,
        lines=lines,
        device_busy=busy_share(trace, launched, found_steps),
        notes=tuple(trace.meta.get("notes") or ()),
        trace=trace,
        step=_step(steady),
        steady=len(steady),
        unseen=join.unseen,
    )


def steady_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps that are alike: without the first and the last, where enough are left."""
    return steps[1:-1] if len(steps) >= 4 else steps


def _step(steady: tuple[Step, ...]) -> float | None:
    return (steady[-1].end - steady[0].start) / len(steady) if steady else None


def key_of(read: Read) -> Key:
    """Reads with the same key are one line of the report; without a place, the module tells them apart."""
    return read.op, read.place, "" if read.place else read.module, read.function, read.fallback


def _by_line(reads: Sequence[Read]) -> dict[Key, list[Read]]:
    lines: dict[Key, list[Read]] = {}
    for read in reads:
        lines.setdefault(key_of(read), []).append(read)
    return lines


def _line(key: Key, members: list[Read], steps: int, join: Join) -> Line:
    op, place, _, function, fallback = key
    finding = None if fallback else join.finding(op, place, function, members[0].column)
    return Line(
        op=op,
        place=place,
        count=len(members) / steps,
        blocked=sum(r.blocked for r in members) / steps,
        idle_after=sum(r.idle_after for r in members) / steps,
        module=Counter(r.module for r in members).most_common(1)[0][0],
        rule="" if fallback else join.rule(op, finding),
        finding=finding,
        fallback=fallback,
        function=function,
    )
