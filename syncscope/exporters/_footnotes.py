"""How the figures of a report are to be read, the findings that never ran, and what was lost: its last part on a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from syncscope.exporters import _figures as figures
from syncscope.exporters._waiting import Figure, columns_of
from syncscope.model.answer import Decision
from syncscope.model.commands import shows_fixes
from syncscope.model.report import Report

NOTES_IN_SHORT = 2
NAMED, NAMED_IN_SHORT = 6, 3  # findings that did not wait
MORE = "`syncscope report --all` has every line and note, and what each figure means; `-o report.html` is the page"


def _on_processor(report: Report) -> bool:
    """Whether the device was a processor, on which an upload waits for nothing."""
    devices = figures.devices(report.trace) if report.trace is not None else []
    return any(one.get("processor") for one in devices)


def rows(report: Report, width: int, whole: bool = True) -> Iterator[RenderableType]:
    """How the figures are to be read, the findings that never ran, and what was lost; in short, where to read of it."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(style="dim", overflow="fold")
    if whole:
        for name, meaning in legend(report, width):
            grid.add_row(name, meaning)
    if report.lines and not any(line.place for line in report.lines):
        grid.add_row(
            "no line known", "`syncscope run` records lines; torch.profiler, with `with_stack=True`, functions"
        )
    unknown = sum(not line.rule and not line.fallback for line in report.lines)
    if whole and unknown and report.findings:
        grid.add_row("no rule", f"{unknown} of {len(report.lines)} lines wait in a way that the linter does not know")
    if said := fixes(report):
        grid.add_row("fixes", said)
    if cold := figures.unseen(report):
        named = [Text(f"{one.place}  {one.rule}", no_wrap=True, overflow="ellipsis") for one in cold[: NAMED * whole]]
        rest = [Text(f"and {len(cold) - NAMED} more")] if whole and len(cold) > NAMED else []
        head = f"{len(cold)} finding{'s' * (len(cold) > 1)} in code of each step did not wait here"
        if not whole:
            places = list(dict.fromkeys(one.place.shortly for one in cold))
            more = f" and {len(places) - NAMED_IN_SHORT} more" if len(places) > NAMED_IN_SHORT else ""
            head += f" ({', '.join(places[:NAMED_IN_SHORT])}{more})"
        if _on_processor(report):
            head += f"; on CUDA {'they' if len(cold) > 1 else 'it'} may"
        if elsewhere := figures.unseen_elsewhere(report):
            head += f"; nor did {elsewhere} in other code"
        grid.add_row("not seen", Group(Text(f"{head}:" if named else head), *named, *rest))
    unknown_why = report.answer is not None and report.answer.decision is Decision.UNKNOWN  # one of the notes says it
    notes = report.notes if whole or unknown_why else report.notes[:NOTES_IN_SHORT]
    for note in notes:
        grid.add_row(Text("note", "yellow"), Text(note))
    if not whole:
        grid.add_row("more", Text(MORE))
    yield grid


def fixes(report: Report) -> str:
    """The commands that show and make the rewrites of these lines: by default `lint` leaves out what waits beside another
    wait, and a recording may show that just that is dear. "" where no line of a file has a rewrite."""
    fixable = (line.place.path for line in report.lines if line.place and line.finding and line.finding.fix)
    paths = [path for path in dict.fromkeys(fixable) if path.endswith((".py", ".ipynb"))]
    files = " ".join(map(shlex.quote, paths))
    if not files:
        return ""
    file = report.uses is not None and report.name.endswith((".json", ".json.gz")) and "://" not in report.name
    by = f"--trace {shlex.quote(report.name)}" if file else "--all"
    return f"{shows_fixes(paths, by)} shows what they change, `syncscope lint -i --all {files}` makes those you choose"


def legend(report: Report, width: int) -> Iterator[tuple[str, str]]:
    """What each figure means that is shown."""
    drawn = {figure for figure, *_ in columns_of(report, width)[0]} if report.lines else set()
    whole = "a step" if report.steps else "the recording"
    if report.plan:
        yield "1. 2. ...", "the order in which to fix them, for most of what can be had"
    if Figure.BLOCKED in drawn:
        yield "blocked", "how long the call held the host: neither what it costs nor what fixing it saves"
    if Figure.IDLE_AFTER in drawn:
        yield "idle after", "how long the device had nothing to do because the host had waited there"
    if Figure.ALONE in drawn:
        yield "alone, last", f"{whole} is that much shorter if only this line is fixed; if it is fixed after all others"
    if Figure.SHARE in drawn:
        yield "share", "its fair part of what fixing all of them saves (Shapley)"
    if Figure.BETWEEN in drawn:
        yield "between", f"what of {whole} the share lies between in four of five recordings like this one"
    if report.lean_step is not None and report.lean_saving is not None:
        yield "lean", "the replay without the host's time for noting events: what a step takes without the recorder"
    if any(line.answer for line in report.lines):
        yield "fix, try, leave", "worth it; measure it with `syncscope verify`; not worth it"
