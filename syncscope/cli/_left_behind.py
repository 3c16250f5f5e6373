"""Recordings of programs that were killed: what they had written lies where temporary files do."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from syncscope.cli._console import echo
from syncscope.model.words import visible

RECENT = 3600  # seconds for which whoever asks for a report is told unasked
SUFFIX = ".records"  # as `tracers.record_file`, which need not be imported where there are none


def offer(within: float = float("inf")) -> None:
    """Says where such recordings are that ended `within` so many seconds, and how to look at the newest."""
    folder = Path(tempfile.gettempdir())
    if not any(folder.glob(f"syncscope-*{SUFFIX}")):
        return
    from syncscope.tracers import recovery

    since = time.time() - within
    found = [path for path in recovery.left_behind(folder) if path.stat().st_mtime >= since]
    if found:
        others = f" ({len(found) - 1} more beside it)" if len(found) > 1 else ""
        echo(
            f"syncscope: a program was killed while it recorded{others}; until you delete the file, see it with",
            err=True,
        )
        echo(f"  syncscope report {visible(str(found[-1]))}", err=True)
