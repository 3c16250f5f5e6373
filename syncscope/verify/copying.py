"""Copies of files: by reference where the file system can (Btrfs, XFS), else of the bytes; holes stay holes."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

FICLONE = 0x40049409  # linux/fs.h: the new file shares the old one's blocks until either is written
CHUNK = 1 << 22


def clone(source: str, target: str) -> bool:
    """A new file that shares the blocks of another; whether the file system can do that."""
    if sys.platform != "linux":
        return False
    import fcntl

    with open(source, "rb") as old, open(target, "xb") as new, suppress(OSError):
        fcntl.ioctl(new.fileno(), FICLONE, old.fileno())
        return True
    os.unlink(target)
    return False


def shares_blocks(path: str) -> bool:
    """Whether the file system of a file could `clone` it: tried on a file without a name."""
    if not hasattr(os, "O_TMPFILE"):
        return False
    import fcntl

    with suppress(OSError):
        nameless = os.open(os.path.dirname(os.path.abspath(path)), os.O_TMPFILE | os.O_WRONLY, 0o600)
        try:
            with open(path, "rb") as old:
                fcntl.ioctl(nameless, FICLONE, old.fileno())
                return True
        finally:
            os.close(nameless)
    return False


def copy(source: str, target: str) -> None:
    """A new file with the same bytes.

    Raises:
        OSError: there is no room, or it cannot be read.
    """
    try:
        with open(source, "rb") as old, open(target, "xb") as new:
            pour(old.fileno(), new.fileno())
    except OSError:
        with suppress(OSError):
            os.unlink(target)
        raise


def pour(old: int, new: int) -> None:
    """Has an open file hold what another one does; holes stay holes."""
    size = os.fstat(old).st_size
    os.ftruncate(new, 0)
    os.ftruncate(new, size)
    at = 0
    while at < size:
        until = size
        if hasattr(os, "SEEK_DATA"):
            try:
                at = os.lseek(old, at, os.SEEK_DATA)
                until = os.lseek(old, at, os.SEEK_HOLE)
            except OSError as error:
                if error.errno == errno.ENXIO:  # no data behind it
                    return
        at = _range(old, new, at, until)


def _range(old: int, new: int, at: int, until: int) -> int:
    while at < until:
        done = 0
        if hasattr(os, "copy_file_range"):
            with suppress(OSError):  # another file system, or an old kernel
                done = os.copy_file_range(old, new, min(CHUNK, until - at), at, at)
        if not done:
            done = os.pwrite(new, os.pread(old, min(CHUNK, until - at), at), at)
        if not done:
            return until  # it has become shorter meanwhile
        at += done
    return at


def alike(one: str, other: str) -> bool:
    """Whether two files hold the same bytes."""
    with open(one, "rb") as a, open(other, "rb") as b:
        if os.fstat(a.fileno()).st_size != os.fstat(b.fileno()).st_size:
            return False
        while chunk := a.read(CHUNK):
            if chunk != b.read(CHUNK):
                return False
    return True
