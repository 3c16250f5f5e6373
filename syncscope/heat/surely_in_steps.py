"""What surely runs in steps: the steps themselves, and what these speak of as part of their own object, or by a plain name.

A word stands for all functions that have it, so that more is reached than runs. Where it is a method of the class that the
step is in, or of one that this is derived from, or a function of its file or one that is imported there, nothing else is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from syncscope.project import cold_names, conventions
from syncscope.project.definitions import Definitions
from syncscope.project.outline import FunctionText, Spoken

Names = Callable[[str], Collection[str]]
_BACKWARD = b"backward("


class Certain:
    """The functions that surely run in steps, gone through when one is first asked for."""

    def __init__(self, steps: Iterable[FunctionText], definitions: Definitions, said: Spoken) -> None:
        self._todo = [each for each in steps if each.name not in conventions.LOOPS or _BACKWARD in each.text()]
        self._classes, self._defined, self._said = definitions.classes, definitions.defined, said
        self._found: set[str] = set()

    def add(self, function: FunctionText) -> None:
        """Have one more, with what it speaks of."""
        self._todo.append(function)

    def has(self, function: FunctionText, kin: Names, imported: Names) -> bool:
        """Whether this is one, by what derives from what and by what files import.

        Who knows these is asked anew and not kept: it holds on to the texts of a whole project, and keeps this.
        """
        while self._todo:
            each = self._todo.pop()
            if each.key not in self._found:
                self._found.add(each.key)
                self._todo += self._parts(each, kin, imported)
        return function.key in self._found

    def _parts(self, step: FunctionText, kin: Names, imported: Names) -> Iterator[FunctionText]:
        """What a function speaks of that can mean nothing else, but for what seldom is a part of a step by its name."""
        above = [cls for name in kin(step.cls) for cls in self._classes.get(name, ())] if step.cls else []
        for word in self._said.by(step):
            name = word.decode().removeprefix(".")
            if cold_names.beside(name, step.cls):
                continue  # a call says so, or nothing does
            if word[:1] == b".":
                yield from (cls.methods[name] for cls in above if name in cls.methods)
            else:
                known = name in imported(step.path)
                yield from (each for each in self._defined.get(word, ()) if known or each.path == step.path)
