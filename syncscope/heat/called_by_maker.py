"""What a function makes for itself and calls: it runs when that does, whatever it is called."""

from __future__ import annotations

from collections.abc import Callable

from syncscope.heat import blocks
from syncscope.heat.callers import callers
from syncscope.project.modules import ProjectFunction


def called_by_maker(function: ProjectFunction, runs: Callable[[ProjectFunction], bool]) -> bool:
    """Whether the function in which this one is defined runs in steps, or trains in a loop, and calls it there, in no arm that
    is cold.
    """
    outermost = function
    while (around := getattr(outermost.closure, "function", None)) is not None:
        outermost = around
    if outermost is function or not (runs(outermost) or blocks.trains(outermost.node, function.module.source)):
        return False
    calls = callers(function.module, function.name, True)
    return any(each is not None and each.function is outermost and each.around is None for each in calls)
