"""The projects that files are in, and what the steps of each reach: gone through once, and again when a file of it changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from syncscope.tensors.reach import Reach, reach
from syncscope.tensors.roles import Role

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_INSTALLED = "site-packages"
_PASSED_BY = frozenset((_INSTALLED, "node_modules", "__pycache__"))
_MOST, _MOST_FILES = (
    60_000_000,
    20_000,
)  # bytes of Python in a project, and files of any kind: of larger ones nothing is said


class Steps:
    """What is known of the steps of the projects that were asked for."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, Reach | None]] = {}  # root -> state of its files, and what is reached in it
        self._of_folder: dict[str, Reach | None] = {}
        self._of_root: dict[str, Reach | None] = {}

    def role(self, path: str, name: str, owner: str = "") -> Role:
        """When a function of a file runs, or a method of a class in it: in a step, where its project does not say."""
        full = os.path.abspath(path)
        known = self.around(os.path.dirname(full)) if os.path.isfile(path) else None
        return Role.STEP if known is None else known.role(full, name, owner)

    def around(self, folder: str) -> Reach | None:
        """What is reached in the project that a folder (an absolute path) is in; None where no step of it is known."""
        if folder not in self._of_folder:
            self._of_folder[folder] = next(filter(None, map(self._below, roots(Path(folder)))), None)
        return self._of_folder[folder]

    def _below(self, root: Path) -> Reach | None:
        name = str(root)
        if name not in self._of_root:
            paths = files(root)
            state = hashlib.blake2b(repr(paths).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
            if self.known.get(name, ("",))[0] != state:
                self.known[name] = state, reach(root, paths) if paths else None
            self._of_root[name] = self.known[name][1]
        return self._of_root[name]


def roots(folder: Path) -> Iterator[Path]:
    """The folders that may be the project of a folder: what is marked as one, then the outermost package, around it or one
    whose folder it is without being one itself.
    """
    package, above = folder, folder
    if not (folder / "__init__.py").is_file():
        package = folder.parent
    while (package / "__init__.py").is_file() and (package.parent / "__init__.py").is_file():
        package = package.parent
    while above.name and above.name != _INSTALLED:
        if any((above / name).exists() for name in _MARKS):
            yield above
            break
        above = above.parent
    if (package / "__init__.py").is_file():
        yield package


def files(root: Path) -> dict[str, tuple[int, int]]:
    """Its files of Python, with time and size of each; none where they are too many to be read."""
    found: dict[str, tuple[int, int]] = {}
    size = number = 0
    for folder, below, names in os.walk(root):
        below[:] = sorted(each for each in below if not each.startswith(".") and each not in _PASSED_BY)
        number += len(names)
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                try:
                    told = os.stat(path)
                except OSError:
                    continue
                found[path] = (told.st_mtime_ns, told.st_size)
                size += told.st_size
        if size > _MOST or number > _MOST_FILES:
            return {}
    return found
