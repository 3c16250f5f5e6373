"""What is said of two recordings: whether they can be compared, whether a prediction came true, and what else was changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscope.cli._places import here
from syncscope.model.durations import in_ms

if TYPE_CHECKING:
    from syncscope.analysis.comparison import Comparison
    from syncscope.model.report import Line

QUOTE = "quote what was measured"
"""Where a forecast and what came of it disagree."""
PACE = 0.05  # a host that is faster or slower by this part is spoken of
CHANGED = 0.03  # part by which the work of two recordings of the same loop does not differ
PART = 0.01  # of a step by which a part of it must differ, to be named
PARTS = 3  # that are named


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


def sentence(found: Comparison) -> str:
    """Whether the two can be compared, and whether what was predicted came true."""
    ranks = f" Mind that {found.of_ranks}; `syncscope ranks` sets ranks side by side." if found.of_ranks else ""
    every = f" {_every_step(found)}" if found.within_noise and found.every_step and not unlike(found) else ""
    apart = found.perhaps_others if not unlike(found) else ""
    first = f"{apart[:1].upper()}{apart[1:]}. " if apart else ""
    return f"{first}{_promised(found)}{_compared(found)}{every}{ranks}"


def _promised(found: Comparison) -> str:
    """Whether what the first report promised of another change came true, where that was made; "" where none was."""
    if unlike(found) or (known := found.promised) is None:
        return ""
    what, (idle, left), came, true = known
    low, high = (in_ms(ns, "") for ns in (what.low, what.high))
    change = f"{in_ms(abs(came))} {'shorter' if came >= 0 else 'longer'}"
    return (
        f"If {what.name}, a step was to be {in_ms(what.saving)} shorter ({low} to {high}), as `syncscope report` says of the "
        f"first. The device is idle for that {in_ms(left)} instead of {in_ms(idle)}, and a step is {change}: "
        f"that {'came' if true else 'did not come'} true. "
    )


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
        False: f"that did not come true; {QUOTE}",
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
    differ = not found.within_noise or bool(found.every_step)
    if found.before.step and found.after.step and differ and found.predicted is None:
        return f" The device has {'as much' if found.kernels else 'the same'} work in both{_parts(found)}."
    return ""


def _parts(found: Comparison) -> str:
    """The parts of where a step goes that became others, before and after, the largest difference first."""
    if found.before.uses is None or found.after.uses is None:
        return ": what differs is the host, or how fast the device is"
    before, after = (
        {one.use: one.time for one in report.uses.spent} for report in (found.before, found.after) if report.uses
    )
    longest = max(sum(before.values()), sum(after.values()))
    pairs = [(use, before.get(use, 0.0), after.get(use, 0.0)) for use in dict.fromkeys([*before, *after])]
    changed = [pair for pair in pairs if abs(pair[2] - pair[1]) > PART * longest]
    changed.sort(key=lambda pair: -abs(pair[2] - pair[1]))
    if not changed:
        return ", and no part of where a step goes is another"
    told = ", ".join(f"{use.words} {in_ms(one, '')} and {in_ms(other, '')}" for use, one, other in changed[:PARTS])
    return f". What differs of where a step goes, ms of the first and of the second: {told}"


def in_place(pair: tuple[Line, Line]) -> str:
    """That a line which waits where another has gone may be another."""
    before, after = (here(place) if (place := line.caller or line.place) else "no line known" for line in pair)
    if pair[0].op != pair[1].op:
        return f"The {pair[1].op} at {after} is in place of the {pair[0].op} that was at {before}: it is not counted as new."
    return (
        f"The {pair[1].op} at {after} is where that at {before} was, of another expression: it is not counted as new."
    )


def moved(pair: tuple[Line, Line]) -> str:
    """That what the host no longer waits for at a line it waits for at another."""
    before, after = (here(place) if (place := line.caller or line.place) else "no line known" for line in pair)
    return f"The wait of {before} moved to {after}: the host is blocked there for about as much longer."


def at_times(line: Line) -> str:
    """That a line which waits in some steps only does so in both recordings."""
    place = here(place) if (place := line.caller or line.place) else "no line known"
    return (
        f"The {line.op} at {place} waits in some steps only: in the first recording, too, but in none that is counted. It is "
        "not counted as new."
    )


def between_times(line: Line) -> str:
    """That the first recording is too short to say whether a line that waits in some steps only did so before."""
    place = here(place) if (place := line.caller or line.place) else "no line known"
    return (
        f"The {line.op} at {place} waits in some steps only, of a file that is the same in both: the first recording has fewer "
        "steps than lie between two such, or before one. It is not counted as new."
    )


def change(found: Comparison) -> str:
    """`a step is 12.3 % longer (3.1 to 20.0 %)`; "" where nobody knows how far steps vary."""
    if found.change is None:
        return ""
    low, likely, high = found.change
    which = "longer" if likely >= 0 else "shorter"
    return f"a step is {100 * abs(likely):.1f} % {which} ({100 * low:.1f} to {100 * high:.1f} %)"


def _every_step(found: Comparison) -> str:
    """That no step of one is as long as any of the other, where that is not enough to be sure: of it, or where the host's speed
    is not what made it so, of how much it is."""
    unsure = "by how much is not sure yet" if _yet(found) else "that is not sure yet"
    one, other = ([t / 1e6 for t in lengths] for lengths in found.lengths)
    return (
        f"Every counted step of the second is {found.every_step}, {min(other):.1f} to {max(other):.1f} ms beside "
        f"{min(one):.1f} to {max(one):.1f}; {unsure}, for {found.widest}."
    )
