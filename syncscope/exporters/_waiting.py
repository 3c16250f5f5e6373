"""Where the host waits, as rows for a terminal: an entry for each line, with its figures and its rewrite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from syncscope.exporters import _figures as figures
from syncscope.exporters._source_frame import line_of
from syncscope.model.answer import Decision
from syncscope.model.report import Advice, Line, Report

ROOM = 28  # columns for the place and the op; figures that leave less are not shown
MOST_LINES, IN_SHORT, ALWAYS = 30, 8, 3
MUCH, NOTHING = 0.05, 0.005  # shares of a step
NO_LINE = "no line known"
COSTS = "between: below 0, to fix it may cost a step as much"
DECIDED = {Decision.FIX: "bold green", Decision.TRY: "bold yellow", Decision.LEAVE: "dim"}

# heading, width, and how soon it is left out where there is little room
MEASURED = (("syncs", 6, 2), ("blocked", 9, 1), ("idle after", 11, 3))
PRICED = (("alone", 8, 4), ("last", 8, 4), ("share", 8, 0), ("of step", 9, 0), ("between", 13, 3))


def columns_of(report: Report, width: int) -> tuple[list[tuple[str, int, int]], list[str]]:
    """The columns that there is room for, and the names of those that a wider terminal would have, too."""
    priced = any(line.price for line in report.lines)
    wanted = [*MEASURED, *(PRICED if priced else ())]
    if not any(line.answer and line.answer.low is not None for line in report.lines):
        wanted = [column for column in wanted if column[0] != "between"]
    kept = fitting(wanted, width - ROOM)
    return kept, [name for name, *_ in wanted if name not in {name for name, *_ in kept}]


def shown(report: Report, whole: bool) -> int:
    """How many of the lines are shown: in short those that are worth a thought, and a few in any case."""
    if whole:
        return min(MOST_LINES, len(report.lines))
    step = figures.saving_step(report) or 0.0

    def worth(number: int, line: Line) -> bool:
        cost = line.price.share if line.price else line.idle_after
        return number < ALWAYS or number in report.plan or cost >= NOTHING * step

    last = max((number for number, line in enumerate(report.lines) if worth(number, line)), default=-1)
    return min(IN_SHORT, last + 1)


def table(report: Report, width: int, whole: bool = True) -> Iterator[Text]:
    """An entry for each line: figures beside the place, below them the source and the rewrite."""
    columns, narrow = columns_of(report, width)
    room = width - sum(size for _, size, _ in columns)
    step = figures.saving_step(report)
    unit, scale = ("us", 1e3) if step is not None and step < 1e6 else ("ms", 1e6)
    title = f"Where the host waits, {unit} {figures.per(report)}"
    over = "saved if fixed" if "alone" in [name for name, _, _ in columns] else ""
    yield Text.assemble((title, "bold"), (over.rjust(width - len(title) - 1 - PRICED[-1][1]), "dim"), no_wrap=True)
    heads = [name if report.steps else name.replace("of step", "of it") for name, _, _ in columns]
    sizes = [size for _, size, _ in columns]
    named = "".join(name.rjust(size) for name, size in zip(heads, sizes, strict=True))
    yield Text(" " * room + named, "dim", no_wrap=True)
    if narrow:
        yield Text(
            f"no room for {', '.join(narrow)}: a wider terminal has them", "dim", no_wrap=True, overflow="ellipsis"
        )
    margin = "      " if report.plan else "    "
    number = shown(report, whole)
    for index, line in enumerate(report.lines[:number]):
        turn = f"{report.plan.index(index) + 1}. " if index in report.plan else "   " if report.plan else ""
        share = line.price.share / step if line.price and step else None
        cells = {
            "syncs": figures.count(line.count),
            "blocked": figures.fixed(line.blocked / scale),
            "idle after": figures.fixed(line.idle_after / scale),
            "alone": figures.fixed(line.price.alone / scale) if line.price else "-",
            "last": figures.fixed(line.price.last / scale) if line.price else "-",
            "share": figures.fixed(line.price.share / scale) if line.price else "-",
            "between": between(line),
            "of step": figures.percent(share),
        }
        yield Text()
        drawn = [(cells[name].rjust(size), name in ("share", "of step")) for name, size, _ in columns]
        yield head(line, share, turn, drawn, room)
        if line.place and not line.function and (code := line_of(report.sources.get(line.place.path), line.place.line)):
            yield Text(f"{margin}{code}", no_wrap=True, overflow="ellipsis")
        if line.caller:
            yield Text(f"{margin}called from {line.caller.shortly}", "dim", no_wrap=True, overflow="ellipsis")
        yield from (Text.assemble(margin, part) for part in about(line).wrap(Console(), width - len(margin)))
        if line.why and line.advice is not None and (whole or line.advice is not Advice.LEAVE):
            said = Text(
                f"{line.advice}: {line.why}", "yellow" if line.advice in (Advice.LEAVE, Advice.TRY) else "green"
            )
            yield from (Text.assemble(margin, part) for part in said.wrap(Console(), width - len(margin)))
    for group in (one for one in report.groups if one.kind == "caller"):
        lines = sum(str(line.caller) == group.name for line in report.lines)
        if lines > 1:
            cells = {
                "syncs": figures.count(group.count),
                "blocked": figures.fixed(group.blocked / scale),
                "alone": figures.fixed(group.price.alone / scale),
                "last": figures.fixed(group.price.last / scale),
                "share": figures.fixed(group.price.share / scale),
                "of step": figures.percent(group.price.share / step if step else None),
            }
            text = Text(f"{figures.shortened(group.name, room - 20)} leads to {lines} of them", "dim", no_wrap=True)
            text.pad_right(room - text.cell_len)
            yield Text()
            yield text.append("".join(cells.get(name, "").rjust(size) for name, size, _ in columns))
    if "between" in [name for name, _, _ in columns] and any(may_cost(line) for line in report.lines[:number]):
        yield Text()
        yield from (Text.assemble(margin, part) for part in Text(COSTS, "dim").wrap(Console(), width - len(margin)))
    if rest := report.lines[number:]:
        yield Text()
        yield Text(f"{margin}{more(rest, step, whole)}", "dim")


def more(rest: Sequence[Line], step: float | None, whole: bool) -> str:
    """What stands for the lines that are not shown."""
    costs = [line.price.share if line.price else line.idle_after for line in rest]
    said = f"and {len(rest)} more"
    if step and max(costs) < NOTHING * step:
        said += f", {'each' if len(rest) > 1 else 'which is'} below {NOTHING:.1%} of a step"
    return f"{said}: --format json has them all" if whole else said


def between(line: Line) -> str:
    """The interval of a line's share, in percent of a step."""
    found = line.answer
    if line.price is None or found is None or found.low is None or found.high is None:
        return "-"
    return f"{100 * found.low:.0f} to {100 * found.high:.0f} %".replace("-0 ", "0 ")


def may_cost(line: Line) -> bool:
    """Whether that interval begins below 0."""
    return between(line).startswith("-") and between(line) != "-"


def fitting(columns: Sequence[tuple[str, int, int]], width: int) -> list[tuple[str, int, int]]:
    """The columns that fit, the least important left out first."""
    kept = list(columns)
    for rank in (4, 3, 2, 1):
        if sum(size for _, size, _ in kept) > width:
            kept = [column for column in kept if column[2] != rank]
    return kept


def head(line: Line, share: float | None, turn: str, cells: list[tuple[str, bool]], room: int) -> Text:
    """Its turn in the plan, the place, the op and the figures; what costs much stands out, what costs nothing recedes."""
    weight = "bold" if share is None else "dim" if share < NOTHING else "bold red" if share >= MUCH else "bold"
    op = f"  {line.op}"
    place = line.place.shortly if line.place else f"in {line.module}" if line.module else NO_LINE
    space = room - len(turn) - len(op) - 1
    place = "no line" if place == NO_LINE and len(place) > space else figures.shortened(place, space)
    text = Text.assemble((turn, "green"), (place, weight), (op, "cyan"), no_wrap=True)
    text.pad_right(room - text.cell_len)
    for cell, priced in cells:
        text.append(cell, weight if priced else "")
    return text


def about(line: Line) -> Text:
    """The rule that knows the line, and the rewrite it offers, else where it says what people write."""
    text = Text()
    if line.answer is not None and line.answer.decision is not Decision.UNKNOWN:
        text.append(f"{line.answer.decision}  ", DECIDED[line.answer.decision])
    if line.function:
        text.append(f"somewhere in {line.function}()  ")
    if line.fallback:
        text.append("the device has no such operator: the CPU ran it", "yellow")
    elif line.rule:
        text.append(line.rule, "magenta")
    else:
        text.append("no rule knows this line", "dim")
    fix = line.finding.fix if line.finding else None
    if fix and line.advice is not Advice.LEAVE:
        text.append(f"  rewrite: {fix.title} ")
        text.append(f"({fix.safety.value})", {"safe": "green", "unsafe": "yellow"}.get(fix.safety.value, "dim"))
    elif line.rule and not fix and line.advice is not Advice.LEAVE:
        text.append(f"  {'by hand: ' if line.finding else ''}syncscope explain {line.rule}", "dim")
    return text
