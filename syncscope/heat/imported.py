"""Which functions of a project a name means in a file: its own, or those of the module that it is imported from."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable

from syncscope.project.definitions import Definitions
from syncscope.project.outline import FunctionText, aliases, names_imported, names_of_modules


class Imported:
    """What files import by name, each gone through when it is first asked for."""

    def __init__(self, definitions: Definitions) -> None:
        self._sources, self._defined = definitions.sources, definitions.defined
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        for path in definitions.sources:
            self._by_stem[os.path.basename(path).removesuffix(".py")].append(path)
        self._names: dict[str, frozenset[str]] = {}
        self._modules: dict[str, dict[str, set[str]]] = {}
        self._aliases: dict[str, dict[str, str]] = {}

    def names(self, path: str) -> frozenset[str]:
        """The names that a file imports, as they are defined elsewhere."""
        if path not in self._names:
            self._names[path] = frozenset(names_imported(self._sources[path]))
        return self._names[path]

    def aliases(self, path: str) -> dict[str, str]:
        """What a file calls what it imports under another name: `boxes as box_ops`."""
        if path not in self._aliases:
            found = aliases(self._sources[path]).items()
            self._aliases[path] = {alias.decode(): name.decode() for alias, name in found}
        return self._aliases[path]

    def under(self, name: str, path: str) -> list[str]:
        """What a file calls what is defined under a name: that, and what it imports it as."""
        return [name, *(alias for alias, of in self.aliases(path).items() if of == name != alias)]

    def meant(self, name: str, path: str, functions: Iterable[FunctionText]) -> list[FunctionText]:
        """Those of these functions of a name that it may mean in a file: of its own, else of what it is imported from.

        What a package hands on may be defined anywhere: where its module defines none of the name, all are meant.
        """
        own = [each for each in functions if each.path == path]
        if name not in self.names(path):
            return own
        within = self._files_of(name, self._modules_of(path).get(name, ()))
        return own + [each for each in functions if each.path != path and (not within or each.path in within)]

    def _files_of(self, name: str, modules: Iterable[str]) -> set[str]:
        """The files that define a name in one of these modules, or below, where it is a package."""
        defines = b"def %b(" % name.encode()
        files = {
            path
            for module in modules
            for path in self._by_stem.get(os.path.basename(module), ())
            if path.endswith(f"{module}.py") and defines in self._sources[path]
        }
        below = (each.path for each in self._defined.get(name.encode(), ()) if not each.cls)
        return files or {path for path in below if any(f"{module}{os.sep}" in path for module in modules)}

    def _modules_of(self, path: str) -> dict[str, set[str]]:
        """The modules that a file imports names from, as the end of a path: `/net/losses`."""
        if path not in self._modules:
            found: dict[str, set[str]] = defaultdict(set)
            folders = os.path.dirname(path).split(os.sep)
            for module, name in names_of_modules(self._sources[path]):
                words = module.lstrip(".")
                level = len(module) - len(words)
                around = folders[: len(folders) - level + 1] if level else [""]
                found[name].add(os.sep.join([*around, *filter(None, words.split("."))]))
            self._modules[path] = found
        return self._modules[path]
