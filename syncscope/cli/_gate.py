"""Limits for CI: how many syncs a step may have, and how much of it they may cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from syncscope.cli._limits import GivenLimit, judged
from syncscope.cli._places import here
from syncscope.errors import UserError
from syncscope.model.durations import in_ms
from syncscope.model.finding import Finding
from syncscope.model.report import GATE, Line, Report
from syncscope.model.source import Place, Span

if TYPE_CHECKING:
    from syncscope.analysis.job import JobLine
    from syncscope.analysis.window_rates import StepCounts

SYNCS, SAVING = "--max-syncs-per-step", "--max-saving"
LIMIT = "limit"
"""The rule of what is told of a limit where only findings are shown."""
NO_STEPS = (
    "no step is marked in the recording, so that limits per step mean nothing",
    "record with trace.step(), or with torch.profiler's step()",
)
COUNT_INSTEAD = f"limit the number of syncs with {SYNCS}"


def limits(
    report: Report, most_reads: float | None, most_price: float | None, pinned: float | None = None
) -> Iterator[GivenLimit]:
    """Each limit that was given, with the lines that break it.

    `most_price` is a share of the step, which the lower end of what the reads likely cost must not exceed: by the recording
    alone, for what rewrites are known depends on the folder in which the command runs. `pinned` is as in `summarize`.
    What the device's fallbacks read is no read of the user's.
    """
    if most_reads is not None:
        yield judged(
            f"{SYNCS} {most_reads:g}",
            lambda: _syncs(report, most_reads),
            lambda: syncs(report.syncs).rpartition(" ")[0],
        )
    if most_price is not None:
        yield judged(
            f"{SAVING} {100 * most_price:g}%",
            lambda: _saving(report, most_price, pinned),
            lambda: _cost(report, _by_recording(report, pinned)),
        )


def _syncs(report: Report, most: float) -> Iterator[str]:
    from syncscope.analysis.window_rates import StepCounts

    _refuse(report)
    own = [line for line in report.lines if not line.fallback]
    if (reads := report.syncs) > most:
        yield f"{syncs(reads)} more than the {most:.3g} allowed:"
        steps = StepCounts(report)
        for line in sorted(own, key=lambda o: -o.count):
            yield f"  {where(line)}: {line.count:.3g} per step{_in_some(line, steps)}"


def _in_some(line: Line, steps: StepCounts) -> str:
    """In how many of the steps that are counted a line waits, where that are not all."""
    from syncscope.analysis.summary import key_of_line

    counts = steps.counted(key_of_line(line))
    waits = sum(map(bool, counts))
    return f", in {waits} of {len(counts)} steps" if 0 < waits < len(counts) else ""


def uncounted(report: Report) -> list[str]:
    """What a limit of syncs that holds does not speak of, a line each."""
    from syncscope.analysis.not_waited_for import not_waited_for

    said = not_waited_for(report.trace, report.steps) if report.trace is not None else []
    return [f"note: {SYNCS} holds, but {each}" for each in said]


def _saving(report: Report, most: float, pinned: float | None) -> Iterator[str]:
    _refuse(report)
    alone = _by_recording(report, pinned)
    found = alone.of_waits or alone.answer
    if found is None or found.share is None or found.low is None:
        why = _doubt(report) or "savings were not asked for (`--no-savings`)"
        own = [line for line in report.lines if not line.fallback]
        idle = ", ".join(f"{where(line)} {in_ms(line.idle_after)}" for line in own[:3] if line.idle_after)
        more = f"; the device had nothing to do after {idle}" if idle else ""
        raise UserError(why, f"{_again(report)}{COUNT_INSTEAD}{more}")
    high = max(found.high or 0.0, found.share)
    if most < high and (doubted := _doubt(alone)):
        likely = (report.answer or found).likely("of a step")
        said = f"the syncs likely cost {likely}, and no limit is held to that: {doubted}"
        raise UserError(said, f"{_again(alone)}{COUNT_INSTEAD}")
    if found.low > most:
        yield f"{_cost(report, alone)}: more than the {100 * most:.6g} % allowed:"
        own = [line for line in alone.lines if not line.fallback]
        priced = [(line.answer, line) for line in own if line.answer and (line.answer.share or 0.0) > 0]
        for known, line in sorted(priced, key=lambda p: -(p[0].share or 0.0)):
            yield f"  {where(line)}: {known.likely('of a step')}"
        if report.of_a_job:
            yield f"  {report.of_a_job}"


def _cost(report: Report, alone: Report) -> str:
    """What syncs cost as the report answers, by what is known here of their loops and rewrites; and what they cost by the
    recording alone, to which a limit is held, if that is another figure."""
    held, shown = alone.of_waits or alone.answer, report.answer or alone.answer
    if held is None or shown is None or held.share is None:
        return ""
    said = f"the syncs likely cost {shown.likely('of a step')}"
    if shown.likely("") == held.likely(""):
        return said
    return (
        f"{said}, as `report` says; the limit is held to {held.likely('')}, by the recording alone, without the source"
    )


def _doubt(report: Report) -> str:
    """Why no limit is held to what a recording says of savings; "" where one may be."""
    if report.fidelity is None:
        return "no work of a device was recorded"
    if report.replay_holds:
        return ""
    return f"a replay gets {report.left_open:.1%} of a step wrong or cannot explain it, more than {GATE:.0%}"


def _again(report: Report) -> str:
    """How another recording may be held to a limit, and else."""
    from syncscope.analysis.verdict import next_recording

    return "" if report.fidelity is None or report.replay_holds else f"{next_recording(report).rstrip('.')}, or "


def _refuse(report: Report) -> None:
    """Nothing, where a step can be held to a limit.

    Raises:
        UserError: the recording lacks what it would be judged by, or has no steps.
    """
    if report.coverage is not None and report.coverage.refusal:
        raise UserError(report.coverage.refusal, report.coverage.hint)
    if not report.steps:
        raise UserError(*NO_STEPS)


def _by_recording(report: Report, pinned: float | None) -> Report:
    """The report as it is where no source is at hand."""
    from syncscope.analysis.summary import summarize

    if report.trace is None or not report.sources or report.answer is None or report.saving_step is None:
        return report
    return summarize(report.trace, (), report.hazards, pinned=pinned)


def as_findings(lines: Sequence[Line | JobLine], path: str, given: Iterable[GivenLimit]) -> tuple[Finding, ...]:
    """Those that do not hold, for formats of findings alone: an error, at the line that waits most, else at the recording. Of
    one that is `at` a recording it is that, and of one that holds what it does not count is a note."""
    first = max((line for line in lines if line.place), key=lambda line: line.count, default=None)
    most = first.place if first is not None and first.place else Place(path, 1)
    found = []
    for limit in given:
        if limit.held and not limit.aside:
            continue
        place = Place(limit.at or path, 1) if limit.at or not limit.broken else most
        severity = "note" if limit.held else "error"
        found.append(Finding(LIMIT, place, 1, place.line, 1, Span(0, 0), limit.told, 3, severity=severity))
    return tuple(found)


def in_no_file(findings: Iterable[Finding]) -> str:
    """That some of what GitHub is told is in no file of the project, and annotates none; "" where all is."""
    from syncscope.exporters.github import is_in_project

    outside = sum(not is_in_project(finding.place.path) for finding in findings)
    if not outside:
        return ""
    said = "1 finding is" if outside == 1 else f"{outside} findings are"
    return (
        f"{said} of the run, and annotate{'s' * (outside == 1)} no file: a source file of the project is known for none"
    )


def syncs(count: float) -> str:
    """`1 sync per step is`, `2.5 syncs per step are`."""
    said = f"{count:.3g}"
    return f"{said} sync per step is" if said == "1" else f"{said} syncs per step are"


def where(line: Line | JobLine) -> str:
    """The place and the op, as compilers name what they complain of."""
    return f"{here(line.place) if line.place else line.module or 'no line known'}: {line.op}"
