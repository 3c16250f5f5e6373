"""The options with which a command shows some steps alone, or every row of its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import click

Steps: TypeAlias = tuple[int | None, int | None] | None
"""The first step and the one behind the last, None where that is open; None for all."""


class StepRange(click.ParamType[Any]):
    """`A:B`: steps A up to, not including, B; either may be left out."""

    name = "A:B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The two ends, None where left out."""
        first, colon, last = str(value).partition(":")
        try:
            ends = (int(first) if first else None, int(last) if last else None)
        except ValueError:
            ends, colon = (None, None), ""
        return ends if colon else self.fail(f"{value!r} is no range of steps; 3:6 means steps 3, 4 and 5", param, ctx)


only_steps = click.option("--steps", type=StepRange(), help="Only these steps: 3:6 is steps 3, 4 and 5.")


def everything(what: str) -> Callable[[Any], Any]:
    """`--all`, which shows that."""
    return click.option("--all", "whole", is_flag=True, help=what)
