"""Where a program that has run has no fix that can be tried: why, and what to do."""

from __future__ import annotations

import os
from collections.abc import Collection

from syncscope.verify.compared import ELSEWHERE, Compared
from syncscope.verify.values import SHOWN
from syncscope.verify.versions import AS_WRITTEN


def nothing_to_try(compared: Compared, files: Collection[str]) -> tuple[str, str]:
    """The message and the hint, where there is no fix for what these files do in steps."""
    runs, found = compared.runs, compared.found
    only = runs.settings.only
    named = ", ".join(f"{os.path.relpath(place.path)}:{place.line}" for place in only)
    where = f" at {named}" if named else ""
    said = f"there is no fix to try in {runs.program}{where}"
    counts = compared.values[AS_WRITTEN].counts
    if found.fixes:
        first = max(found.fixes, key=lambda fix: compared.waits_at(*fix.lines))  # of equals the first
        place = f"{first.path}:{first.line}"
        more = f" (and {len(found.fixes) - 1} more)" * (len(found.fixes) > 1)
        hint = f"--line {place} tries all the same to {first.fix.title}"
        return f"{said}: {place}, {first.finding.rule}: {first.why}{more}", hint
    waits = {place for place, _ in counts if place.path in files}
    waiting = sorted(waits.intersection(only) if only else waits)
    if not waiting:
        none = "it does not wait" if only else "none of its lines waits"
        hint = "`syncscope lint` says which may, and what mends them"
        return f"{said}, and {none} in these steps", ELSEWHERE if compared.trains_elsewhere else hint
    named = ", ".join(f"{os.path.relpath(place.path)}:{place.line}" for place in waiting[:SHOWN])
    more = f" and {len(waiting) - SHOWN} more" if len(waiting) > SHOWN else ""
    late = "--stale" if found.device != "cpu" else "--device ocl --stale"
    return f"{said}: no rewrite is known for {named}{more}", f"{late} measures the step as if they did not wait"
