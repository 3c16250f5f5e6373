"""Loops around an environment that update an agent, or keep what it is to learn from: what they call runs in every step,
wherever the backward pass stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from syncscope.heat.brackets import up_to_closing
from syncscope.heat.by_text import goes_on
from syncscope.project import environments
from syncscope.project.outline import FunctionText

_LOOP = re.compile(
    rb"^[ \t]+(?:async[ \t]+)?(?:for[ \t(][^\n]*?[\w)][ \t]+in\b|while\b[^\n]*[:(\\][ \t]*(?:#|$))", re.MULTILINE
)  # and no line of prose
_CALL = re.compile(rb"(?<![\w.])(?:\w+\.)*?(?:(\w+)\.)?(\w+)\(")
_HANDED = re.compile(rb"(?<![\w.])(?:self\.)?(\w+)\b(?!\s*[.(\[=])")
_LONGEST = 2000  # bytes of what a call is given that are gone through


def rollouts(functions: Iterable[FunctionText]) -> Iterator[FunctionText]:
    """The functions that hold such a loop, each from where its first loop begins: what stands before runs once; and those that
    are one step of it, which act, step the environment and learn."""
    for each in functions:
        if each.source.find(b".step(", each.begin, each.end) < 0 and each.source.find(b"env", each.begin, each.end) < 0:
            continue  # most of them, and nothing is copied to see it
        if not environments.drives(each.text()) or not goes_on(each):
            continue
        loop = _LOOP.search(each.source, each.begin, each.end)
        begin = loop.start() if loop is not None else each.begin  # without one it is a step of a loop elsewhere
        text = each.source[begin : each.end]
        calls = [(owner.decode(), name.decode()) for owner, name in _CALL.findall(text)]
        trains = "train" in each.name.split("_") and any(environments.is_learner(owner) for owner, _ in calls)
        learns = trains or any(environments.learns(*call) or environments.keeps(*call) for call in calls)
        if learns and environments.drives(text):
            yield each._replace(begin=begin)


def handed_to(driving: Iterable[FunctionText], functions: Iterable[FunctionText]) -> Iterator[bytes]:
    """The words of what functions hand to such a loop, for it to call: `adapter.rollout(steps, act=self._select_action)`."""
    names = {each.name.encode() for each in driving}
    for each in functions if names else ():
        for name in names:
            at = each.source.find(b".%b(" % name, each.begin, each.end)
            if at >= 0:
                given = up_to_closing(each.source, at + len(name) + 2, _LONGEST)
                for word in _HANDED.findall(given):
                    yield from (word, b"." + word)
