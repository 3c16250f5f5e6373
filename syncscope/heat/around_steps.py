"""Loops that call the step of an object, and hold no backward pass: `model.set_input(x); model.optimize_parameters()`."""

from __future__ import annotations

import re

from syncscope.heat import blocks
from syncscope.heat.parsed_text import parsed
from syncscope.project.outline import FunctionText

_SPELLED = (b"optimize_parameters(", b"step(", b"batch(", b"train(")  # how these calls end: most functions hold none
_CALLS = re.compile(rb"(?<!def )\b(?:optimize_parameters\(|train(?:ing)?_(?:one_|on_)?(?:step|batch)\(|train\([\w*])")
_LOOP = re.compile(rb"^[ \t]+(?:async[ \t]+for|for|while)\b", re.MULTILINE)


def loops_over_steps(function: FunctionText) -> bool:
    """Whether a function holds such a loop: what that calls beside the step is part of it."""
    text = function.text()
    if not any(word in text for word in _SPELLED) or _CALLS.search(text) is None or _LOOP.search(text) is None:
        return False
    tree, code = parsed(function)
    return tree is not None and blocks.trains(tree, code)
