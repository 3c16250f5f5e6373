"""What an answer of the linter relied on beside the file itself: other files, what steps reach, what the project says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from syncscope.files import regular
from syncscope.heat.steps import Steps
from syncscope.heat.survey import IsHot
from syncscope.model.heat import Role
from syncscope.project.folders import has_others, located
from syncscope.project.given import is_given
from syncscope.project.modules import Module
from syncscope.project.on_host import default_is_switched, stays_on_host
from syncscope.project.own_moves import moves_its_own
from syncscope.project.pinned import counts_its_own_graphs, pins_memory, sends_without_waiting
from syncscope.project.requirements import requirements
from syncscope.project.spoken_of import is_spoken_of
from syncscope.tensors.interpret import Project

IMPORTERS, CONTENT = "<importers>", "<content>"  # what an answer relied on of a file, beside what it imports
OF_PROJECT: dict[str, Callable[[str], Any]] = {  # ... and of the texts of the project around it
    "<moves>": moves_its_own,
    "<pins>": pins_memory,
    "<sends>": sends_without_waiting,
    "<graphs>": counts_its_own_graphs,
    "<needs>": requirements,
    "<host>": stays_on_host,
    "<default>": default_is_switched,
    "<others>": has_others,
}
GIVEN = "<given>"  # ... and whether anything there gives a parameter, which is named behind it
SPOKEN_OF = "<spoken>"  # ... or speaks of a function or a class


class Tracked(Project):
    """A project that remembers which file's answers relied on which other files."""

    def __init__(self, roots: tuple[Path, ...], is_hot: IsHot | None) -> None:
        super().__init__(roots)
        self.steps = Steps(is_hot)
        self.asked: dict[str, set[str]] = {}
        self.told: dict[str, set[tuple[str, str]]] = {}  # of what a step reaches, and of who imports what
        self.heard: dict[str, set[str]] = {}  # files that said what they pass to functions of another

    def module(self, importer: Module, name: str, level: int) -> Module | None:
        """The module that an import names; that the importer's answers rely on it is noted."""
        found = super().module(importer, name, level)
        if found is not None:
            self.asked.setdefault(importer.path, set()).add(found.path)
        return found

    def role(self, path: str, name: str, owner: str = "") -> Role:
        """When a function or method of a file runs; that its answers rely on it is noted."""
        found = super().role(path, name, owner)
        self.told.setdefault(path, set()).add((f"{path}\0{owner}.{name}", found.value))
        return found

    def importers(self, path: str) -> dict[str, tuple[str, ...]]:
        """The files that may say what is passed to functions of a file; that its answers rely on them is noted."""
        found = super().importers(path)
        self.told.setdefault(path, set()).add((f"{path}\0{IMPORTERS}", _state(found)))
        self.heard[path] = {located(each) for paths in found.values() for each in paths}
        return found

    def of_project(self, what: str, path: str) -> Any:
        """What the project around a file says, of `OF_PROJECT`; that its answers rely on it is noted."""
        found = OF_PROJECT[what](path)
        self.told.setdefault(located(path), set()).add((f"{located(path)}\0{what}", str(found)))
        return found

    def gives(self, path: str, parameter: str) -> bool:
        """Whether the project around a file gives a parameter another value than it has; that answers rely on it is noted."""
        found = is_given(path, parameter)
        self.told.setdefault(located(path), set()).add((f"{located(path)}\0{GIVEN}{parameter}", str(found)))
        return found

    def speaks_of(self, path: str, name: str) -> bool:
        """Whether the project around a file speaks of what that defines; that answers rely on it is noted."""
        found = is_spoken_of(path, name)
        self.told.setdefault(located(path), set()).add((f"{located(path)}\0{SPOKEN_OF}{name}", str(found)))
        return found

    def relied(self, path: str) -> tuple[tuple[str, str], ...]:
        """Path and content hash of every file behind what was said of this one, and when what of it runs: see `still`."""
        here = located(path)
        read = self._behind({here})
        heard = {
            f"{p}\0{CONTENT}": was for p, was in self._behind(self.heard.get(here, set())).items() if p not in read
        }
        read.pop(here, None)
        return (*sorted(read.items()), *sorted(heard.items()), *sorted(self.told.get(here, ())))

    def _behind(self, paths: set[str]) -> dict[str, str]:
        """These files and all that they import, with the hash of the content of each that was read."""
        seen, todo = {*paths}, [*paths]
        while todo:
            new = self.asked.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return {path: self.read[path] for path in seen if path in self.read}


def _state(importers: Mapping[str, tuple[str, ...]]) -> str:
    """Which files import what, in short."""
    return hashlib.blake2b(repr(sorted(importers.items())).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def still(steps: Steps, key: str) -> str | None:
    """What holds now of when a function runs, where an answer relied on it; None for the path of a file."""
    path, zero, name = key.partition("\0")
    if name == IMPORTERS:
        return _state(steps.importers(path))
    if name in OF_PROJECT:
        return str(OF_PROJECT[name](path))
    if name.startswith(GIVEN):
        return str(is_given(path, name.removeprefix(GIVEN)))
    if name.startswith(SPOKEN_OF):
        return str(is_spoken_of(path, name.removeprefix(SPOKEN_OF)))
    if name == CONTENT:
        return hashlib.blake2b(regular(path), digest_size=16).hexdigest()
    owner, _, name = name.partition(".")
    return steps.role(path, name, owner).value if zero else None
