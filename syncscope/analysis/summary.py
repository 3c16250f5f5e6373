"""A recording, and what the linter found -> the whole `Report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.advice import advised, unforeseen
from syncscope.analysis.answer import (
    adding_lines,
    beside_others,
    doubt_of,
    experience_of,
    of_all,
    of_line,
    without_figure,
)
from syncscope.analysis.baseline import with_right_baseline
from syncscope.analysis.bound import bound_of
from syncscope.analysis.brought_together import staying
from syncscope.analysis.by_line import uses_by_line
from syncscope.analysis.errors import margins
from syncscope.analysis.event_graph import EventGraph, event_graph_of
from syncscope.analysis.fidelity import GATE, Fidelity, bounds, crowded, fidelity_of, unforeseen_lines
from syncscope.analysis.graph import Graph
from syncscope.analysis.held_up import held_up
from syncscope.analysis.hosts import Recorder
from syncscope.analysis.idle_times import IdleTimes, idle_times
from syncscope.analysis.join import Join
from syncscope.analysis.memory import memory_uses
from syncscope.analysis.price import Prices, alone_and_last, timed_part, unpriced
from syncscope.analysis.price import prices as price_lines
from syncscope.analysis.recorder_cost import unmeasured, without_recorder
from syncscope.analysis.replay import replay
from syncscope.analysis.some_steps import replayed_of, replayed_steps
from syncscope.analysis.step_uses import counted_steps, step_uses
from syncscope.analysis.steps import alike, busy_share
from syncscope.analysis.verdict import remarks, verdict
from syncscope.analysis.what_if import led_into, what_ifs
from syncscope.model.answer import Decision
from syncscope.model.finding import Adds, Finding, Hazard
from syncscope.model.ops import COUNTS
from syncscope.model.report import Group, Line, Price, Read, Report, Step
from syncscope.model.source import Place
from syncscope.model.trace import Kind, Trace

DECISIONS = [Decision.FIX, Decision.TRY, Decision.UNKNOWN, Decision.LEAVE]
SINGLE = 512  # reads up to which each is priced by itself
CROWD = 0.1  # the part of its time that others took from the device which is worth a word
Key = tuple[str, Place | None, str, str, bool, Place | None]


def summarize(
    trace: Trace,
    findings: Sequence[Finding] = (),
    hazards: Sequence[Hazard] = (),
    *,
    prices: bool = True,
    pinned: float | None = None,
    loops: Mapping[Place, int] = {},
) -> Report:
    """Everything that can be said of a recording: steps, reads, lines with their prices, and what to do first.

    `findings` and `hazards` are the linter's and meet the lines of the recording. Without `prices` nothing is priced.
    `loops` are the lines of loops around what waits, whose passes need nothing of one another.
    `pinned` is how fast the device fetches from pinned memory, GB/s; by default what the recording shows.
    """
    given, trace = trace, with_right_baseline(trace)
    event_graph = event_graph_of(trace, pinned)
    launched, found_steps, found = event_graph.launched, event_graph.steps, event_graph.reads
    steady = tuple(found_steps[n] for n in alike(found_steps))
    numbers = {s.index for s in steady}
    join = Join(findings, hazards)
    idle = idle_times(trace, event_graph, event_graph.host.origin)
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
    replayed = replayed_steps(trace, event_graph, pinned)
    of_replayed = members if replayed is event_graph else by_line(replayed.reads)
    own = [of_replayed.get(key, []) for key in members]  # the reads of each line in what is replayed
    fixed = [(rows, line.finding.fix) for rows, line in zip(own, lines, strict=True) if line.finding]
    replayed.rewritten(
        {r for rows, fix in fixed if fix is not None and fix.adds is not Adds.ROWS for r in rows},
        {r for rows, fix in fixed if fix is not None and fix.clears for r in rows},
    )
    graph = replayed.graph()
    trusted = fidelity_of(replayed, graph)
    if prices:
        graph = without_recorder(replayed, trace)
    uncounted = [rows for rows, line in zip(members.values(), lines, strict=True) if not line.count]
    aside = sum(found[i].step >= 0 for rows in uncounted for i in rows)
    counted = [(rows, line) for rows, line in zip(own, lines, strict=True) if line.count]
    report = Report(
        findings=tuple(findings),
        steps=found_steps,
        reads=found,
        lines=tuple(line for _, line in counted),
        device_busy=busy_share(trace, launched, steady or found_steps),
        fidelity=trusted.error,
        unexplained=None if trusted.error is None else trusted.unexplained,
        silent=None if trusted.error is None else trusted.silent,
        late=trusted.lanes,
        notes=tuple(trace.meta.get("notes") or ()),
        trace=trace,
        step=_step(steady),
        steady=len(steady),
        unseen=join.unseen,
        uses=step_uses(trace, event_graph, idle),
        by_line=uses_by_line(trace, event_graph, idle),
        memory=memory_uses(trace, found_steps),
        held_up=held_up(trace, event_graph),
        bound=bound_of(replayed, graph, trusted.error is not None and trusted.error <= GATE, trusted.silent <= GATE),
    )
    if replayed.uploads:
        size = (
            f"{len(replayed.uploads)} copies from pageable memory counted as if they were"
            if len(replayed.uploads) > 1
            else "a copy from pageable memory counted as if it were"
        )
        said = f"{size} pinned, and fetched at {replayed.taken_out.pinned:.3g} GB/s"
        report = replace(report, notes=(*report.notes, said))
    if warm := sum(not step.settled for step in found_steps):
        counted_too = "" if all(step.settled for step in steady) else ", and no two of the others follow one another"
        said = f"{warm} of {len(found_steps)} steps compiled or loaded kernels, or asked the driver for memory{counted_too}"
        report = replace(report, notes=(*report.notes, said))
    if (others := crowded(replayed)) > CROWD:
        said = (
            f"others had the processors, which are the device, for {others:.0%} of its time: savings may be as far off"
        )
        report = replace(report, notes=(*report.notes, said))
    if unmeasured(given):  # of a baseline that was left out there is a note already
        said = (
            "every step was recorded, so what the recorder weighs is not known: let some steps pass before it, or after"
        )
        report = replace(report, notes=(*report.notes, said))
    report = replace(report, notes=(*report.notes, *replayed_of(found_steps, replayed), *remarks(report, graph, aside)))
    if prices and trusted.told:
        report = _priced(report, replayed, graph, [rows for rows, _ in counted], trusted)
    if report.answer is None or not report.lines:
        report = replace(report, answer=without_figure(report, graph.ops > 0))
    if prices and not trusted.enough and (untraced := trace.meta.get("untraced")):  # no replay tells it
        report = replace(report, step=float(untraced["median_ns"]))
    if prices and (found_ifs := what_ifs(report, replayed, trusted, loops)):
        report = replace(report, what_if=found_ifs)
        if report.uses is not None:
            words = led_into(report.uses.words, found_ifs, report.step or report.uses.step)
            report = replace(report, uses=replace(report.uses, words=words))
    report = _sorted(report)
    return replace(report, verdict=verdict(report))


def _idle_after(
    trace: Trace, event_graph: EventGraph, idle: IdleTimes | None
) -> tuple[tuple[Read, ...], NDArray[np.float64]]:
    """The reads with how long the device was idle for each, and the ns of it in a counted step, by read."""
    found = event_graph.reads
    if idle is None:
        return tuple(replace(read, idle_after=0) for read in found), np.zeros(len(found))
    counted = counted_steps(trace, event_graph)
    inside = idle.within(counted[0].start, counted[-1].end)
    every = idle.after_reads(len(found)).round().astype(int).tolist()
    charged = tuple(replace(read, idle_after=ns) for read, ns in zip(found, every, strict=True))
    return charged, idle.after_reads(len(found), inside) / len(counted)


def _pause(report: Report, event_graph: EventGraph, rows: Sequence[int]) -> float:
    """How long the device had nothing to do right after some reads, ns per counted step."""
    counted = {report.steps[n].index for n in alike(report.steps)}
    of = [event_graph.reads[row] for row in rows]
    return sum(read.idle_after for read in of if not counted or read.step in counted) / max(1, len(counted))


def _priced(
    report: Report, event_graph: EventGraph, graph: Graph, members: list[list[int]], trusted: Fidelity
) -> Report:
    """The report with its answer and its prices; without those of lines where a replay cannot be `trusted` to split it."""
    unknown = unforeseen_lines(event_graph, graph, members)
    waits = price_lines(graph, members, unknown=unknown)
    stays = staying(event_graph.reads, zip(members, report.lines, strict=True))
    going = [[number for number in rows if number not in stays] for rows in members]
    costs = price_lines(graph, going, unknown=unknown) if stays else waits
    adding = adding_lines(event_graph, report.lines, members)
    firm = price_lines(graph, going, unknown=unknown | adding) if adding else costs  # of what adds no work, by itself
    left = unpriced(graph)
    everything = {r for n, rows in enumerate(going) if n not in costs.left for r in rows} - left
    low, high = _range(event_graph, graph, everything, costs.step)
    known = experience_of(report, event_graph)
    doubt = doubt_of(event_graph, graph, everything, costs.step)
    whole = of_all(report, costs, waits.saving, (low, high), known, adding, bool(unknown), doubt, trusted.open)
    others = crowded(event_graph)
    whole = beside_others(whole, others)
    if not trusted.enough:
        return replace(report, answer=whole)
    between = _between(waits, graph, members, left, (low, high))
    lines = tuple(replace(line, price=price) for line, price in zip(report.lines, between, strict=True))
    lines = tuple(
        unforeseen(line, event_graph.kept(rows))
        if n in unknown
        else advised(line, costs.step, n in costs.left, event_graph.kept(rows), _pause(report, event_graph, rows))
        for n, (line, rows) in enumerate(zip(lines, members, strict=True))
    )
    decided = [
        of_line(line, whole, of, known, n, n in adding, event_graph.kept(members[n]), doubt, trusted.open)
        for n, line in enumerate(lines)
        for of in [costs if n in adding else firm]
    ]
    lines = tuple(
        replace(line, answer=beside_others(found, others)) for line, found in zip(lines, decided, strict=True)
    )
    plan = costs.plan if whole.decision in (Decision.FIX, Decision.TRY) else ()
    chosen = {r for n in plan for r in going[n]} - left
    of_plan = _range(event_graph, graph, chosen, costs.step) if plan else (low, high)
    report = replace(
        report,
        answer=whole,
        reads=_each_read(report.reads, graph) if len(graph.reads) == len(report.reads) else report.reads,
        lines=lines,
        step=costs.step,
        saving=costs.saving,
        saving_range=(low, high) if everything else None,
        plan=plan,
        plan_saving=costs.plan_saving if plan else None,
        groups=groups(graph, lines, members),
    )
    if plan:
        unknown = event_graph.counting - {r for one in event_graph.selections for r in one.reads}
        if not unknown.isdisjoint(chosen):
            asking = ", ".join(dict.fromkeys(f"`{lines[n].op}`" for n in plan if lines[n].op in COUNTS))
            said = f"how many rows {asking} kept was not recorded: what a fixed shape adds is not counted, so measure it first"
            report = replace(report, notes=(*report.notes, said))
        report = replace(report, plan_range=of_plan)
    if report.trace is not None and (each := overhead(report.trace)):  # of somebody else's profiler: ours says it
        step, saving = _step_and_saving(event_graph.graph(Recorder(each)), everything)
        report = replace(report, lean_step=step, lean_saving=saving)
    return report


def _range(event_graph: EventGraph, graph: Graph, freed: set[int], step: float) -> tuple[float, float]:
    """The least and the most that a step of that length is shorter without these reads, ns."""
    if not freed:
        return 0.0, 0.0
    shortest, longest = bounds(event_graph, graph, freed)
    return step - longest, step - shortest


def _between(
    costs: Prices, graph: Graph, members: list[list[int]], left: Collection[int], whole: tuple[float, float]
) -> Iterator[Price]:
    """The prices with what their shares lie between: by the spread of each, and its part of what the whole leaves open."""
    sets = np.zeros((len(members), len(graph.reads)), bool)
    for row, numbers in zip(sets, members, strict=True):
        row[[n for n in numbers if n not in left]] = True
    everything = sets.any(axis=0)
    alone, last = margins(graph, sets), margins(graph, everything & ~sets)
    for price, a, b in zip(costs.lines, alone.tolist(), last.tolist(), strict=True):
        part = min(1.0, max(0.0, price.share) / costs.saving) if costs.saving > 0 else 0.0
        spread = max(a, b if len(members) > 1 else a) + 2 * price.share_error
        less, more = part * (costs.saving - whole[0]), part * (whole[1] - costs.saving)
        yield replace(price, low=price.share - max(spread, less), high=price.share + max(spread, more))


def _step_and_saving(graph: Graph, freed: set[int]) -> tuple[float, float]:
    """ns per step, and how much less without these reads."""
    window = timed_part(graph)
    step = window.of(replay(graph))
    return step, step - window.of(replay(graph, freed))


def _each_read(found: tuple[Read, ...], graph: Graph) -> tuple[Read, ...]:
    """The reads with what each single one would save; left unsaid where there are very many."""
    if not found or len(found) > SINGLE:
        return found
    left = unpriced(graph)
    alone, last = alone_and_last(graph, [[number] for number in range(len(found))], ())
    steps = timed_part(graph).steps
    return tuple(
        read if number in left else replace(read, saved_alone=alone[number] * steps, saved_last=last[number] * steps)
        for number, read in enumerate(found)
    )


def groups(graph: Graph, lines: tuple[Line, ...], members: list[list[int]]) -> tuple[Group, ...]:
    """The lines of each function and module, the ops of each line, and the library's lines that one leads to, together.

    Shares add up, other prices are replayed.
    """
    places = Counter(line.where for line in lines)
    found = []
    for kind in ("function", "module", "line", "caller"):
        of: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            if kind == "function":
                name = line.function or (line.finding.function if line.finding else "")
            elif kind == "module":
                name = line.module
            elif kind == "caller":
                name = str(line.caller) if line.caller is not None else ""
            else:
                name = line.where if places[line.where] > 1 else ""
            if name:
                of.setdefault(name, []).append(number)
        if not of:
            continue
        rest = [number for number in range(len(lines)) if not any(number in numbers for numbers in of.values())]
        sets = [[r for n in numbers for r in members[n]] for numbers in of.values()]
        alone, last = alone_and_last(graph, sets, [r for n in rest for r in members[n]])
        for (name, numbers), a, b in zip(of.items(), alone, last, strict=True):
            own = [lines[n] for n in numbers]
            known = [line.price for line in own if line.price is not None]
            error = sum(p.share_error**2 for p in known) ** 0.5
            price = Price(a, b, sum(p.share for p in known), error)
            found.append(Group(kind, name, sum(x.count for x in own), sum(x.blocked for x in own), price))
    return tuple(sorted(found, key=lambda group: (group.kind, -group.price.share)))


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
    return replace(report, lines=tuple(lines[i] for i in order), plan=tuple(position[i] for i in report.plan))


def overhead(trace: Trace) -> float:
    """ns that torch.profiler takes on the host for each event; 0 where our own recorder, which measures it, made the trace.

    Measured on one machine over a step of 168 operators: 1.8 us an operator, 2.6 us with stacks or shapes, 3.7 us with both.
    """
    if trace.meta.get("recorder") == "syncscope" or len(trace.rows(Kind.READ)) > 0:
        return 0.0
    more = len(trace.rows(Kind.PYTHON)) > 0, bool(trace.meta.get("record_shapes"))
    return (1800.0, 2600.0, 3700.0)[sum(more)]


def _step(steady: tuple[Step, ...]) -> float | None:
    return (steady[-1].end - steady[0].start) / len(steady) if steady else None


def key_of(read: Read) -> Key:
    """Reads with the same key are one line of the report; without a place, the module tells them apart."""
    return read.op, read.place, "" if read.place else read.module, read.function, read.fallback, read.caller


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
        blocked=sum(r.blocked for r in members) / steps,
        idle_after=idle_after,
        module=key[2] or max(Counter(r.module for r in members).items(), key=lambda kv: kv[1], default=("", 0))[0],
        rule="" if fallback else join.rule(op, finding),
        finding=finding,
        fallback=fallback,
        function=function,
        caller=caller,
    )
