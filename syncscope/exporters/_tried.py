"""What was measured of fixes, as `syncscope verify` or `run --try` found it, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from syncscope.exporters._rows import note
from syncscope.model.words import visible


def rows(found: Mapping[str, Any] | None, width: int) -> Iterator[Text]:
    """A heading, an entry for each fix, and what is to be known of all."""
    if found is None:
        return
    seconds = found.get("seconds")
    took = f", {seconds:.0f} s" if isinstance(seconds, int | float) else ""
    if found.get("way") != "run":
        heading = f"Tried by `syncscope verify`, {found['steps']} steps a run{took}"
    elif found["steps"]:
        heading = f"Tried in the run, which went on as written: {found['steps']} steps, again and again{took}"
    else:
        heading = "Not tried in the run"
    yield Text(heading, "bold")
    for fix in found["fixes"]:
        place = visible(f"{fix['path']}:{fix['line']}"), "bold"
        yield from note(Text.assemble(place, f"  {visible(fix['title'])} ({visible(fix['safety'])})"), width, "")
        said = "; ".join(part for part in (measured(fix), visible(fix["why"])) if part)
        yield from note(Text(said, "green" if fix["kept"] else ""), width)
    if len([fix for fix in found["fixes"] if fix["ratio"] is not None]) > 1 and found["ratio"] is not None:
        yield Text.assemble(("all together", "bold"), f"  {measured(found)}")
    for said in found["notes"]:
        yield from note(visible(said), width, "")


def measured(fix: Mapping[str, Any]) -> str:
    """`a step is 0.914 (0.902 to 0.926) of what it was, values equal`; what is not known is left out."""
    said = []
    if fix["ratio"] is not None:
        known = f" ({fix['low']:.3f} to {fix['high']:.3f})" if fix["low"] is not None else ""
        said.append(f"a step is {fix['ratio']:.3f}{known} of what it was")
    if fix["values"]:
        said.append(f"values {visible(fix['values'])}")
    return ", ".join(said)
