"""Which files of its own a program runs, by its import statements: nothing is imported for it."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from syncscope.project.imports import Imports
from syncscope.tracers.places import USER, kind_of_file
from syncscope.verify.executed import executed_files
from syncscope.verify.request import Program

UNSEEN = re.compile(
    rb"\b(?:importlib|import_module|__import__|runpy|run_path|execfile|load_source|entry_points|sys\.path|addsitedir"
    rb"|sys\.meta_path|import[^\n]*meta_path|torch\.hub|hydra|jsonargparse|LightningCLI|LazyConfig|custom_imports|trust_remote_code|gin)\b"
)
"""By which a program may run files that no import statement names, or look for those in other places than we do."""


ENVIRONMENT = re.compile(rb"environ\b|putenv|dotenv")


def own_files(program: Program) -> list[str] | None:
    """Absolute paths, links resolved, that of the program itself first; None where there may be more than can be seen so."""
    roots = [folder for folder in sys.path if os.path.isdir(folder) and _is_own(os.path.join(folder, "a.py"))]
    script = _module(program.target, roots) if program.module else os.path.realpath(program.target)
    if script is None or not _is_own(script):
        return None
    first = os.getcwd() if program.module else os.path.dirname(script)
    walk = _Walk([first, *roots])
    walk.add(script)
    if program.module:
        walk.follow(script, program.target, 0)  # the packages around it
    for path in walk.found:  # which grows meanwhile
        try:
            raw = Path(path).read_bytes()
            if UNSEEN.search(raw):
                return None
            tree = ast.parse(raw)
        except (OSError, SyntaxError, ValueError, RecursionError):  # what is wrong with it is said where it is run
            return None
        for name, level in _imported(tree):
            walk.follow(path, name, level)
        executed = executed_files(tree, program.arguments)
        if executed is None:
            return None
        for other in executed:
            walk.add(other)
    return list(walk.found)


def imported_by(program: Program, libraries: Collection[str]) -> list[str]:
    """Modules of these libraries that the program's own files name, as far as these are found without running it; not of one
    that it has itself, under the same name."""
    files = own_files(program) or ([] if program.module else [program.target])
    own = {part.removesuffix(".py") for path in files for part in Path(path).parts}
    found: dict[str, None] = {}
    for path in files:
        with suppress(OSError, SyntaxError, ValueError, RecursionError):
            named = (name for name, level in _imported(ast.parse(Path(path).read_bytes())) if not level)
            found.update(dict.fromkeys(name for name in named if name.partition(".")[0] in {*libraries} - own))
    return [*found]


def may_change_environment(program: Program) -> bool:
    """Whether the program's own files speak of the environment, which a library may read when it is imported."""
    files = own_files(program)
    return files is None or any(ENVIRONMENT.search(Path(path).read_bytes()) for path in files)


class _Walk:
    """The files `found` so far, in their order."""

    def __init__(self, roots: list[str]) -> None:
        self.found: list[str] = []
        self._roots = [os.path.realpath(root) for root in roots]
        self._imports = Imports(())
        self._installed: dict[str, str] = {}  # by top-level name: the folder that holds it, if it is the user's own

    def add(self, path: str) -> None:
        """A file that runs."""
        path = os.path.realpath(path)
        if path not in self.found and _is_own(path):
            self.found.append(path)

    def follow(self, path: str, name: str, level: int) -> None:
        """All that may run where a file imports that name: every file that could be meant, since more does no harm."""
        package = self._imports.package_of(path)
        places = [package] if level else [package, *((root,) for root in self._roots)]
        top = name.partition(".")[0]
        if not level and not any(self._imports.file(place, top, 0) for place in places):
            places += [(folder,)] if (folder := self._folder_of(top)) else []
        parts = name.split(".") if name else []
        for place in places:
            for end in range(len(parts) + 1):  # a package runs before what is in it
                if (end or level) and (file := self._imports.file(place, ".".join(parts[:end]), level)):
                    self.add(file)

    def _folder_of(self, top: str) -> str:
        """Where a package of one's own lies that is installed in a way of its own ("editable"); "" where it is none."""
        if top not in self._installed:
            self._installed[top] = ""
            if top and top not in sys.stdlib_module_names:
                try:
                    spec = importlib.util.find_spec(top)
                except (ImportError, ValueError, AttributeError):
                    spec = None
                lies = [*(spec.submodule_search_locations or ())] if spec else []
                lies += [spec.origin] if spec and spec.origin and not lies else []
                own = [where for where in lies if os.path.exists(where) and _is_own(os.path.join(where, "a.py"))]
                self._installed[top] = os.path.dirname(own[0]) if own else ""
        return self._installed[top]


def _imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names with their leading dots, wherever they are imported; what is imported from a package may be a module of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, 0
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield ".".join(filter(None, (node.module, alias.name))), node.level


def _module(name: str, roots: list[str]) -> str | None:
    """What `python -m` runs, if it lies where we see it."""
    for root in (os.getcwd(), *roots):
        stem = os.path.join(root, *name.split("."))
        for path in (f"{stem}.py", os.path.join(stem, "__main__.py")):
            if os.path.isfile(path):
                return os.path.realpath(path)
    return None


def _is_own(path: str) -> bool:
    return kind_of_file(os.path.realpath(path)) == USER
