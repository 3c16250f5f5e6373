"""What stands at a path: of which kind it is, its mode, owner, times and extended attributes, as JSON values and back.

Links are not followed. Times are ns. Names are Python's own for bytes that are no UTF-8, which JSON keeps.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Any, Literal

Kind = Literal["absent", "file", "folder", "link", "other"]
Standing = dict[str, Any]  # "kind", and for what is there "mode", "owner", "times", "inode", "attributes", "target"


def look(path: str) -> Standing:
    """What stands there now.

    Raises:
        OSError: that cannot be known, and nothing can be done to it either.
    """
    try:
        told = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return {"kind": "absent"}
    kind: Kind = "other"
    if stat.S_ISREG(told.st_mode):
        kind = "file"
    elif stat.S_ISDIR(told.st_mode):
        kind = "folder"
    elif stat.S_ISLNK(told.st_mode):
        kind = "link"
    return {
        "kind": kind,
        "mode": told.st_mode,
        "owner": [told.st_uid, told.st_gid],
        "times": [told.st_atime_ns, told.st_mtime_ns],
        "inode": [told.st_dev, told.st_ino],
        "size": told.st_size,
        "blocks": getattr(told, "st_blocks", 0) * 512,
        "device": told.st_rdev,
        "attributes": {} if kind == "link" else _attributes(path),
        "target": os.readlink(path) if kind == "link" else "",
    }


def dress(path: str, was: Standing) -> None:
    """Gives what stands there the mode, owner, times and attributes that it had.

    Raises:
        OSError: that is not allowed.
    """
    told = os.lstat(path)
    if [told.st_uid, told.st_gid] != was["owner"]:
        os.chown(path, *was["owner"], follow_symlinks=False)
    if was["kind"] != "link":
        now = _attributes(path)
        for name in now.keys() - was["attributes"].keys():
            os.removexattr(path, name, follow_symlinks=False)
        for name, value in was["attributes"].items():
            if now.get(name) != value:
                os.setxattr(path, name, value.encode("latin-1"), follow_symlinks=False)
        if stat.S_IMODE(os.lstat(path).st_mode) != stat.S_IMODE(was["mode"]):
            os.chmod(path, stat.S_IMODE(was["mode"]))
    os.utime(path, ns=(was["times"][0], was["times"][1]), follow_symlinks=False)


def _attributes(path: str) -> dict[str, str]:
    """Extended attributes, access control lists among them, their bytes as text; none where the file system has none."""
    found: dict[str, str] = {}
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(path, follow_symlinks=False):
                found[name] = os.getxattr(path, name, follow_symlinks=False).decode("latin-1")
    return found
