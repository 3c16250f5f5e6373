"""A job of several ranks as tables of text: where a step of each rank goes, who waits for whom, and what its lines cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from syncscope.cli._places import here, relative
from syncscope.model.durations import in_ms

if TYPE_CHECKING:
    from syncscope.analysis.job import JobReport
    from syncscope.analysis.joint_replay import LongerIn, RankLine
    from syncscope.analysis.meeting_key import MeetingKey
    from syncscope.analysis.rank_times import RankTimes
    from syncscope.analysis.slow_hosts import Pace

SHOWN = 12  # ranks and collectives in a table
SPARE = ("copies alone", "of it overlapped", "compute", "exposed communication", "saved if only it never syncs")
"""What goes where a terminal has no room for all columns, the first to go first."""


class Words(str):
    """The head of a column that holds words, no figures."""

    __slots__ = ()


class JobTable(NamedTuple):
    """The heads of its columns (of figures, but for `Words`), its rows, and how many of `what` are not shown."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    more: int
    what: str


def head(found: JobReport) -> tuple[str, str]:
    """What was joined, and how well the replay fits."""
    ranks = f"{found.here} rank{'s' * (max(len(found.ranks), found.world) != 1)}"
    meets = f"{len(found.meets)} collective{'s' * (len(found.meets) != 1)}"
    return (
        f"{ranks}, {meets}, {'a step' if found.marked else 'the whole recording'} of {in_ms(found.step)}",
        f"the joint replay ends within {max(found.fidelity, 1e-4):.2%} of what was measured",
    )


def foot(found: JobReport) -> str:
    """What the figures are of."""
    if not found.marked:
        return "ms of the whole recording; lines: on the mean rank, and what the whole job gains"
    from syncscope.analysis.job_verdict import steps_met

    steps = steps_met(found.meets)
    recorded = f"the whole recording, {steps} steps" if steps > 1 else "the whole recording"
    return (
        "ms per step, but how often a rank comes last, what others wait for it then, its operators, and each "
        f"collective: of {recorded}; ranks in the order of what others wait for them; lines: on the mean rank, and what the "
        "whole job gains"
    )


def tables(found: JobReport, whole: bool) -> Iterator[JobTable]:
    """All of them that have a row; at most `SHOWN` rows each, unless the `whole` is asked for. Ranks stand in the order of what
    others waited for them."""
    slow = sorted(found.ranks, key=lambda rank: -rank.imposed)
    made = [
        (("rank", "step", "busy", "compute", "of it overlapped", "copies alone", "exposed communication", "idle",
          Words("mostly")),
         [_where(rank.number, rank.times) for rank in slow if rank.times is not None], "ranks"),
        (("rank", "blocked", "of it for others", "comes last", "others wait, in all", Words("mostly by"), Words("most at"),
          "saved if only it never syncs"), [_waits(rank) for rank in slow], "ranks"),
        (("rank", Words("its host is longer in"), "its own", "the others'"),
         [row for rank in slow for row in _in_operators(rank, found.slow_hosts)], "operators"),
        (("rank", Words("it is longer at"), "its own", "the others'"),
         [_longer(rank, each) for rank in slow for each in rank.lines if in_ms(each.own) != in_ms(each.others)], "lines"),
        (("step", Words("collective"), "last after first", "last is", Words("by"), "transfer"), _meets(found), "collectives"),
        ((Words("line"), Words("op"), "syncs", "blocked", "alone", "last", "share"), _lines(found), ""),
    ]  # fmt: skip
    for columns, rows, what in made:
        shown = rows if whole or not what else rows[:SHOWN]
        if rows:
            yield JobTable(*filled(columns, shown), len(rows) - len(shown), what)


def filled(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns, without those of words in which nothing stands, as where no rank is late."""
    kept = [n for n, name in enumerate(columns) if not isinstance(name, Words) or any(row[n] for row in rows)]
    return tuple(columns[n] for n in kept), [tuple(row[n] for n in kept) for row in rows]


def _where(number: int, times: RankTimes) -> tuple[str, ...]:
    parts = (times.busy, times.compute, times.overlapped, times.copy, times.exposed, times.idle)
    shares = [f"{in_ms(ns, '')} {ns / times.step if times.step else 0.0:4.0%}" for ns in parts]
    return str(number), in_ms(times.step, ""), *shares, times.why[0][0] if times.why else ""


def _waits(rank: RankLine) -> tuple[str, ...]:
    return (
        str(rank.number),
        in_ms(rank.blocked, ""),
        in_ms(rank.symptom, ""),
        f"{rank.late} {'time' if rank.late == 1 else 'times'}" if rank.late else "",
        in_ms(rank.imposed, "") if rank.late else "",
        rank.cause or "",
        job_name(rank.lines[0]) if rank.lines else "",
        "" if rank.saved_alone is None else in_ms(rank.saved_alone, ""),
    )


def _in_operators(rank: RankLine, slow: Sequence[Pace]) -> Iterator[tuple[str, ...]]:
    """What all of its operators are slower by, and which of them are."""
    for pace in slow:
        if pace.number == rank.number:
            yield str(rank.number), pace.what, in_ms(pace.own, ""), in_ms(pace.others, "")
    for each in rank.operators:
        yield _longer(rank, each)


def _longer(rank: RankLine, each: LongerIn) -> tuple[str, ...]:
    return str(rank.number), job_name(each), in_ms(each.own, ""), in_ms(each.others, "")


def job_name(each: LongerIn) -> str:
    """An operator or a kernel; a line as who works here names it."""
    if each.line:
        path, _, line = each.line.rpartition(":")
        return f"{'before ' * each.before}{relative(path)}:{line}"
    return each.short or "outside of operators"


def _meets(found: JobReport) -> list[tuple[str, ...]]:
    return [
        (
            *named(meet.key),
            in_ms(meet.skew, ""),
            *(("-", "-") if meet.together else (str(meet.late), str(meet.cause))),
            in_ms(meet.transfer, ""),
        )
        for meet in sorted(found.meets, key=lambda meet: -meet.skew)
    ]


def _lines(found: JobReport) -> list[tuple[str, ...]]:
    rows = []
    for line in found.lines:
        place = here(line.place) if line.place else line.module or "no line known"
        price = line.price
        prices = [in_ms(p, "") for p in (price.alone, price.last, price.share)] if price else [""] * 3
        rows.append((place, line.op, f"{line.count:.3g}", in_ms(line.blocked, ""), *prices))
    return rows


def named(key: MeetingKey) -> tuple[str, str]:
    """Step and short name of a collective."""
    name = re.split(r"[(<]", key.kind, maxsplit=1)[0].removeprefix("ncclKernel_").removeprefix("ncclDevKernel_")
    return str(key.step) if key.step >= 0 else "", " ".join(filter(None, (key.group, name, str(key.ordinal))))
