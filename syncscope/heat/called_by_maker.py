"""What a function makes for itself and calls: it runs when that does, whatever it is called."""

from __future__ import annotations

from collections.abc import Callable

from syncscope.heat.callers import callers
from syncscope.project.modules import ProjectFunction


def called_by_maker(function: ProjectFunction, runs: Callable[[ProjectFunction], bool]) -> bool:
    """Whether the function in which this one is defined runs in steps, and calls it there, in no arm that is cold."""
    outermost = function
    while (around := getattr(outermost.closure, "function", None)) is not None:
        outermost = around
    if outermost is function or not runs(outermost):
        return False
    return any(
        each is not None and each.function is outermost and (each.around is None or each.around.hot)
        for each in callers(function.module, function.name, True)
    )
