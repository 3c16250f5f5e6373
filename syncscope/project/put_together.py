"""Names of methods that a program puts together and asks its object for: `getattr(self, f"{kind}_reduction")(losses)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_ASKED = re.compile(
    rb"""getattr\(\s*(?:self|cls)\b[\w.]*,\s*(?:"""
    rb"""f(["'])(\w*)\{[^{}"']*\}(\w*)\1"""
    rb"""|(["'])(\w*)(?:\{\w*\}(\w*)\4\.format\(|%s(\w*)\4\s*%|\4\s*\+)"""
    rb"""|[\w.]+\s*\+\s*(["'])(\w+)\8\s*[,)])"""
)
_LEAST = 4  # letters of a name that are written out


def asked_for(text: bytes, methods: Iterable[bytes]) -> Iterator[bytes]:
    """Of these names those that a text may put together, as they begin or end."""
    if b"getattr(" not in text:
        return
    for found in _ASKED.finditer(text):
        begin, end = found[2] or found[5] or b"", found[3] or found[6] or found[7] or found[9] or b""
        known = len(begin) + len(end)
        if known >= _LEAST:
            yield from (w for w in methods if len(w) > known and w.startswith(begin) and w.endswith(end))
