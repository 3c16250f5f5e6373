"""What a report says in words: whether anything is worth fixing, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from syncscope.analysis.answer import EXCHANGED
from syncscope.analysis.experience import BUSY
from syncscope.model.answer import Answer, Decision
from syncscope.model.durations import about_ms
from syncscope.model.finding import Stays
from syncscope.model.ops import SINGLE
from syncscope.model.report import GATE, Advice, Line, Report

WORTH = 0.01  # the part of a step that must be saved, at least, to be worth a change
MUCH = 0.1  # the part of a step that goes with waits and is no waiting, from which on that is said
STAYS = 0.95  # of what lines cost, from which on it is not worth a word that one of their reads stays
PROGRAM = "YOUR_PROGRAM.py"
BUDGET = "2m"  # what the command that settles a line is given; it ends earlier where it is sure
ENOUGH = 20  # steps of which a spread is well known
BESIDE = "Record the processes, ranks and streams beside it, too, or ask the driver's own profiler."


def _idle(report: Report) -> str:
    """Why nothing is known of the device's time."""
    return (report.coverage.refusal if report.coverage else "") or "no work of a device was recorded"


def verdict(report: Report) -> Report:
    """The report with what it says in words: `verdict` has all of it, `lead` the answer, which figures and tables say, too, and
    `further` what they do not: what fixing several lines saves, what can be had at most and why, and what to do."""
    per = "step" if report.steps else "recording"
    word, lead, further, instead = _decision(report, per)
    most = report.bound.words(per, report.busiest) if report.bound and report.lines else ""
    further = (*further[:1], most, *further[1:])
    job = f"This is {report.of_a_job}." if report.of_a_job else ""
    parts = (word, *lead, *further, instead, job)
    told = [" ".join(filter(None, part)) for part in (parts, lead[-1:], further)]
    return replace(report, verdict=told[0], lead=told[1], further=told[2])


def _decision(report: Report, per: str) -> tuple[str, tuple[str, ...], tuple[str, ...], str]:
    """The word; what is said beside it and stands in figures, too, the answer last; what is said further; what else holds the
    loop up."""
    found, refused, idle = report.answer, _refusal(report, per), _idle(report)
    word = f"Decision: {found.decision}." if found is not None else ""
    unknown = found is not None and found.decision is Decision.UNKNOWN
    leave = found is not None and found.decision is Decision.LEAVE
    no_lines = f"No savings of lines: {refused} {_next(report)}"
    blocked = f"The host was blocked for {about_ms(sum(line.blocked for line in report.lines))} of a {per}."
    if not report.lines:
        if report.fidelity is None:
            return "", (f"No savings: {idle}, so that nothing can be said of waits for it.",), (), ""
        if unknown:
            return word, (), (no_lines,), ""
        return "", ("No wait is worth fixing: the host never waits for the device.",), (), _instead(report)
    if report.fidelity is None:
        return "", ("" if report.refused else blocked, f"No savings: {idle}."), (), ""
    if found is None or found.share is None:
        left = "No wait is worth fixing." if leave else f"{found.why[:1].upper()}{found.why[1:]}." if found else ""
        return word, (blocked, left), (no_lines if refused else "",), ""
    word = f"Decision: {found.decision}{', all together, for no line is worth it alone' * report.only_together}."
    step = report.saving_step or (report.bound.step if report.bound else report.step) or 0.0
    without = _without(report, found, step, per)
    if refused:
        return word, (without,), (no_lines, _alone(report, found)), ""
    unforeseen = [name(line) for line in report.lines if line.advice is Advice.TRY]
    told = unforeseen_told(unforeseen) if unforeseen else ""
    if leave:
        return word, (without,), (told,), _instead(report)
    chosen = [report.lines[i] for i in report.plan]
    if not chosen:
        return word, (without,), (told, _alone(report, found), _settles(report)), ""
    plan = _plan(report, chosen, step, per)
    lead, further = ((plan, without), "") if len(report.lines) == 1 else ((without,), plan)
    return word, lead, (further, told, _alone(report, found), _rests(report, step), _settles(report)), ""


def _without(report: Report, found: Answer, step: float, per: str) -> str:
    """How long a step is without its waits."""
    if found.decision is Decision.LEAVE:
        longer = [line for line in report.lines if line.price and line.advice is Advice.LEAVE and line.price.alone < 0]
        if longer and (found.share or 0.0) < WORTH:
            more = about_ms(max(-line.price.alone for line in longer if line.price))
            return (
                f"No wait is worth fixing: {name(longer[0])} keeps so few rows that a {per} of {about_ms(step)} "
                f"would take up to {more} more over all of them."
            )
    which = "the other waits" if any(line.advice is Advice.TRY for line in report.lines) else "waits"
    along = " and what goes with them" if found.along else ""
    said = f"ithout {which}{along} a {per} of {about_ms(step)} is likely {found.likely('shorter')}."
    return f"No wait is worth fixing: w{said}" if found.decision is Decision.LEAVE else f"W{said}"


def _alone(report: Report, found: Answer) -> str:
    """What waits cost where more may go with them."""
    if not found.along or report.of_waits is None:
        return ""
    return f"Without waits alone, if {found.along} stays, it is likely {report.of_waits.likely('shorter')}."


def _plan(report: Report, chosen: Sequence[Line], step: float, per: str) -> str:
    """What the fewest lines save that give most of what can be had."""
    places = len({line.place or id(line) for line in chosen})
    what = "one line" if places == 1 else f"{places} lines"
    gain = report.plan_saving or 0.0
    saves = "saves" if report.answer and report.answer.decision is Decision.FIX else "may save"
    shares = sum(line.price.share for line in chosen if line.price)
    less = ", of whose reads one stays," if gain < STAYS * shares and any(_stays(line) for line in chosen) else ""
    first = f", first {name(chosen[0])}" if places > 1 else f": {name(chosen[0])}"
    share = chosen[0].price.share if chosen[0].price else 0.0
    part = f", whose share, {about_ms(share)}, is its part of what all waits save" if share > gain else ""
    return (
        f"Fixing {what}{less} {saves} {about_ms(gain)} of {about_ms(step)} per {per} ({gain / step:.1%}){first}{part}."
    )


def _stays(line: Line) -> bool:
    """Whether the rewrite of a line leaves one of its reads."""
    fix = line.finding.fix if line.finding else None
    return fix is not None and fix.stays is not Stays.NONE


def _rests(report: Report, step: float) -> str:
    """What the figure of all waits is without what is launched for them, where that is its smaller part; "" elsewhere."""
    found = report.of_waits or report.answer
    likely = (found.share or 0.0) * step if found is not None else 0.0
    still = sum(line.idle_after for line in report.lines)
    if likely < 2 * still or likely - still < MUCH * step:
        return ""
    return (
        f"Of the {about_ms(likely)} that waits cost the device stands still after them for {about_ms(still)}. The rest comes "
        "only where what is launched for the waits goes with them, and what the host does to launch it."
    )


def _instead(report: Report) -> str:
    """What does hold the loop up."""
    return report.uses.words if report.uses is not None else ""


def _settles(report: Report) -> str:
    """What settles whether to fix what is to be done first, and how long that takes: the plan, else the first doubtful line."""
    if (report.exchanged or 0.0) >= EXCHANGED:  # no rank alone settles it
        return ""
    planned, doubtful = [report.lines[i] for i in report.plan], [line for line in report.lines if _tried(line)]
    if report.answer is not None and report.answer.decision is not Decision.TRY and not any(map(_tried, planned)):
        planned = []  # nothing is open of it
    lines = planned or doubtful
    if not lines:
        return ""
    first = lines[0]
    if _by_hand(first) and _tryable(first):
        by_hand = f"No command rewrites {first.place}: `syncscope explain {first.rule}` shows what people write"
        command = f"syncscope verify --stale --budget {BUDGET} --line {first.place} {_program(report)}"
        stale = f", and `{command}` tells what a step without its wait takes"
        return f"{by_hand}{stale * (first.op in SINGLE)}."
    tried = written(report) if planned else [line for line in lines if _is_written(line)][:1]
    if not tried:
        return ""
    number = len({line.place for line in tried})
    one = f"{tried[0].place} alone" if planned else f"whether {tried[0].place} is worth it{', too' * bool(report.plan)}"
    what = f"these {number} lines" if number > 1 else "it" if len(report.lines) == 1 else one
    return f"`{trial(report, *tried)}` measures {what}, and says where {BUDGET} are too few."


def written(report: Report) -> list[Line]:
    """The lines of the plan that can be tried: those with a rewrite, and of files that nobody read all."""
    planned = [line for line in (report.lines[i] for i in report.plan) if _is_written(line)]
    return [line for line in planned if line.finding] or planned


def _is_written(line: Line) -> bool:
    return not _by_hand(line) and _tryable(line)


def trial(report: Report, *lines: Line) -> str:
    """The command that tries the rewrites of these lines, suggestions, too; "" where none of them can be tried."""
    places = dict.fromkeys(line.place for line in lines if _tryable(line))
    chosen = "".join(f"--line {place} " for place in places)
    return chosen and f"syncscope verify --budget {BUDGET} {chosen}{_program(report)}"


def _tryable(line: Line) -> bool:
    """Whether the line is in a file of the user's: of a library nothing is tried, nor of a cell that is in no file."""
    return line.place is not None and line.caller is None and line.place.path.endswith((".py", ".ipynb"))


def _program(report: Report) -> str:
    """The program as a shell takes it, behind the device that it was lent; of a recording that was read a name for it: no file
    says what is to be run."""
    command = report.trace.meta.get("command") if report.trace is not None else None
    return command or f"{_lent(report)}{PROGRAM}"


def _lent(report: Report) -> str:
    """The option that lends the device which was recorded to a program that asked for another; "" where it was none lent."""
    return "--device ocl " if report.trace is not None and report.trace.meta.get("stands_for") else ""


def _by_hand(line: Line) -> bool:
    """Whether the linter knows the line, and has no rewrite for it."""
    return line.finding is not None and line.finding.fix is None


def _tried(line: Line) -> bool:
    return line.answer is not None and line.answer.decision is Decision.TRY and line.place is not None


def _refusal(report: Report, per: str) -> str:
    """Why a replay cannot tell what single lines save; "" where it can."""
    if report.fidelity is not None and report.fidelity > GATE:
        return (
            f"a replay that changes nothing is {report.fidelity:.1%} off{_most(report)}, "
            f"so what it says of changes cannot be trusted (the limit is {GATE:.0%})."
        )
    if report.unexplained is not None and report.unexplained > GATE:
        return (
            f"in {report.unexplained:.1%} of a {per} the device stands still and nothing that was recorded says "
            f"why{_most(report)} (the limit is {GATE:.0%}). Events may be missing from the "
            "recording, or the device or the machine had other things to do."
        )
    if report.silent is not None and report.silent > GATE:
        return (
            f"for {report.silent:.1%} of a {per} a thread is silent until the device has just done all, and no "
            f"recorded call waited then{_most(report)} (the limit is {GATE:.0%}). The calls that wait may be missing from the "
            "recording, or not be known to wait."
        )
    return ""


def unforeseen_told(lines: Sequence[str]) -> str:
    """What is said of lines without a price, and what to do next; each is named as in a sentence."""
    others = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    them, their = ("they keep", "their rewrites") if others else ("it keeps", "its rewrite")
    return (
        f"No saving is known for {lines[0]}{others}: {them} so few rows that nobody can say what a step takes over all of "
        f"them; `syncscope verify` measures {their}."
    )


def _next(report: Report) -> str:
    """What to do where there is no price, and what the lines are ordered by."""
    order = "Until then the lines stand in the order of how long the device had nothing to do after them." * bool(
        report.lines
    )
    more = BESIDE if report.recurring else next_recording(report)  # the answer says that it is no chance
    return f"{more} {order}".rstrip()


def next_recording(report: Report) -> str:
    """How the next recording can tell more than this one, and with which option."""
    steps, meta = len(report.steps), report.trace.meta if report.trace is not None else {}
    if not steps:
        return "Record it again, with each step marked, on a machine with nothing else to do."
    if report.recurring:
        return (
            f"It is no chance: {report.recurring}. What it waits for was not recorded, and a quieter machine does not change "
            f"that. {BESIDE}"
        )
    if float(meta.get("others") or 0.0) > BUSY:
        return "Record it again, while nothing else runs on this machine."
    first = max(0, report.steps[0].index)
    if steps < ENOUGH:
        more, wait, active = f"more steps than {steps}", first, max(ENOUGH, 2 * steps)
    else:
        wait, active = first + steps, steps
        more = f"other steps, once all is compiled, of a run that makes {wait + active}"
    ours = f"`syncscope run {_lent(report)}--wait {wait} --active {active}`"
    theirs = f"`schedule=torch.profiler.schedule(wait={wait}, warmup=1, active={active})`"
    return f"Record {more} ({ours if meta.get('recorder') == 'syncscope' else theirs}), on a machine with nothing else to do."


def _most(report: Report) -> str:
    """Where most of the unexplained lateness is."""
    if not report.late:
        return ""
    lane = max(report.late, key=lambda key: report.late[key])
    return f", most on {lane} ({report.late[lane]:.0%} late)"


def name(line: Line) -> str:
    """A line in a sentence."""
    if line.place is not None:
        return f"`{line.op}` at {line.place.shortly}"
    return f"`{line.op}` in {line.module}" if line.module else f"`{line.op}`, whose line was not recorded"
