"""Figures as the reports show them: durations in the unit that suits them, shares in per cent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from syncscope.model.answer import Answer, Decision
from syncscope.model.finding import Finding
from syncscope.model.report import Line, Read, Report, step_lengths
from syncscope.model.what_if import WhatIf, first_of

if TYPE_CHECKING:
    from syncscope.model.trace import Trace

SURE = 2  # the least `Finding.confidence` that the linter shows unasked
UNITS = (("ns", 1.0), ("us", 1e3), ("ms", 1e6))
SIZES = (("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9))


def durations(report: Report) -> list[int]:
    """How long each step took, ns."""
    return step_lengths(report.steps)


def measured_step(report: Report) -> float | None:
    """What measured times are parts of, ns: a step as recorded, or the recording where no step was marked."""
    return report.step or (report.uses.step if report.uses else None)


def per(report: Report) -> str:
    """What times are of: a step, or all of a recording without steps."""
    return "per step" if report.steps else "in the recording"


def foretold(report: Report, one: WhatIf) -> bool:
    """Whether it is said what a change saves: by a replay that holds, or as the answer has it."""
    return report.replay_holds or one.answered


def todo(report: Report) -> WhatIf | None:
    """What to do first: the waits, where the answer is to fix or to try them and nobody knows what anything else saves."""
    one = first_of(report.what_if)
    if one is None or foretold(report, one) or report.answer is None:
        return one
    if report.answer.decision not in (Decision.FIX, Decision.TRY):
        return one
    return next((waits for waits in report.what_if if waits.answered and not waits.unsure), one)


def saving_step(report: Report) -> float | None:
    """What savings are parts of, ns: a step as it is replayed."""
    return report.saving_step or measured_step(report)


def interval(found: Answer | None, beside: float | None = None) -> str:
    """What a saving lies between, in percent of a step, with itself, and with the share `beside` which it stands: `-3 to 10 %`;
    "-" where that is not known."""
    if found is None or found.low is None or found.high is None:
        return "-"
    low, high = round(100 * found.low), round(100 * found.high)
    own = found.share if found.share is not None and found.low <= found.share <= found.high else None
    for share in (own, beside):
        if share is not None:
            low, high = min(low, math.floor(100 * share)), max(high, math.ceil(100 * share))
    return f"{low} to {high} %"


def told(report: Report) -> list[Finding]:
    """The findings at lines that waited, and those that the linter tells unasked: cold code that did not wait is no news."""
    met = {id(line.finding) for line in report.lines}
    return [one for one in report.findings if id(one) in met or (one.heat.whole and one.confidence >= SURE)]


def unseen(report: Report) -> list[Finding]:
    """Findings in code that runs every step, that did not wait; none where the recording cannot show what waits."""
    return [] if report.refused else without_wait(report)


def without_wait(report: Report) -> list[Finding]:
    """Findings in code that runs every step, at whose lines the recording shows no wait, in no step."""
    return [one for one in _quiet(report) if one.heat.whole and one.confidence >= SURE]


def unseen_elsewhere(report: Report) -> int:
    """How many findings in other code did not wait: outside of steps, in code that is seldom reached, or of doubtful values."""
    return 0 if report.refused else len(_quiet(report)) - len(without_wait(report))


def _quiet(report: Report) -> list[Finding]:
    """All findings at whose lines the recording shows no wait, in no step."""
    waits: list[Line | Read] = [*report.lines, *report.reads]  # reads in steps that are not counted have no line
    waited = {(one.place.path, one.place.line) for one in waits if one.place and not one.function}
    met = {id(line.finding) for line in report.lines}
    return [
        finding
        for finding in report.findings
        if id(finding) not in met
        and not any((finding.place.path, n) in waited for n in range(finding.place.line, finding.end_line + 1))
    ]


def counted(report: Report) -> str:
    """`12 counted: without the first, the last, and 6 that warmed up`; "" where all of them are."""
    left = len(report.steps) - report.steady
    if not 0 < report.steady < len(report.steps):
        return ""
    if disturbed := sum(step.disturbed for step in report.steps):
        return f"{report.steady} counted: other programs had more of the processors in the other {disturbed}"
    if outlying := [str(step.index) for step in report.steps if step.outlying]:
        named = outlying[0] if len(outlying) == 1 else f"{outlying[0]} and {len(outlying) - 1} more"
        return f"{report.steady} counted: the most in a row without step {named}, far longer than others"
    if any(step.in_round for step in report.steps):
        return f"{report.steady} counted: whole rounds of steps that do not wait alike"
    if lost := sum(step.lost for step in report.steps):
        others = f", and {left - lost} more" if left > lost else ""
        return f"{report.steady} counted: without {lost} whose calls were lost{others}"
    ends = (
        "without the first and the last" if left == 2 else f"without the first, the last and {left - 2} that warmed up"
    )
    return f"{report.steady} counted: {ends}" if left >= 2 else f"{report.steady} counted"


def time(ns: float) -> str:
    """A duration in the unit that suits it, three figures: `873 ns`, `4.21 us`, `31.5 ms`, `12.0 s`."""
    unit, scale = next(((u, s) for u, s in UNITS if abs(ns) < 999.5 * s), ("s", 1e9))
    return f"{three(ns / scale)} {unit}"


def size(count: float) -> str:
    """Bytes in the unit that suits them, three figures: `512 B`, `4.20 kB`, `31.5 MB`, `1.20 GB`."""
    unit, scale = next(((u, s) for u, s in SIZES if abs(count) < 999.5 * s), ("TB", 1e12))
    return f"{count:.0f} B" if scale == 1 else f"{three(count / scale)} {unit}"


def three(value: float) -> str:
    """A number with three figures, as many decimals as that leaves, and no more than two."""
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 or size < 0.005 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def count(value: float, figures: int = 3) -> str:
    """How many a step has, on average; no power of ten, however many."""
    return f"{value:.{figures}g}" if abs(value) < 10**figures - 0.5 else f"{value:.0f}"


def fixed(value: float) -> str:
    """A number for a column, with two decimals as long as it is below a thousand."""
    return (
        f"{round(value, 2) + 0.0:.2f}"
        if abs(value) < 1000
        else f"{value:.1f}"
        if abs(value) < 10_000
        else f"{value:.0f}"
    )


def percent(share: float | None) -> str:
    """`7.3 %`, `0.04 %`; a dash for None."""
    return "-" if share is None else f"{three(100 * share)} %"


def devices(trace: Trace) -> list[dict[str, Any]]:
    """What is known of each device that worked in the recording. ROCm counts processors among devices, so that a number may be
    none of those that are described: where all of these are alike it is one of them."""
    known = [d for d in trace.meta.get("devices", []) if isinstance(d, dict)]
    used = sorted({lane.device for lane in trace.lanes if lane.device >= 0})
    by_id = {d["id"]: d for d in known if isinstance(d.get("id"), int)}
    names = {str(d.get("name", "")) for d in known}
    alike = {"name": names.pop()} if len(names) == 1 else {}
    return [by_id.get(n) or (known[n] if n < len(known) else {"id": n} | alike) for n in used]


def shortened(place: str, width: int) -> str:
    """A path that fits: the outer folders go first. Of a name that is no path the end goes: it is told from others by how it
    begins."""
    if width > 0 and len(place) > width and " " in place and "/" not in place:
        return f"{place[: width - 1]}…"
    parts = place.split("/")
    while len(place) > width and len(parts) > 1:
        parts = parts[1:]
        place = "/".join(["…", *parts])
    return place if len(place) <= width else "…" + place[len(place) - width + 1 :]
