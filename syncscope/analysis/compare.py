"""Two recordings of one loop: what became of its steps and of each line, and whether the prediction came true."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import cast

import numpy as np

from syncscope.analysis.baseline import with_right_baseline
from syncscope.analysis.changes import Supposed
from syncscope.analysis.checkouts import same_files
from syncscope.analysis.comparison import Change, Comparison
from syncscope.analysis.errors import half_interval_of_median, half_interval_of_neighbours
from syncscope.analysis.event_graph import EventGraph, event_graph_of
from syncscope.analysis.fidelity import added_unknown, bounds, fidelity_of, too_wide
from syncscope.analysis.hosts import Recorder
from syncscope.analysis.new_syncs import new_syncs, rewritten, same_wait
from syncscope.analysis.pace import pace
from syncscope.analysis.price import timed_part, unpriced
from syncscope.analysis.rank import device_names
from syncscope.analysis.recorder_cost import without_recorder
from syncscope.analysis.replay import replay
from syncscope.analysis.same_text import (
    functions_of,
    moved,
    place_before,
    renamed,
    same_lines,
    same_recorded,
    unchanged,
    waiting,
)
from syncscope.analysis.steps import alike
from syncscope.analysis.summary import Key, key_of, key_of_line, summarize
from syncscope.analysis.window_rates import StepCounts
from syncscope.analysis.work_changes import near, place_in_first, work_changes
from syncscope.model.durations import about_ms
from syncscope.model.report import Line, Read, Report, step_lengths
from syncscope.model.source import Place, installed
from syncscope.model.trace import Kind, Meta, Trace

BRIEF, SLIGHTEST = 1e4, 1e-3  # ns, and of a step: what is blocked for so much longer or shorter is as good as the same


def compare(before: Trace, after: Trace, by_work: bool = False) -> Comparison:
    """Compare two recordings of one loop; lines may have moved within their file.

    Their steps are bounded in one way: by their work where that is so of either alone, or `by_work` anyway.
    """
    before, after = with_right_baseline(before), with_right_baseline(after)
    lengths = [trace.meta.get("untraced") for trace in (before, after)]
    timed = [None if known is None else float(known["median_ns"]) for known in lengths]
    if None in timed:
        before, after = _as_recorded(before), _as_recorded(after)
    event_graphs, bounded_anew = _taken_apart(before, after, by_work)
    by_work = event_graphs[0].by_work
    fidelities = [fidelity_of(each, each.graph(Recorder())) for each in event_graphs]
    one, other = (
        _replayed(summarize(trace, by_work=by_work), None if None in timed else time)
        for trace, time in zip((before, after), timed, strict=True)
    )
    known, texts = _matched_files(one, other, before, after)
    waits, functions = (waiting(before), waiting(after)), (functions_of(before), functions_of(after))

    def may_be_one(came: Sequence[Line], gone: Sequence[Line]) -> set[tuple[int, int]]:
        """Which lines, none of which stands in both, may be one: any of which no text is known."""
        sure = set(rewritten(came, gone, known, texts, functions))
        return sure | {
            (n, m)
            for (n, b), (m, a) in product(enumerate(came), enumerate(gone))
            if b.place is None or b.place.path not in texts or same_wait(a, b, waits)
        }

    pairs = _pairs(one.lines, other.lines, known, texts, may_be_one)
    both = [Change(a, b) for a, b in pairs if a is not None and b is not None]
    slight = max(BRIEF, SLIGHTEST * max(one.step or 0.0, other.step or 0.0))
    changed = tuple(c for c in both if c.before and c.after and not _alike(c.before, c.after, slight))
    lost = _renamed(pairs, known)
    devices, kernels = (device_names(before), device_names(after)), (_kernels(before), _kernels(after))
    others = bool(devices[0] and devices[1] and set(devices[0]) != set(devices[1]))
    strangers = bool(kernels[0] and kernels[1] and kernels[0].isdisjoint(kernels[1])) and not both
    worlds = _worlds(before, after)
    others |= worlds is not None
    whole = (
        not others and not strangers and not any(report.coverage and report.coverage.refusal for report in (one, other))
    )
    told = _foretold(event_graphs[0], before, pairs) if whole and fidelities[0].enough and not lost else None
    predicted, likely, freed, wide = told or (None, None, set(), "")
    error = (predicted - other.step) / other.step if predicted is not None and other.step else None
    work, pieces, calls = zip(_work(event_graphs[0], freed), _work(event_graphs[1]), strict=True)
    one_recording = _same_events(before, after)
    spreads = (0.0, 0.0) if one_recording else (_spread(one, before), _spread(other, after))
    return Comparison(
        before=one,
        after=other,
        gone=tuple(a for a, b in pairs if a is not None and b is None),
        new=tuple(b for a, b in pairs if b is not None and a is None),
        changed=changed,
        same=tuple(c for c in both if c not in changed),
        predicted=predicted,
        error=error,
        predicted_range=likely,
        work=work,
        pieces=pieces,
        calls=calls,
        spread=None if spreads[0] is None or spreads[1] is None else (spreads[0], spreads[1]),
        refusal=fidelities[0].refusal,
        vague=wide,
        pace=pace(before, after),
        unforeseen=predicted is None and bool(freed) and not wide,
        drift=_drift(before.meta, after.meta),
        renamed=lost,
        more=new_syncs(
            pairs,
            known,
            texts,
            waits,
            functions,
            (StepCounts(one), StepCounts(other)),
            unchanged(before, after, known),
        ),
        timed=(one.saving is None and None not in timed, other.saving is None and None not in timed),
        as_recorded=" ".join(filter(None, (_one_timed(timed), bounded_anew))),
        devices=devices,
        strangers=strangers,
        worlds=worlds,
        common=_common(before, after),
        one_recording=one_recording,
        kernels=()
        if others or strangers or one_recording
        else work_changes((before, event_graphs[0]), (after, event_graphs[1]), place_in_first(known, texts)),
    )


def _worlds(before: Trace, after: Trace) -> tuple[int, int] | None:
    """Of how many ranks the job of either is, where both say so and it is not as many."""
    one, other = (int(trace.meta.get("world_size") or 0) for trace in (before, after))
    return (one, other) if one > 0 and other > 0 and one != other else None


def _matched_files(
    one: Report, other: Report, before: Trace, after: Trace
) -> tuple[dict[str, str], dict[str, dict[Place, Place]]]:
    """The path in the first recording of each path in the second, and the places in the first of lines of the same text."""
    known = _same_files(one, other)
    copies = _copies(before, after, one, other, known)
    known |= {path: copied for path, (copied, _) in copies.items()}
    known |= renamed(before, after, known)
    texts = same_recorded(before, after, known) | {path: lines for path, (_, lines) in copies.items()}
    for path, lines in moved(before, after, texts).items():
        texts[path] = {**texts.get(path, {}), **lines}
    return known, texts


def _taken_apart(before: Trace, after: Trace, by_work: bool) -> tuple[tuple[EventGraph, EventGraph], str]:
    """The two, the steps of both bounded by their work if those of one are; and, where that is so, that it is."""
    one, other = (event_graph_of(trace, by_work=by_work) for trace in (before, after))
    if one.by_work == other.by_work:
        return (one, other), ""
    which, rest = ("first", "second") if one.by_work else ("second", "first")
    said = f"A step ends with its work on the device, as it must in the {which}: in a report of the {rest} alone, at its mark."
    if one.by_work:
        return (one, event_graph_of(after, by_work=True)), said
    return (event_graph_of(before, by_work=True), other), said


def _same_events(before: Trace, after: Trace) -> bool:
    """Whether the two hold the same events at the same times, as a file and its copy do, and steps timed without them alike."""
    if before.meta.get("untraced") != after.meta.get("untraced"):
        return False
    return len(before) == len(after) > 0 and all(
        np.array_equal(getattr(before, column), getattr(after, column))
        for column in ("kind", "start", "duration", "correlation", "bytes")
    )


def _kernels(trace: Trace) -> set[str]:
    """The names of the kernels that ran."""
    return {trace.names[code] for code in np.unique(trace.name[trace.rows(Kind.KERNEL)]).tolist()}


def _common(before: Trace, after: Trace) -> float:
    """The part of the time of kernels that those take which both have: of each name the less of its two parts."""
    times = []
    for trace in (before, after):
        rows = trace.rows(Kind.KERNEL)
        spent = np.bincount(trace.name[rows], trace.duration[rows], len(trace.names))
        whole = float(spent.sum())
        times.append({trace.names[code]: float(spent[code]) / whole for code in np.flatnonzero(spent).tolist()})
    one, other = times
    return sum(min(part, other.get(name, 0.0)) for name, part in one.items()) if one and other else 1.0


def _replayed(report: Report, timed: float | None) -> Report:
    """The report with the step that is compared: as replayed without the recorder, else as it was `timed` without a recording,
    else as recorded."""
    return replace(report, step=(report.saving_step if report.saving is not None else timed) or report.step)


def _one_timed(timed: Sequence[float | None]) -> str:
    """Why the step of one recording, which was timed without it, is compared as recorded; "" where it is not so."""
    known = [(name, time) for name, time in zip(("first", "second"), timed, strict=True) if time is not None]
    if len(known) != 1:
        return ""
    ((name, time),) = known
    return (
        f"A step of the {name} took {about_ms(time)} without a recording. "
        "The other was not timed so: both are compared as recorded."
    )


def _as_recorded(trace: Trace) -> Trace:
    """A recording of which nobody knows how long its steps take without."""
    return replace(trace, meta=cast("Meta", {key: value for key, value in trace.meta.items() if key != "untraced"}))


def _spread(report: Report, trace: Trace) -> float | None:
    """Half the 95 % interval of the step, ns: of the mean of the counted ones, and of what tells it without a recording."""
    lengths = step_lengths(report.steps)
    counted = [lengths[n] for n in alike(report.steps)]
    if len(lengths) < 4 or len(counted) < 2:
        return None
    untraced = trace.meta.get("untraced")
    recorded = half_interval_of_neighbours(np.array(counted, float))
    return math.hypot(recorded, half_interval_of_median(untraced) if untraced else 0.0)


def _drift(before: Meta, after: Meta) -> float:
    """How far apart the recorded steps of two runs and their others are on what has changed: but for the recorder's weight they
    tell the same, unless the machine got faster or slower within a run; then it may have done so between them, too."""
    if any(key not in meta for meta in (before, after) for key in ("untraced", "traced")):
        return 0.0
    weights = [meta["traced"]["median_ns"] / meta["untraced"]["median_ns"] for meta in (before, after)]
    return abs(math.log(weights[1] / weights[0]))


def _alike(one: Line, other: Line, slight: float) -> bool:
    return near(one.count, other.count) and (
        near(one.blocked, other.blocked) or abs(one.blocked - other.blocked) < slight
    )


def _same_files(before: Report, after: Report) -> dict[str, str]:
    """The path in the first recording of each path in the second: of those that wait, and of the user's own."""
    waiting = [{line.place.path for line in report.lines if line.place} for report in (before, after)]
    named = [{p.path for p in report.trace.places} if report.trace is not None else set() for report in (before, after)]
    own = [{path for path in paths if not installed(path)} for paths in named]
    return same_files(*waiting) | same_files(*own)


def _copies(
    before: Trace, after: Trace, one: Report, other: Report, known: Mapping[str, str]
) -> dict[str, tuple[str, dict[Place, Place]]]:
    """Files of the second recording that are those of the first by other names, with the lines that are the same text."""
    first = {line.place.path for line in one.lines if line.place} - set(known.values())
    second = {line.place.path for line in other.lines if line.place} - set(known)
    return same_lines((before, first), (after, second)) if first and second else {}


def _pairs(
    before: tuple[Line, ...],
    after: tuple[Line, ...],
    known: Mapping[str, str],
    texts: Mapping[str, Mapping[Place, Place]],
    may_be_one: Callable[[Sequence[Line], Sequence[Line]], set[tuple[int, int]]],
) -> list[tuple[Line | None, Line | None]]:
    """Lines that are the same: first those at the same place, or of the same text where `texts` knows it, then those of one op
    and file that likely are, in order."""
    left = [line for line in before if line.count]
    found: list[tuple[Line | None, Line | None]] = []
    rest = []
    for line in (line for line in after if line.count):
        at, caller = place_before(line.place, texts), place_before(line.caller, texts)
        number = -1 if line.place is None else at.line if at else None
        there = sorted((a for a in left if _line(a) == number), key=lambda a: a.caller != caller)
        match = _first(line, there, known, texts)
        if match is None:
            rest.append(line)
        else:
            left.remove(match)
            found.append((match, line))
    left.sort(key=_line)
    rest.sort(key=_line)
    possible, gone = may_be_one(rest, left), list(enumerate(left))
    for n, line in enumerate(rest):
        match = _first(line, [a for m, a in gone if (n, m) in possible and a in left], known, texts)
        if match is not None:
            left.remove(match)
        found.append((match, line))
    return [*found, *((a, None) for a in left)]


def _first(
    line: Line, others: Sequence[Line], known: Mapping[str, str], texts: Mapping[str, Mapping[Place, Place]]
) -> Line | None:
    """The first of the lines of the other recording that may be this one."""
    return next((other for other in others if _may_be_same(other, line, known, texts)), None)


def _may_be_same(one: Line, other: Line, known: Mapping[str, str], texts: Mapping[str, Mapping[Place, Place]]) -> bool:
    if one.op != other.op or one.fallback != other.fallback:
        return False
    if one.place is None or other.place is None:
        return one.place is other.place and one.module == other.module
    return known.get(other.place.path) == one.place.path or place_before(other.place, texts) == one.place


def _renamed(pairs: Sequence[tuple[Line | None, Line | None]], known: Mapping[str, str]) -> tuple[Place, Place] | None:
    """A read in a file of which nothing stands in the second recording, and one of its kind in a file that is new there."""
    gone = [(a.op, a.place) for a, b in pairs if a and not b and a.place and a.place.path not in known.values()]
    new = [(b.op, b.place) for a, b in pairs if b and not a and b.place and b.place.path not in known]
    return next(((a, b) for op, a in gone for other, b in new if op == other), None)


def _line(line: Line) -> int:
    return line.place.line if line.place else -1


def _foretold(
    event_graph: EventGraph, trace: Trace, pairs: list[tuple[Line | None, Line | None]]
) -> tuple[float | None, tuple[float, float] | None, set[int], str] | None:
    """ns per step of a replay without the reads that are no longer made: all of a line that is gone, else as many as less.

    With the range that it leaves open, these reads, and why that is too wide to be told; both None then, and where what runs
    over all rows may be anything.
    They are not made at all: they go with all that their expressions did.
    """
    graph = without_recorder(event_graph, trace)
    kept = {}
    for a, b in pairs:
        if a is not None:
            share = 0.0 if b is None else min(1.0, b.count / a.count)
            kept[key_of_line(a)] = share
    freed = freed_reads(event_graph.reads, kept) - unpriced(graph)
    if not freed:
        return None
    if added_unknown(event_graph, freed):
        return None, None, freed, ""
    window, likely = timed_part(graph), bounds(event_graph, graph, freed)
    if wide := too_wide(*likely, window.of(replay(graph))):
        return None, None, freed, f"without these syncs {wide}"
    return window.of(replay(event_graph.graph(supposed=Supposed(gone=True)), freed)), likely, freed, ""


def _work(event_graph: EventGraph, freed: Collection[int] = ()) -> tuple[float, float, float]:
    """ns per step that the device works in the counted steps, on how many pieces, and how many calls launched them."""
    graph = event_graph.graph()
    window = timed_part(graph)
    since, until = window.span(graph)
    time, pieces, calls = event_graph.work(since, until, freed)
    return time / window.steps, pieces / window.steps, calls / window.steps


def freed_reads(found: Sequence[Read], kept: Mapping[Key, float]) -> set[int]:
    """The reads that go where of each line only a share is kept: in every step the last ones stay, evenly over the steps.

    What is read less often is read when more of it has come together, and at the end of a step rather than within.
    """
    steps: dict[tuple[Key, int], list[int]] = {}
    for number, read in enumerate(found):
        if key_of(read) in kept:
            steps.setdefault((key_of(read), read.step), []).append(number)
    freed, due = set(), dict.fromkeys(kept, 0.0)
    for (key, _), numbers in steps.items():
        due[key] += kept[key] * len(numbers)
        stay = min(len(numbers), int(due[key] + 1e-9))
        due[key] -= stay
        freed |= set(numbers[: len(numbers) - stay])
    return freed
