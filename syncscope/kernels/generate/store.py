"""Schedules that were found to be the best: a table that ships, and the user's own beside it, one JSON object a line."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from syncscope.files import cache_folder, write
from syncscope.kernels.device import device
from syncscope.kernels.generate.gpu import Schedule

SHIPPED = Path(__file__).parent / "schedules"  # a file for each device


def device_name() -> str:
    """What schedules are kept under: they depend on the device, hardly on its driver."""
    name: str = device.name
    return "".join(x if x.isalnum() else "-" for x in name.strip())


def own() -> Path:
    """The user's table for this device, in the cache folder."""
    return cache_folder("schedules") / f"{device_name()}.jsonl"


@functools.cache
def known() -> dict[str, Schedule]:
    """The schedule of each class of problems, the user's own before what ships."""
    return dict(read(SHIPPED / f"{device_name()}.jsonl")) | dict(read(own()))


def read(path: Path) -> Iterator[tuple[str, Schedule]]:
    """The classes of a table and their schedules; none where there is no such file."""
    return ((problem, schedule) for problem, schedule, _ in _lines(path))


def _lines(path: Path) -> Iterator[tuple[str, Schedule, str]]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        try:
            row = json.loads(line)
            yield row["problem"], Schedule(**row["schedule"]), line
        except (ValueError, KeyError, TypeError):
            continue  # a line of another version, or half a line: that class has its default


def keep(found: Iterable[tuple[str, Schedule, dict[str, float]]], path: Path | None = None) -> Path:
    """Adds schedules, with what was measured, to the user's table or another; a class has one line, the last found."""
    path = path or own()
    rows = {problem: line for problem, _, line in _lines(path)}
    for problem, schedule, measured in found:
        rows[problem] = json.dumps({"problem": problem, "schedule": asdict(schedule), **measured})
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, "".join(f"{row}\n" for _, row in sorted(rows.items())).encode())
    known.cache_clear()
    return path
