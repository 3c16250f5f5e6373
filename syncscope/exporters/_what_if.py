"""What would help, as rows for a terminal: the saving, what it lies between, and what to write."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from syncscope.exporters import _figures as figures
from syncscope.exporters._rows import MARGIN, note
from syncscope.exporters._waiting import COSTS
from syncscope.model.answer import between
from syncscope.model.report import Report
from syncscope.model.uses import StepUses
from syncscope.model.what_if import WhatIf, first_of

ROWS_IN_SHORT = 3
WIDE = 80  # columns from which there is room for intervals
APART = (
    "each row is a replay of its own: a launch goes with the host's work that prepares it, also while the device works, so a "
    "row may save more than is idle for it; rows do not add up"
)
OTHERS = "on another device it may be otherwise"
EXCEEDS = "more than the device is idle: device work that is launched for a wait, or for what goes, goes with it"

# heading, width
COLUMNS = (("saves", 9), ("between", 18), ("at most", 9), ("of step", 9))


def first(report: Report) -> tuple[Text, ...]:
    """What to do first, in a short sentence, and how; nothing where nothing is known to help."""
    one = figures.todo(report)
    step = figures.saving_step(report)
    if report.uses and _is_exchange(report):
        share = figures.percent(report.uses.exchange / report.uses.step)
        apart = f"{share} of a step is exchange with other ranks, or waiting for them"
        return Text(apart, "bold"), Text("`syncscope ranks` over the traces of all ranks says who comes late")
    if one is None:
        return ()
    share = f" ({figures.percent(one.saving / step)})" if step else ""
    most = max((other for other in report.what_if if not other.bought), key=lambda other: other.saving)
    known = most is not one and figures.foretold(report, most)
    why = f"less to write than what saves most, if {most.name} ({figures.time(most.saving)})" if known else ""
    if one.answered and report.lines and not helps_more(report):  # the answer, above, has the same figure
        other = first_of(report.what_if)
        more = f"; besides, {_at_most(report, other)}: {other.told}" if other is not None and other is not one else ""
        return tuple(Text(said) for said in (one.advice + more, why) if said)
    within = f" ({between(one.low, one.high, figures.time)})" if one.low < one.high else ""
    said = f"if {one.name}, {_per(report)} {one.surely} {figures.time(one.saving)}{share} shorter{within}"
    if not figures.foretold(report, one):
        said = _at_most(report, one)
    return Text(said, "bold"), Text("; ".join(filter(None, (one.told, why))))


def _at_most(report: Report, one: WhatIf) -> str:
    """What a change may save, where that is all that is known of it."""
    return f"if {one.name}, {_per(report)} may be shorter, by at most {figures.time(one.bound)}"


def _per(report: Report) -> str:
    return "a step" if report.steps else "the recording"


def word(report: Report) -> str:
    """What its line is called: to be tried, where the replay that it comes of does not hold."""
    return "do first" if report.replay_holds or _is_exchange(report) else "try"


def _is_exchange(report: Report) -> bool:
    """Whether exchange with other ranks takes more than anything saves."""
    one = figures.todo(report)
    return report.uses is not None and report.uses.exchange > (one.saving if one else 0.0)


def _ends(low: str, high: str) -> str:
    """`1.50-2.50`, or `-0.30 to 2.50`."""
    return f"{low}{' to ' if low.startswith('-') else '-'}{high}"


def idle(uses: StepUses) -> float:
    """ns of a step in which the device is idle."""
    return sum(one.time for one in uses.spent if one.use.is_idle)


def helps_more(report: Report) -> bool:
    """Whether what is to be done first saves more than all waits cost."""
    one, found, step = figures.todo(report), report.answer, figures.saving_step(report)
    return one is not None and bool(step) and one.saving > ((found.share if found else None) or 0.0) * (step or 0.0)


def rows(report: Report, width: int, whole: bool) -> Iterator[Text]:
    """The part of the report, in short or whole; nothing where nothing helps."""
    number = len(report.what_if) if whole else ROWS_IN_SHORT
    if not report.what_if:
        return
    step = figures.saving_step(report)
    unit, scale = ("us", 1e3) if step is not None and step < 1e6 else ("ms", 1e6)
    last = COLUMNS[3] if report.steps else ("of it", COLUMNS[3][1])
    columns = (*COLUMNS[:3], last) if width >= WIDE else (COLUMNS[0], last)
    room = width - sum(size for _, size in columns)
    heads = "".join(name.rjust(size) for name, size in columns)
    yield Text.assemble(
        (f"What would help, {unit} {figures.per(report)}".ljust(room), "bold"), (heads, "dim"), no_wrap=True
    )
    most = figures.todo(report)
    for one in report.what_if[:number]:
        known = figures.foretold(report, one)
        cells = {
            "saves": figures.fixed(one.saving / scale) if known else "-",
            "between": _ends(figures.fixed(one.low / scale), figures.fixed(one.high / scale)) if known else "-",
            "at most": figures.fixed(one.bound / scale),
            columns[-1][0]: figures.percent(one.saving / step if step and known else None),
        }
        text, *more = Text(f"if {one.name}", "bold" if one is most else "").wrap(Console(), room - 1)
        text.no_wrap = True
        text.pad_right(room - text.cell_len)
        yield text.append("".join(cells[name].rjust(size) for name, size in columns))
        yield from more
        said = Text(one.told + (f"  ({one.rule})" if one.rule else ""), "dim")
        if one.lines and whole:
            said.append("; ".join(["", ", ".join(place.shortly for place in one.lines[:3])]))
        yield from note(said, width)
    if (others := len(report.what_if) - number) > 0:
        yield Text(f"{MARGIN}and {others} more", "dim")
    if any(not one.bought for one in report.what_if):
        yield from note(APART, width)
    if report.uses is not None and any(one.saving > idle(report.uses) for one in report.what_if if not one.bought):
        yield from note(EXCEEDS, width)
    told = [one for one in report.what_if[:number] if figures.foretold(report, one)]
    if width >= WIDE and any(figures.fixed(one.low / scale).startswith("-") for one in told):
        yield from note(COSTS, width)
    if whole and report.bound is not None and (beyond := report.bound.beyond(report.busiest)):
        yield from note(f"at most: of waits, {beyond}", width)
    if whole and (loops := max(one.loops for one in report.what_if)):
        words = (
            f"between: of waits as the answer says; of all else so it was for four in five of {loops} loops, all on one GPU, "
            f"that were changed for real; {OTHERS}"
        )
        yield from note(words, width)
