"""Schedules that were found to be the best: a table that ships, and the user's own beside it, one JSON object a line."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from syncscope.files import cache_folder, write
from syncscope.kernels.device import device
from syncscope.kernels.generate.block import Schedule

Kind = TypeVar("Kind")
SHIPPED = Path(__file__).parent / "schedules"  # a file for each device


def device_name() -> str:
    """What schedules are kept under: they depend on the device, hardly on its driver."""
    name: str = device.name
    return "".join(x if x.isalnum() else "-" for x in name.strip())


def own() -> Path:
    """The user's table for this device, in the cache folder."""
    return cache_folder("schedules") / f"{device_name()}.jsonl"


# The same chip with other memory: until somebody has tuned there, what was found on the one goes for the other.
_ALIKE = {"NVIDIA-H200": "NVIDIA-H100-80GB-HBM3"}


@functools.cache
def known() -> dict[str, Schedule]:
    """The schedule of each class of problems, the user's own before what ships."""
    names = (_ALIKE.get(device_name(), device_name()), device_name())
    alike, its = (dict(read(SHIPPED / f"{name}.jsonl", Schedule)) for name in names)
    return alike | its | dict(read(own(), Schedule))


def read(path: Path, kind: Callable[..., Kind]) -> Iterator[tuple[str, Kind]]:
    """The classes of a table and their schedules, of one kind; none where there is no such file."""
    for row in _rows(path):
        try:
            yield row["problem"], kind(**row["schedule"])
        except (KeyError, TypeError):
            continue  # a line of another version: that class has its default


@functools.cache
def numbers() -> dict[str, float]:
    """What else was measured of this device, by name, the user's own before what ships."""
    found: dict[str, float] = {}
    for path in (SHIPPED / f"{device_name()}.jsonl", own()):
        found |= {row["number"]: float(row["value"]) for row in _rows(path) if {"number", "value"} <= set(row)}
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # half a line
        if isinstance(row, dict):
            yield row


def keep(found: Iterable[tuple[str, Any, dict[str, float]]], path: Path | None = None) -> Path:
    """Adds schedules, with what was measured, to the user's table or another; a class has one line, the last found."""
    return _keep(({"problem": name, "schedule": asdict(s), **measured} for name, s, measured in found), path or own())


def keep_numbers(found: dict[str, float]) -> Path:
    """Adds numbers to the user's table."""
    return _keep(({"number": name, "value": value} for name, value in found.items()), own())


def _keep(found: Iterable[dict[str, Any]], path: Path) -> Path:
    def name(row: dict[str, Any]) -> str:
        return str(row.get("problem", row.get("number")))

    rows = {name(row): json.dumps(row) for row in (*_rows(path), *found)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, "".join(f"{row}\n" for _, row in sorted(rows.items())).encode())
    known.cache_clear()
    numbers.cache_clear()
    return path
