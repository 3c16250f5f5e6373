"""The parts of a loss: methods of a class that is called like one. Where it has a `forward`, that says which of them run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from syncscope.heat.makers import kin
from syncscope.project import conventions
from syncscope.project.outline import ClassText, FunctionText


def entrances(parts: Iterable[FunctionText], classes: Mapping[str, Sequence[ClassText]]) -> Iterator[FunctionText]:
    """Those of these methods of losses that a step may call: their classes have no `forward`, and nothing called so."""
    known: dict[str, bool] = {}
    for each in parts:
        if each.cls not in known:
            known[each.cls] = any(_is_entered(cls, classes) for cls in classes.get(each.cls, ()))
        if not known[each.cls]:
            yield each


def _is_entered(cls: ClassText, classes: Mapping[str, Sequence[ClassText]]) -> bool:
    methods = {name for each in kin(cls, classes) for name in each.methods}
    return any(name in conventions.HOT or conventions.is_loss(name) for name in methods)
