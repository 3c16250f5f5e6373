"""Two recordings side by side as Markdown: a comment of a pull request, or the summary of a job on GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from syncscope.cli import _diff_tables as tables
from syncscope.cli._diff_words import change, sentence, unlike
from syncscope.cli._markdown import limit
from syncscope.cli._places import relative
from syncscope.exporters.markdown import code, plain
from syncscope.model.durations import in_ms

if TYPE_CHECKING:
    from syncscope.analysis.comparison import Comparison
    from syncscope.cli._limits import GivenLimit

MOST_LINES = 20
Both = tuple[float | None, float | None]  # of the first recording, and of the second


def markdown(found: Comparison, before: str, after: str, limits: Sequence[GivenLimit]) -> str:
    """Whether the limits hold, how long a step is in both, and the lines that wait otherwise than before."""
    return "\n\n".join(_parts(found, before, after, limits))


def _parts(found: Comparison, before: str, after: str, limits: Sequence[GivenLimit]) -> Iterator[str]:
    yield f"### syncscope: {code(relative(after))} beside {code(relative(before))}"
    if headline := _headline(found):
        yield f"**{plain(headline)}**"
    if limits:
        yield "\n".join(map(limit, limits))
    first = not unlike(found) and bool(found.of_others or found.perhaps_others)
    if first:
        yield plain(sentence(found))
    head = ("| | before | after | |", "| --- | ---: | ---: | --- |")
    yield "\n".join((*head, *(f"| {' | '.join(map(plain, row))} |" for row in tables.totals(found))))
    yield from map(plain, tables.remarks(found))
    if not unlike(found):
        rows = tables.lines(found)
        other, same = ([row for row in rows if (row.word == "same") is alike] for alike in (False, True))
        if other:
            yield _waits(other)
        if same:
            told = f"{len(same)} line{'s wait' if len(same) > 1 else ' waits'} as before"
            yield f"<details><summary>{told}</summary>\n\n{_waits(same)}\n\n</details>"
        if not rows:
            yield "Neither waits for the device."
        if found.kernels:
            yield _work(tables.kernels(found))
    if not first:
        yield plain(sentence(found))


def _headline(found: Comparison) -> str:
    """How much longer or shorter a step is, in ms and in percent."""
    before, after = found.before.step, found.after.step
    if unlike(found) or not before or not after:
        return ""
    if found.within_noise and found.change is not None:
        low, _, high = found.change
        any_ = tables.may_be_any(found)
        between = "too noisy to tell" if any_ else f"{100 * low:+.1f} to {100 * high:+.1f} %"
        return f"A step is not surely longer or shorter: {in_ms(before, '')} and {in_ms(after)} ({between})"
    which = "longer" if after >= before else "shorter"
    said = change(found) or f"a step is {100 * abs(after - before) / before:.1f} % {which}"
    return f"{said[0].upper()}{said[1:]}: {in_ms(before, '')} to {in_ms(after)}, {in_ms(abs(after - before))} {which}"


def _work(rows: Sequence[tables.WorkRow]) -> str:
    told = ((row.word, row.name, row.place, row.counts, row.times) for row in rows)
    return _table(("kernel or copy", "of line", "number", "ms"), list(told))


def _waits(rows: Sequence[tables.WaitingRow]) -> str:
    told = ((row.word, row.place, row.op, row.counts, row.blocked) for row in rows)
    return _table(("the host waits at", "by", "syncs", "blocked ms"), list(told))


def _table(heads: tuple[str, str, str, str], rows: Sequence[tuple[str, str, str, Both, Both]]) -> str:
    what, whose, number, time = heads
    told = [f"| | {what} | {whose} | {number} before | after | {time} before | after | change |"]
    told.append("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for word, name, of, counts, times in rows[:MOST_LINES]:
        cells = [word, code(name), code(of) if of else ""]
        cells += ["" if count is None else f"{count:.3g}" for count in counts]
        cells += ["" if ns is None else tables.number(ns, 1e6) for ns in times]
        told.append(f"| {' | '.join([*cells, _change(*times)])} |")
    if (more := len(rows) - MOST_LINES) > 0:
        told.append(f"\nand {more} more.")
    return "\n".join(told)


def _change(before: float | None, after: float | None) -> str:
    """By how much longer the host stands there, in ms and, where it stood there before, in percent."""
    more = (after or 0.0) - (before or 0.0)
    return f"{round(more / 1e6, 2) + 0.0:+.2f}" + (f" ({more / before:+.0%})" if before and after else "")
