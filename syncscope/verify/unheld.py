"""What of a run could not be taken back, said before the first one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

from syncscope.verify.copying import shares_blocks
from syncscope.verify.journal import LARGEST
from syncscope.verify.request import KERNEL, PYTHON

WAYS = {
    KERNEL: "what runs change of files is taken back: the kernel tells of every change",
    PYTHON: "what runs change of files is taken back as far as Python tells of it: not what libraries write past Python, nor "
    "programs that they start",
}
LOOKING = 1.0  # s
NAMED = 3  # files


def said(heard_by: str, folder: str = os.curdir) -> list[str]:
    """Who tells of what runs change below a folder, and which files there are too large for a copy."""
    found = [WAYS[heard_by]]
    large = sorted(_large(folder), reverse=True)
    if large and not shares_blocks(large[0][1]):
        names = ", ".join(f"{os.path.relpath(path)} ({size / 1e9:.1f} GB)" for size, path in large[:NAMED])
        more = f" and {len(large) - NAMED} more" if len(large) > NAMED else ""
        found.append(f"too large for a copy, so that a change in place stays: {names}{more}")
    return found


def _large(folder: str) -> Iterator[tuple[int, str]]:
    """Files of more than LARGEST, as far as a second shows them."""
    until = time.monotonic() + LOOKING
    for above, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                path = os.path.join(above, name)
                told = os.lstat(path)
                used = getattr(told, "st_blocks", 0) * 512 or told.st_size
                if used > LARGEST and not os.path.islink(path):
                    yield used, path
        if time.monotonic() > until:
            return
