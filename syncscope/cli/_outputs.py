"""What a command may write over: nothing that it reads, and no recording, which cannot be made again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from syncscope.errors import UserError
from syncscope.model.words import visible

if TYPE_CHECKING:
    from pathlib import Path

RECORDED = (".json", ".json.gz")  # what a recording may be called, and a report, too


def spare(outputs: Iterable[str | Path | None], inputs: Iterable[str | Path] = ()) -> None:
    """Refuse to write over what is read here, by whichever name or link, over any recording, and where nothing can be written.

    Asked before anything is read or written: of several outputs either all are written or none. Folders that are not there are
    made as a file is written, and not here.

    Raises:
        UserError: an output is one of the inputs, or a recording, or no file can be there.
    """
    read = {known: os.fspath(path) for path in inputs if (known := _identity(path)) is not None}
    for output in outputs:
        if output is not None:
            _has_room(output)
        if output is None or (known := _identity(output)) is None:
            continue
        name = visible(os.fspath(output))
        if known in read:
            raise UserError(f"{name} is read here, and is not written over", "choose another name with -o")
        if os.path.isfile(output) and name.endswith(RECORDED) and _holds_events(output):
            raise UserError(f"{name} is a recording, and is not written over", "choose another name with -o")


def _has_room(path: str | Path) -> None:
    """That a file can be made there, or a folder around it."""
    above = os.path.dirname(os.path.abspath(path))
    while not os.path.lexists(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    why = "is no folder" if not os.path.isdir(above) else "" if os.access(above, os.W_OK | os.X_OK) else "is not yours"
    if why and not os.path.exists(path):
        name = visible(os.fspath(path))
        raise UserError(
            f"{name} cannot be written: {visible(os.path.relpath(above))} {why}", "choose another name with -o"
        )


def _identity(path: str | Path) -> tuple[int, int] | None:
    """What is there, whatever leads to it; None where no regular file or folder is: a pipe, a terminal, a URL, nothing."""
    try:
        told = os.stat(path)
    except (OSError, ValueError):
        return None
    return (told.st_dev, told.st_ino) if os.path.isfile(path) else None


def _holds_events(path: str | Path) -> bool:
    from syncscope.kineto import header

    return header.holds_events(path)
