"""What lines take of a step as stacks, the outermost first: the user's line, the library's that it led to, what happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from syncscope.model.line_use import LineUse
from syncscope.model.report import Report
from syncscope.model.source import Place


class StackFrame(NamedTuple):
    """What a viewer shows of one, and where it stands; of what is no line, nothing but the name."""

    name: str
    place: Place | None = None


Stack = tuple[tuple[StackFrame, ...], float]
"""From the outermost to the innermost, and its ns per step."""


def host(report: Report) -> Iterator[Stack]:
    """The host's time."""
    for one in report.by_line.lines if report.by_line else ():
        parts = {
            "in the driver": one.driver,
            "between calls": one.between,
            "waiting for the device": one.waiting,
            "in the loader": one.loading,
        }
        yield from (((*_lines(one), StackFrame(what)), ns) for what, ns in parts.items() if ns > 0)


def device(report: Report) -> Iterator[Stack]:
    """The device's time, by kernel."""
    for one in report.by_line.lines if report.by_line else ():
        rest = one.device + one.backward - sum(ns for _, ns in one.kernels)
        for name, ns in (*one.kernels, ("other work", rest)):
            if ns > 0.5:
                yield (*_lines(one), StackFrame(name)), ns


def _lines(one: LineUse) -> tuple[StackFrame, ...]:
    if one.place is None:
        return (StackFrame("no line known"),)
    inner = StackFrame(f"{one.place.shortly}{f' {one.function}' if one.function else ''}", one.place)
    return (StackFrame(one.caller.shortly, one.caller), inner) if one.caller else (inner,)
