"""The table of a dry recording: which lines would make the host wait for a device, where there is none."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from typing import TYPE_CHECKING

from syncscope.cli._console import echo

if TYPE_CHECKING:
    from syncscope.model.trace import Trace


def tell(trace: Trace, command: str) -> None:
    """How often each line would wait, and what to do next; `command`: the program and its arguments, for a shell.

    There was no device, so there are no times to tell.
    """
    from syncscope.cli._places import here
    from syncscope.model.trace import Kind
    from syncscope.tracers.places import USER, kind_of_file

    found = Counter((e.place, e.column, e.name) for e in trace if e.kind == Kind.READ)
    steps = int((trace.kind == Kind.STEP).sum())
    number = sum(found.values())
    said = f"{number or 'no'} {'sync' if number == 1 else 'syncs'}{f' in {steps} steps' if steps > 1 else ''}"
    echo(f"dry recording on the CPU: {said} would make the host wait for a device", err=True)
    for (place, column, op), count in found.most_common():
        often = f"{count / steps:.3g} per step" if steps else f"{count} {'time' if count == 1 else 'times'}"
        echo(f"  {here(place) if place else 'no line known'}:{column}  {op}  {often}", err=True)
    for note in trace.meta.get("notes", []):
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
