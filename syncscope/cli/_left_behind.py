"""Recordings of programs that were killed: what they had written lies where temporary files do."""

from __future__ import annotations

import tempfile
from pathlib import Path

from syncscope.cli._console import echo
from syncscope.model.words import visible

SUFFIX = ".records"  # as `tracers.record_file`, which need not be imported where there are none


def offer() -> None:
    """Says where such recordings are, and how to look at the newest."""
    folder = Path(tempfile.gettempdir())
    if not any(folder.glob(f"syncscope-*{SUFFIX}")):
        return
    from syncscope.tracers import process_recording

    found = process_recording.left_behind(folder)
    if found:
        others = f" ({len(found) - 1} more beside it)" if len(found) > 1 else ""
        echo(
            f"syncscope: a program was killed while it recorded{others}; until you delete the file, see it with",
            err=True,
        )
        echo(f"  syncscope report {visible(str(found[-1]))}", err=True)
