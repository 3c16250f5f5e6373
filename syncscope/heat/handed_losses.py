"""Who hands its loss to a helper that does the backward pass: what computes the loss is in the step, whoever ends it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from syncscope.heat.by_text import goes_on
from syncscope.project.definitions import Definitions
from syncscope.project.outline import ClassText, FunctionText, names_imported

_PARAMETERS = re.compile(rb"\A[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_BACKWARD = re.compile(rb"\b(\w+)\)?\.backward\(|\.backward\((\w+)")


def computing_losses(steps: Iterable[FunctionText], definitions: Definitions) -> list[FunctionText]:
    """The functions that call a step which is given its loss: of methods those of the same class or one derived from it, of
    functions those whose file defines or imports it.
    """
    files: dict[str, list[FunctionText]] = defaultdict(list)
    for each in definitions.functions():
        files[each.path].append(each)
    found: dict[str, FunctionText] = {}
    for step in filter(_takes_its_loss, steps):
        name = step.name.encode()
        call = re.compile((rb"\b(?:self|super\(\))\.%b\(" if step.cls else rb"(?<![\w.])%b\(") % name)
        for each in chain(*(same for same in files.values() if name in same[0].source)):
            if call.search(each.source, each.begin, each.end) and each.key != step.key and goes_on(each):
                found.update({each.key: each} if _knows(each, step, definitions.classes) else {})
    return [*found.values()]


def _takes_its_loss(step: FunctionText) -> bool:
    """Whether what it does the backward pass of is one of its parameters."""
    text = step.text()
    head = _PARAMETERS.match(text) if b".backward(" in text else None
    if head is None:
        return False
    given = set(re.findall(rb"\w+", head[1])) - {b"self", b"cls"}
    return any(given & {*names} for names in _BACKWARD.findall(text))


def _knows(caller: FunctionText, step: FunctionText, classes: Mapping[str, Sequence[ClassText]]) -> bool:
    """Whether the name means this function there."""
    if not step.cls:
        return caller.path == step.path or step.name in names_imported(caller.source)
    above, seen = [caller.cls], set[str]()
    for name in above:  # grows while it is gone through
        if name == step.cls:
            return True
        if name not in seen:
            seen.add(name)
            above += [base for cls in classes.get(name, ()) for base in cls.bases]
    return False
