"""The report in short as Markdown: for a pull request, a chat, or the summary of a job on GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscope.exporters import _figures as figures
from syncscope.exporters import _waiting, _what_if, terminal
from syncscope.model.answer import between
from syncscope.model.report import Line, Report
from syncscope.model.what_if import WhatIf

SUFFIX = ".md"
TAKES = {"trace"}
JOINS = True
MOST_LINES = 10
MOST_IFS = 3
STEERS = re.compile(r"[\\<>|\[\]*_#@~]")  # what would be more than text, outside of code


def export(report: Report) -> str:
    """The answer, the figures it rests on, the lines that wait, what would help, and how far it can be trusted."""
    return "\n\n".join(parts(report)) + "\n"


def parts(report: Report) -> Iterator[str]:
    """Paragraphs and tables."""
    yield f"### syncscope: {plain(report.name or 'a recording')}"
    per = "step" if report.steps else "recording"
    if report.answer is not None and report.lines:
        yield f"**{plain(terminal.answer(report.answer, per).plain)}**"
        if said := terminal.narrowed(report):
            yield f"{plain(said[0].upper() + said[1:])}."
    if first := _what_if.first(report):
        yield f"{_what_if.word(report).capitalize()}: {': '.join(plain(one.plain) for one in first)}."
    yield "\n".join(("| | |", "| --- | --- |", *(f"| {name} | {plain(said)} |" for name, said in facts(report))))
    if report.lines:
        yield "\n".join(lines(report, per))
    else:
        yield plain(terminal.nowhere(report).plain)
    if report.what_if:
        yield "\n".join(ifs(report, per))
    if report.further:
        yield plain(report.further)
    if report.notes:
        said = "\n".join(f"- {plain(note)}" for note in report.notes)
        yield f"<details><summary>{len(report.notes)} note{'s' * (len(report.notes) > 1)}</summary>\n\n{said}\n\n</details>"


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """What was recorded, and how far it can be trusted."""
    if report.trace is not None:
        yield "recorded", terminal.recorded(report.trace)
    if report.coverage is not None:
        yield "trace", report.coverage.words
    if (step := figures.measured_step(report)) is not None:
        recorded = f" ({len(report.steps)} recorded)" if report.steps else ""
        yield "a step" if report.steps else "the recording", f"{figures.time(step)}{recorded}"
    if report.saving_step is not None:
        yield "savings", terminal.savings_are_of(report)
    if report.device_busy is not None:
        busy = terminal.by_device(report) if report.busy_by_device else figures.percent(report.device_busy)
        yield "device busy", f"{busy} of the steps"
    if report.uses is not None:
        yield "it goes to", report.uses.words
    if report.fidelity is not None:
        yield (
            "replay error",
            f"{figures.percent(report.fidelity)}, {figures.percent(report.unexplained or 0.0)} late for no recorded reason",
        )


def lines(report: Report, per: str) -> Iterator[str]:
    """The lines that wait, in the order of the report."""
    step = figures.saving_step(report)
    yield f"| the host waits at | by | syncs a {per} | saves | between | what to do |"
    yield "| --- | --- | ---: | ---: | ---: | --- |"
    for line in report.lines[:MOST_LINES]:
        share = line.price.share / step if line.price and step else None
        place = line.where or (f"in {line.module}" if line.module else "no line known")
        cells = (
            figures.count(line.count) if report.counts_hold else "?",
            figures.percent(share),
            _waiting.between(line, step),
        )
        yield f"| {code(place)} | {code(line.op)} | {' | '.join(cells)} | {advice(line)} |"
    if (more := len(report.lines) - MOST_LINES) > 0:
        yield f"\nand {more} more."


def advice(line: Line) -> str:
    """What to do about a line."""
    fix = line.finding.fix if line.finding else None
    said = [str(line.answer.decision) if line.answer else "", code(line.rule) if line.rule else ""]
    return " ".join(filter(None, [*said, plain(f"({fix.title}, {fix.standing})") if fix else ""]))


def ifs(report: Report, per: str) -> Iterator[str]:
    """What would help most."""
    step = figures.saving_step(report)
    yield f"| what would help | saves of a {per} | between | how |"
    yield "| --- | ---: | ---: | --- |"
    for one in report.what_if[:MOST_IFS]:
        known = step if figures.foretold(report, one) else None
        saves = figures.percent(one.saving / known if known else None)
        yield f"| if {plain(one.name)} | {saves} | {_between(one, known)} | {plain(one.told)} |"


def _between(one: WhatIf, step: float | None) -> str:
    return between(one.low, one.high, lambda ns: figures.percent(ns / step)) if step else "-"


def code(text: str) -> str:
    """A name that is shown as it is, also in a table."""
    return f"`{text.replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def plain(text: str) -> str:
    """A sentence in which what stands between backticks is code, and nothing else is more than text."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # a lone one
        pieces = ["'".join(pieces)]
    return "".join(
        code(piece) if number % 2 else STEERS.sub(lambda sign: f"\\{sign[0]}", piece)
        for number, piece in enumerate(pieces)
    )
