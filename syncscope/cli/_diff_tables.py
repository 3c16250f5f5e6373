"""Two recordings side by side as rows of text: what a step took in both, and each line that waits in either."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from syncscope.cli._busy import busy_share
from syncscope.cli._diff_words import at_times, between_times, in_place, moved, unlike
from syncscope.cli._places import here

if TYPE_CHECKING:
    from syncscope.analysis.comparison import Comparison
    from syncscope.model.report import Line

VAGUE = 1.0  # of a step, from which what a change lies between needs no digits
ANY = 4.0  # times: where the longest that a step may have become is more of the shortest, it may be anything


class WaitingRow(NamedTuple):
    """A line that waits: what became of it, where, in which way, how often and how long (ns) in both; None is not at all."""

    word: str
    place: str
    op: str
    counts: tuple[float | None, float | None]
    blocked: tuple[float | None, float | None]


def lines(found: Comparison) -> list[WaitingRow]:
    """Each line that waits in either: those that went, that came, that changed, and the rest."""
    pairs: list[tuple[str, Line | None, Line | None]] = [("gone", a, None) for a in found.gone]
    at_times = (*found.more.at_times, *found.more.between_times)
    pairs += [("at times" if b in at_times else "new", None, b) for b in found.new]
    pairs += [("changed", c.before, c.after) for c in found.changed]
    pairs += [("same", c.before, c.after) for c in found.same]
    rows = []
    for word, a, b in pairs:
        if (line := b or a) is None:
            continue
        place = here(line.place) if line.place else line.module or "no line known"
        counts = (a.count if a else None, b.count if b else None)
        rows.append(WaitingRow(word, place, line.op, counts, (a.blocked if a else None, b.blocked if b else None)))
    return rows


class WorkRow(NamedTuple):
    """Work of the device: what became of it, its name, whose it is, how many a step has and how long they take (ns) in both."""

    word: str
    name: str
    place: str
    counts: tuple[float | None, float | None]
    times: tuple[float | None, float | None]


def kernels(found: Comparison) -> list[WorkRow]:
    """Kernels and copies that take longer or less, the largest difference first."""
    rows = []
    for each in found.kernels:
        place = each.places[1] or each.places[0]
        counts = each.counts[0] or None, each.counts[1] or None
        times = (each.times[0] if counts[0] else None, each.times[1] if counts[1] else None)
        name = re.split(r"[(<]", each.name.removeprefix("void "), maxsplit=1)[0] or each.name
        rows.append(WorkRow(each.word, name, here(place) if place else "", counts, times))
    return rows


def totals(found: Comparison) -> Iterator[tuple[str, str, str, str]]:
    """What it is, in the first, in the second, and what is said of the change."""
    one, other = found.before, found.after
    yield _length(found), number(one.step, 1e6), number(other.step, 1e6), _change(found)
    if found.spread:
        low, high = (number(t, 1e6) for t in found.spread)
        yield "give or take, ms (95 %)", low, high, _between(found)
    yield "steps", str(len(one.steps)), str(len(other.steps)), ""
    yield "device busy, %", number(busy_share(one), 0.01), number(busy_share(other), 0.01), ""
    known = [not report.refused for report in (one, other)]
    syncs = [report.syncs for report in (one, other)]
    before, after = (f"{count:.3g}" if judged else "unknown" for count, judged in zip(syncs, known, strict=True))
    yield "syncs per step", before, after, ""
    blocked = [sum(line.blocked for line in r.lines) for r in (one, other)]
    before, after = (number(ns if judged else None, 1e6) for ns, judged in zip(blocked, known, strict=True))
    yield "host blocked, ms per step", before, after, ""


def remarks(found: Comparison) -> Iterator[str]:
    """What has to be known of the steps that are compared."""
    if found.one_recording:
        yield "Both are one recording: the same events at the same times."
    if found.as_recorded:
        yield found.as_recorded
    replayed = [report.saving is not None for report in (found.before, found.after)]
    if replayed[0] != replayed[1] and not any(found.timed):
        which, rest = ("first", "second") if replayed[0] else ("second", "first")
        yield f"A step of the {which} is as a replay gives it, of the {rest} as recorded: no replay fits it."
    if found.timed[0] != found.timed[1]:
        which, rest = ("first", "second") if found.timed[0] else ("second", "first")
        yield f"A step of the {which} is as timed without a recording, for no replay fits it; of the {rest}, as replayed."
    if any(line.fallback for report in (found.before, found.after) for line in report.lines):
        yield "Waits for what the CPU ran, since `ocl` has no such operator, are no syncs on CUDA, and in no number per step."
    if may_be_any(found):
        yield f"Too noisy to tell what became of a step: {found.widest}."
    if not unlike(found):
        yield from map(moved, found.moved)
        yield from map(in_place, found.more.in_place)
        yield from map(at_times, found.more.at_times)
        yield from map(between_times, found.more.between_times)


def _length(found: Comparison) -> str:
    """Which step is compared."""
    if all(found.timed):
        return "step without a recording, ms"
    if not (found.before.steps and found.after.steps):
        return "step or recording, ms"
    replayed = all(report.saving is not None for report in (found.before, found.after))
    recorded = not any(report.saving is not None for report in (found.before, found.after)) and not any(found.timed)
    return f"step{', replayed' if replayed else ', as recorded' if recorded else ''}, ms"


def _change(found: Comparison) -> str:
    before, after = found.before.step, found.after.step
    if bool(found.before.steps) != bool(found.after.steps):
        return ""
    within = ", not surely" if found.every_step else ", within noise"
    if may_be_any(found):
        within = ", which says nothing"
    apart = (
        ""
        if found.one_recording
        else ", not comparable"
        if found.incomparable
        else within
        if found.within_noise
        else ""
    )
    return (f"{(after - before) / before:+.1%}" if before and after else "") + apart


def may_be_any(found: Comparison) -> bool:
    """Whether the steps vary too much to tell anything of what they became."""
    if found.change is None or found.every_step or not found.within_noise:
        return False
    low, _, high = found.change
    return 1 + high > ANY * (1 + low)


def _between(found: Comparison) -> str:
    """What the change lies between; "" where nobody knows."""
    if found.change is None:
        return ""
    if may_be_any(found):
        return "too noisy to tell"
    digits = 0 if found.change[2] - found.change[0] > VAGUE else 1
    low, high = (round(100 * end, digits) + 0.0 for end in (found.change[0], found.change[2]))
    return f"{low:+.{digits}f} to {high:+.{digits}f} %"


def number(value: float | None, unit: float) -> str:
    """Two decimals of so much of a unit."""
    return "unknown" if value is None else f"{value / unit:.2f}"
