"""How `syncscope verify` shows what it does, and what came of it."""

from __future__ import annotations

import math
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from syncscope.analysis.measured import in_steps
from syncscope.cli._console import console, echo, paints, rewrites
from syncscope.cli._diff_words import QUOTE
from syncscope.exporters._diff import unified
from syncscope.model.durations import in_ms
from syncscope.model.words import visible
from syncscope.verify.results import IN_ONE, MOST_TIMES
from syncscope.verify.spent import SAID, VALUES
from syncscope.verify.timing import FEWEST, SLIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from syncscope.verify.results import Verification
    from syncscope.verify.timing import Ratio
    from syncscope.verify.values import Difference


IN_ONE_SAID, EACH_SAID = "in one process, some steps of each version", "each version in a process of its own"
# of what becomes of a fix, in the order in which they are shown
COLORS = {"kept": "green", "unproved": "yellow", "open": "yellow", "left out": ""}
APART = 0.01  # two medians and a ratio that are this far apart are seen to be so, and want a word
SELDOM = 15.0  # s between two lines of what is done, where none is written over


class Bar:
    """What is run, how much of the budget is spent, and what is known so far: on a terminal in a line that is gone when it is
    done, elsewhere in one now and then, since ten minutes of silence look like a hang in the log of a CI runner."""

    def __init__(self, found: Verification, budget: float, quiet: bool) -> None:
        self._found, self._budget, self._quiet = found, budget, quiet
        self._progress: Any = None
        self._task: Any = None
        self._on = rewrites(sys.stderr) and not quiet
        self._began, self._said = time.monotonic(), -SELDOM

    def __enter__(self) -> Bar:
        if self._on:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (BarColumn(16), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
            self._progress = Progress(*columns, console=console(stderr=True), transient=True)
            self._progress.start()
            self._task = self._progress.add_task("", total=self._budget)
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, what: str) -> None:
        """A run begins."""
        said = visible(what) + (f"; so far {of_the_step(self._found.ratio)}" if self._found.ratio else "")
        spent = time.monotonic() - self._began
        if self._progress is not None:
            self._progress.update(self._task, completed=spent, description=said)
        elif not self._quiet and spent - self._said >= SELDOM:
            self._said = spent
            echo(f"{spent:3.0f} s of {self._budget:.0f}: {said}", err=True)

    def warn(self, line: str) -> None:
        """What is to be known before anything is run."""
        if self._progress is not None:
            self._progress.console.print(Text(visible(line)))
        elif not self._quiet:
            echo(visible(line), err=True)


def interval(ratio: Ratio | None) -> str:
    """`0.914 (0.902 to 0.926)`."""
    return "not known" if ratio is None else str(ratio)


def of_the_step(ratio: Ratio | None) -> str:
    """What it is a part of, too."""
    return "not known" if ratio is None else f"{ratio} of the step as written"


def folder_of(paths: Iterable[str]) -> str:
    """The folder from which a patch of these files is applied: where we are, or the one above that holds them all."""
    here = os.path.realpath(".")
    above = os.path.commonpath([here, *map(os.path.dirname, paths)])
    return here if above == here else above


def patch(found: Verification) -> str:
    """What is kept, or open on a processor, as `git apply` and `patch -p1` take it from the working folder, or one above:
    `folder_of`."""
    files = found.open_files if found.is_open else found.files
    folder = folder_of(files)
    return "".join(unified(os.path.relpath(path, folder), old, new) for path, (old, new) in files.items())


def show(found: Verification, written: bool) -> None:
    """Prints it for people."""
    out = console()
    out.print(Rule(Text(f"verify {visible(found.program)}", "bold"), align="left", style="dim"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, text in summary(found):
        grid.add_row(name, text)
    out.print(grid)
    if found.fixes:
        out.print()
        out.print(each(found))
    out.print()
    out.print(Text(verdict(found), "bold"))
    if files := found.open_files if found.is_open else found.files:
        out.print()
        color, folder = paints(sys.stdout), folder_of(files)
        for path, (old, new) in files.items():
            echo(unified(os.path.relpath(path, folder), old, new, color=color), nl=False)
        if folder != os.path.realpath("."):
            out.print(Text(f"\nthe patch is to be applied in {visible(folder)}", "dim"))
        if found.is_open:
            what = "what is open above: what it saves is not decided" if found.fixes else "what it saves is not decided"
            out.print(f"\n{what}; -o fixes.patch has it, --write does not make it", style="dim")
        elif not written:
            out.print("\n--write makes these changes, -o fixes.patch keeps them as a patch", style="dim")


def summary(found: Verification) -> list[tuple[str, str]]:
    """The figures, each with its name."""
    on = f" on {found.device}" if found.device else ""
    more = f" ({found.timed_steps} where they are timed)" if found.timed_steps > found.steps else ""
    each = f"of {found.steps} steps each{more}" if found.steps else "whose steps were not all made"
    rows = [("runs", f"{found.runs} {each}{on}, {found.seconds:.0f} s in all")]
    rows += [("time", went)] if (went := spent(found)) else []
    rewritten = "answered late" if found.stale else "rewritten"
    if found.before is not None and found.after is not None:
        fed = f"; {found.fed:.0%} of it until its batch is there" if found.fed and found.fed >= 0.1 else ""
        apart = (
            found.ratio and not found.by_processors and abs(found.after / found.before / found.ratio.ratio - 1) > APART
        )
        other = (
            ", medians of all turns, between which the machine changed; the ratio compares within each" if apart else ""
        )
        rows.append(("step", f"{in_ms(found.before)} as written, {in_ms(found.after)} {rewritten}{other}{fed}"))
    by = ", in processor time, since others disturb the clock; waits are not in it" * found.by_processors
    rows.append(("ratio", f"{of_the_step(found.ratio)}{by}"))
    if found.way:
        why = f": {visible(found.why_way)}" if found.why_way else ""
        turns = f"{found.ratio.turns}, " if found.ratio else ""
        copies = f", {found.copies} of them at a time" if found.copies > 1 else ""
        rows.append(("turns", f"{turns}{IN_ONE_SAID if found.way == IN_ONE else EACH_SAID + copies}{why}"))
    if found.same:
        hides = f": {_hides(found.ratio, found.same)}, and no gain is shown" if found.is_in_the_noise else ""
        rows.append(("same version twice", f"{interval(found.same)}{hides}"))
    if not found.stale:
        rows.append(("values", values(found)))
        if found.why_values and found.values:
            rows.append(("", f"compared in runs of their own: {visible(found.why_values)}"))
    if found.reads_before is not None:
        after = "" if found.reads_after is None else f", {found.reads_after:.3g} {rewritten}"
        rounds = f"; {found.rounds}" if found.rounds else ""
        rows.append(("syncs", f"{found.reads_before:.3g} a step as written{after}{rounds}"))
    if found.predicted:
        measured = found.ratio is not None and found.ratio.turns > 1
        unknown = "its range is too wide to tell" if measured else "not measured"
        came = {True: "that came true", False: f"that did not come true; {QUOTE}", None: unknown}[found.came_true]
        rows.append(("predicted", f"{interval_of_prediction(found.predicted)} of the step as written: {came}"))
    elif found.unpredicted:
        rows.append(("predicted", f"nothing: {visible(found.unpredicted)}"))
    rows += [("note", note) for note in found.notes]
    rows += [("not taken back", f"{visible(path)}: {why}") for path, why in found.remains.told()]
    return rows


def _hides(ratio: Ratio | None, same: Ratio) -> str:
    """How two equal versions may differ by as much as the ratio is from 1."""
    if not same.is_bounded:
        return "so few turns set no bound to how far equal versions are apart"
    covers = ratio is not None and same.low <= ratio.ratio <= same.high
    return "it covers the ratio" if covers else "it is as far from 1 as the ratio"


def spent(found: Verification) -> str:
    """What the time went to, the most first."""
    most_first = sorted(found.spent.items(), key=lambda of: -of[1])
    return ", ".join(f"{seconds:.0f} s {SAID[what]}" for what, seconds in most_first if seconds >= 0.5)


def interval_of_prediction(ratio: Ratio) -> str:
    """As `interval`; a replay has no turns."""
    return f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def values(found: Verification) -> str:
    """What became of the values, in words."""
    apart, noise = found.difference, found.noise
    own = f"; two runs as written differ by {noise.largest:.1e}" if noise and noise.largest else ""
    if found.values is None and apart is not None and apart.largest:
        where = f", most at {visible(apart.where)}" if apart.where else ""
        by = f"by {apart.largest:.1e}{where}" if math.isfinite(apart.largest) else f"{where.removeprefix(', ')}"
        return f"differ {by}; the end came before it was known whether rounding carries as far{own}"
    if found.values is None or apart is None:
        if found.decided or any(fix.values for fix in found.fixes):
            return f"nothing was compared that stays{own}"
        took = f"; {seconds:.0f} s went to it" if (seconds := found.spent.get(VALUES, 0.0)) >= 1 else ""
        return f"not known: the end came before all was compared{took}{own}"
    compared = f"parameters, buffers, losses{_reads(apart)}"
    compared += f"; and {apart.names} numbers that its names hold" * bool(apart.names)
    compared += f", over the first {found.fewer_steps} steps" * bool(found.fewer_steps and not found.compared_steps)
    compared += f", in the same {found.compared_steps} steps of one process" * bool(found.compared_steps)
    if found.values == "equal":
        return f"equal, bit for bit: {compared}{own}"
    parts = (
        ("parameters", apart.parameters), ("buffers", apart.state),
        ("losses", apart.losses), ("values read", apart.reads), ("numbers held", apart.held),
    )  # fmt: skip
    by = ", ".join(f"{name} {size:.1e}" for name, size in parts if size)
    carried = f"; rounding alone carries as far as {found.last_bit.largest:.1e} here" if found.last_bit else ""
    left = apart.read - apart.compared
    gone = f"; {left} of the {apart.read} values that are read as written are read later, or not at all" * (left > 0)
    return f"{found.values}: the largest relative differences are of {by}{gone}{carried}{own}"


def _reads(apart: Difference) -> str:
    """How many of the values that the program reads as written are read rewritten, too: a wait that is gone reads none."""
    if not apart.compared:
        return f"; of {apart.read} values that it reads as written it reads none here any more" if apart.read else ""
    rest = f"; the other {apart.read - apart.compared} are read later, or not at all" * (apart.compared < apart.read)
    return f" and {apart.compared} of {apart.read} values that it reads as written{rest}"


def each(found: Verification) -> Table:
    """What became of each fix."""
    fixes, order = found.fixes, [*COLORS]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for fix in sorted(fixes, key=lambda fix: (order.index(found.stands(fix)), fix.path, fix.line)):
        alone = f"by itself a step is {interval(fix.ratio)} of what it was" if _says(fix.ratio) else ""
        computes = f"values {fix.values}" if fix.values else ""
        without = f"without it {interval(fix.without)} of what it is with all" if _says(fix.without) else ""
        told = ", ".join(filter(None, (alone, without, computes)))
        column = f":{fix.finding.column}" if sum((fix.path, fix.line) == (f.path, f.line) for f in fixes) > 1 else ""
        head = Text(f"{visible(fix.path)}:{fix.line}{column}", "bold")
        head.append(f"  {fix.finding.rule}, {fix.fix.standing}: {visible(fix.fix.title)}", "not bold")
        said = Text("; ".join(filter(None, (told, visible(fix.told)))), "dim")
        grid.add_row(Text(stands := found.stands(fix), COLORS[stands]), Group(head, said))
    return grid


def _says(ratio: Ratio | None) -> bool:
    """Whether a ratio is more than noise, as one of a single turn is."""
    return ratio is not None and ratio.turns > 1


def _why_open(found: Verification) -> str:
    """What keeps time from being told, where a figure says it: turns that were too few have no noise."""
    turns = found.ratio.turns if found.ratio is not None else 0
    if turns < FEWEST:
        return f" ({turns or 'no'} turn{'s' * (turns != 1)}, and {FEWEST} are the least; a larger --budget holds more)"
    same = found.same
    known = same is not None and same.turns > 1 and math.isfinite(same.half)
    return f" (noise {same.half:.0%})" if same is not None and known else ""


def known_without_time(found: Verification) -> str:
    """What is known where a processor cannot tell the time."""
    waits = f"of {found.reads_before or 0:.3g} waits a step {found.reads_after or 0:.3g} are left"
    same = (
        f"equal, bit for bit{in_steps(found.steps_of_values)}"
        if found.values == "equal"
        else "as the text of the fixes says"
    )
    time = f"time is not decidable here{_why_open(found)}: a quiet GPU decides it, by the same command without --device"
    return f"What is known: {waits}, and values are {same}; {time}.{_would_show(found)}"


def _may_be(ratio: Ratio) -> str:
    """What an interval leaves open, in words."""
    if ratio.turns < 2 or not math.isfinite(ratio.high):
        return ""
    low, high = (
        f"{abs(1 - end):.1%} {'shorter' if end < 1 else 'longer'}" if abs(1 - end) >= 0.0005 else "as long"
        for end in (ratio.low, ratio.high)
    )
    return f" It may be {low}, it may be {high}: in 95 of 100 cases the truth lies between."


def _would_show(found: Verification) -> str:
    """That a gain is not shown, where two equal versions may differ by as much, and how many more steps would show it."""
    if not found.is_in_the_noise or found.ratio is None or found.ratio.turns < FEWEST:
        return ""
    times = found.times_the_steps
    if found.drifts:
        more = "more steps would not show it: equal versions surely differ, as steps change by themselves here"
    elif found.lacks_turns_of_the_same:
        more = "more turns would bound that"
    elif times > MOST_TIMES:
        more = "no number of steps that anybody waits for would show it; a machine with nothing else to do may"
    else:
        more = f"some {max(1.5, times):.2g} times as many steps would, if they vary as these did, or a quieter machine"
    return (
        f" The {1 - found.ratio.ratio:.1%} are not shown, for the same version twice may differ by as much, "
        f"{interval(found.same)}: {more}."
    )


def _would_decide(found: Verification) -> str:
    """The budget that likely does, where it is known."""
    return f" `--budget {found.enough}m` would likely decide." if found.enough and not found.decided else ""


def verdict(found: Verification) -> str:
    """One sentence; and what a ratio of processor time does not prove."""
    return f"{_in_one_sentence(found)}{_of_waits(found)}"


def _of_waits(found: Verification) -> str:
    """That what waits cost is no part of processor time, how many are gone, and what proves the rest; "" by the clock."""
    if not found.by_processors or found.interrupted or found.is_open or found.ratio is None:
        return ""
    gone = ""
    if found.reads_before is not None and found.reads_after is not None:
        gone = f"Of {found.reads_before:.3g} waits a step {found.reads_after:.3g} are left. "
    return (
        f" {gone}What they cost is not proved: processor time has no waits in it. On a machine with nothing else to do "
        "the same command takes the clock's time."
    )


def _in_one_sentence(found: Verification) -> str:
    ratio = found.ratio
    if found.interrupted:
        known = f" So far a step is {interval(ratio)} of what it was." if ratio else ""
        good = " What it computes is known: the fixes that are open change no value beyond their text." * found.is_open
        return f"Interrupted: nothing is decided.{known}{good}"
    if found.is_open:
        return known_without_time(found)
    if found.values == "changed" and not found.fixes:
        return "The values changed: that is another program."
    refused = "A fix was refused, and of the others nothing is decided" if found.refused else "Nothing is decided"
    if ratio is None:
        said = "Every fix was refused" if found.decided else f"{refused}: no step was timed before the end"
        return f"{said}. The files are as they were.{_would_decide(found)}"
    share = f"{abs(1 - ratio.ratio):.1%} ({abs(1 - ratio.high):.1%} to {abs(1 - ratio.low):.1%})"
    how = "answered late" if found.stale else "rewritten"
    more = f"{_may_be(ratio)}{_would_show(found)}{_would_decide(found)}"
    undecided = f"{refused}: {how} the step is {interval(ratio)} times as long.{more}"
    if found.stale:
        if found.gains:
            return f"Without these waits the step is {share} shorter. Nothing that this run computed is to be kept."
        if found.loses:
            return "Answered late the step is longer: to fetch the values takes more than the waits cost. That is no answer."
        if not found.decided and found.drifts and not found.is_in_the_noise:
            return (
                f"{undecided[:-1]}, and as written twice it is {interval(found.same)}: steps change by themselves here."
            )
        if not found.decided:
            return undecided
        return "Without these waits the step is no shorter: they cost nothing that could be had back."
    if found.values == "changed":
        return "What is left changes values."
    if ratio.turns < FEWEST:
        turns = f"{ratio.turns} turn{'s' * (ratio.turns != 1)}"
        return f"{refused}: the budget was spent after {turns} of {FEWEST} at least.{_would_decide(found)}"
    if not found.decided and found.is_hungry:
        return f"{undecided} {found.fed:.0%} of it passes until its batch is there: more workers may shorten that, no fix does."
    if not found.decided:
        return undecided
    by = " in processor time, of which waiting takes none" * found.by_processors
    most = f"{max(SLIGHT, 1 - ratio.low):.1%}"
    if not found.is_given:
        likely = f"; with all of them it is likely longer: {interval(ratio)}" * (ratio.ratio > 1 + SLIGHT)
        said = f"No fix gains more than {most}{by}{likely}: the program stays as it is."
        return "No fix is left." if found.refused else said
    if found.gains:
        same = {
            "equal": f"the values are the same, bit for bit{in_steps(found.steps_of_values)}",
            "within": "the values are as the text of the fixes says",
        }
        words = same.get(found.values or "", "") if found.fixes else f"the values are {found.values}"
        shorter = f"takes {share} less processor time" if found.by_processors else f"is {share} shorter"
        return f"The step {shorter}, and {words}."
    if found.loses:
        return f"The step {'takes more processor time' if found.by_processors else 'is longer'}: {interval(ratio)}."
    if ratio.ratio > 1 + SLIGHT:
        return (
            f"No gain; the step {'likely takes more processor time' if by else 'is likely longer'}: {interval(ratio)}."
        )
    return f"No gain of more than {most}{by}: {interval(ratio)}."
