"""What few texts hold: a pattern is tried where one of its words stands, which is seen in a tenth of the time."""

from __future__ import annotations

import re


class Rare:
    """A pattern that matches nothing in which none of these words stands."""

    __slots__ = ("_pattern", "_words")

    def __init__(self, words: tuple[bytes, ...], pattern: bytes, flags: int = 0) -> None:
        self._words, self._pattern = words, re.compile(pattern, flags)

    def search(self, text: bytes) -> re.Match[bytes] | None:
        """The first match in a text."""
        for word in self._words:
            if word in text:
                return self._pattern.search(text)
        return None
