"""Schedules of nests that a search found on this device, kept beside those of products."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict
from pathlib import Path

from syncscope.files import cache_folder, write
from syncscope.kernels.comprehension.nests import Schedule
from syncscope.kernels.tuning.store import device_name


@functools.cache
def known() -> dict[str, Schedule]:
    """The schedule of each class of nests."""
    found = {}
    try:
        lines = _path().read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        try:
            row = json.loads(line)
            found[row["nest"]] = Schedule(**row["schedule"])
        except (ValueError, KeyError, TypeError):
            continue  # a line of another version, or half a line: that class has its default
    return found


def _path() -> Path:
    return cache_folder("schedules") / f"{device_name()}-comprehensions.jsonl"


def schedule(nest: str) -> Schedule | None:
    """What was found for a class."""
    return known().get(nest)


def keep(found: dict[str, Schedule]) -> None:
    """Adds schedules to the table; a class has one line, the last found."""
    rows = known() | found
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps({"nest": nest, "schedule": asdict(s)}) + "\n" for nest, s in sorted(rows.items()))
    write(path, text.encode())
    known.cache_clear()
