"""Hears when a library that matters has been imported, or one that may have brought an OpenCL driver."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType
from typing import Any

from syncscope.tracers.opencl.dispatch import tables

Awaited = Callable[[str], bool]
Heard = Callable[[str], None]


class _Finder:
    """First in sys.meta_path: finds nothing itself, but has the others' loaders report when a library of ours is there."""

    def __init__(self, awaited: Awaited, heard: Heard) -> None:
        self._awaited, self._heard = awaited, heard
        self._busy: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in self._busy or not self._awaited(name):
            return None
        self._busy.add(name)
        try:
            spec = next(
                (s for f in list(sys.meta_path) if hasattr(f, "find_spec") and (s := f.find_spec(name, path, target))),
                None,
            )
        finally:
            self._busy.discard(name)
        loader: Any = spec.loader if spec else None
        if loader is not None and hasattr(loader, "exec_module"):
            execute = loader.exec_module

            @functools.wraps(execute)
            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._heard(name)
                tables.rescan()

            loader.exec_module = exec_module
        return spec


def hear(awaited: Awaited, heard: Heard) -> Callable[[], None]:
    """From now on `heard(name)` is called when the import of a library has ended for which `awaited(name)` is true, until what
    is returned is called."""
    finder, execute = _Finder(awaited, heard), ExtensionFileLoader.exec_module

    def exec_and_look(self: ExtensionFileLoader, module: ModuleType) -> None:
        execute(self, module)
        # pyopencl has not yet had the chance to set its own environment: it reports itself when it is whole
        if not module.__name__.startswith("pyopencl."):
            tables.rescan()

    def end() -> None:
        if sys.meta_path is not None:  # as it is where the interpreter ends, and a generator with it
            sys.meta_path.remove(finder)
        ExtensionFileLoader.exec_module = execute  # type: ignore[method-assign]  # as it was

    sys.meta_path.insert(0, finder)
    ExtensionFileLoader.exec_module = exec_and_look  # type: ignore[method-assign]  # the way in for C++ backends
    return end
