"""Loops around an environment that update an agent: what they call runs in every step, wherever the backward pass stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from syncscope.heat.by_text import goes_on
from syncscope.project import environments
from syncscope.project.outline import FunctionText

_LOOP = re.compile(rb"^[ \t]+(?:for|while)\b", re.MULTILINE)
_CALL = re.compile(rb"\b(\w+)\.(\w+)\(")


def rollouts(functions: Iterable[FunctionText]) -> Iterator[FunctionText]:
    """The functions that hold such a loop, each from where its first loop begins: what stands before runs once."""
    for each in functions:
        if each.source.find(b"env", each.begin, each.end) < 0:
            continue  # most of them, and nothing is copied to see it
        if not environments.asks_environment(each.text()) or not goes_on(each):
            continue
        loop = _LOOP.search(each.source, each.begin, each.end)
        text = each.source[loop.start() : each.end] if loop is not None else b""
        calls = [(owner.decode(), name.decode()) for owner, name in _CALL.findall(text)]
        trains = "train" in each.name.split("_") and any(environments.is_learner(owner) for owner, _ in calls)
        learns = trains or any(environments.learns(*call) for call in calls)
        if loop is not None and learns and environments.asks_environment(text):
            yield each._replace(begin=loop.start())
