"""A length of time as an option's value."""

from __future__ import annotations

import re
from typing import Any

import click

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType[Any]):
    """`90s`, `10m`, `1h`, or a number of seconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Seconds."""
        return seconds_of(value) or self.fail(f"{value!r} is no time; write 90s or 10m", param, ctx)


def seconds_of(value: object) -> float:
    """The same; 0 of what is no time."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", str(value).strip())
    return float(found[1]) * UNITS[found[2]] if found else 0.0
