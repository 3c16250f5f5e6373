"""What is replaced in other libraries while somebody listens: put in place as each is imported, all taken back at once."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from syncscope.errors import UserError
from syncscope.tracers.hooks import imports
from syncscope.tracers.saying import say

INHERITED = object()  # in place of an attribute that its owner did not have itself
Installer = Callable[[Any], None]  # is given the library as soon as it is whole


class Patches:
    """The replacements in this process. They are taken back when the last of those who `hold` them has gone."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._users = 0
        self._wanted: list[tuple[str, Installer]] = []
        self._done: set[tuple[str, Installer]] = set()
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Inside, everything that is wanted is in place, for the libraries that are imported and for those to come."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self.later(imports.hear(self.awaited, self.rescan))
            self.rescan()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._done.clear()
                    self._take_back()

    def later(self, call: Callable[..., object], *given: Any) -> None:
        """Has this called when the patches are taken back; the last comes first."""
        self._undo.append((call, given))

    def _take_back(self) -> None:
        try:
            while self._undo:
                call, given = self._undo.pop()
                call(*given)
        finally:
            if self._undo:  # one has raised: the others are not to stay for that
                self._take_back()

    def when_imported(self, name: str, put: Installer) -> Callable[[], None]:
        """Has `put` called with a library as soon as it is whole, while somebody holds us; returns how to take that back."""
        self._wanted.append((name, put))
        self.rescan()
        return functools.partial(self._wanted.remove, (name, put))

    def awaited(self, name: str) -> bool:
        """Whether somebody wants to know when this is imported."""
        return any(name == wanted for wanted, _ in self._wanted)

    def rescan(self, just_now: str = "") -> None:
        """Takes in libraries that were imported since; `just_now` is one whose import is ending."""
        if not self._users:
            return
        for name, put in self._wanted.copy():
            module = sys.modules.get(name)
            if module is None or (name, put) in self._done:
                continue
            with self._lock:
                if name != just_now and getattr(module.__spec__, "_initializing", False):
                    continue
                if (name, put) not in self._done:
                    self._done.add((name, put))
                    self._put(name, put, module)

    def _put(self, name: str, put: Installer, module: Any) -> None:
        try:
            put(module)
        except UserError:
            raise
        except Exception as why:  # a stand-in for the library, or one of another age: the program does not end for that
            told = f"what waits inside of {name} is not heard, for it is not as we know it: {type(why).__name__}: {why}"
            say(UserError(told))

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Sets an attribute until the patches are taken back."""
        self.replace_all([(owner, name, new)])

    def replace_names(self, names: dict[str, Any], new: dict[str, Any]) -> None:
        """Has these names of a module mean something else until the patches are taken back: all at once, which is faster."""
        self.later(names.update, {name: names[name] for name in new})
        names.update(new)

    def replace_all(self, changes: Iterable[tuple[Any, str, Any]]) -> None:
        """Sets attributes of these owners, by name, until the patches are taken back."""
        before = []
        for owner, name, new in changes:
            before.append((owner, name, vars(owner).get(name, INHERITED)))
            setattr(owner, name, new)
        self.later(_restore, before)


def _restore(before: list[tuple[Any, str, Any]]) -> None:
    for owner, name, value in reversed(before):
        if value is INHERITED:
            delattr(owner, name)
        else:
            setattr(owner, name, value)


patches = Patches()
beats = Patches()  # what finds steps: in place also while nothing else is to be heard, and a step is timed without us
