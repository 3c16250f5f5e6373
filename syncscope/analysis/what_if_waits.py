"""The row of all waits among what would help, and what to write: rewrites that take most of them, else where to begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscope.analysis.brought_together import staying
from syncscope.analysis.price import unpriced
from syncscope.analysis.verdict import name as named
from syncscope.analysis.verdict import trial
from syncscope.analysis.what_if_ground import NAMED, Ground
from syncscope.model.commands import shows_fixes
from syncscope.model.finding import Stays
from syncscope.model.report import Line, Read, Report
from syncscope.model.what_if import WhatIf

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
    rewritten = _rewrites(report, ground, lines)
    advice, rule = rewritten or (_first(report, lines), "")
    ends = step * low, step * high, step * bound
    yield WhatIf("nothing waits", step * answer.share, *ends, lines_named, advice, rule, answered=True, word="waits")


def _rewrites(report: Report, ground: Ground, lines: Sequence[Line]) -> tuple[str, str] | None:
    """The first rewrites of these lines, with where they are, and the rule that offers the first; None where most of what all
    waits save is left with them."""
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
    left = staying(reads, members) | unpriced(ground.graph)
    fixed = {_key(line) for found in chosen.values() for line in found}
    gone = {number for numbers, line in members if _key(line) in fixed for number in numbers} - left
    every = {number for numbers, _ in members for number in numbers} - unpriced(ground.graph)
    if ground.saved(freed=sorted(gone)) < MOST * ground.saved(freed=sorted(every)):
        return None
    told = "; ".join(title + _at(found) for title, found in chosen.items())
    return told, next(iter(chosen.values()))[0].rule


def _at(lines: Sequence[Line]) -> str:
    """Where a rewrite is made: the first of its lines."""
    place = lines[0].place
    return f" (at {place.shortly})" if place else ""


def _first(report: Report, lines: Sequence[Line]) -> str:
    """Where to begin: its rewrite, with the command that tries it, or else shows it; where none fits, where to read of it."""
    first = max(lines, key=_cost)
    fix = first.finding.fix if first.finding else None
    if fix is not None and first.place is not None:
        how = f"`{command}` tries" if (command := trial(report, first)) else f"{shows_fixes([first.place.path])} shows"
        leaves = "" if fix.stays is Stays.NONE else "; one wait of them is left"
        return f"first the waits of {named(first)}: {fix.title}, which {how}{leaves}"
    read = f": `syncscope explain {first.rule}` shows what people write" if first.rule else ""
    return f"first the waits of {named(first)}{read}"


def _cost(line: Line) -> float:
    return line.price.share if line.price else line.idle_after


def _key(one: Line | Read) -> tuple[object, ...]:
    """What a line has in common with its reads."""
    return one.op, one.place, "" if one.place else one.module, one.function, one.fallback, one.caller
