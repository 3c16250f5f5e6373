"""Where the host waits, as rows for a terminal: an entry for each line, with its figures and its rewrite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from rich.text import Text

from syncscope.exporters import _figures as figures
from syncscope.exporters._rows import fitting, note
from syncscope.exporters._source_frame import line_of
from syncscope.model.answer import Decision
from syncscope.model.heat import Reason
from syncscope.model.report import Advice, Line, Price, Report

ROOM = 28  # columns for the place and the op; figures that leave less are not shown
MOST_LINES, IN_SHORT, ALWAYS = 30, 8, 3
MUCH, NOTHING = 0.05, 0.005  # shares of a step
LEAST_SEEN = 0.005  # of the unit: less is 0.00 in all columns
NO_LINE, BRIEFLY = "no line known", "no line"
LEAST = 12  # columns of a place, however long the op is
BELONGS = (
    "does it belong to the step? It waits where a step begins or ends, in the function that runs the profiler: if only whoever "
    "records waits there, what it saves is none of the loop's"
)
COSTS = "between: below 0, a step may be so much longer"
DECIDED = {Decision.FIX: "bold green", Decision.TRY: "bold yellow", Decision.LEAVE: "dim"}


class Figure(StrEnum):
    """What is said of each line, as its value at the head of a column."""

    SYNCS = "syncs"
    BLOCKED = "blocked"
    IDLE_AFTER = "idle after"
    ALONE = "alone"
    LAST = "last"
    SHARE = "share"
    OF_STEP = "of step"
    BETWEEN = "between"


Column = tuple[Figure, int, int]  # its width, and how soon it is left out where there is little room
MEASURED: tuple[Column, ...] = ((Figure.SYNCS, 6, 2), (Figure.BLOCKED, 9, 1), (Figure.IDLE_AFTER, 11, 3))
PRICED: tuple[Column, ...] = (
    (Figure.ALONE, 8, 4),
    (Figure.LAST, 8, 4),
    (Figure.SHARE, 8, 0),
    (Figure.OF_STEP, 9, 0),
    (Figure.BETWEEN, 13, 3),
)


def columns_of(report: Report, width: int) -> tuple[list[Column], list[Figure]]:
    """The columns that there is room for, and the names of those that a wider terminal would have, too."""
    priced = any(line.price for line in report.lines)
    wanted = [*(MEASURED[:1] if is_dry(report) else MEASURED), *(PRICED if priced else ())]
    if not any(line.answer and line.answer.low is not None for line in report.lines):
        wanted = [column for column in wanted if column[0] is not Figure.BETWEEN]
    kept = fitting(wanted, width - ROOM)
    return kept, [name for name, *_ in wanted if name not in {name for name, *_ in kept}]


def unit_of(step: float | None) -> tuple[str, float]:
    """In what times of lines are told, of a step so long, and how many ns that is."""
    return ("us", 1e3) if step is not None and step < 1e6 else ("ms", 1e6)


def is_dry(report: Report) -> bool:
    """Whether nothing but the CPU worked: the waits are known, and not what they cost."""
    return report.trace is not None and bool(report.trace.meta.get("dry"))


def shown(report: Report, whole: bool) -> int:
    """How many of the lines are shown: in short those that are worth a thought, and a few in any case."""
    if whole or is_dry(report):
        return min(MOST_LINES if whole else IN_SHORT, len(report.lines))
    step = figures.saving_step(report) or 0.0
    _, scale = unit_of(step or None)

    def worth(number: int, line: Line) -> bool:
        cost = line.price.share if line.price else line.idle_after
        seen = not number or max(cost, line.blocked, line.idle_after) >= LEAST_SEEN * scale
        return (seen and number < ALWAYS) or number in report.plan or cost >= NOTHING * step

    last = max((number for number, line in enumerate(report.lines) if worth(number, line)), default=-1)
    return min(IN_SHORT, last + 1)


def table(report: Report, width: int, whole: bool = True) -> Iterator[Text]:
    """An entry for each line: figures beside the place, below them the source and the rewrite."""
    columns, narrow = columns_of(report, width)
    room = width - sum(size for _, size, _ in columns)
    step = figures.saving_step(report)
    unit, scale = unit_of(step)
    drawn_figures = {figure for figure, _, _ in columns}
    title = f"Where the host waits, {unit} {figures.per(report)}"
    if Figure.BLOCKED not in drawn_figures and not narrow:
        title = f"Where the host would wait, {figures.per(report)}"
    over = "saved if fixed" if Figure.ALONE in drawn_figures else ""
    yield Text.assemble((title, "bold"), (over.rjust(width - len(title) - 1 - PRICED[-1][1]), "dim"), no_wrap=True)
    heads = ["of it" if f is Figure.OF_STEP and not report.steps else f.value for f, _, _ in columns]
    sizes = [size for _, size, _ in columns]
    named = "".join(name.rjust(size) for name, size in zip(heads, sizes, strict=True))
    yield Text(" " * room + named, "dim", no_wrap=True)
    if narrow:
        yield from note(f"no room for {', '.join(narrow)}: a wider terminal has them", width, "")
    margin = "      " if report.plan else "    "
    number = shown(report, whole)
    for index, line in enumerate(report.lines[:number]):
        cells = (
            _measured(report, line, scale) | _priced(line.price, step, scale) | {Figure.BETWEEN: between(line, step)}
        )
        drawn = [(cells[figure].rjust(size), figure in (Figure.SHARE, Figure.OF_STEP)) for figure, size, _ in columns]
        turn = f"{report.plan.index(index) + 1}. " if index in report.plan else "   " if report.plan else ""
        yield Text()
        yield (entry := head(line, line.price.share / step if line.price and step else None, turn, drawn, room))
        yield from _below(report, line, line.module in entry.plain, whole, width, margin)
    for group in (one for one in report.groups if one.kind == "caller"):
        lines = sum(str(line.caller) == group.name for line in report.lines)
        if lines > 1:
            cells = {
                Figure.SYNCS: figures.count(group.count),
                Figure.BLOCKED: figures.fixed(group.blocked / scale),
                **_priced(group.price, step, scale),
            }
            text = Text(f"{figures.shortened(group.name, room - 20)} leads to {lines} of them", "dim", no_wrap=True)
            text.pad_right(room - text.cell_len)
            yield Text()
            yield text.append("".join(cells.get(figure, "").rjust(size) for figure, size, _ in columns))
    if Figure.BETWEEN in drawn_figures and any(may_cost(line) for line in report.lines[:number]):
        yield Text()
        yield from note(COSTS, width, margin)
    if rest := report.lines[number:]:
        yield Text()
        yield Text(f"{margin}{more(rest, None if is_dry(report) else step, whole)}", "dim")


def _measured(report: Report, line: Line, scale: float) -> dict[Figure, str]:
    """What was measured of a line."""
    if not report.counts_hold:
        return dict.fromkeys((Figure.SYNCS, Figure.BLOCKED, Figure.IDLE_AFTER), "?")
    return {
        Figure.SYNCS: figures.count(line.count),
        Figure.BLOCKED: figures.fixed(line.blocked / scale),
        Figure.IDLE_AFTER: figures.fixed(line.idle_after / scale),
    }


def _priced(price: Price | None, step: float | None, scale: float) -> dict[Figure, str]:
    """What fixing a line, or all that a line leads to, saves."""
    if price is None:
        return dict.fromkeys((Figure.ALONE, Figure.LAST, Figure.SHARE, Figure.OF_STEP), "-")
    return {
        Figure.ALONE: figures.fixed(price.alone / scale),
        Figure.LAST: figures.fixed(price.last / scale),
        Figure.SHARE: figures.fixed(price.share / scale),
        Figure.OF_STEP: figures.percent(price.share / step if step else None),
    }


def _below(report: Report, line: Line, named: bool, whole: bool, width: int, margin: str) -> Iterator[Text]:
    """What stands below the figures of a line: its source, what led there, the rewrite and what to do."""

    def below(said: str) -> Text:
        return Text(f"{margin}{said}", "dim", no_wrap=True, overflow="ellipsis")

    if line.place and not line.function and (code := line_of(report.sources.get(line.place.path), line.place.line)):
        yield Text(f"{margin}{code}", no_wrap=True, overflow="ellipsis")
    if not line.place and not named:
        yield below(f"in {line.module}")
    if line.caller:
        yield below(f"called from {line.caller.shortly}")
    planned = any(report.lines[n] is line for n in report.plan)
    yield from note(about(line, planned and not report.only_together), width, margin)
    if line.of_recording:
        yield from note(Text(BELONGS, "yellow"), width, margin)
    if 0 < line.in_steps < report.steady:
        them = f"{figures.count(line.count * report.steady)} in {line.in_steps} of the {report.steady}"
        yield from note(f"not in every step: {them} that are counted, none in the others", width, margin)
    if line.why and line.advice is not None and (whole or line.advice is not Advice.LEAVE):
        style = "yellow" if line.advice in (Advice.LEAVE, Advice.TRY) else "green"
        yield from note(Text(f"{line.advice}: {line.why}", style), width, margin)


def more(rest: Sequence[Line], step: float | None, whole: bool) -> str:
    """What stands for the lines that are not shown."""
    costs = [line.price.share if line.price else line.idle_after for line in rest]
    said = f"and {len(rest)} more"
    if step and max(costs) < NOTHING * step:
        said += f", {'each' if len(rest) > 1 else 'which is'} below {NOTHING:.1%} of a step"
    return f"{said}: --format json has them all" if whole else said


def between(line: Line, step: float | None) -> str:
    """The interval of a line's share, in percent of a step. Its answer is of its rewrite, which may save less than the share of
    its waits."""
    return figures.interval(line.answer, line.price.share / step if step else None) if line.price else "-"


def may_cost(line: Line) -> bool:
    """Whether that interval begins below 0."""
    low = line.answer.low if line.price and line.answer else None
    return low is not None and round(100 * low) < 0


def head(line: Line, share: float | None, turn: str, cells: list[tuple[str, bool]], room: int) -> Text:
    """Its turn in the plan, the place, the op and the figures; what costs much stands out, what costs nothing recedes."""
    weight = "bold" if share is None else "dim" if share < NOTHING else "bold red" if share >= MUCH else "bold"
    place = line.place.shortly if line.place else f"in {line.module}" if line.module else ""
    most = room - len(turn) - min(len(place) or len(BRIEFLY), LEAST) - len("   ")
    op = f"  {line.op if len(line.op) <= most else f'{line.op[: max(1, most - 1)]}…'}"  # a longer one would cut the figures
    space = room - len(turn) - len(op) - 1
    unknown = NO_LINE if len(NO_LINE) <= space else BRIEFLY
    if line.place:
        place = figures.shortened(place, space)
    elif not place or len(place) > space:  # below it stands whole
        place = unknown
    text = Text.assemble((turn, "green"), (place, weight), (op, "cyan"), no_wrap=True)
    text.pad_right(room - text.cell_len)
    for cell, priced in cells:
        text.append(cell, weight if priced else "")
    return text


def about(line: Line, planned: bool = False) -> Text:
    """The rule that knows the line, and the rewrite it offers, else where it says what people write. One that is `planned`, and
    not worth it by itself, is so once those before it are gone."""
    text = Text()
    if line.answer is not None and line.answer.decision is not Decision.UNKNOWN:
        alone = planned and line.answer.decision is Decision.LEAVE
        word = f"{line.answer.decision}{' by itself: fix it once those above are gone' * alone}"
        text.append(f"{word}  ", DECIDED[line.answer.decision])
    if line.function:
        text.append(f"somewhere in {line.function}()  ")
    if line.fallback:
        text.append("no sync on CUDA: ocl has no such operator, and the CPU ran it", "yellow")
    elif line.rule:
        text.append(line.rule, "magenta")
    else:
        text.append("no rule knows this line", "dim")
    fix = line.finding.fix if line.finding else None
    if fix and line.advice is not Advice.LEAVE:
        text.append(f"  rewrite: {fix.title} ")
        text.append(f"({fix.standing})", {"safe": "green", "unsafe": "yellow"}.get(fix.safety.value, "dim"))
        if line.finding and line.finding.heat.reason is Reason.BEFORE:
            text.append(f", but {line.finding.heat.words}", "yellow")
    elif line.rule and not fix and line.advice is not Advice.LEAVE:
        text.append(f"  {'no rewrite fits: ' if line.finding else ''}syncscope explain {line.rule}", "dim")
    return text
