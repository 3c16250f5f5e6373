"""What `syncscope verify` found, as the JSON that it wrote, read back from a file or a recording of a stranger."""

from __future__ import annotations

from typing import Any

import msgspec

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
    compared_steps: int | None = None  # earlier versions did not write it


def verified(text: bytes) -> dict[str, Any]:
    """The whole result, as JSON values.

    Raises:
        ValueError: it is something else, or damaged.
    """
    if msgspec.json.decode(text, type=_Result).schema != 1:
        raise ValueError("it is of another version")
    found: dict[str, Any] = msgspec.json.decode(text)
    return found


def is_verified(value: object) -> bool:
    """Whether JSON values are one."""
    try:
        return msgspec.convert(value, type=_Result).schema == 1
    except (ValueError, RecursionError):  # of msgspec, too
        return False
