"""The folder is the registry: a plug-in is found by being there."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from types import ModuleType

from syncscope.errors import UserError

SHOWN = 16  # names in a hint


def slug(module: str) -> str:
    """The name users type for a module: `boolean_mask_index` is `boolean-mask-index`."""
    return module.rpartition(".")[2].replace("_", "-")


def names(package: ModuleType) -> list[str]:
    """Slugs of the modules in a package, in order, without importing them; a name that begins with `_` is private.

    Raises:
        UserError: there are none, and no folder of ours is empty.
    """
    return list(_listed(tuple(package.__path__)))


@functools.cache
def _listed(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Looked up once: what another version brings that is installed beside a running program is none of its own."""
    found = sorted(slug(m.name) for m in pkgutil.iter_modules(folders) if not m.name.startswith("_"))
    if not found:  # pkgutil says the same of a folder that cannot be read
        why = "was syncscope installed anew, or has the process too many files open? Start it again"
        raise UserError(f"nothing of syncscope is found in {folders[0]}", why)
    return tuple(found)


def load(package: ModuleType, name: str) -> ModuleType:
    """The module behind a slug.

    Raises:
        UserError: no such module; the hint is the nearest name, else all of them.
    """
    known = names(package)
    if name not in known:
        kind = package.__name__.rpartition(".")[2].removesuffix("s")
        raise UserError(f"no {kind} is called {name!r}", did_you_mean(name, known))
    return _imported(package, name)


def discover(package: ModuleType) -> dict[str, ModuleType]:
    """Every module of a package by its slug, imported."""
    return {name: _imported(package, name) for name in names(package)}


def _imported(package: ModuleType, name: str) -> ModuleType:
    return importlib.import_module(f"{package.__name__}.{name.replace('-', '_')}")


def did_you_mean(word: str, choices: list[str], listed: str = "") -> str:
    """A hint for a word that is none of the choices; `listed` says where to find them where they are many."""
    near = difflib.get_close_matches(word, choices, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return listed if listed and len(choices) > SHOWN else f"choose from: {', '.join(choices)}"
