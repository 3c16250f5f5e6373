"""Two jobs side by side: rank by rank, and in full the median rank and the worst."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from syncscope.cli import _formats, _limits
from syncscope.cli._console import complain
from syncscope.cli._diff_files import as_object
from syncscope.cli._diff_tables import number as figure
from syncscope.cli._diff_words import unlike
from syncscope.cli._job_tables import job_name
from syncscope.errors import UserError
from syncscope.model.durations import in_ms
from syncscope.model.uses import Use
from syncscope.model.words import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncscope.analysis.comparison import Comparison
    from syncscope.analysis.job_comparison import JobComparison, WaitedFor
    from syncscope.cli._limits import GivenLimit
    from syncscope.model.report import Report

HEADS = ("rank", "step ms", "after", "change", "idle ms", "after", "exposed ms", "after", "")
SPARE = ((6, 7), (4, 5))  # of these, what goes where a terminal has no room for all


class JobFolder(NamedTuple):
    """A folder, by rank the traces of the job in it, and how many ranks the job had, as they say."""

    name: str
    traces: Mapping[int, str]
    world: int


def job_in(name: str) -> JobFolder | None:
    """The job in a folder; None where it is no folder, or holds anything else, or several jobs."""
    from syncscope.cli import _jobs, _traces
    from syncscope.kineto import header

    if not os.path.isdir(name):
        return None
    paths = _traces.traces([name])
    if len(paths) < 2:
        return None
    newest = _jobs.newest_of_each(paths)
    found = list(_jobs.jobs(newest).values())
    if len(found) != 1 or len(found[0]) < len(newest):
        return None
    told = [(*one, path) for path in found[0] if (one := header.rank(path)) is not None]
    return JobFolder(name, {number: path for number, _, path in told}, max(world for _, world, _ in told))


def refuse_one_rank(name: str, job: JobFolder) -> None:
    """That a folder has one rank alone of such a job; nothing of others.

    Raises:
        UserError: it has.
    """
    from syncscope.cli import _traces
    from syncscope.kineto import header

    found = _traces.below(name)[0] if os.path.isdir(name) else []
    told = header.rank(found[0]) if len(found) == 1 else None
    if told is not None and told[0] in job.traces:
        raise UserError(
            f"{visible(name)} holds rank {told[0]} alone, and {visible(job.name)} {len(job.traces)} ranks of one job",
            f"record them all, or name that rank there, too: {visible(job.traces[told[0]])}",
        )


def diff_jobs(
    before: JobFolder,
    after: JobFolder,
    most: int,
    format_: str,
    output: str | None,
    most_slower: float | None,
    most_new: float | None,
    expect: int | None,
) -> int:
    """Print two jobs side by side, or write it; the exit code.

    Raises:
        UserError: they have no rank in common, or the format is of two recordings.
    """
    from syncscope import kineto
    from syncscope.analysis.job_comparison import compare_jobs
    from syncscope.cli import _expected, _gate_of_diff
    from syncscope.cli._progress import Progress

    if format_ == "github":
        raise UserError(
            "--format github is of two recordings, and these are two jobs",
            f"name one rank of each, as {visible(next(iter(before.traces.values())))}",
        )
    with Progress("ranks", logged="diff" if format_ == "terminal" else "") as tick:
        found = compare_jobs(partial(kineto.read, most=most), before.traces, after.traces, tick)
    gone = _gone(found, before, after, expect)
    limits = list(_expected.of_all_ranks(_given(found, most_slower, most_new), gone, expect))
    if format_ == "html" and output is not None:
        _keep(found, before, after, output)
    elif format_ == "json":
        _formats.written(json.dumps(_object(found), indent=2), output)
    elif format_ == "markdown":
        _formats.written("\n\n".join(_markdown(found, before, after, limits)), output)
    elif format_ == "junit":
        _formats.written(_gate_of_diff.as_junit(limits, after.name), output)
    else:
        _show(found, before, after)
    why = [f"rank {number}: {said}" for number, one in found.ranks.items() if (said := unlike(one))]
    if why:
        complain(UserError(why[0], f"and {len(why) - 1} more ranks" if len(why) > 1 else "record that rank again"))
    strange = why or any(one.strangers for one in found.ranks.values())
    return _limits.code(limits) or (2 if strange else 0)


def _gone(found: JobComparison, before: JobFolder, after: JobFolder, expect: int | None) -> UserError | None:
    """Why no limit holds: ranks are not in the second job, or in the first, or nothing can be said of one that is in both."""
    from syncscope.analysis.absent import Absent, absent_of
    from syncscope.cli import _expected

    if (gone := _expected.missing(absent_of(after.traces, max(before.world, after.world), expect))) is not None:
        return gone
    if expect is None and (alone := found.only[1]):
        ranks = f"rank{'s' * (len(alone) > 1)} {Absent(after.world, len(before.traces), tuple(alone)).named}"
        those = "those" if len(alone) > 1 else "that"
        return UserError(
            f"{visible(before.name)} has no {ranks} to compare {those} of {visible(after.name)} with",
            f"name the traces of all ranks of both; or, if that is on purpose, {_expected.EXPECT} {len(found.ranks)}",
        )
    told = next(((number, said) for number, one in found.ranks.items() if (said := unlike(one))), None)
    return None if told is None else UserError(f"rank {told[0]}: {told[1]}", "record that rank again")


def _given(found: JobComparison, most_slower: float | None, most_new: float | None) -> Iterator[GivenLimit]:
    """Each limit that was given: a step of the median rank, for a job is as fast as that, and the syncs of the rank that has
    most new ones."""
    from syncscope.cli import _gate_of_diff

    judged = {n: one for n, one in found.ranks.items() if not unlike(one)}
    if not judged:
        yield from _gate_of_diff.unjudged(next(map(unlike, found.ranks.values())), most_slower, most_new)
        return
    busiest = max(judged, key=lambda n: judged[n].more.surely)
    for number, slower, new in ((found.median, most_slower, None), (busiest, None, most_new)):
        if number in judged:
            for limit in _gate_of_diff.limits(judged[number], slower, new):
                first = tuple(f"rank {number}: {line}" for line in limit.broken[:1])
                yield replace(limit, broken=(*first, *limit.broken[1:]))
        else:
            yield from _gate_of_diff.unjudged(unlike(found.ranks[number]), slower, new)


def _object(found: JobComparison) -> dict[str, Any]:
    return {
        "schema": 1,
        "ranks": [{"number": number} | as_object(one) for number, one in found.ranks.items()],
        "median": found.median,
        "worst": found.worst,
        "waited_for": None if (one := found.waited_for) is None else _waited(one),
        "only_before": list(found.only[0]),
        "only_after": list(found.only[1]),
    }


def _waited(one: WaitedFor) -> dict[str, Any]:
    return {"rank": one.number, "before": one.before, "after": one.after, "cause": one.row.cause}


def _rows(found: JobComparison) -> Iterator[tuple[str, ...]]:
    """A row for each rank, that which got longer most first."""
    rest = [number for number in found.ranks if number not in found.order]
    for number in [*found.order, *rest]:
        one = found.ranks[number]
        steps = one.before.step, one.after.step
        change = f"{steps[1] / steps[0] - 1:+.1%}" if steps[0] and steps[1] else ""
        said = [name for name, of in (("worst", found.worst), ("median", found.median)) if of == number]
        said += ["within noise"] * bool(one.within_noise and change)
        pairs = (steps, *(_spent(one, uses) for uses in ([use for use in Use if use.is_idle], [Use.COLLECTIVE])))
        times = [figure(ns, 1e6) for pair in pairs for ns in pair]
        yield str(number), *times[:2], change, *times[2:], ", ".join(said)


def _spent(one: Comparison, uses: Sequence[Use]) -> tuple[float | None, float | None]:
    """What a step spends in these uses, before and after."""

    def of(report: Report) -> float | None:
        return sum(part.time for part in report.uses.spent if part.use in uses) if report.uses else None

    return of(one.before), of(one.after)


def _lead(found: JobComparison, after: JobFolder) -> str:
    """For whom the others wait in the second job and did not in the first: what is longer on them is a symptom. "" where ranks
    do not meet, or are not of one job."""
    if found.jobs is None or not found.jobs[1].meets:
        return ""
    more = f"`syncscope ranks {visible(after.name)}` says who waits for whom"
    if (one := found.waited_for) is None:
        return f"No rank makes the others wait longer than in the first job; {more}."
    at = f", most at {job_name(one.row.lines[0])}" if one.row.lines else ""
    return (
        f"Each other rank waits {in_ms(one.after)} of a step for rank {one.number} in the second job, and {in_ms(one.before)} "
        f"in the first: mostly by {one.row.cause}{at}. What is longer on the others is mostly that wait; {more}."
    )


def _missing(found: JobComparison) -> Iterator[str]:
    for which, numbers in zip(("first", "second"), found.only, strict=True):
        if numbers:
            yield f"Only the {which} job has rank {', '.join(map(str, numbers[:8]))}{' and more' * (len(numbers) > 8)}."


def _show(found: JobComparison, before: JobFolder, after: JobFolder) -> None:
    """Print it for people."""
    from syncscope.cli._console import console
    from syncscope.cli._diff_shown import show
    from syncscope.cli._fitting import fitted

    out = console()
    out.print(f"{len(found.ranks)} ranks of {visible(before.name)} and of {visible(after.name)}\n")
    if lead := _lead(found, after):
        out.print(f"{lead}\n")
    table, gone = fitted(HEADS, [*_rows(found)], [not name for name in HEADS], out.width, SPARE)
    out.print(table)
    if gone:
        out.print(f"no room for {', '.join(gone)}: a wider terminal has them", style="dim")
    for line in _missing(found):
        out.print(line)
    for number, name in _in_full(found):
        out.print(f"\nrank {number}, {name}:\n", style="bold")
        show(found.ranks[number], before.traces[number], after.traces[number])


def _keep(found: JobComparison, before: JobFolder, after: JobFolder, output: str) -> None:
    """Write it as a page."""
    from syncscope.cli._diff_files import on_page
    from syncscope.cli._job import written_page
    from syncscope.exporters import html

    title = f"{before.name} and {after.name}"
    lead = f"{len(found.ranks)} ranks of {before.name} and of {after.name}"
    lead = f"{lead}. {told}" if (told := _lead(found, after)) else lead
    shown = [
        (f"Rank {number}, {name}", on_page(found.ranks[number], before.traces[number], after.traces[number]))
        for number, name in _in_full(found)
    ]
    columns = [(name, not name) for name in HEADS]
    written_page(html.compared_jobs_page(title, lead, columns, list(_rows(found)), [*_missing(found)], shown), output)


def _in_full(found: JobComparison) -> list[tuple[int, str]]:
    """The ranks that are told in full, and what each is; one may be both."""
    named: dict[int, list[str]] = {}
    for number, name in ((found.median, "the median"), (found.worst, "the worst")):
        named.setdefault(number, []).append(name)
    return [(number, " and ".join(names)) for number, names in named.items()]


def _markdown(found: JobComparison, before: JobFolder, after: JobFolder, limits: Sequence[GivenLimit]) -> Iterator[str]:
    from syncscope.cli._diff_markdown import markdown
    from syncscope.cli._markdown import limit
    from syncscope.exporters.markdown import code, plain

    yield f"### syncscope: {code(after.name)} beside {code(before.name)}, {len(found.ranks)} ranks"
    if limits:
        yield "\n".join(map(limit, limits))
    if lead := _lead(found, after):
        yield lead
    rows = [f"| {' | '.join(HEADS)} |", f"| {' | '.join(['---:'] * (len(HEADS) - 1))} | --- |"]
    yield "\n".join([*rows, *(f"| {' | '.join(map(plain, row))} |" for row in _rows(found))])
    yield from _missing(found)
    for number, name in _in_full(found):
        yield f"#### Rank {number}, {name}"
        yield markdown(found.ranks[number], before.traces[number], after.traces[number], ())
