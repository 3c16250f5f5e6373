"""The report for a person at a terminal: what was recorded, where the host waits, what that costs, what to do."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from syncscope.exporters import _by_line, _tried, _what_if
from syncscope.exporters import _figures as figures
from syncscope.exporters._source_frame import line_of
from syncscope.model.answer import Answer, Decision
from syncscope.model.memory import MemoryUse
from syncscope.model.report import Advice, Line, Report
from syncscope.model.trace import Trace
from syncscope.model.uses import Use

SUFFIX = ".txt"
TAKES = {"trace"}
WIDTH = 100
ROOM = 28  # columns for the place and the op; figures that leave less are not shown
MOST_LINES = 30
MUCH, NOTHING = 0.05, 0.005  # shares of a step
NO_LINE = "no line known"
FEW = 4  # steps, from which the first and the last are not counted
LABEL = 9  # width of the labels at the left of the summary

SHORTLY = {
    Use.COMPUTE: "computing",
    Use.COPY: "copies",
    Use.COLLECTIVE: "other ranks",
    Use.WAIT: "idle after waits",
    Use.LOADER: "idle in the loader",
    Use.LAUNCH: "idle in launches",
    Use.HOST: "idle in other work of the host",
    Use.QUEUE: "idle between kernels",
    Use.UNEXPLAINED: "idle unexplained",
}

DECIDED = {Decision.FIX: "bold green", Decision.TRY: "bold yellow", Decision.LEAVE: "dim"}

# heading, width, and how soon it is left out where there is little room
MEASURED = (("syncs", 6, 2), ("blocked", 9, 1), ("idle after", 11, 3))
PRICED = (("alone", 8, 4), ("last", 8, 4), ("share", 8, 0), ("of step", 9, 0), ("between", 13, 3))


def export(report: Report) -> str:
    """The report as plain text, 100 columns wide."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, legacy_windows=False)
    console.print(render(report, WIDTH))
    assert isinstance(console.file, io.StringIO)
    return "".join(line.rstrip() + "\n" for line in console.file.getvalue().splitlines())


def render(report: Report, width: int = WIDTH) -> RenderableType:
    """The report as rich prints it on a terminal of that many columns."""
    parts: list[RenderableType] = [Rule(Text(report.name or "syncscope", "bold"), align="left", style="dim")]
    parts.append(labelled(summary(report, width)))
    if report.lines:
        parts += [Text(), *table(report, width)]
    elif report.steps or report.trace is not None:
        parts += [Text(), nowhere(report)]
    if tried := list(_tried.rows(report.verified, width)):
        parts += [Text(), *tried]
    if by_line := list(_by_line.rows(report, width)):
        parts += [Text(), *by_line]
    if what_if := list(_what_if.rows(report, width)):
        parts += [Text(), *what_if]
    if report.verdict:
        parts += [Text(), Text(report.verdict, "bold")]
    parts += [Text(), *footnotes(report)]
    return Group(*parts)


def nowhere(report: Report) -> Text:
    """What is said of a report without a line: all is well, or the recording cannot know."""
    if report.coverage is not None and report.coverage.refusal:
        return Text(f"This recording cannot show where the host waits: {report.coverage.refusal}.", "yellow")
    return Text("The host waited for the device nowhere in this recording.", "green")


def summary(report: Report, width: int) -> Iterator[tuple[str, Text]]:
    """The answer, what was recorded, the steps, how busy the device was, how far the replay can be trusted; with labels."""
    if report.answer is not None and report.lines:
        yield "answer", answer(report.answer, "step" if report.steps else "recording")
    if (first := _what_if.first(report)) is not None:
        yield "do first", first
    if report.trace is not None:
        yield "recorded", Text(recorded(report.trace))
    if report.coverage is not None:
        yield "trace", Text(report.coverage.words, "yellow" if report.coverage.refusal else "dim")
    if report.steps:
        yield "steps", Text.assemble(*steps(report, width))
    elif report.trace is not None and report.uses is not None:
        told = (
            "none is marked, so all figures are of the whole recording: end each with `prof.step()` or `trace.step()`"
        )
        yield "steps", Text(told, "yellow")
    if report.trace is not None and (bare := report.trace.meta.get("untraced")):
        low, high = figures.time(bare["low_ns"]), figures.time(bare["high_ns"])
        median = figures.time(bare["median_ns"])
        yield "untraced", Text(f"a step took {median} in the median ({low} to {high} in {bare['steps']} steps)")
    if report.saving_step is not None:
        yield "savings", Text(savings_are_of(report))
    if report.device_busy is not None:
        busy = min(max(report.device_busy, 0.0), 1.0)
        room = max(8, min(32, width - 36))
        cells = round(busy * room)
        bar = Text.assemble(("█" * cells, "green"), ("░" * (room - cells), "bright_black"))
        yield (
            "device",
            Text.assemble(
                "busy ", (figures.percent(busy), "bold"), f" of the {'steps' if report.steps else 'recording'}   ", bar
            ),
        )
    for held in report.memory:
        yield ("memory", Text.assemble(*_memory(held, len(report.memory) > 1)))
    if report.uses is not None:
        shares = [(one.use, one.time / report.uses.step) for one in report.uses.spent if report.uses.step]
        shown = [f"{SHORTLY[use]} {figures.percent(share)}" for use, share in shares if share >= NOTHING]
        yield "goes to", Text(", ".join(shown))
        yield "", Text(report.uses.words, "dim")
    if report.fidelity is not None:
        unexplained = report.unexplained or 0.0
        silent = report.silent or 0.0
        good = max(report.fidelity, unexplained, silent) <= 0.05
        off = figures.percent(report.fidelity) if report.fidelity >= 0.0001 else "0.01 %"
        text = f"error within {off} of the recording"
        if unexplained >= 0.0001:
            text += f", {figures.percent(unexplained)} unexplained"
        if silent >= 0.0001:
            text += f", {figures.percent(silent)} waited for in no recorded call"
        yield "replay", Text(text if good else text + ": too far to say what a line saves", "" if good else "yellow")
    if report.lean_step is not None and report.lean_saving is not None:
        spared = (
            f"a step takes {figures.time(report.lean_step)}, and without waits {figures.time(report.lean_saving)} less"
        )
        yield "lean", Text(f"without what recording itself costs, {spared}")


def answer(found: Answer, per: str) -> Text:
    """The word, what a step is shorter without waits, and what no fix can pass; why, where there is no figure."""
    text = Text.assemble((str(found.decision), DECIDED.get(found.decision, "bold")), "  ")
    if found.share is not None:
        along = f", and with {found.along}," if found.along else ""
        text.append(f"without waits{along} a {per} is likely {found.figure} shorter", "bold")
    if found.bound is not None:
        text.append(f"{', ' if found.share is not None else ''}at most {figures.percent(found.bound)}")
    return text if found.share is not None else text.append(f": {found.why}", "dim")


def steps(report: Report, width: int) -> Iterator[str | tuple[str, str]]:
    """How many steps, how long those that are counted took on the mean, and the shortest and the longest of the same."""
    times = figures.durations(report)
    yield f"{len(times)} of "
    yield figures.time(report.step or 0), "bold"
    if report.step_range and len(times) > 1:
        low, high = map(figures.time, report.step_range)
        yield f"   shortest {low}, longest {high}"
    if bars := sparkline(times, max(8, width - 72)):
        yield f"   {bars}", "cyan"
    if said := figures.counted(report):
        yield f"   {said}", "dim"


def savings_are_of(report: Report) -> str:
    """Which length savings are parts of, and why it is another than that of the recorded steps, where it is."""
    replayed, recorded = report.saving_step or 0.0, figures.measured_step(report) or 0.0
    if not report.steps:
        return f"are of the whole recording, {figures.time(replayed)}: no step is marked in it"
    said = f"are of a step of {figures.time(replayed)}, as a replay gives it"
    if abs(replayed - recorded) <= NOTHING * recorded:
        return said
    if len(report.steps) < FEW:
        return f"{said}: with fewer than {FEW} steps, the whole recording divided by their number"
    return f"{said} without what the recorder took" if replayed < recorded else said


def _memory(found: MemoryUse, several: bool) -> Iterator[str | tuple[str, str]]:
    """The high-water mark of a device, when that was, and whose lines hold the most of it."""
    yield f"device {found.device}: " if several else ""
    yield "" if found.exact else "at least "
    yield figures.size(found.peak), "bold"
    yield " at the most"
    yield f", in step {found.step}" if found.step >= 0 else ""
    yield f", reached by {found.made_by.name}" if found.made_by.bytes else ", when the recording began"
    most = next((one for one in found.held if one.count), None)
    if most is not None:
        yield f"; {figures.size(most.bytes)} of it {'are' if most.count > 1 else 'is'} from {most.name}"


def labelled(rows: Iterable[tuple[str, Text]]) -> Table:
    """The lines of the summary; a long one goes on below itself."""
    grid = Table.grid()
    grid.add_column(style="dim", width=LABEL, no_wrap=True)
    grid.add_column()
    for row in rows:
        grid.add_row(*row)
    return grid


def recorded(trace: Trace) -> str:
    """The devices by name, the rank, the number of events and the time they span."""
    devices = [
        str(device.get("name") or f"device {device.get('id', '')}".rstrip()) for device in figures.devices(trace)
    ]
    parts = [name if (n := devices.count(name)) == 1 else f"{n} x {name}" for name in dict.fromkeys(devices)]
    if trace.meta.get("world_size", 1) not in (None, 0, 1):
        parts.append(f"rank {trace.meta.get('rank')} of {trace.meta['world_size']}")
    parts.append(f"{len(trace):,} events")
    if len(trace):
        parts.append(figures.time(int(trace.end.max() - trace.start.min())))
    return " · ".join(parts)


def sparkline(values: list[int], width: int) -> str:
    """A bar for each value, from nothing to the largest or twice the median; empty where they do not fit."""
    if len(values) > width or len(values) < 2:
        return ""
    top = min(max(values), 2 * sorted(values)[len(values) // 2]) or 1  # a first step that compiles dwarfs the others
    return "".join("▁▂▃▄▅▆▇█"[min(7, int(8 * value / top))] for value in values)


def table(report: Report, width: int) -> Iterator[Text]:
    """An entry for each line: figures beside the place, below them the source and the rewrite."""
    priced = any(line.price for line in report.lines)
    columns = fitting(MEASURED + (PRICED if priced else ()), width - ROOM)
    if not any(line.answer and line.answer.low is not None for line in report.lines):
        columns = [column for column in columns if column[0] != "between"]
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
    margin = "      " if report.plan else "    "
    for index, line in enumerate(report.lines[:MOST_LINES]):
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
        shown = [(cells[name].rjust(size), name in ("share", "of step")) for name, size, _ in columns]
        yield head(line, share, turn, shown, room)
        if line.place and not line.function and (code := line_of(report.sources.get(line.place.path), line.place.line)):
            yield Text(f"{margin}{code}", no_wrap=True, overflow="ellipsis")
        if line.caller:
            yield Text(f"{margin}called from {line.caller.shortly}", "dim", no_wrap=True, overflow="ellipsis")
        yield Text.assemble(margin, about(line), no_wrap=True, overflow="ellipsis")
        if line.why and line.advice is not None:
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
    if (more := len(report.lines) - MOST_LINES) > 0:
        yield Text(f"\n  and {more} more: --format json has them all", "dim")


def between(line: Line) -> str:
    """The interval of a line's share, in percent of a step."""
    found = line.answer
    if line.price is None or found is None or found.low is None or found.high is None:
        return "-"
    return f"{100 * found.low:.0f} to {100 * found.high:.0f} %".replace("-0 ", "0 ")


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
    """The rule that knows the line, and the rewrite it offers."""
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
    return text


def _on_processor(report: Report) -> bool:
    """Whether the device was a processor, on which an upload waits for nothing."""
    devices = figures.devices(report.trace) if report.trace is not None else []
    return any(one.get("processor") for one in devices)


def footnotes(report: Report) -> Iterator[RenderableType]:
    """How the figures are to be read, the findings that never ran, and what was lost."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(style="dim")
    whole = "a step" if report.steps else "the recording"
    if report.plan:
        grid.add_row("1. 2. ...", "the order in which to fix them, for most of what can be had")
    if report.lines:
        grid.add_row("blocked", "how long the call held the host: neither what it costs nor what fixing it saves")
        grid.add_row("idle after", "how long the device had nothing to do because the host had waited there")
    if any(line.price for line in report.lines):
        grid.add_row(
            "alone, last",
            f"{whole} is that much shorter if only this line is fixed; if it is fixed after all others",
        )
        grid.add_row("share", "its fair part of what fixing all of them saves (Shapley)")
    if any(line.price and line.answer and line.answer.low is not None for line in report.lines):
        grid.add_row("between", f"what of {whole} the share lies between in four of five recordings like this one")
    if report.lean_step is not None and report.lean_saving is not None:
        grid.add_row(
            "lean", "the replay without the host's time for noting events: what a step takes without the recorder"
        )
    if any(line.answer for line in report.lines):
        grid.add_row("fix, try, leave", "worth it; measure it with `syncscope verify`; not worth it")
    if report.lines and not any(line.place for line in report.lines):
        grid.add_row(
            "no line known", "`syncscope run` records lines; torch.profiler, with `with_stack=True`, functions"
        )
    unknown = sum(not line.rule and not line.fallback for line in report.lines)
    if unknown and report.findings:
        grid.add_row("no rule", f"{unknown} of {len(report.lines)} lines wait in a way that the linter does not know")
    cold = figures.unseen(report)
    if cold:
        named = [Text(f"{finding.place}  {finding.rule}", no_wrap=True, overflow="ellipsis") for finding in cold[:6]]
        rest = [Text(f"and {len(cold) - 6} more")] if len(cold) > 6 else []
        others = "; on CUDA they may" if _on_processor(report) else ""
        head = Text(f"{len(cold)} of {len(report.findings)} findings of the linter did not wait here{others}:")
        grid.add_row("not seen", Group(head, *named, *rest))
    for note in report.notes:
        grid.add_row(Text("note", "yellow"), Text(note))
    yield grid
