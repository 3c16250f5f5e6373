"""Whether a function runs in steps, as its name and its text tell."""

from __future__ import annotations

import re

from syncscope.heat.by_name import by_name, hot
from syncscope.model.heat import Heat, Reason
from syncscope.project import cold_names, conventions
from syncscope.project.outline import FunctionText

_FROZEN = re.compile(rb"^[ \t]*@(?:\w+\.)*(?:no_grad|inference_mode)\b[^\n]*\Z", re.MULTILINE)
_COMMAND = re.compile(rb"^@(?:\w+\.)*(?:command|group|option|argument|result_callback)\b", re.MULTILINE)
_PASS = re.compile(rb"(=[ \t]*(?:\w+\.)*)?((?<![\w])\w*)backward\(")
_OF_PASS = re.compile(rb"loss|forward|train|grad")
_GIVES = re.compile(rb"\breturn[ \t]+[^\s#]")


def said_by_name(function: FunctionText) -> Heat:
    """What it is called says so much."""
    return by_name(function.name, function.cls, function.methods)


def is_frozen(function: FunctionText) -> bool:
    """Whether a decorator switches gradients off."""
    above = _above(function)
    return b"@" in above and _FROZEN.search(above) is not None


def is_command(function: FunctionText) -> bool:
    """Whether a decorator has it run from a command line: what it does itself it does once."""
    above = _above(function)
    return b"@" in above and _COMMAND.search(above) is not None


def _above(function: FunctionText) -> bytes:
    """What stands above a function, up to an empty line."""
    begin = function.source.rfind(b"\n\n", 0, function.start)
    return function.source[begin + 2 if begin >= 0 else 0 : function.start]


def is_step(function: FunctionText) -> bool:
    """Whether it is known to run in every step."""
    if function.source.find(b"backward(", function.begin, function.end) >= 0 and _runs_pass(function):
        return True
    if hot(function.name) is None and not conventions.is_loss(function.name) and not conventions.is_loss(function.cls):
        return False  # most are not, and the rest would be asked in vain
    heat = said_by_name(function)
    return heat.hot and heat.reason not in conventions.PARTLY


def _runs_pass(function: FunctionText) -> bool:
    """Whether a backward pass is called here; what goes backward and gives what is kept, `peer = self._rotate_backward(1)`,
    is none.
    """
    if cold_names.CALIBRATES.match(function.name):
        return False
    first = function.source.find(b"backward(", function.begin, function.end)
    line = function.source.rfind(b"\n", 0, first) + 1  # what stands before is passed over fast
    passes = _PASS.finditer(function.source, max(line, function.begin), function.end)
    return any(not (each[1] and each[2].strip(b"_")) or _OF_PASS.search(each[2]) for each in passes)


def is_of_loss(function: FunctionText) -> bool:
    """Whether it is a method of a loss, and no more is known of it."""
    return conventions.is_loss(function.cls) and said_by_name(function).reason is Reason.OF_LOSS


def goes_on(function: FunctionText) -> bool:
    """Whether what it speaks of runs where it does: all but what is set-up, evaluation and the like."""
    if function.name == "__init__" and "log_abs_det_jacobian" in function.methods:
        return True  # of a transform of distributions, which is made anew in each step
    return said_by_name(function).hot and not (is_for_the_log(function) or is_command(function))


def is_for_the_log(function: FunctionText) -> bool:
    """Whether it says much at once to a log, and gives nothing."""
    named = "log_" in function.name and conventions.STATISTICS.match(function.name) is not None  # most are not
    return named and _GIVES.search(function.text()) is None
