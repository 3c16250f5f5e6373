"""Signals that a program hears, kept from it for a moment: its handlers are called once it may be kept as it is."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class HeldBack:
    """Of the main thread, as Python has it. Who sends one twice is heard at once."""

    def __init__(self) -> None:
        self.due: list[int] = []
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def begin(self) -> None:
        """From now on."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in NUMBERS:
            if callable(handler := signal.getsignal(number)):
                self._handlers[number] = handler
                signal.signal(number, self._heard)

    def end(self) -> None:
        """The program's own handlers are in place again; what is `due` is not called yet."""
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._heard:
                signal.signal(number, handler)

    def deliver(self) -> None:
        """Calls what is due.

        Raises:
            BaseException: what a handler raises, as that of Ctrl-C does.
        """
        while self.due:
            number = self.due.pop(0)
            self._handlers[number](number, sys._getframe(1))

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if number in self.due:
            self._handlers[number](number, frame)
        else:
            self.due.append(number)
