"""Protobuf's wire format, written one message at a time or a column of messages at once.

A field is a tag (its number and a wire type: 0 integer, 2 anything with a length) and a value; integers are written seven bits
a byte, the lowest first (protobuf.dev/programming-guides/encoding). Field numbers here are below 16, so that a tag is one byte.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.bool_]]
"""Many fields at once: a row of bytes for each, and which of them are written."""


def varint(value: int) -> bytes:
    """An unsigned integer; negative ones take ten bytes, as two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """An integer field."""
    return varint(field << 3) + varint(value)


def text(field: int, value: str | bytes | bytearray) -> bytes:
    """A string, bytes or message field."""
    value = value.encode(errors="replace") if isinstance(value, str) else bytes(value)
    return varint(field << 3 | 2) + varint(len(value)) + value


def varints(values: NDArray[Any]) -> Rows:
    """`varint` of a column."""
    values = values.astype(np.int64).view(np.uint64)[:, None]
    width = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    rest = values >> np.arange(0, 7 * width, 7, dtype=np.uint64)
    used = rest > 0
    used[:, 0] = True
    return ((rest & 127) | np.where(rest > 127, np.uint64(128), np.uint64(0))).astype(np.uint8), used


def numbers(field: int, values: NDArray[Any]) -> Rows:
    """`number` of a column."""
    return _tagged(field << 3, [varints(values)], len(values))


def messages(field: int, parts: list[Rows], where: NDArray[np.bool_] | None = None) -> Rows:
    """`text` of a column of messages made of these fields, with nothing where `where` is false."""
    size = np.sum([used.sum(axis=1) for _, used in parts], axis=0)
    content, used = _tagged(field << 3 | 2, [varints(size), *parts], len(size))
    return content, used if where is None else used & where[:, None]


def _tagged(tag: int, parts: list[Rows], rows: int) -> Rows:
    first = np.full((rows, 1), tag, np.uint8), np.ones((rows, 1), np.bool_)
    return np.hstack([first[0], *(p[0] for p in parts)]), np.hstack([first[1], *(p[1] for p in parts)])


def written(rows: Rows) -> bytes:
    """The fields of a column one after another."""
    content, used = rows
    return content[used].tobytes()
