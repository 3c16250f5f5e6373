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
    """Refuse to write over what is read here, by whichever name or link, and over any recording.

    Asked before anything is read or written: of several outputs either all are written or none.

    Raises:
        UserError: an output is one of the inputs, or a recording.
    """
    read = {known: os.fspath(path) for path in inputs if (known := _identity(path)) is not None}
    for output in outputs:
        if output is None or (known := _identity(output)) is None:
            continue
        name = visible(os.fspath(output))
        if known in read:
            raise UserError(f"{name} is read here, and is not written over", "choose another name with -o")
        if os.path.isfile(output) and name.endswith(RECORDED) and _holds_events(output):
            raise UserError(f"{name} is a recording, and is not written over", "choose another name with -o")


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
