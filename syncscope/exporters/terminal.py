"""The report for a person at a terminal: what was recorded, where the host waits, what that costs, what to do."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from syncscope.exporters import _by_line, _footnotes, _tried, _waiting, _what_if
from syncscope.exporters import _figures as figures
from syncscope.exporters._narrow import Narrow
from syncscope.model.answer import Answer, Decision
from syncscope.model.memory import MemoryUse
from syncscope.model.report import Report
from syncscope.model.trace import StepLengths, Trace
from syncscope.model.uses import StepUses, Use

SUFFIX = ".txt"
TAKES = {"trace"}
WIDTH = 100
NOTHING = 0.005  # of a step
REST = 0.0005  # of a step, from which it is said how much goes to what is not worth a word
WIDE = 0.5  # of a step, between which what may be none or a loss is no figure to act on
APART = 0.05  # of a step: so far from the recorded one, what savings are parts of is always said
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


def export(report: Report) -> str:
    """The report as plain text, 100 columns wide."""
    console = Narrow(file=io.StringIO(), width=WIDTH, color_system=None, legacy_windows=False, force_jupyter=False)
    console.print(render(report, WIDTH, whole=True))
    assert isinstance(console.file, io.StringIO)
    return "".join(line.rstrip() + "\n" for line in console.file.getvalue().splitlines())


def render(report: Report, width: int = WIDTH, whole: bool = False) -> RenderableType:
    """The report as rich prints it on a terminal of that many columns: what matters, or the `whole` of it."""
    parts: list[RenderableType] = [Rule(Text(report.name or "syncscope", "bold"), align="left", style="dim")]
    parts.append(labelled(summary(report, width, whole)))
    if report.lines:
        parts += [Text(), *_waiting.table(report, width, whole)]
    elif report.steps or report.trace is not None:
        parts += [Text(), nowhere(report)]
    for rows in (
        _tried.rows(report.verified, width),
        _by_line.rows(report, width, whole),
        _what_if.rows(report, width, whole),
    ):
        if part := list(rows):
            parts += [Text(), *part]
    if report.further:
        parts += [Text(), Text(report.further)]
    parts += [Text(), *_footnotes.rows(report, width, whole)]
    return Group(*parts)


def nowhere(report: Report) -> Text:
    """What is said of a report without a line: all is well, or the recording cannot know."""
    if report.fidelity is None and report.lead and not report.refused:
        return Text(report.lead, "yellow")
    if report.coverage is not None and report.coverage.refusal:
        return Text("This recording cannot show where the host waits.", "yellow")  # why stands above
    return Text("The host waited for the device nowhere in this recording.", "green")


def summary(report: Report, width: int, whole: bool = True) -> Iterator[tuple[str, Text]]:
    """With labels: the answer, what to do first, what was recorded, the steps, how busy the device was, how far the replay
    can be trusted; in the order of the page, of Markdown and of the table of several recordings."""
    per = "step" if report.steps else "recording"
    of_waits = (found := report.answer) is not None and bool(report.lines)
    if found is not None and of_waits:
        yield "answer", answer(found, per)
        if said := narrowed(report):
            yield "", Text(said, "dim")
    elif not report.lines and report.fidelity is not None and not report.refused:
        left = str(Decision.LEAVE), _waiting.DECIDED[Decision.LEAVE]
        yield (
            "answer",
            Text.assemble(left, "  ", ("the host waits for its device nowhere: no wait is worth fixing", "bold")),
        )
    yield from zip((_what_if.word(report), ""), _what_if.first(report), strict=False)
    if report.of_a_job:
        yield "rank", Text(report.of_a_job, "yellow")
    if report.trace is not None:
        yield "recorded", Text(recorded(report.trace))
    if report.coverage is not None:
        there = report.coverage.briefly if of_waits else report.coverage.words  # the answer has the reason
        yield "trace", Text(there, "yellow" if report.coverage.refusal else "dim")
    yield from _of_steps(report, width, whole)
    if report.busy_by_device:
        yield "devices", Text(f"busy {by_device(report)} of the {'steps' if report.steps else 'recording'}")
    elif report.device_busy is not None:
        yield "device", _busy(report, report.device_busy, width)
    if report.bound is not None and report.bound.crowd and report.bound.step:
        alone = figures.percent(min(1.0, report.bound.device / report.bound.step))
        yield "", Text(f"{report.bound.crowd}: without them its own work is {alone} of a step", "dim")
    for held in report.memory:
        yield ("memory", Text.assemble(*_memory(held, len(report.memory) > 1)))
    if report.uses is not None:
        any_of_them = "one device or another: " if report.busy_by_device else ""
        yield "goes to", Text(any_of_them + ", ".join(goes_to(report.uses)))
        yield "", Text(report.uses.words, "dim")
    if report.fidelity is not None:
        yield "replay", _replay(report, report.fidelity)
    if whole and report.lean_step is not None and report.lean_saving is not None:
        spared = (
            f"a step takes {figures.time(report.lean_step)}, and without waits {figures.time(report.lean_saving)} less"
        )
        yield "lean", Text(f"without what recording itself costs, {spared}")


def _of_those_timed(bare: StepLengths) -> str:
    """In how many steps it is so, of how many that were timed."""
    if not (gone := bare.get("left_out", 0)):
        return f"{bare['steps']} steps"
    return f"{bare['steps']} of {bare['steps'] + gone} steps, without those that warmed up or were much longer"


def _of_steps(report: Report, width: int, whole: bool) -> Iterator[tuple[str, Text]]:
    """How long steps are: as recorded, without a recorder, and as they are replayed."""
    if report.steps:
        yield "steps", Text.assemble(*steps(report, width))
    elif report.trace is not None and report.uses is not None:
        told = "none is marked, so all figures are of the whole recording, from its first launch on"
        length = f": {figures.time(report.saving_step)}" if report.saving_step is not None else ""
        yield "steps", Text(told + length, "yellow")
    recorded_step = figures.measured_step(report) or 0.0
    bare = report.trace.meta.get("untraced") if report.trace is not None else None
    if bare and (whole or abs(bare["median_ns"] - recorded_step) > APART * recorded_step):
        low, high = figures.time(bare["low_ns"]), figures.time(bare["high_ns"])
        median = figures.time(bare["median_ns"])
        took = f"a step took {median} in the median ({low} to {high} in {_of_those_timed(bare)})"
        busier = bare["median_ns"] > recorded_step
        why = "when the machine was slower" if busier else "which is the program's own step"
        yield "untraced", Text(f"{took}, not recorded, at another time, {why}")
    another = abs((report.saving_step or 0.0) - recorded_step) > APART * recorded_step
    if report.saving_step is not None and (whole or (another and report.steps)):
        yield "savings", Text(savings_are_of(report))


def _busy(report: Report, share: float, width: int) -> Text:
    """How much of the time the device worked, as a bar, too."""
    busy = min(max(share, 0.0), 1.0)
    room = max(8, min(32, width - 36))
    cells = round(busy * room)
    of = f" of the {'steps' if report.steps else 'recording'}   "
    bar = ("█" * cells, "green"), ("░" * (room - cells), "bright_black")
    return Text.assemble("busy ", (figures.percent(busy), "bold"), of, *bar)


def _replay(report: Report, error: float) -> Text:
    """How far a replay can be trusted."""
    off = figures.percent(error) if error >= 0.0001 else "0.01 %"
    text = f"error within {off} of the recording"
    if (report.unexplained or 0.0) >= 0.0001:
        text += f", {figures.percent(report.unexplained)} late for no recorded reason"
    if (report.silent or 0.0) >= 0.0001:
        text += f", {figures.percent(report.silent)} waited for in no recorded call"
    return Text(text) if report.replay_holds else Text(f"{text}: too far to say what a line saves", "yellow")


def goes_to(uses: StepUses) -> Iterator[str]:
    """The parts of a step that are worth a word, and how much the others are together."""
    left = 1.0
    for name, time in (
        *((SHORTLY[one.use], one.time - uses.earlier * (one.use is Use.UNEXPLAINED)) for one in uses.spent),
        ("work from before the recording", uses.earlier),
    ):
        share = time / uses.step if uses.step else 0.0
        if share >= NOTHING:
            left -= share
            yield f"{name} {figures.percent(share)}"
    if figures.percent(left) != figures.percent(0.0) and left >= REST:
        yield f"all else {figures.percent(left)}"


def by_device(report: Report) -> str:
    """How much of the steps each of several devices worked, and any of them."""
    each = ", ".join(f"{figures.percent(share)} (device {number})" for number, share in report.busy_by_device)
    return f"{each}; one or another {figures.percent(report.device_busy or 0.0)}"


def answer(found: Answer, per: str) -> Text:
    """The word, and in one short sentence what a step is shorter without waits; why, where there is no figure."""
    text = Text.assemble((str(found.decision), _waiting.DECIDED.get(found.decision, "bold")), "  ")
    if found.tried:
        return text.append(f"measured: with the rewrites that stay a {per} is {found.likely('shorter')}", "bold")
    if found.share is not None:
        along = " and what goes with them" if found.along else ""
        return text.append(f"without waits{along} a {per} is likely {found.likely('shorter')}", "bold")
    if found.bound is not None:
        text.append(f"at most {figures.percent(found.bound)}: ")
    return text.append(found.why, "dim")


def narrowed(report: Report, bounded: bool = True) -> str:
    """What narrows the sentence: that no line is worth it alone, what is open besides the interval, what goes along, what that
    rests on, how far the replay is off, what no fix can pass, if that is not said beside it, and who else was at work. "" of an
    answer without a figure, which says all."""
    found, crowd = report.answer, report.bound.crowd if report.bound is not None else ""
    if found is None or found.share is None or found.tried:
        return ""
    together = "all together, for no line is worth it alone" if report.only_together else ""
    along = f"with waits go {found.along}" if found.along else ""
    part = f"{figures.percent(report.left_open)} of a {'step' if report.steps else 'recording'}"
    off = "" if report.replay_holds else f"a replay gets {part} wrong or cannot explain it"
    noise = ", and ".join(filter(None, (crowd, off)))
    again = ": record again while they do not" * bool(crowd)
    rough = f"{noise}, so the range is wide{again}" if noise else ""
    if found.low is not None and found.high is not None and found.low <= 0 and found.high - found.low > WIDE:
        why = f"{noise}, so the range is" if noise else "the range is"
        return f"{why} too wide to act on{again}; go by the syncs, which are counted all the same{_counted(report)}"
    bound = f"at most {figures.percent(found.bound)}" if found.bound is not None and bounded else ""
    return "; ".join(filter(None, (together, found.doubt, along, found.source, bound, rough)))


def _counted(report: Report) -> str:
    """How many syncs a step has, and which line has the most."""
    most = max((line for line in report.lines if not line.fallback), key=lambda line: line.count, default=None)
    if most is None or not report.steps:
        return ""
    where = most.place.shortly if most.place else f"`{most.op}`"
    return f": {report.syncs:.3g} a step, most at {where} ({most.count:.3g})"


def steps(report: Report, width: int) -> Iterator[str | tuple[str, str]]:
    """How many steps, how long those that are counted took on the mean, and the shortest and the longest of the same."""
    times = figures.durations(report)
    yield f"{len(times)} of "
    yield figures.time(report.step or 0), "bold"
    if len(report.steps) == 1:
        yield f"   step {report.steps[0].index}, the only one", "dim"
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
        trace, unmarked = report.trace, "no step is marked in it"
        if trace is not None and len(trace) and trace.end.max() - trace.start.min() > (1 + APART) * replayed:
            return f"are of {figures.time(replayed)} of the recording, from its first launch on: {unmarked}"
        return f"are of the whole recording, {figures.time(replayed)}: {unmarked}"
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
    grid.add_column(overflow="fold")
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
