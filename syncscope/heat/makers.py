"""What runs whenever an object is made: `__init__`, `__post_init__`, and what validates its fields.

Most objects are made once. Boxes, distributions, checked inputs and the like are made anew in each step, by a function that
runs in it: there what makes them is no set-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from syncscope.heat.by_name import by_name
from syncscope.heat.tables import tables
from syncscope.model.heat import Reason
from syncscope.project import conventions
from syncscope.project.outline import ClassText, FunctionText, words

_DECORATORS = re.compile(rb"((?:^[ \t]*@[^\n]*\n)+)\Z", re.MULTILINE)
_CHECKED = "BaseModel"  # of pydantic
_MOST = 12  # classes above one


class Makers:
    """By the name of a class, what makes its objects; none of modules, which are made before the training."""

    def __init__(self, classes: Mapping[str, Sequence[ClassText]], sources: Mapping[str, bytes]) -> None:
        self.classes, self._sources = classes, sources
        self.known: dict[str, list[FunctionText]] = {}
        self._tables: dict[bytes, list[tuple[str, bytes]]] | None = None

    def of(self, name: str) -> list[FunctionText]:
        """What makes the objects of the classes of this name."""
        found = self.known.get(name)
        if found is None:
            things = (cls for cls in self.classes.get(name, ()) if _is_thing(cls, self.classes))
            found = self.known[name] = [each for cls in things for each in _makers(cls, self.classes)]
        return found

    def of_any(self, name: str) -> list[FunctionText]:
        """The same of all classes of this name, modules among them."""
        return [each for cls in self.classes.get(name, ()) for each in _makers(cls, self.classes)]

    def of_table(self, table: bytes) -> list[FunctionText]:
        """What makes the objects of the classes that a table of this name holds: `SOLVERS = {"euler": Euler}`."""
        if self._tables is None:  # most projects look nothing up
            self._tables = tables(self._sources, {name.encode() for name in self.classes})
        held = {word.decode() for _, statement in self._tables.get(table, ()) for word in words(statement)}
        return [each for name in sorted(held & self.classes.keys()) for each in self.of(name)]


def _is_thing(cls: ClassText, classes: Mapping[str, Sequence[ClassText]]) -> bool:
    """Whether its objects may be made in a step: no modules, optimizers, data sets, configurations."""
    family = kin(cls, classes)
    bases = {base for each in family for base in each.bases}
    if _CHECKED in bases:
        return True
    names = {cls.name, *bases}
    once = any(name.endswith(conventions.MADE_ONCE) for name in names)
    methods = {name for each in family for name in each.methods}
    aside = by_name("", cls.name, cls.methods).reason is not Reason.MAYBE
    return not (once or aside) and conventions.MADE_ONCE_BY.isdisjoint(methods)


def kin(cls: ClassText, classes: Mapping[str, Sequence[ClassText]]) -> list[ClassText]:
    """A class and what it is derived from, by their names, nearest first."""
    found = [cls]
    for each in found:
        above = (base for name in each.bases for base in classes.get(name, ()))
        found += [base for base in above if base not in found and len(found) < _MOST]
    return found


def _makers(cls: ClassText, classes: Mapping[str, Sequence[ClassText]]) -> Iterator[FunctionText]:
    made: set[str] = set()
    for each in kin(cls, classes):
        for name, method in each.methods.items():
            if name not in made and (name in conventions.MAKERS or _validates(method)):
                made.add(name)
                yield method


def _validates(method: FunctionText) -> bool:
    """Whether a decorator has it called when an object is made: pydantic's and attrs' validators."""
    near = method.source[max(method.start - 400, 0) : method.start + 1]
    above = _DECORATORS.search(near) if b"validator" in near else None
    return above is not None and b"validator" in above[1]
