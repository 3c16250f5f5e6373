"""Limits for CI: how many syncs a step may have, and how much of it they may cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from syncscope.errors import UserError
from syncscope.model.answer import Answer
from syncscope.model.durations import in_ms
from syncscope.model.finding import Finding
from syncscope.model.report import Limit, Line, Report
from syncscope.model.source import Place, Span

if TYPE_CHECKING:
    from syncscope.analysis.job import JobLine

LIMIT = "limit"
"""The rule of what is told of a limit where only findings are shown."""
NO_STEPS = (
    "no step is marked in the recording, so that limits per step mean nothing",
    "record with trace.step(), or with torch.profiler's step()",
)
COUNT_INSTEAD = "limit the number of syncs with --max-syncs-per-step"


def broken(
    report: Report, most_reads: float | None, most_price: float | None, pinned: float | None = None
) -> Iterator[str]:
    """What to print where a limit is broken, with the lines that break it; nothing where all is well.

    `most_price` is a share of the step, which the lower end of what the reads likely cost must not exceed: by the recording
    alone, for what rewrites are known depends on the folder in which the command runs. `pinned` is as in `summarize`.
    What the device's fallbacks read is no read of the user's.

    Raises:
        UserError: the recording cannot be held to a limit: it lacks what it would be judged by, it has no steps, or no price.
    """
    coverage = report.coverage
    if (most_reads is not None or most_price is not None) and coverage is not None and coverage.refusal:
        raise UserError(f"limits cannot be judged by this recording: {coverage.refusal}", coverage.hint)
    if (most_reads is not None or most_price is not None) and not report.steps:
        raise UserError(*NO_STEPS)
    own = [line for line in report.lines if not line.fallback]
    if most_reads is not None and (reads := sum(line.count for line in own)) > most_reads:
        yield f"{syncs(reads)} more than the {most_reads:.3g} allowed:"
        yield from (f"  {where(line)}: {line.count:.3g} per step" for line in sorted(own, key=lambda o: -o.count))
    if most_price is not None:
        from syncscope.analysis.verdict import without_savings

        judged = _by_recording(report, pinned)
        found = judged.of_waits or judged.answer
        if found is None or found.share is None or found.low is None:
            why = without_savings(report) or "savings were not asked for (`--no-savings`)"
            idle = ", ".join(f"{where(line)} {in_ms(line.idle_after)}" for line in own[:3] if line.idle_after)
            raise UserError(
                f"no saving is known, so that --max-saving cannot be judged: {why}",
                COUNT_INSTEAD + (f"; the device had nothing to do after {idle}" if idle else ""),
            )
        high = max(found.high or 0.0, found.share)
        if most_price < high and (doubted := without_savings(judged)):
            likely = (report.of_waits or report.answer or found).told("of a step")
            raise UserError(f"the syncs likely cost {likely}, and no limit is held to that: {doubted}", COUNT_INSTEAD)
        if found.low > most_price:
            said = f"by the recording alone the syncs cost {found.told('of a step')}{_known_here(found, report)}"
            yield f"{said}, more than the {100 * most_price:.2g} % allowed:"
            own = [line for line in judged.lines if not line.fallback]
            priced = [(line.answer, line) for line in own if line.answer and (line.answer.share or 0.0) > 0]
            for known, line in sorted(priced, key=lambda p: -(p[0].share or 0.0)):
                yield f"  {where(line)}: {known.told('of a step')}"
            if report.of_a_job:
                yield f"  {report.of_a_job}"


def _by_recording(report: Report, pinned: float | None) -> Report:
    """The report as it is where no source is at hand."""
    from syncscope.analysis.summary import summarize

    if report.trace is None or not report.sources or report.answer is None or report.saving_step is None:
        return report
    return summarize(report.trace, (), report.hazards, pinned=pinned)


def _known_here(found: Answer, report: Report) -> str:
    """What the report answers by the rewrites that are known where it is made, if that is another figure."""
    shown = report.of_waits or report.answer
    if shown is None or shown.share is None or shown.figure == found.figure:
        return ""
    return f", and with the rewrites that the source here offers {shown.figure}"


def held(
    report: Report, most_reads: float | None, most_price: float | None, pinned: float | None = None
) -> tuple[tuple[str, ...], UserError | None]:
    """What is broken, as `broken` tells it, and why a limit cannot be judged: one may be broken all the same."""
    told: list[str] = []
    unjudged = None
    for reads, price in ((most_reads, None), (None, most_price)):
        try:
            told += broken(report, reads, price, pinned)
        except UserError as error:
            unjudged = unjudged or error
    return tuple(told), unjudged


def limits(
    report: Report, most_reads: float | None, most_price: float | None, pinned: float | None = None
) -> Iterator[Limit]:
    """Each limit that was given, for formats that show what holds, too."""
    for name, reads, price in (("max-syncs-per-step", most_reads, None), ("max-saving", None, most_price)):
        if reads is None and price is None:
            continue
        told, unjudged = held(report, reads, price, pinned)
        if unjudged is not None:
            yield Limit(name, None, f"{unjudged.message}: {unjudged.hint}")
        else:
            yield Limit(name, not told, _sentence(told) if told else "")


def as_findings(report: Report, path: str, told: Sequence[str], unjudged: UserError | None) -> tuple[Finding, ...]:
    """The same for formats that show findings only: an error, at the line that waits most, else at the recording."""
    said = [_sentence(told)] if told else []
    said += [f"{unjudged.message}: {unjudged.hint}"] if unjudged is not None else []
    first = max((line for line in report.lines if line.place), key=lambda line: line.count, default=None)
    place = first.place if told and first is not None and first.place else Place(path, 1)
    return tuple(Finding(LIMIT, place, 1, place.line, 1, Span(0, 0), words, 3, severity="error") for words in said)


def _sentence(told: Sequence[str]) -> str:
    """The lines of `broken` as one."""
    return f"{told[0]} {'; '.join(line.strip() for line in told[1:])}".strip()


def syncs(count: float) -> str:
    """`1 sync per step is`, `2.5 syncs per step are`."""
    said = f"{count:.3g}"
    return f"{said} sync per step is" if said == "1" else f"{said} syncs per step are"


def where(line: Line | JobLine) -> str:
    """The place and the op, as compilers name what they complain of."""
    return f"{line.place or line.module or 'no line known'}: {line.op}"
