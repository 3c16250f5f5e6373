"""Numbers for TensorBoard's curves: its event files, written without TensorFlow.

A file is a row of records, each a length, the length's checksum, an `Event` in protobuf and its checksum, as TensorFlow's
record_writer.h has them. The checksums are CRC-32C, rotated and with a constant added: data may hold checksums, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from syncscope.exporters._protobuf import number, text

MASK = 0xA282EAD8


class Point(NamedTuple):
    """A number on the curve `tag`: at which step, when (s, Unix time), how much."""

    tag: str
    step: int
    time: float
    value: float


def event_file(points: Iterable[Point], time: float) -> bytes:
    """An event file of these points."""
    records = [_double(1, time) + text(3, "brain.Event:2")]
    for point in points:
        summary = text(1, text(1, point.tag) + _float(2, point.value))
        records.append(_double(1, point.time) + number(2, point.step) + text(5, summary))
    return b"".join(map(_record, records))


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(crc32c(length))) + data + struct.pack("<I", masked(crc32c(data)))


def _double(field: int, value: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return bytes([field << 3 | 5]) + struct.pack("<f", value)


def crc32c(data: bytes) -> int:
    """The checksum of iSCSI (RFC 3720, B.4): the polynomial 0x1EDC6F41, its bits reversed."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """A checksum as a record holds it."""
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF
