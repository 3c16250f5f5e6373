"""The table of a dry recording: which lines would make the host wait for a device, where there is none."""

from __future__ import annotations

import os
import shlex
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

from syncscope.cli._console import echo

if TYPE_CHECKING:
    from syncscope.model.source import Place
    from syncscope.model.trace import Trace

    Line = tuple[Place | None, int, str]


def tell(trace: Trace, command: str) -> None:
    """How often each line would wait, and what to do next; `command`: the program and its arguments, for a shell.

    There was no device, so there are no times to tell.
    """
    from syncscope.analysis.rounds import whole_rounds
    from syncscope.analysis.steps import COUNTED, steps
    from syncscope.analysis.waits import launches
    from syncscope.cli._places import here
    from syncscope.model.trace import Kind
    from syncscope.tracers.places import USER, kind_of_file

    reads = [e for e in trace if e.kind == Kind.READ]
    found_steps = steps(trace, launches(trace))
    ends = [step.end for step in found_steps]
    by_step: list[Counter[Line]] = [Counter() for _ in ends or [0]]
    for read in reads:
        step = bisect_left(ends, read.start) if ends else 0
        if step < len(by_step):  # else it comes after the last step, and the rest of that is not recorded
            by_step[step][read.place, read.column, read.name] += 1
    first = int(len(ends) >= COUNTED)  # before its end the program sets up
    rounds = whole_rounds(by_step, range(first, len(by_step)))
    number_of_steps = len(rounds.counted) if ends else 0
    found = sum((by_step[step] for step in rounds.counted), Counter())
    number = found.total()
    which = [found_steps[step].index + 1 for step in (rounds.counted[0], rounds.counted[-1])] if ends else []
    in_steps = f" in {number_of_steps} steps ({which[0]} to {which[1]})" if number_of_steps > 1 else ""
    said = f"{number or 'no'} {'sync' if number == 1 else 'syncs'}{in_steps}"
    echo(f"dry recording on the CPU: {said} would make the host wait for a device", err=True)
    for (place, column, op), count in found.most_common():
        often = f"{count / number_of_steps:.3g} per step" if ends else f"{count} {'time' if count == 1 else 'times'}"
        echo(f"  {here(place) if place else 'no line known'}:{column}  {op}  {often}", err=True)
    for note in filter(None, [rounds.words, *trace.meta.get("notes", [])]):
        echo(f"note: {note}", err=True)
    if not number:
        return
    paths = dict.fromkeys(place.path for place, _, _ in found if place is not None)
    own = [path for path in paths if os.path.isfile(path) and kind_of_file(path) == USER]
    if own:
        shown = " ".join(shlex.quote(min(os.path.relpath(path), path, key=len)) for path in own)
        echo(f"next: `syncscope lint --diff {shown}` shows what can be written instead", err=True)
    echo(
        f"next: `syncscope run --device ocl {command}` says what they cost a step; on a GPU without --device", err=True
    )
