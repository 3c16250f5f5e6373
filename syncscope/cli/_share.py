"""A part of a step as an option's value."""

from __future__ import annotations

import math
from typing import Any

import click

from syncscope.cli._console import echo


class Share(click.ParamType[Any]):
    """`2%`, or `2`: per cent of a step, so many at most. What lies between 0 and 1 and has no sign is read so, too, and a line
    says so."""

    name = "PERCENT"

    def __init__(self, most: float = 100.0) -> None:
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As a share: 0.02."""
        text = str(value).strip()
        number = text.removesuffix("%").rstrip()
        try:
            percent = float(number)
        except ValueError:
            percent = -1.0
        if not 0 <= percent <= self._most or math.isinf(percent):
            bound = "of 0 or more" if math.isinf(self._most) else f"from 0 to {self._most:g}"
            self.fail(f"{value!r} is no percentage {bound}; write 2%", param, ctx)
        if 0 < percent < 1 and number == text:
            option = f"{param.opts[0]} " if param is not None else ""
            echo(f"{option}{text} is {text} % of a step; for {100 * percent:g} % write {100 * percent:g}%", err=True)
        return percent / 100
