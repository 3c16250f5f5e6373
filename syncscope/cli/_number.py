"""A number as an option's value: any that is written as one and is finite, for nothing is more or less than nan."""

from __future__ import annotations

import math
from typing import Any

import click


class FiniteNumber(click.FloatRange):
    """From `min` on, or above it (`min_open`)."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As a float."""
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value!r} is no number to compare with", param, ctx)
