"""The functions and the classes of several files as text, found by what means them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from syncscope.project.outline import ClassText, FunctionText


class Definitions:
    """Files, and what they define: several functions of one name, and several classes."""

    def __init__(self, sources: dict[str, bytes]) -> None:
        self.sources = sources  # by path
        self.defined: dict[bytes, list[FunctionText]] = defaultdict(list)  # by their words: "f", of a method ".f"
        self.classes: dict[str, list[ClassText]] = defaultdict(list)  # by name

    def add(self, functions: Iterable[FunctionText], classes: Iterable[ClassText] = ()) -> None:
        """Have what a file defines."""
        for function in functions:
            self.defined[function.word].append(function)
        for cls in classes:
            self.classes[cls.name].append(cls)

    def functions(self) -> list[FunctionText]:
        """All functions and methods."""
        return [each for same in self.defined.values() for each in same]

    def owners(self) -> list[ClassText]:
        """All classes."""
        return [each for same in self.classes.values() for each in same]
