"""How much is done, counted instead of timed: the same on a busy machine, and the same each time."""

import sys
from collections.abc import Callable
from typing import Any

from effort import EFFORT

LEAST = 16  # of what there is so much of: of less the square is no larger than what is done once
TOOL = 4  # of sys.monitoring's six, none that Python names


def lines_run(call: Callable[..., Any], *args: Any) -> int:
    """How many lines and calls, those of C too, Python runs in a call. What C code does by itself is not seen."""
    seen, watch = 0, sys.monitoring if sys.version_info >= (3, 12) else None

    def count(*_: Any) -> None:
        nonlocal seen
        seen += 1

    if watch is None:

        def traced(*_: Any) -> Any:  # one function of Python for each: two more take twice as long
            nonlocal seen
            seen += 1
            return traced

        was = sys.gettrace()
        sys.settrace(traced)
        try:
            call(*args)
        finally:
            sys.settrace(was)
        return seen
    events = watch.events.LINE | watch.events.CALL | watch.events.JUMP
    watch.use_tool_id(TOOL, "lines_run")
    try:
        for event in (watch.events.LINE, watch.events.CALL, watch.events.JUMP):
            watch.register_callback(TOOL, event, count)
        watch.set_events(TOOL, events)
        call(*args)
    finally:
        watch.set_events(TOOL, 0)
        watch.free_tool_id(TOOL)
    return seen


def grows_at_most(
    call: Callable[[Any], Any], size: int, made: Callable[[int], Any] = lambda n: n, times: float = 3
) -> bool:
    """Whether twice the input is less than so many times the work. What is done once in a process is done before."""
    size = size if EFFORT >= 1 else max(size // 2, min(size, LEAST))
    small, large = made(size), made(2 * size)
    call(small)
    return lines_run(call, large) < times * lines_run(call, small)
