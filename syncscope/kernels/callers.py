"""What pyopencl calls kernels with: Python that it writes for each signature, and keeps in a database on disk.

It is kept in memory here, since pyopencl would ask its database for each kernel object, for 1 ms. And the database is one
file of all programs of this user: where it is damaged or cannot be written, pyopencl raises what SQLite says, at its import
and at each kernel. A cache is no reason to fail: then we go on without, and say so once.
"""

from __future__ import annotations

import os
import pickle
import sqlite3
import warnings
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from syncscope.files import cache_folder_of

if TYPE_CHECKING:
    from pytools.persistent_dict import WriteOncePersistentDict

# The folder may not be there, and not to be made; a row may be cut off.
BROKEN = (sqlite3.Error, OSError, EOFError, pickle.UnpicklingError)


class _Callers(dict[Hashable, object]):
    """As much of pyopencl's own as it asks for. `on_disk` is None where there is no database, or none any more."""

    def __init__(self, on_disk: WriteOncePersistentDict[Hashable, object] | None) -> None:
        self.on_disk = on_disk

    def __missing__(self, key: Hashable) -> object:
        if self.on_disk is not None:
            try:
                found = self[key] = self.on_disk[key]
            except BROKEN as error:
                self._without(error)
            else:
                return found
        raise KeyError(key)

    def store_if_not_present(self, key: Hashable, made: object) -> None:
        """As pyopencl's own."""
        self[key] = made
        if self.on_disk is not None:
            try:
                self.on_disk.store_if_not_present(key, made)
            except BROKEN as error:
                self._without(error)

    def _without(self, error: Exception) -> None:
        file = getattr(self.on_disk, "filename", None)
        self.on_disk = None
        _tell(error, file)


def _tell(error: Exception, file: str | None) -> None:
    remedy = f"delete it where no other program runs: rm '{file}'" if file else "see who owns its folder"
    warnings.warn(f"pyopencl's cache of kernel calls is not used: {error}. {remedy}", stacklevel=2)


def keep() -> None:
    """Take the place of pyopencl's database, in front of it where it can be used."""
    if cl._PYOPENCL_NO_CACHE:  # the user's wish
        return
    try:
        on_disk = _imported().invoker_cache
    except BROKEN as error:
        _tell(error, _file())
        on_disk = None
        cl._PYOPENCL_NO_CACHE = True  # its module asks once, as it is imported, whether there is to be a database
        try:
            _imported()
        finally:
            cl._PYOPENCL_NO_CACHE = False
    except AttributeError:  # of another version
        return
    _imported().invoker_cache = _Callers(on_disk)


def _imported() -> Any:
    from pyopencl import invoker

    return invoker


def _file() -> str | None:
    """Where the database lies, if it is there: the newest of those that pytools has for this Python."""
    try:
        files = sorted(cache_folder_of("pytools").glob("pdict-*-pyopencl-invoker-cache-*.sqlite"), key=os.path.getmtime)
    except OSError:
        return None
    return os.fspath(files[-1]) if files else None
