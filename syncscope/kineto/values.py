"""Numbers as trace files write them: integers, fractions, text, and what should have been a number."""

from __future__ import annotations

import re
from array import array
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from syncscope.kineto.scan import Args, JsonEvent

EXACT = 2.0**43  # microseconds: up to here a double still tells nanoseconds apart
LIMIT = 2**62
RUN = 1, 2, 4, 8, 3  # of digits: one more, twice as many, and so on to 19
DIGITS = bytes(b"0"[0] if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))  # every digit is a 0
MANY = b"0" * 19  # digits of the smallest integer that is `LIMIT` or more
NUMBER = re.compile(rb"\d*")
Column = NDArray[Any]


def has_huge(text: bytes) -> bool:
    """Whether JSON text may hold an integer of `LIMIT` or more: so many digits, of no fraction."""
    run = np.frombuffer(text, np.uint8) - np.uint8(ord("0")) < 10
    for more in RUN:
        run = run[:-more] & run[more:]
    if not run.any():
        return False
    digits = text.translate(DIGITS)
    at = digits.find(MANY)
    while at > 0 and text[at - 1 : at] == b".":
        number = NUMBER.match(text, at)
        at = digits.find(MANY, number.end() if number else at + len(MANY))
    return at >= 0


def nanoseconds(values: list[Any]) -> tuple[Column, bool]:
    """Microseconds as written -> ns, and whether doubles were too coarse for them; -LIMIT is unreadable."""
    try:
        numbers = _column("q", values) if type(values[0]) is int else _column("d", values)
    except (TypeError, OverflowError, IndexError):
        try:
            numbers = np.array(values)
        except (ValueError, OverflowError):
            numbers = np.array([str(v) for v in values])
    if numbers.ndim != 1:  # lists where numbers should be
        numbers = np.array([_float(v) for v in values])
    if numbers.dtype.kind in "iu" and len(values) and abs(numbers).max() < LIMIT // 1000:
        return numbers.astype(np.int64) * 1000, False
    try:
        floats = numbers.astype(np.float64)
    except (ValueError, TypeError):
        floats = np.array([_float(v) for v in values])
    good = np.abs(floats) < LIMIT / 1000
    floats = np.where(good, floats, 0.0)
    whole = np.floor(floats)
    ns = whole.astype(np.int64) * 1000 + np.rint((floats - whole) * 1000).astype(np.int64)
    return np.where(good, ns, -LIMIT), bool((np.abs(floats) >= EXACT).any())


def _float(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return float("nan")


def exact_ns(value: Decimal | None) -> int:
    """Microseconds to the last digit -> ns; -LIMIT is unreadable."""
    if value is None or not value.is_finite() or not value.copy_abs() < LIMIT // 1000:
        return -LIMIT
    return int((value * 1000).to_integral_value())


def _column(code: str, values: list[Any]) -> Column:
    """Numbers of one type as `array` names it: in a third of the time that `np.array` takes, which looks at each first.

    Raises:
        TypeError: one is of another.
        OverflowError: one is too large.
    """
    return np.frombuffer(array(code, values), code)


def integers(values: list[Any]) -> Column:
    """Integers, also where they are written as text; -1 is what cannot be read as one."""
    try:
        return _column("q", values)
    except (TypeError, OverflowError):
        pass
    try:
        found = np.array(values, np.int64)
    except (ValueError, TypeError, OverflowError):
        found = np.zeros((0, 0), np.int64)
    return found if found.ndim == 1 else np.array([integer(v) for v in values], np.int64)


def integer(value: Any) -> int:
    """An integer of 64 bits; -1 is what cannot be read as one."""
    try:
        number = int(value)
    except (ValueError, TypeError, OverflowError):
        return -1
    return number if -(2**63) <= number < 2**63 else -1


def number(value: Any, text: bool = False) -> int | str:
    """A number written as text, `stream 7` too, as the number; with `text`, what is written as text stays so."""
    if isinstance(value, int):
        return int(value)
    found = None if text else re.fullmatch(r"(?:stream )?(-?\d{1,18})", str(value))
    return int(found[1]) if found else str(value)


def plain(event: JsonEvent) -> JsonEvent:
    """The event with every field of a type that can be a number or a name: what is not becomes text, or unknown."""
    args = event.args
    if args is not None:
        fields = {name: getattr(args, name) for name in args.__struct_fields__}
        args = Args(**{k: v if isinstance(v, msgspec.Raw) else _plain(k, v) for k, v in fields.items()})
    return JsonEvent(
        event.ph, str(event.cat), str(event.name), _name(event.pid), _name(event.tid), event.ts, event.dur, args
    )


NUMBERS = ("external", "external_2021", "correlation", "bytes", "kind", "column", "flags")


def _plain(field: str, value: Any) -> Any:
    if field == "flags":
        return integer(value) & 0xFF if integer(value) > 0 else 0
    if field == "column":
        return min(integer(value), 2**31 - 1)
    return integer(value) if field in NUMBERS else _name(value)


def _name(value: Any) -> Any:
    return value if value is None or isinstance(value, (int, float, str)) else str(value)
