"""Hears when a library that matters has been imported, or one that may have brought an OpenCL driver."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from time import monotonic_ns
from types import ModuleType
from typing import Any

from syncscope.tracers import driver_reads, reads, torch_reads
from syncscope.tracers.icd import patches

EVERY = 50_000_000  # ns between two looks at what was loaded without an import
_looked = 0
LIBRARIES = (driver_reads, torch_reads)  # which say what to do with a library as soon as it is there


def heard(name: str = "") -> None:
    """Something was loaded: hook what came with it. Without a name (a step has ended), it may be that something was."""
    global _looked
    if not name and monotonic_ns() - _looked < EVERY:
        return
    _looked = monotonic_ns()
    reads.rescan(name)
    patches.rescan()


class _Finder:
    """First in sys.meta_path: finds nothing itself, but has the others' loaders report when a library of ours is there."""

    def __init__(self) -> None:
        self._busy: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in self._busy or not reads.awaited(name):
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
                heard(name)

            loader.exec_module = exec_module
        return spec


_finder = _Finder()
_users = 0
_exec_extension = ExtensionFileLoader.exec_module


def _exec_and_tell(self: ExtensionFileLoader, module: ModuleType) -> None:
    _exec_extension(self, module)
    # pyopencl has not yet had the chance to set its own environment: it reports itself when it is whole
    if not module.__name__.startswith("pyopencl."):
        patches.rescan()


def install() -> None:
    """Begins to listen; counted."""
    global _users
    _users += 1
    if _users == 1:
        sys.meta_path.insert(0, _finder)
        ExtensionFileLoader.exec_module = _exec_and_tell  # type: ignore[method-assign]  # the way in for C++ backends


def uninstall() -> None:
    """Stops listening with the last user."""
    global _users
    _users -= 1
    if not _users:
        sys.meta_path.remove(_finder)
        ExtensionFileLoader.exec_module = _exec_extension  # type: ignore[method-assign]  # as it was
