"""The table of a dry recording: which lines would make the host wait for a device, where there is none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from syncscope.cli._console import echo
from syncscope.model.commands import says_all

if TYPE_CHECKING:
    from syncscope.model.trace import Trace


def tell(trace: Trace, command: str) -> None:
    """How often each line would wait, and what to do next; `command`: the program and its arguments, for a shell.

    There was no device, so there are no times to tell.
    """
    from syncscope.analysis.dry import dry_waits
    from syncscope.analysis.steps import steps
    from syncscope.analysis.waits import launches
    from syncscope.cli._places import here
    from syncscope.tracers.places import USER, kind_of_file

    found = dry_waits(trace, steps(trace, launches(trace)))
    number = sum(count for _, count in found.counts)
    in_steps = f" in {found.steps} steps ({found.which[0]} to {found.which[-1]})" if found.steps > 1 else ""
    said = f"{number or 'no'} {'sync' if number == 1 else 'syncs'}{in_steps}"
    echo(f"dry recording on the CPU: {said} would make the host wait for a device", err=True)
    for (place, column, op), count in found.counts:
        often = f"{count / found.steps:.3g} per step" if found.steps else f"{count} {'time' if count == 1 else 'times'}"
        echo(f"  {here(place) if place else 'no line known'}:{column}  {op}  {often}", err=True)
    for note in filter(None, [found.words, found.uncounted, *trace.meta.get("notes", [])]):
        echo(f"note: {note}", err=True)
    if not number:
        return
    paths = dict.fromkeys(place.path for (place, _, _), _ in found.counts if place is not None)
    own = [path for path in paths if os.path.isfile(path) and kind_of_file(path) == USER]
    if own:
        shown = says_all(min(os.path.relpath(path), path, key=len) for path in own)
        echo(f"next: {shown} says what can be written instead", err=True)
    echo(
        f"next: `syncscope run --device ocl {command}` says what they cost a step; on a GPU without --device", err=True
    )
