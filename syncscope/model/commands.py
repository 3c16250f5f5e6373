"""The commands that a report names to read on, each written in one place."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from syncscope.model.source import on_disk


def shows_fixes(paths: Iterable[str], by: str = "--all") -> str:
    """What shows every rewrite in some files: without `--all`, or the recording, what waits beside another wait has none."""
    return f"`syncscope lint --diff {by} {_files(paths)}`"


def says_all(paths: Iterable[str]) -> str:
    """What says of each line in some files that may wait what can be written instead, however unsure the code alone is."""
    return f"`syncscope lint --all --min-confidence low {_files(paths)}`"


def _files(paths: Iterable[str]) -> str:
    return " ".join(map(shlex.quote, dict.fromkeys(map(on_disk, paths))))
