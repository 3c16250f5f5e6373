"""Which file of a project an import means: looked for on disk, never imported."""

from __future__ import annotations

import os
from pathlib import Path

from syncscope.project.folders import root_of


class Imports:
    """Answers by file and package, each looked for once.

    `roots` are folders that absolute imports are looked up in, beside the folder above the outermost package of the
    importing file, where its project begins, and `src` there. Nothing outside is found: an installed library stays a name.
    """

    def __init__(self, roots: tuple[Path, ...]) -> None:
        self.roots = roots
        self._meant: dict[tuple[tuple[str, ...], str, int], str | None] = {}
        self._above: dict[tuple[str, str], str | None] = {}
        self._files: dict[str, str | None] = {}
        self._packages: dict[str, tuple[str, ...]] = {}

    def package_of(self, path: str) -> tuple[str, ...]:
        """The folders that are packages around a file, the outermost first, after the folder that holds them."""
        key = os.path.dirname(path)
        found = self._packages.get(key)
        if found is None:
            folder = Path(path).parent
            names: list[str] = []
            while (folder / "__init__.py").is_file() and folder.name:
                names.append(folder.name)
                folder = folder.parent
            found = self._packages[key] = (_text(folder), *reversed(names))
        return found

    def file(self, package: tuple[str, ...], name: str, level: int) -> str | None:
        """What `from name import ...` means in a file of a package (`level` leading dots); None: not of this project."""
        key = (package, name, level)
        if key not in self._meant:
            self._meant[key] = self._resolve(*key)
        return self._meant[key]

    def _resolve(self, package: tuple[str, ...], name: str, level: int) -> str | None:
        above, *packages = package  # of which the first is "" where it is the current folder
        if not level:
            return self._absolute(above, name)
        kept = packages[: len(packages) - (level - 1)]
        if len(kept) + level - 1 != len(packages):
            return None
        return self._file(os.path.join(above, *kept), name)

    def _absolute(self, above: str, name: str) -> str | None:
        key = above, name  # the same in all packages below
        if key not in self._above:
            around = self._around(above)
            folders = (above, *map(_text, self.roots), around, os.path.join(around, "src"))
            self._above[key] = next(filter(None, (self._file(folder, name) for folder in folders)), None)
        return self._above[key]

    @staticmethod
    def _around(folder: str) -> str:
        """Where the project of a folder begins, from which scripts below import; where nothing says so, the folder above."""
        return root_of(folder) or os.path.dirname(folder)

    def _file(self, folder: str, name: str) -> str | None:
        path = os.path.join(folder, *name.split("."))
        if path not in self._files:
            choices = (f"{path}.py", os.path.join(path, "__init__.py")) if name else (f"{path}__init__.py",)
            self._files[path] = next(filter(os.path.isfile, choices), None)
        return self._files[path]


def _text(folder: Path) -> str:
    """A folder to which names are joined: "" is the current one."""
    return "" if folder == Path() else str(folder)
