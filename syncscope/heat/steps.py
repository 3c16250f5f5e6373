"""The projects that files are in, and what the steps of each reach: gone through once, and again when a file of it changes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from syncscope.heat import by_name
from syncscope.heat.reach import Reach, reach
from syncscope.heat.survey import IsHot
from syncscope.model.heat import Role
from syncscope.project.folders import files, roots


class Steps:
    """What is known of the steps of the projects that were asked for."""

    def __init__(self, is_hot: IsHot | None = None) -> None:
        self.is_hot = is_hot  # whether the steps of others call a function of a file, as a configuration says it
        self.known: dict[str, tuple[str, Reach | None]] = {}  # root -> state of its files, and what is reached in it
        self._of_file: dict[str, tuple[str, Reach | None]] = {}  # its absolute path, and what is reached around it
        self._importers: dict[str, dict[str, tuple[str, ...]]] = {}
        self._of_folder: dict[str, Reach | None] = {}
        self._of_root: dict[str, Reach | None] = {}
        self._roots: dict[str, tuple[Path, ...]] = {}  # of a folder: its marks are not looked for by each file

    def role(self, path: str, name: str, owner: str = "") -> Role:
        """When a function of a file runs, or a method of a class in it: in a step, where its project does not say."""
        full, known = self._around_file(path)
        return Role.STEP if known is None else known.role(full, name, owner)

    def importers(self, path: str) -> dict[str, tuple[str, ...]]:
        """The files that import the functions of a file which do not say what they take, and would wait for tensors."""
        full = os.path.abspath(path)
        if full not in self._importers:
            around = self._reaches(os.path.dirname(full)) if os.path.isfile(path) else ()
            self._importers[full] = next((each.importers.get(full, {}) for each in around), {})
        return self._importers[full]

    def _around_file(self, path: str) -> tuple[str, Reach | None]:
        if path not in self._of_file:
            full = os.path.abspath(path)
            self._of_file[path] = full, self.around(os.path.dirname(full)) if os.path.isfile(path) else None
        return self._of_file[path]

    def caller(self, path: str, name: str) -> str:
        """What calls a function of this name in a file, where that is why it runs in steps; else ""."""
        full = os.path.abspath(path)
        known = self.around(os.path.dirname(full))
        return known.caller(full, name) if known is not None else ""

    def around(self, folder: str) -> Reach | None:
        """What is reached in the project that a folder (an absolute path) is in; None where no step of it is known."""
        if folder not in self._of_folder:
            self._of_folder[folder] = next((each for each in self._reaches(folder) if each.holds), None)
        return self._of_folder[folder]

    def _reaches(self, folder: str) -> Iterator[Reach]:
        """What is reached in each project that a folder may be in."""
        if folder not in self._roots:
            self._roots[folder] = (*roots(Path(folder)),)
        return filter(None, map(self._below, self._roots[folder]))

    def _below(self, root: Path) -> Reach | None:
        name = str(root)
        if name not in self._of_root:
            paths = files(root)
            state = hashlib.blake2b(repr(paths).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
            if self.known.get(name, ("",))[0] != state:
                self.known[name] = state, reach(root, paths, self.is_hot) if paths else None
                by_name.forget()
                _give_back()
            self._of_root[name] = self.known[name][1]
        return self._of_root[name]


def _give_back() -> None:
    """Give the system back what the texts of a project took: glibc keeps it for more of their size."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
