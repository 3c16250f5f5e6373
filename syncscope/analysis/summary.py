"""A recording, and what the linter found -> the whole `Report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.answer import clears, of_one_rank, without_figure
from syncscope.analysis.baseline import with_right_baseline
from syncscope.analysis.bound import bound_of
from syncscope.analysis.by_line import uses_by_line
from syncscope.analysis.coverage import coverage_of, of_known_work, of_settled_steps, of_whole_steps
from syncscope.analysis.dry import dry_lines, dry_waits
from syncscope.analysis.event_graph import EventGraph, event_graph_of
from syncscope.analysis.fidelity import UNTOLD, fidelity_of
from syncscope.analysis.held_up import held_up
from syncscope.analysis.idle_times import IdleTimes, idle_times
from syncscope.analysis.join import Join
from syncscope.analysis.memory import memory_uses
from syncscope.analysis.notes import notes_of
from syncscope.analysis.priced import priced
from syncscope.analysis.recorder_cost import without_recorder
from syncscope.analysis.recurring import recurring
from syncscope.analysis.some_steps import replayed_steps
from syncscope.analysis.step_uses import counted_part, step_uses
from syncscope.analysis.steps import alike, busy_by_device, busy_share, counted_time
from syncscope.analysis.verdict import verdict
from syncscope.analysis.what_if import what_ifs
from syncscope.model.answer import Decision
from syncscope.model.finding import Adds, Finding, Hazard
from syncscope.model.report import GATE, Line, Read, Report, Step
from syncscope.model.source import Place
from syncscope.model.trace import Trace

DECISIONS = [Decision.FIX, Decision.TRY, Decision.UNKNOWN, Decision.LEAVE]
Key = tuple[str, Place | None, str, str, bool, Place | None]


def summarize(
    trace: Trace,
    findings: Sequence[Finding] = (),
    hazards: Sequence[Hazard] = (),
    *,
    prices: bool = True,
    pinned: float | None = None,
    loops: Mapping[Place, int] = {},
    by_work: bool = False,
) -> Report:
    """Everything that can be said of a recording: steps, reads, lines with their prices, and what to do first.

    `findings` and `hazards` are the linter's and meet the lines of the recording. Without `prices` nothing is priced.
    `loops` are the lines of loops around what waits, whose passes need nothing of one another.
    `pinned` is how fast the device fetches from pinned memory, GB/s; by default what the recording shows. Steps are bounded
    `by_work` as in `event_graph_of`.
    """
    given, trace = trace, with_right_baseline(trace)
    event_graph = event_graph_of(trace, pinned, by_work)
    launched, found_steps, found = event_graph.launched, event_graph.steps, event_graph.reads
    steady = tuple(found_steps[n] for n in alike(found_steps))
    coverage = of_whole_steps(coverage_of(trace, launched, len(found_steps)), found_steps)
    idle = idle_times(trace, event_graph, event_graph.host.origin)
    uses = step_uses(trace, event_graph, idle) if coverage.whole else None
    coverage = of_settled_steps(coverage, found_steps, uses.warming if uses is not None else 0.0)
    coverage = of_known_work(coverage, event_graph, found_steps)
    lengths = counted_time(found_steps)[-1] if found_steps else []
    numbers = {s.index for s in steady}
    join = Join(findings, hazards)
    found, after = _idle_after(trace, event_graph, idle)
    members = by_line(found)
    lines = [
        _line(
            key,
            [found[i] for i in rows if not steady or found[i].step in numbers],
            max(1, len(steady)),
            float(after[rows].sum()),
            join,
        )
        for key, rows in members.items()
    ]
    dry = _of_dry(trace, found_steps, join) if trace.meta.get("dry") else ()
    replayed = replayed_steps(trace, event_graph, pinned)
    of_replayed = members if replayed is event_graph else by_line(replayed.reads)
    own = [of_replayed.get(key, []) for key in members]  # the reads of each line in what is replayed
    fixed = [(rows, line.finding.fix) for rows, line in zip(own, lines, strict=True) if line.finding]
    replayed.rewritten(
        {r for rows, fix in fixed if fix is not None and fix.adds is not Adds.ROWS for r in rows},
        {r for rows, line in zip(own, lines, strict=True) if clears(line) for r in rows},
        {r for rows, fix in fixed if fix is not None and fix.takes for r in rows},
    )
    graph = replayed.graph()
    trusted = UNTOLD if coverage.refusal else fidelity_of(replayed, graph)
    if prices:
        graph = without_recorder(replayed, trace)
    uncounted = [rows for rows, line in zip(members.values(), lines, strict=True) if not line.count]
    aside = sum(found[i].step >= 0 for rows in uncounted for i in rows)
    counted = [(rows, line) for rows, line in zip(own, lines, strict=True) if line.count]
    if trusted.error is not None and max(trusted.error, trusted.unexplained, trusted.silent) > GATE:
        coverage = replace(coverage, fits=False)
    report = Report(
        findings=tuple(findings),
        steps=found_steps,
        reads=found,
        lines=tuple(line for _, line in counted) or dry,
        device_busy=busy_share(trace, launched, found_steps) if coverage.whole else None,
        busy_by_device=busy_by_device(trace, launched, found_steps) if coverage.whole else (),
        fidelity=trusted.error,
        unexplained=None if trusted.error is None else trusted.unexplained,
        silent=None if trusted.error is None else trusted.silent,
        late=trusted.lanes,
        recurring=recurring(event_graph) if trusted.unexplained > GATE else "",
        notes=tuple(notes_of(given, event_graph, replayed, graph, found, steady, aside)),
        trace=trace,
        step=sum(lengths) / len(lengths) if lengths else None,
        step_range=(min(lengths), max(lengths)) if lengths else None,
        steady=len(steady),
        unseen=join.unseen,
        uses=uses if coverage.whole else None,
        by_line=uses_by_line(trace, event_graph, idle) if coverage.whole else None,
        memory=memory_uses(trace, found_steps),
        held_up=held_up(trace, event_graph),
        bound=None
        if coverage.refusal
        else bound_of(
            replayed,
            graph,
            trusted.error is not None and trusted.error <= GATE,
            trusted.silent <= GATE and not replayed.full.unclear,
        ),
        coverage=coverage,
    )
    if prices and trusted.told:
        report = priced(report, replayed, graph, [rows for rows, _ in counted], trusted, loops)
    if report.answer is None or not report.lines:
        report = replace(report, answer=without_figure(report, graph.ops > 0, prices or not trusted.told))
    if prices and (found_ifs := what_ifs(report, replayed, trusted, loops)):
        report = replace(report, what_if=found_ifs)
    report = _sorted(of_one_rank(report))
    return verdict(report)


def _of_dry(trace: Trace, found_steps: Sequence[Step], join: Join) -> tuple[Line, ...]:
    """The lines that would wait, of a recording on the CPU."""

    def finding_of(op: str, place: Place | None, column: int) -> tuple[Finding | None, str]:
        finding = join.finding(op, place, "", column)
        return finding, join.rule(op, finding)

    return dry_lines(dry_waits(trace, found_steps), finding_of)


def _idle_after(
    trace: Trace, event_graph: EventGraph, idle: IdleTimes | None
) -> tuple[tuple[Read, ...], NDArray[np.float64]]:
    """The reads with how long the device was idle for each, and the ns of it in a counted step, by read."""
    found = event_graph.reads
    if idle is None:
        return tuple(replace(read, idle_after=0) for read in found), np.zeros(len(found))
    first, last, lengths = counted_part(trace, event_graph)
    inside = idle.within(first, last)
    every = idle.after_reads(len(found)).round().astype(int).tolist()
    charged = tuple(replace(read, idle_after=ns) for read, ns in zip(found, every, strict=True))
    return charged, idle.after_reads(len(found), inside) / len(lengths)


def _sorted(report: Report) -> Report:
    """Lines in the order of what to do about them, of the plan, and of what they likely save; without a price by how long the
    device was idle after them."""
    lines = report.lines

    def dear(i: int) -> tuple[float, float, float, float, float]:
        price, found = lines[i].price, lines[i].answer
        turn = report.plan.index(i) if i in report.plan else len(lines)
        word = DECISIONS.index(found.decision if found else Decision.UNKNOWN)
        saved = -(price.share if price else lines[i].idle_after)
        return word, turn, saved, -lines[i].idle_after, -lines[i].blocked

    order = sorted(range(len(lines)), key=dear)
    position = {old: new for new, old in enumerate(order)}
    return replace(report, lines=tuple(lines[i] for i in order), plan=tuple(sorted(position[i] for i in report.plan)))


def key_of(read: Read) -> Key:
    """Reads with the same key are one line of the report; without a place, the module tells them apart."""
    return read.op, read.place, "" if read.place else read.module, read.function, read.fallback, read.caller


def key_of_line(line: Line) -> Key:
    """The key of the reads of a line."""
    return line.op, line.place, "" if line.place else line.module, line.function, line.fallback, line.caller


def by_line(reads: Sequence[Read]) -> dict[Key, list[int]]:
    """The numbers of the reads of each line."""
    lines: dict[Key, list[int]] = {}
    for number, read in enumerate(reads):
        lines.setdefault(key_of(read), []).append(number)
    return lines


def _line(key: Key, members: list[Read], steps: int, idle_after: float, join: Join) -> Line:
    op, place, _, function, fallback, caller = key
    column = members[0].column if members else -1
    finding = None if fallback else join.finding(op, place, function, column) or join.finding(op, caller)
    return Line(
        op=op,
        place=place,
        count=len(members) / steps,
        blocked=sum(r.held for r in members) / steps,
        idle_after=idle_after,
        module=key[2] or max(Counter(r.module for r in members).items(), key=lambda kv: kv[1], default=("", 0))[0],
        rule="" if fallback else join.rule(op, finding),
        finding=finding,
        fallback=fallback,
        function=function,
        caller=caller,
        in_steps=len({r.step for r in members if r.step >= 0}),
    )
