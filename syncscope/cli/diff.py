"""syncscope diff: what became of a loop between two recordings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from syncscope.cli import _formats
from syncscope.cli._console import echo
from syncscope.cli._share import Share
from syncscope.cli._traces import max_size, newest
from syncscope.model.durations import in_ms, ms

if TYPE_CHECKING:
    from syncscope.analysis.comparison import Comparison
    from syncscope.model.report import Line, Report


PACE = 0.05  # a host that is faster or slower by this part is spoken of
VAGUE = 1.0  # of a step, from which what a change lies between needs no digits
CHANGED = 0.03  # part by which the work of two recordings of the same loop does not differ


@click.command(short_help="What became of a loop between two recordings.")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@max_size
@click.option("--format", "format_", type=click.Choice(_formats.PLAIN), help="terminal, if nothing else is said.")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    help="Write the page of AFTER there, with both; JSON where it ends with .json.",
)
@click.option(
    "--max-slowdown",
    "most_slower",
    type=Share(),
    help="Exit 1 when a step of AFTER is surely longer than one of BEFORE by more than that, in percent: 5%. Exit 2 when it "
    "may be 10 % of a step above that: such steps vary too much to judge.",
)
@click.option(
    "--max-new-syncs",
    "most_new",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Exit 1 when a step of AFTER has more than N syncs that one of BEFORE has not.",
)
def command(
    before: str,
    after: str,
    most: int,
    format_: str | None,
    output: str | None,
    most_slower: float | None,
    most_new: float | None,
) -> int:
    """What became of a loop between two recordings, line by line, and whether the prediction held.

    \b
    syncscope diff before.pt.trace.json.gz after.pt.trace.json.gz
    syncscope diff before.pt.trace.json.gz after.pt.trace.json.gz -o both.html
    syncscope diff before/runs after/runs                the newest recording of each folder
    syncscope diff main/runs mine/runs --max-slowdown 5% --max-new-syncs 0    a gate for CI: exits 1

    The prediction is a replay of BEFORE without the syncs that AFTER no longer makes. A change of anything else between the
    two recordings, as of the batch size or the machine, shows as its error, and beside it in numbers. Steps that may differ by
    chance as much as they do are said to be within noise.

    Exit status: 0 all well, 1 a limit is broken, 2 a file could not be read, the two not be compared, or a limit not be judged.
    """
    from syncscope import kineto
    from syncscope.analysis.compare import compare
    from syncscope.cli import _gate_of_diff

    format_ = _formats.plain(format_, output)
    before, after = newest(before), newest(after)
    found = compare(kineto.read(before, most), kineto.read(after, most))
    if format_ == "html" and output is not None:
        keep(found, before, after, most, output)
    elif format_ == "json":
        _formats.written(json.dumps(as_object(found), indent=2), output)
    else:
        show(found, before, after)
    if unlike(found):
        return 2
    over = False
    for line in _gate_of_diff.broken(found, most_slower, most_new):
        echo(line, err=True)
        over = True
    return 1 if over else 0


def unlike(found: Comparison) -> str:
    """Why nothing can be said of what changed; "" where it can."""
    told = [
        f"the {which} recording cannot be judged: {report.coverage.refusal}; {report.coverage.hint}"
        for which, report in (("first", found.before), ("second", found.after))
        if report.coverage is not None and report.coverage.refusal
    ]
    steps = [bool(report.steps) for report in (found.before, found.after)]
    if steps[0] != steps[1]:
        which, whole = ("first", "second") if steps[1] else ("second", "first")
        told.append(
            f"no step is marked in the {which} recording, so it is one length, and the {whole} has another for each step: "
            "end each with `prof.step()` or `trace.step()`"
        )
    return "; ".join(told)


def as_object(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON values, as docs/json.md says; times in ms."""
    return {
        "schema": 1,
        "before": _totals(found.before),
        "after": _totals(found.after),
        "predicted_ms": ms(found.predicted),
        "prediction_error": found.error,
        "spread_ms": [ms(t) for t in found.spread] if found.spread else None,
        "change": found.change and found.change[1],
        "change_range": found.change and [found.change[0], found.change[2]],
        "within_noise": found.within_noise,
        "every_step": found.every_step or None,
        "not_comparable": found.incomparable or None,
        "host_pace": found.pace,
        "drift": found.drift,
        "prediction_came_true": found.came_true,
        "why_not": unlike(found) or None,
        "predicted_range_ms": [ms(t) for t in found.predicted_range] if found.predicted_range else None,
        "device_work_ms": [ms(t) for t in found.work],
        "device_work_pieces": list(found.pieces),
        "launches": list(found.calls),
        "gone": [_as_object(line) for line in found.gone],
        "new": [_as_object(line) for line in found.new],
        "changed": [{"before": _as_object(c.before), "after": _as_object(c.after)} for c in found.changed],
        "same": [_as_object(c.after) for c in found.same],
    }


def keep(found: Comparison, before: str, after: str, most: int, output: str) -> None:
    """Write the page of the second recording, with what became of the first."""
    from syncscope import api, files
    from syncscope.analysis.steps import counted_time
    from syncscope.exporters import html, stem

    def steps(report: Report) -> list[float | None]:
        return [ms(length) for length in counted_time(report.steps)[-1]] if report.steps else []

    names = {"before_name": stem(before), "after_name": stem(after), "words": sentence(found)}
    lengths = {"before_steps_ms": steps(found.before), "after_steps_ms": steps(found.after)}
    report = api.with_work(api.report(after, most=most))
    shown, events = html.parts(report, comparison=as_object(found) | names | lengths)
    files.write(output, html.page(shown, events).encode())
    echo(f"wrote {output}", err=True)


def _totals(report: Report) -> dict[str, Any]:
    return {
        "steps": len(report.steps),
        "step_ms": ms(report.step),
        "device_busy": report.device_busy,
        "reads_per_step": sum(line.count for line in report.lines),
        "blocked_ms": ms(sum(line.blocked for line in report.lines)),
        "total_saving_ms": ms(report.saving),
        "fidelity": report.fidelity,
    }


def _as_object(line: Line | None) -> dict[str, Any] | None:
    if line is None:
        return None
    return {
        "path": line.place.path if line.place else None,
        "line": line.place.line if line.place else None,
        "op": line.op,
        "count": line.count,
        "blocked_ms": ms(line.blocked),
    }


def show(found: Comparison, before: str, after: str) -> None:
    """Print it for people."""
    from rich.table import Table

    from syncscope.cli._console import console
    from syncscope.cli._places import here
    from syncscope.exporters._figures import shortened
    from syncscope.model.words import visible

    out = console()
    totals = Table(box=None, padding=(0, 2, 0, 0))
    names = [shortened(visible(name), max(12, out.width - len("before   "))) for name in (before, after)]
    out.print(f"before  {names[0]}, on {' and '.join(found.devices[0]) or 'an unknown device'}", highlight=False)
    out.print(f"after   {names[1]}, on {' and '.join(found.devices[1]) or 'an unknown device'}\n", highlight=False)
    for name, justify in (("", "left"), ("before", "right"), ("after", "right"), ("", "left")):
        totals.add_column(name, justify=justify)  # type: ignore[arg-type]  # rich's own literal
    one, other = found.before, found.after
    within = ", not surely" if found.every_step else ", within noise"
    apart = ", not comparable" if found.incomparable else within if found.within_noise else ""
    change = _change(one.step, other.step) + apart
    if bool(one.steps) != bool(other.steps):
        change = ""
    replayed = [report.saving is not None for report in (one, other)]
    length = f"step{', replayed' * all(replayed)}, ms" if one.steps and other.steps else "step or recording, ms"
    if all(found.timed):
        length = "step without a recording, ms"
    totals.add_row(length, _number(one.step, 1e6), _number(other.step, 1e6), change)
    if found.spread:
        totals.add_row("give or take, ms (95 %)", *(_number(t, 1e6) for t in found.spread), _between(found))
    totals.add_row("steps", str(len(one.steps)), str(len(other.steps)))
    totals.add_row("device busy, %", _number(one.device_busy, 0.01), _number(other.device_busy, 0.01))
    reads = [sum(line.count for line in r.lines) for r in (one, other)]
    known = [r.coverage is None or not r.coverage.refusal for r in (one, other)]
    seen = [f"{count:.3g}" if judged else "unknown" for count, judged in zip(reads, known, strict=True)]
    totals.add_row("syncs per step", *seen)
    blocked = [sum(line.blocked for line in r.lines) for r in (one, other)]
    told = [_number(ns if judged else None, 1e6) for ns, judged in zip(blocked, known, strict=True)]
    totals.add_row("host blocked, ms per step", *told)
    out.print(totals)
    if found.as_recorded:
        out.print(found.as_recorded, style="dim")
    if replayed[0] != replayed[1] and not any(found.timed):
        which, rest = ("first", "second") if replayed[0] else ("second", "first")
        out.print(
            f"A step of the {which} is as a replay gives it, of the {rest} as recorded: no replay fits it.", style="dim"
        )
    if found.within_noise and found.every_step:
        out.print(_every_step(found))
    if found.timed[0] != found.timed[1]:
        which, other_one = ("first", "second") if found.timed[0] else ("second", "first")
        said = f"A step of the {which} is as timed without a recording, for no replay fits it; of the {other_one}, as replayed."
        out.print(said, style="dim")
    out.print()
    if unlike(found):
        out.print(sentence(found), style="yellow")
        return
    lines = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", "line", "op"):
        lines.add_column(name, no_wrap=True)
    for name in ("syncs before", "after", "blocked ms before", "after"):
        lines.add_column(name, justify="right", min_width=7)
    rows: list[tuple[str, Line | None, Line | None]] = [("gone", a, None) for a in found.gone]
    rows += [("new", None, b) for b in found.new]
    rows += [("changed", c.before, c.after) for c in found.changed]
    rows += [("same", c.before, c.after) for c in found.same]
    for word, a, b in rows:
        line = a if b is None else b
        if line is None:
            continue
        style = {"gone": "green", "new": "red", "changed": "yellow"}.get(word, "")
        place = shortened(here(line.place), max(12, out.width - 60)) if line.place else line.module or "no line known"
        counts = [f"{x.count:.3g}" if x else "" for x in (a, b)]
        times = [_number(x.blocked, 1e6) if x else "" for x in (a, b)]
        lines.add_row(word, place, line.op, *counts, *times, style=style)
    out.print(lines if rows else "neither waits for the device")
    out.print()
    out.print(sentence(found))


def _every_step(found: Comparison) -> str:
    """That no step of one is as long as any of the other, where that is not enough to be sure."""
    one, other = ([t / 1e6 for t in lengths] for lengths in found.lengths)
    return (
        f"Every counted step of the second is {found.every_step}, {min(other):.1f} to {max(other):.1f} ms beside "
        f"{min(one):.1f} to {max(one):.1f}; that is not sure yet, for {found.widest}."
    )


def sentence(found: Comparison) -> str:
    """Whether the two can be compared, and whether what was predicted came true."""
    ranks = f" Mind that {found.of_ranks}; `syncscope ranks` sets ranks side by side." if found.of_ranks else ""
    return f"{_compared(found)}{ranks}"


def _compared(found: Comparison) -> str:
    if found.incomparable and not unlike(found) and not found.of_others:
        return f"The two steps cannot be compared: {found.incomparable}. {_foretold(found)}"
    return _foretold(found)


def _foretold(found: Comparison) -> str:
    from syncscope.analysis.verdict import next_recording
    from syncscope.cli._places import here

    if told := unlike(found):
        return f"Nothing is said of what changed: {told}."
    if other := found.of_others:
        return f"Nothing is predicted: {other}.{_besides(found, 'a step of the first and of the second')}"
    if found.predicted is None or found.error is None:
        fewer = found.gone or any(c.before and c.after and c.after.count < c.before.count for c in found.changed)
        why = "no sync went"
        if fewer and found.vague:
            why = (
                f"by a replay of the first recording alone, {found.vague}, which any measurement would confirm; what other "
                "loops like it gained, `syncscope report` says of it"
            )
        elif fewer:
            why = f"the first recording has no savings: {found.refusal or 'nobody waited in its steps'}"
        if found.unforeseen:
            why = "what a step takes over all rows, of which few were kept, lies further apart than a step is long"
            return f"Nothing is predicted: {why}.{_besides(found, 'a step of the first without those syncs and of the second')}"
        if found.renamed:
            one, other = map(here, found.renamed)
            return (
                f"Nothing is predicted: the sync at {one} is gone, and one of its kind is at {other}, in a file that the first "
                "recording does not have. If that is the same file by a new name, record both under one name, or "
                "compare in the folder in which both lie as they were recorded."
                f"{_besides(found, 'a step of the first and of the second')}"
            )
        record = f" {next_recording(found.before)}" * bool(fewer and (found.refusal or found.vague))
        return f"Nothing is predicted: {why}.{record}{_besides(found, 'a step of the first and of the second')}"
    low, high = found.predicted_range or (found.predicted, found.predicted)
    give = f" give or take {in_ms(found.spread[1], '')}" if found.spread else ""
    came = {
        True: "that came true",
        False: "that did not come true",
        None: "its range is too wide to tell whether that came true",
    }
    told = (
        f"Without the syncs that went, a replay of the first recording gives a step of {in_ms(found.predicted)} "
        f"({in_ms(low, '')} to {in_ms(high, '')}); measured is {in_ms(found.after.step or 0)}{give}: {came[found.came_true]}, "
        f"the prediction is off by {found.error:+.1%}."
    )
    if found.within_noise and not found.incomparable:
        told += " The two recordings differ by no more than equal ones may: take more steps to tell them apart."
    return told + _besides(found, "a step of the first without those syncs and of the second")


def _besides(found: Comparison, what: str) -> str:
    """What else was changed, in numbers: how fast the host was, the device's work, and what the host does for it."""
    if abs(found.pace - 1) > PACE:
        return (
            f" Calls of the driver that wait for nothing take {found.pace:.2f} times as long in the second recording: "
            f"the host was {'faster' if found.pace < 1 else 'slower'} in it{_yet(found)}.{_work(found, what)}"
        )
    return _work(found, what)


def _yet(found: Comparison) -> str:
    """That a faster host's step is longer, or a slower one's shorter: so its speed is not what made the difference."""
    if not found.before.step or not found.after.step:
        return ""
    length = found.after.step / found.before.step
    if (found.pace < 1) == (length < 1) or abs(length - 1) <= PACE:
        return ""
    return f", yet its step is {'longer' if length > 1 else 'shorter'}: that is not for the host's speed"


def _work(found: Comparison, what: str) -> str:
    others = [
        f"{name} {pair[0] / unit:,.{digits}f} and {pair[1] / unit:,.{digits}f}"
        for name, pair, unit, digits in (
            ("ms of the device's work", found.work, 1e6, 2),
            ("pieces of it", found.pieces, 1, 0),
            ("launches", found.calls, 1, 0),
        )
        if abs(pair[1] - pair[0]) > CHANGED * max(pair)
    ]
    if others:
        return f" What else was changed, {what}: {', '.join(others)}."
    if found.before.step and found.after.step and not found.within_noise and found.predicted is None:
        return " The device has the same work in both: what differs is the host, or how fast the device is."
    return ""


def _number(value: float | None, unit: float) -> str:
    return "unknown" if value is None else f"{value / unit:.2f}"


def _between(found: Comparison) -> str:
    """What the change lies between; "" where nobody knows."""
    if found.change is None:
        return ""
    if found.change[2] - found.change[0] > VAGUE:
        return f"{100 * found.change[0]:+.0f} to {100 * found.change[2]:+.0f} %"
    return f"{100 * found.change[0]:+.1f} to {100 * found.change[2]:+.1f} %"


def _change(before: float | None, after: float | None) -> str:
    return f"{(after - before) / before:+.1%}" if before and after else ""
