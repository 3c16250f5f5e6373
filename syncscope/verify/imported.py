"""Which modules of a process are the program's own, and where their files lie."""

from __future__ import annotations

import os
import sys
from typing import Any

_installed: set[str] = set()  # files of packages that stay where they are


def own_files(main: str | None) -> list[str]:
    """The program's own files of all modules that are there, and this one: absolute paths, links resolved."""
    from syncscope.tracers import places

    folders: dict[str, str] = {}  # of torch's 1,500 files, few: links are looked up once for each

    def real(path: str) -> str:
        if path in _installed:
            return path
        folder, name = os.path.split(path)
        if os.path.islink(path):
            return os.path.realpath(path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        found = os.path.join(folders[folder], name)
        if found == path and places.kind_of_file(path) != places.USER:
            _installed.add(path)
        return found

    files = {real(path) for path in map(_source, list(sys.modules.values())) if path}
    files |= {real(main)} if main else set()
    return sorted(path for path in files if places.kind_of_file(path) == places.USER and os.path.isfile(path))


def look_up() -> None:
    """Looks up where all lies that is imported by now: no fork of this process need do so again."""
    from syncscope.tracers import places

    own_files(None)
    places.carriers.cache_clear()  # in part by the environment, which the program may change


def is_own(module: Any) -> bool:
    """Whether a module of that name is the program's own: another may be installed."""
    from syncscope.tracers import places

    path = _source(module)
    return path is not None and places.kind_of_file(os.path.realpath(path)) == places.USER


def _source(module: Any) -> str | None:
    path = getattr(module, "__file__", None)
    return path if isinstance(path, str) and path.endswith(".py") else None
