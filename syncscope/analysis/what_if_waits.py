"""The row of all waits among what would help, and what to write: rewrites that take most of them, else where to begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from syncscope.analysis.brought_together import staying
from syncscope.analysis.price import unpriced
from syncscope.analysis.verdict import name as named
from syncscope.analysis.verdict import trial, written
from syncscope.analysis.what_if_ground import NAMED, Ground
from syncscope.model.commands import shows_fixes
from syncscope.model.finding import Stays
from syncscope.model.heat import Reason
from syncscope.model.ops import COPIES, VALUES, Op
from syncscope.model.report import Line, Read, Report
from syncscope.model.what_if import WhatIf

LOST = 0.03  # the part of a step by which one wait at its end is worse than none, from which on that is said
READ_LATER = (VALUES | COPIES) - {
    Op.BOOL
}  # what nothing in the step must know, as far as one sees: numbers that are logged
MOST = 0.5  # the part of what all waits save that rewrites must save to be named beside the price of all
REWRITES = 2  # that are named


def waits(report: Report, ground: Ground, step: float) -> Iterator[WhatIf]:
    """The waits, as the report answers for them: the same figure, the same interval, of a step of so many ns."""
    answer = report.of_waits or report.answer
    if answer is None or answer.share is None or not report.lines:
        return
    low = answer.share if answer.low is None else answer.low
    high = answer.share if answer.high is None else answer.high
    bound = high if answer.bound is None else answer.bound
    lines = [report.lines[n] for n in report.plan] or sorted(report.lines, key=_cost, reverse=True)
    lines_named = tuple(dict.fromkeys(line.place for line in lines if line.place))[:NAMED]
    rewrites = _rewrites(report, ground, lines)
    advice, rule, tried = rewrites or _first(report, lines)
    ends = step * low, step * high, step * bound
    advice += _not_at_the_end(report, ground, lines, answer.share)
    row = WhatIf("nothing waits", step * answer.share, *ends, lines_named, advice, rule, answered=True, word="waits")
    yield replace(row, begin=rewrites is None, command=trial(report, *tried))


def _not_at_the_end(report: Report, ground: Ground, lines: Sequence[Line], share: float) -> str:
    """What is left of the `share` of a step that waits cost where people read at a step's end what no rewrite of ours reads
    less often, all at once; "" where that is about as good: there the device must come to an end of the step before the host
    begins the next. A replay says which part is left, not how much: of what it saves the report may believe less."""
    by_hand = [
        line for line in lines if not line.finding or not line.finding.fix or line.finding.fix.stays is not Stays.NONE
    ]
    if not report.steps or not any(line.op in READ_LATER for line in by_hand):
        return ""
    always = unpriced(ground.graph)
    waits = [number for number in range(len(ground.event_graph.reads)) if number not in always]
    saved, at_end = ground.saved(freed=waits), ground.saved(freed=waits, drained=True)
    if share <= 0 or saved - at_end < LOST * ground.step:
        return ""
    left = f"only {share * at_end / saved:.1%} of a step" if at_end > 0 else "nothing"
    return f"; read a step later, or once in many, they save all of that; at each step's end, all at once, {left}"


def _rewrites(report: Report, ground: Ground, lines: Sequence[Line]) -> tuple[str, str, Sequence[Line]] | None:
    """The first rewrites of these lines, with where they are, the rule that offers the first, and what is to be tried; None
    where most of what all waits save is left with them."""
    of: dict[str, list[Line]] = {}
    for line in lines:
        if line.finding and line.finding.fix:
            of.setdefault(line.finding.fix.title, []).append(line)
    chosen = dict([*of.items()][:REWRITES])
    if not chosen:
        return None
    reads = ground.event_graph.reads
    rows: dict[object, list[int]] = {}
    for number, read in enumerate(reads):
        rows.setdefault(_key(read), []).append(number)
    members = [(rows.get(_key(line), []), line) for line in report.lines]
    always = unpriced(ground.graph)
    left = staying(reads, members) | always
    fixed = {_key(line) for found in chosen.values() for line in found}
    gone = {number for numbers, line in members if _key(line) in fixed for number in numbers} - left
    every = {number for numbers, _ in members for number in numbers} - always
    if ground.saved(freed=sorted(gone)) < MOST * ground.saved(freed=sorted(every)):
        return None
    told = "; ".join(title + _at(found) for title, found in chosen.items())
    tried = [line for found in chosen.values() for line in found]
    return told, tried[0].rule, written(report) or tried


def _at(lines: Sequence[Line]) -> str:
    """Where a rewrite is made: the first of its lines."""
    place = lines[0].place
    return f" (at {place.shortly})" if place else ""


def _first(report: Report, lines: Sequence[Line]) -> tuple[str, str, Sequence[Line]]:
    """Where to begin: its rewrite, with the command that tries it, or else shows it; where none fits, where to read of it. With
    no rule, and with the lines that are to be tried."""
    first = max(lines, key=lambda line: (not line.of_recording, _cost(line)))
    if len(together := _together(report, first)) > 1:
        return _all_of(together), "", ()
    fix = first.finding.fix if first.finding else None
    if fix is not None and first.place is not None:
        planned = written(report)
        tried = planned if first in planned else [first]
        how = f"`{command}` tries" if (command := trial(report, *tried)) else f"{shows_fixes([first.place.path])} shows"
        leaves = "" if fix.stays is Stays.NONE else "; one wait of them is left"
        return f"the waits of {named(first)}: {fix.title}, which {how}{leaves}", "", tried
    return f"the waits of {named(first)}{_read_on(first)}", "", ()


def _together(report: Report, first: Line) -> list[Line]:
    """The line, and those that wait right after it and stay, as the linter tells: without it alone the host waits there."""
    found = [first]
    while (after := _after(report, found[-1])) is not None and after not in found:
        found.append(after)
    return found


def _after(report: Report, line: Line) -> Line | None:
    """What the linter says to wait right after a line, where it did wait, and no rewrite takes both."""
    finding = line.finding
    if finding is None or finding.heat.reason is not Reason.BEFORE or line.place is None:
        return None
    number = int(finding.heat.about[0])
    at = [one for one in report.lines if one.place and (one.place.path, one.place.line) == (line.place.path, number)]
    apart = [one for one in at if one.finding is None or one.finding.fix is None or one.finding.fix != finding.fix]
    return apart[0] if apart else None


def _all_of(lines: Sequence[Line]) -> str:
    """What is to be done of several lines, none of which gains anything alone."""
    first, *others = lines
    names = f"{named(first)} and {', '.join(map(named, others))}"
    each = "; ".join(
        f"{line.place.shortly}: {line.finding.fix.title}"
        if line.finding and line.finding.fix and line.place
        else f"`syncscope explain {line.rule}` shows what people write"
        for line in lines
    )
    return f"the waits of {names}, together, as the first alone only moves its wait to the next: {each}"


def _read_on(line: Line) -> str:
    """Where to read of a line that has no rewrite."""
    return f": `syncscope explain {line.rule}` shows what people write" if line.rule else ""


def _cost(line: Line) -> float:
    return line.price.share if line.price else line.idle_after


def _key(one: Line | Read) -> tuple[object, ...]:
    """What a line has in common with its reads."""
    return one.op, one.place, "" if one.place else one.module, one.function, one.fallback, one.caller
