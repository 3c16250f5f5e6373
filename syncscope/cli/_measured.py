"""What `syncscope verify -o result.json` wrote, read back for a page: a file that somebody may have sent, or cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from syncscope import files
from syncscope.errors import UserError

Number = float | None


class _Fix(msgspec.Struct):
    path: str
    line: int
    title: str
    safety: str
    changes: str
    kept: bool
    why: str
    ratio: Number
    low: Number
    high: Number
    values: str | None


class _Result(msgspec.Struct):
    """What a page shows of it, as `verify.results.as_object` writes it."""

    schema: int
    program: str
    ratio: Number
    low: Number
    high: Number
    same_ratio: Number
    same_low: Number
    same_high: Number
    predicted_ratio: Number
    predicted_low: Number
    predicted_high: Number
    came_true: bool | None
    step_ms_before: Number
    step_ms_after: Number
    reads_before: Number
    reads_after: Number
    values: str | None
    steps: int
    runs: int
    notes: list[str]
    fixes: list[_Fix]


def measured(path: Path) -> dict[str, Any]:
    """The whole result, as JSON values.

    Raises:
        UserError: it is something else, or damaged.
    """
    try:
        text = files.regular(path)
        if msgspec.json.decode(text, type=_Result).schema != 1:
            raise ValueError("it is of another version")
        found: dict[str, Any] = msgspec.json.decode(text)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "name a file that it wrote") from None
    except (ValueError, RecursionError) as error:  # of msgspec, too
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        hint = "write one with syncscope verify -o result.json"
        raise UserError(f"{path} is no result of syncscope verify: {why}", hint) from None
    return found
