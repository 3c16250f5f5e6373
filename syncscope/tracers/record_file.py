"""What is written while a recording runs: a file of 64-byte records that is whole at any moment, also after SIGKILL.

Whatever a disk refuses, a file is a beginning of what was to be written: the first record that finds no room is the last to be
tried. So what a record names was written before it, and what a full disk leaves is read like a shorter recording.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
import time
import weakref
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
TRIES = 64  # to read a file whose program goes on, between two windows of it
FRONT = 255  # the first of a window
BLOCKING, FAILED, PROFILED, FORCED, OUT_OF_ORDER = 1, 2, 4, 8, 16

RECORD = np.dtype(
    [("type", "u1"), ("fn", "u1"), ("flags", "u1"), ("pad", "u1"), ("tid", "u4"), ("queue", "u4"), ("name", "u4")]
    + [(word, "i8") for word in ("corr", "size", "t0", "t1", "a", "b")]
)
"""As in icd.c. CALL: host start and end in t0, t1; of a kernel, work items in size, and in each group in a (0: not said); in
b the numbers of three LINEs, as lines/lines.c packs them. DEVICE: its memory, units and type in size, t0, t1. STAMP: start,
end, queued, submit in t0, t1, a, b, on the device's clock. CLOCK: our clock before and after in t0, t1, device and driver's
host time in a, b. NAME, SOURCE, LINE: text in the last 48 bytes. FRONT: how many windows were appended in t0, and
in t1 when the first record found no room, else 0."""


class Contents(NamedTuple):
    """A record file as far as it goes: what its header says, and its records."""

    header: dict[str, Any]
    records: NDArray[Any]


class RecordFile:
    """A file that is being written. What the disk refuses stays in memory, what comes then is counted; nothing is raised."""

    def __init__(self, source: str, folder: Path | None, **facts: Any) -> None:
        """Its header says which source writes it, and `facts`.

        Raises:
            UserError: there is no room for it, or the folder cannot be written.
        """
        now, unix = time.monotonic_ns(), time.time_ns()
        self._process = os.getpid()
        header = {
            "syncscope": 1,
            "source": source,
            "pid": self._process,
            "origin_ns": unix,
            "monotonic_ns": now,
            **facts,
        }
        self.stopped = ""  # why nothing more is written, once it is so
        self.lost = 0  # records that came after that
        self._rest = b""  # what came then
        self._closed = False
        try:
            self.handle, name = tempfile.mkstemp(prefix=f"syncscope-{self._process}-", suffix=SUFFIX, dir=folder)
        except OSError as error:
            raise no_room(folder, error) from error
        self.path = Path(name)
        self._free = weakref.finalize(self, _close, self.handle)
        self.append(json.dumps(header).encode().ljust(HEADER))
        if self.stopped:
            self.remove()
            raise no_room(folder, self.stopped)
        self._room = _room(self.handle) // 2

    def append(self, data: bytes) -> bool:
        """Writes the header, or whole records; whether they are there, on disk or in memory."""
        if os.getpid() == self._process and not (self.stopped or self._closed):
            done, failed = append(self.handle, data)
            if failed:
                self.stopped, self._rest = os.strerror(failed), data[done:]
            return True
        self.lost += len(data) // RECORD.itemsize
        return False

    def why_enough(self) -> str:
        """Why it is to end: it, and others meanwhile, have taken half of the room that there was, and the program's checkpoints
        are to find some, as is the trace that this becomes. "" where there is more."""
        return "half of the room that there was on its disk is taken" if _room(self.handle) < self._room else ""

    def read(self) -> Contents:
        """What has been written, also where its folder was removed meanwhile.

        Raises:
            OSError: the disk does not give it back.
        """
        found = read(self.path if self.path.exists() else Path(f"/proc/self/fd/{self.handle}"))
        rest = np.frombuffer(self._rest[: len(self._rest) // RECORD.itemsize * RECORD.itemsize], RECORD)
        return Contents(found.header, np.concatenate([found.records, rest])) if len(rest) else found

    def close(self) -> None:
        """Nothing more is written; it can still be read."""
        self._closed = True

    def remove(self) -> None:
        """Takes it away."""
        self._closed = True
        if os.getpid() == self._process:  # else it is the parent's
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        self._free()


def append(handle: int, data: bytes) -> tuple[int, int]:
    """Writes whole records at the end of a file, or as many as fit; how many bytes these are, and the errno of what did not."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError as error:
        return (len(data) - len(left)) // RECORD.itemsize * RECORD.itemsize, error.errno or errno.EIO
    finally:
        if left and (part := (len(data) - len(left)) % RECORD.itemsize):
            with contextlib.suppress(OSError):  # the reader leaves a part of a record out
                os.ftruncate(handle, os.lseek(handle, -part, os.SEEK_CUR))
    return len(data), 0


def no_room(folder: Path | None, why: OSError | str) -> UserError:
    """What is raised where a recording cannot begin."""
    said = (why.strerror or str(why)) if isinstance(why, OSError) else why
    hint = "set TMPDIR to a folder with room" if folder is None else "name a folder with room: -o of `syncscope run`"
    return UserError(f"cannot record into {folder or tempfile.gettempdir()}: {said}", hint)


def _close(handle: int) -> None:
    with contextlib.suppress(OSError):  # a disk far away may say only now that it is full
        os.close(handle)


def _room(handle: int) -> int:
    """Bytes that are free on a file's disk, as far as it says so."""
    try:
        said = os.fstatvfs(handle)
    except OSError:
        return 0
    return said.f_bavail * said.f_frsize


def read(path: Path) -> Contents:
    """What a file holds.

    Raises:
        UserError: it is no record file.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        try:
            header = json.loads(file.read(HEADER))
            ours = {"source", "pid", "origin_ns", "monotonic_ns"} <= header.keys()
        except (ValueError, AttributeError):
            ours = False
    if not ours:
        raise UserError(f"{path} is not a recording of syncscope", f"it should end in {SUFFIX}")
    found: NDArray[Any] | None = None
    for last in (*[False] * TRIES, True):
        size = path.stat().st_size - HEADER
        if size < max(header.get("window", 0), RECORD.itemsize):
            return Contents(header, np.zeros(0, RECORD))
        records = np.memmap(path, RECORD, "r", HEADER, (size // RECORD.itemsize,))
        found = _whole(records, header["window"] // RECORD.itemsize, last) if header.get("window") else records
        if found is not None:
            break
    return Contents(header, np.zeros(0, RECORD) if found is None else found)


def _whole(records: NDArray[Any], window: int, last: bool) -> NDArray[Any] | None:
    """What was appended, and the window where it is not yet; None where the program goes on and did just that. If this is the
    `last` time that it is looked at, somebody has cut something off."""
    latest, appended = records[:window].copy(), records[window:]
    count = int(latest[0]["t0"])
    if len(appended) // window > count:  # appended, and not yet cleared
        return appended[: (count + 1) * window]
    if not last and (records[0]["t0"] != count or (len(appended) // window < count and count < ENDLESS)):
        return None
    written = int(np.searchsorted(latest["type"] == 0, True))  # zeros follow the last record
    return np.concatenate([appended[: count * window], latest[:written]])


def name_records(number: int, text: bytes) -> Iterator[bytes]:
    """A text as records, 48 bytes in each."""
    for at in range(0, max(1, len(text)), 48):
        head = np.zeros(1, RECORD)
        head["type"], head["flags"], head["name"] = NAME, len(text[at : at + 48]), number
        yield head.tobytes()[:16] + text[at : at + 48].ljust(48, b"\0")


def known(numbers: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Numbers that name one of `count` things of which 0 is none, and 0 for those that were not written down."""
    return np.where(numbers < count, numbers, 0).astype(np.int64)


def texts(records: NDArray[Any], kind: int = NAME) -> dict[int, str]:
    """The names in a file by their numbers; as `SOURCE` the texts of programs, as `LINE` those of lines."""
    found: dict[int, bytes] = {}
    for row in records[records["type"] == kind]:
        number = int(row["name"])
        found[number] = found.get(number, b"") + row.tobytes()[16 : 16 + int(row["flags"])]
    return {number: text.decode(errors="replace") for number, text in found.items()}
