"""What is written while a recording runs: a file of 64-byte records that is whole at any moment, also after SIGKILL."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syncscope.errors import UserError

SUFFIX = ".records"
HEADER = 4096  # bytes of JSON before the first record; a page, as mappings want it
WINDOW = 1 << 18  # bytes at the front that the hook writes into; a full window is appended to the file
ENDLESS = 1 << 40  # as the number of windows: records are appended one by one
CALL, STAMP, QUEUE, NAME, CLOCK, DEVICE = range(1, 7)
SOURCE, LINE = 11, 12  # 7 to 10 are those of python_events
BLOCKING, FAILED, PROFILED, FORCED, OUT_OF_ORDER = 1, 2, 4, 8, 16

RECORD = np.dtype(
    [("type", "u1"), ("fn", "u1"), ("flags", "u1"), ("pad", "u1"), ("tid", "u4"), ("queue", "u4"), ("name", "u4")]
    + [(word, "i8") for word in ("corr", "size", "t0", "t1", "a", "b")]
)
"""As in icd.c. CALL: host start and end in t0, t1; of a kernel, work items in size, and in each group in a (0: not said); in
b the numbers of three LINEs, as lines/lines.c packs them. DEVICE: its memory, units and type in size, t0, t1. STAMP: start,
end, queued, submit in t0, t1, a, b, on the device's clock. CLOCK: our clock before and after in t0, t1, device and driver's
host time in a, b. NAME, SOURCE, LINE: text in the last 48 bytes."""


class Contents(NamedTuple):
    """A record file as far as it goes: what its header says, and its records."""

    header: dict[str, Any]
    records: NDArray[Any]


def create(source: str, folder: Path | None = None, **facts: Any) -> tuple[int, Path]:
    """A new file, open for writing; its header says which source writes it, and `facts`.

    Raises:
        UserError: the folder cannot be written.
    """
    now, unix = time.monotonic_ns(), time.time_ns()
    header = {"syncscope": 1, "source": source, "pid": os.getpid(), "origin_ns": unix, "monotonic_ns": now, **facts}
    try:
        handle, name = tempfile.mkstemp(prefix=f"syncscope-{os.getpid()}-", suffix=SUFFIX, dir=folder)
        os.write(handle, json.dumps(header).encode().ljust(HEADER))
    except OSError as error:
        raise UserError(
            f"cannot record into {folder or tempfile.gettempdir()}: {error}", "set TMPDIR to a folder with room"
        ) from error
    return handle, Path(name)


def read(path: Path) -> Contents:
    """What a file holds.

    Raises:
        UserError: it is no record file.
    """
    with open(path, "rb") as file:
        try:
            header = json.loads(file.read(HEADER))
        except ValueError as error:
            raise UserError(f"{path} is not a recording of syncscope", f"it should end in {SUFFIX}") from error
    while True:
        size = path.stat().st_size - HEADER
        if size < max(header.get("window", 0), RECORD.itemsize):
            return Contents(header, np.zeros(0, RECORD))
        records = np.memmap(path, RECORD, "r", HEADER, (size // RECORD.itemsize,))
        found = _whole(records, header["window"] // RECORD.itemsize) if header.get("window") else records
        if found is not None:
            return Contents(header, found)


def _whole(records: NDArray[Any], window: int) -> NDArray[Any] | None:
    """What was appended, and the window where it is not yet; None where the program goes on and did just that."""
    latest, appended = records[:window].copy(), records[window:]
    count = int(latest[0]["t0"])
    if len(appended) // window > count:  # appended, and not yet cleared
        return appended[: (count + 1) * window]
    if records[0]["t0"] != count or (len(appended) // window < count and count < ENDLESS):
        return None
    written = int(np.searchsorted(latest["type"] == 0, True))  # zeros follow the last record
    return np.concatenate([appended[: count * window], latest[:written]])


def name_records(number: int, text: bytes) -> Iterator[bytes]:
    """A text as records, 48 bytes in each."""
    for at in range(0, max(1, len(text)), 48):
        head = np.zeros(1, RECORD)
        head["type"], head["flags"], head["name"] = NAME, len(text[at : at + 48]), number
        yield head.tobytes()[:16] + text[at : at + 48].ljust(48, b"\0")


def texts(records: NDArray[Any], kind: int = NAME) -> dict[int, str]:
    """The names in a file by their numbers; as `SOURCE` the texts of programs, as `LINE` those of lines."""
    found: dict[int, bytes] = {}
    for row in records[records["type"] == kind]:
        number = int(row["name"])
        found[number] = found.get(number, b"") + row.tobytes()[16 : 16 + int(row["flags"])]
    return {number: text.decode(errors="replace") for number, text in found.items()}
