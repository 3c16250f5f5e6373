"""A recording as a decorator: it runs while a function does."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

T = TypeVar("T")
A = ParamSpec("A")


class Decorated:
    """Calls of functions that are recorded. Those within a call, and in other threads meanwhile, are part of its recording,
    which ends with the last of them."""

    def __init__(self, recording: AbstractContextManager[object]) -> None:
        self._recording = recording
        self._running = 0
        self._lock = threading.RLock()

    def around(self, function: Callable[A, T]) -> Callable[A, T]:
        """The function, each call of which is recorded."""

        @functools.wraps(function)
        def recorded(*args: A.args, **kwargs: A.kwargs) -> T:
            with self._call():
                return function(*args, **kwargs)

        return recorded

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        with self._lock:
            if not self._running:
                self._recording.__enter__()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._recording.__exit__(*sys.exc_info())
