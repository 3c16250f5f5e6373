"""A report with its answer, and with what each of its lines costs a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from syncscope.analysis.advice import advised, unforeseen
from syncscope.analysis.answer import (
    Saving,
    adding_lines,
    beside_others,
    doubt_of,
    experience_of,
    instead,
    most_of,
    of_all,
    of_line,
    seen,
)
from syncscope.analysis.brought_together import staying
from syncscope.analysis.changes import Supposed
from syncscope.analysis.errors import margins
from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.fidelity import Fidelity, bounds, crowded, unforeseen_lines
from syncscope.analysis.graph import Graph
from syncscope.analysis.harness import beside_harness, of_harness
from syncscope.analysis.hosts import Recorder
from syncscope.analysis.price import Prices, alone_and_last, timed_part, unpriced, within
from syncscope.analysis.price import prices as price_lines
from syncscope.analysis.replay import replay
from syncscope.analysis.steps import alike
from syncscope.analysis.what_if_ground import Ground
from syncscope.analysis.what_if_loops import joined, saved_at_once
from syncscope.model.answer import Answer, Decision
from syncscope.model.finding import Adds
from syncscope.model.ops import COPIES, COUNTS, Op
from syncscope.model.report import Advice, Group, Line, Price, Read, Report
from syncscope.model.source import Place
from syncscope.model.trace import Kind, Trace

WORK = 0.1  # the part of a step that the host works on what it copied, from which that may go along
MORE = 0.005  # the part of a step that loops must save beyond the waits in them to be spoken of
SINGLE = 512  # reads up to which each is priced by itself


def priced(
    report: Report,
    event_graph: EventGraph,
    graph: Graph,
    members: list[list[int]],
    trusted: Fidelity,
    loops: Mapping[Place, int],
) -> Report:
    """The report with its answer and its prices; without those of lines where a replay cannot be `trusted` to split it."""
    of_recording = of_harness(event_graph, members)
    report = replace(
        report,
        lines=tuple(replace(line, of_recording=so) for line, so in zip(report.lines, of_recording, strict=True)),
    )
    unknown = unforeseen_lines(event_graph, graph, members)
    waits = price_lines(graph, members, unknown=unknown)
    stays = staying(event_graph.reads, zip(members, report.lines, strict=True))
    going = [[number for number in rows if number not in stays] for rows in members]
    rewritten, fixed = graph, waits
    if event_graph.taken_out.taking:
        rewritten = event_graph.graph(supposed=Supposed(how="offered"))
        fixed = price_lines(event_graph.graph(supposed=Supposed(how="fixed")), members, unknown=unknown)
    costs = price_lines(rewritten, going, unknown=unknown) if stays or rewritten is not graph else waits
    adding = adding_lines(event_graph, report.lines, members)
    # of what adds no work, by itself
    firm = price_lines(rewritten, going, unknown=unknown | adding.keys()) if adding else costs
    usual, step = report.bound.usual if report.bound else 1.0, costs.step or 1.0
    others, idle = crowded(event_graph), sum(line.idle_after for line in report.lines) / (report.step or 1.0)

    def believed(share: float) -> float:
        return seen(share, idle, others, trusted)

    waits, fixed, costs, firm = (
        within(found, believed(min(found.saving / step, usual)) * step) for found in (waits, fixed, costs, firm)
    )
    left = unpriced(graph)
    everything = {r for n, rows in enumerate(going) if n not in costs.left for r in rows} - left
    low, high = _range(event_graph, graph, everything, costs.step)
    known = experience_of(report, event_graph)
    doubt = doubt_of(event_graph, graph, everything, costs.step)
    every = {r for n, rows in enumerate(members) if n not in waits.left for r in rows} - left
    copied = sum(
        _pause(report, event_graph, rows)
        for line, rows in zip(report.lines, members, strict=True)
        if line.op in COPIES or line.op == Op.TOLIST
    )
    adds = most_of(adding[n] for n in costs.plan if n in adding)
    offered, all_waits = costs.saving / step, max(fixed.saving, costs.saving) / step
    alone, ground = Saving(all_waits, offered), Ground(event_graph.trace, event_graph, trusted, loops)

    def answered(saving: Saving) -> Answer:
        bound, sure = report.bound.share if report.bound else 1.0, not unknown and len(costs.left) == len(members)
        between = low / step, high / step
        found = of_all(saving, bound, between, known, adds, bool(unknown), doubt, trusted.open, sure)
        return instead(beside_others(found, others, adds), low / step, others)

    of_waits, whole = answered(alone), answered(_with_more(alone, ground, every, copied / step, believed))
    if any(of_recording):
        own = [n for n in range(len(members)) if not of_recording[n] and n not in costs.left]
        _, of_loop = _step_and_saving(rewritten, {r for n in own for r in going[n]} - left)
        asked = [line for line in report.lines if line.of_recording]
        of_waits, whole = (beside_harness(found, of_loop / step, asked) for found in (of_waits, whole))
    report = replace(report, of_waits=of_waits, saving_step=costs.step)
    if not trusted.enough:
        return replace(report, answer=whole)
    prices = list(_between(waits, graph, members, left, (low, high)))

    def told(n: int) -> Line:
        """A line with its price, what to do about it, and why."""
        line, kept = replace(report.lines[n], price=prices[n]), event_graph.kept(members[n])
        added = adding.get(n, Adds.NOTHING)
        if n in unknown:
            line = unforeseen(line, kept)
        else:
            line = advised(line, costs.step, n in costs.left, kept, _pause(report, event_graph, members[n]))
        of = costs if n in adding else firm
        found = of_line(line, of_waits, of, known, n, added, kept, doubt, trusted.open)
        return replace(line, answer=beside_others(found, others, added))

    lines = tuple(map(told, range(len(members))))
    if len(lines) == 1 and lines[0].answer is not None and lines[0].answer.decision is Decision.LEAVE:
        lines = (_as_all(lines[0], whole),)  # the only wait is all waits
    plan = costs.plan if whole.decision in (Decision.FIX, Decision.TRY) else ()
    plan = tuple(sorted(plan, key=of_recording.__getitem__))  # what may be no part of the loop last
    chosen = {r for n in plan for r in going[n]} - left
    of_plan = _range(event_graph, graph, chosen, costs.step) if plan else (low, high)
    report = replace(
        report,
        answer=whole,
        reads=_each_read(report.reads, graph) if len(graph.reads) == len(report.reads) else report.reads,
        lines=lines,
        saving=costs.saving,
        saving_range=(low, high) if everything else None,
        plan=plan,
        plan_saving=costs.plan_saving if plan else None,
        groups=groups(graph, lines, members),
    )
    if plan:
        uncounted = event_graph.counting - {r for one in event_graph.selections for r in one.reads}
        if not uncounted.isdisjoint(chosen):
            asking = ", ".join(dict.fromkeys(f"`{lines[n].op}`" for n in plan if lines[n].op in COUNTS))
            said = f"how many rows {asking} kept was not recorded: what a fixed shape adds is not counted, so measure it first"
            report = replace(report, notes=(*report.notes, said))
        report = replace(report, plan_range=of_plan)
    if report.trace is not None and (each := overhead(report.trace)):  # of somebody else's profiler: ours says it
        step, saving = _step_and_saving(event_graph.graph(Recorder(each)), everything)
        report = replace(report, lean_step=step, lean_saving=saving)
    return report


def _as_all(line: Line, whole: Answer) -> Line:
    """The only line, with the decision of all waits where these are to be fixed or tried."""
    worth = whole.decision in (Decision.FIX, Decision.TRY) and not whole.along
    if line.answer is None or not worth or line.advice is Advice.LEAVE:
        return line
    return replace(line, answer=replace(line.answer, decision=whole.decision, why=whole.why))


def _with_more(
    alone: Saving, ground: Ground, every: Collection[int], copied: float, believed: Callable[[float], float]
) -> Saving:
    """What is saved if more goes along: loops around what waits, besides `every` wait, whose passes are no network's, as far as
    it is `believed`; and the host's work on what it `copied` (parts of a step)."""
    words, found = [], alone
    if loops := [one for one in joined(ground) if not one.network(ground)]:
        likely, most = (saved / ground.step for saved in saved_at_once(ground, loops, every))
        likely = believed(likely)
        if likely >= alone.waits + MORE:
            words.append(f"the passes of {' and of '.join(f'the loop at {one.where}' for one in loops)} made at once")
            found = replace(found, at_once=likely, most=most)
    if copied >= WORK:
        words.append("the host's work on what it copied")
        found = replace(found, copied=copied)
    return replace(found, along=" and ".join(words))


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


def _pause(report: Report, event_graph: EventGraph, rows: Sequence[int]) -> float:
    """How long the device had nothing to do right after some reads, ns per counted step."""
    counted = {report.steps[n].index for n in alike(report.steps)}
    of = [event_graph.reads[row] for row in rows]
    return sum(read.idle_after for read in of if not counted or read.step in counted) / max(1, len(counted))


def _each_read(found: tuple[Read, ...], graph: Graph) -> tuple[Read, ...]:
    """The reads with what each single one would save; left unsaid where there are very many."""
    if not found or len(found) > SINGLE:
        return found
    left = unpriced(graph)
    alone, _ = alone_and_last(graph, [[number] for number in range(len(found))], ())
    steps = timed_part(graph).steps
    return tuple(
        read if number in left else replace(read, saved_alone=alone[number] * steps)
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


def overhead(trace: Trace) -> float:
    """ns that torch.profiler takes on the host for each event; 0 where our own recorder, which measures it, made the trace.

    Measured on one machine over a step of 168 operators: 1.8 us an operator, 2.6 us with stacks or shapes, 3.7 us with both.
    """
    if trace.meta.get("recorder") == "syncscope" or len(trace.rows(Kind.READ)) > 0:
        return 0.0
    more = len(trace.rows(Kind.PYTHON)) > 0, bool(trace.meta.get("record_shapes"))
    return (1800.0, 2600.0, 3700.0)[sum(more)]
