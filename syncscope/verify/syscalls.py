"""The calls of Linux that change names and files: their numbers by architecture, and which of their arguments say where.

Numbers are those of arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

from __future__ import annotations

import os
import platform
from typing import NamedTuple

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
SECCOMP = {"x86_64": 317, "aarch64": 277}
HERE = -100  # AT_FDCWD
NO_FOLDER = -1  # in place of an argument's number: the path is from the working folder
BY_NUMBER = -2  # in place of a path's: the call names an open file


class Call(NamedTuple):
    """What a call does: `does` is a verb of `notified`; then which argument is the folder, and which the path; of a call that
    takes two paths, those of the second; and which holds flags."""

    name: str
    does: str
    folder: int
    path: int
    folder_2: int = NO_FOLDER
    path_2: int = NO_FOLDER
    flags: int = NO_FOLDER
    numbers: tuple[int, int] = (-1, -1)  # x86_64, aarch64


CALLS = (
    Call("open", "open", NO_FOLDER, 0, flags=1, numbers=(2, -1)),
    Call("openat", "open", 0, 1, flags=2, numbers=(257, 56)),
    Call("openat2", "open2", 0, 1, flags=2, numbers=(437, 437)),  # its flags lie behind a pointer
    Call("creat", "create", NO_FOLDER, 0, numbers=(85, -1)),
    Call("truncate", "truncate", NO_FOLDER, 0, numbers=(76, 45)),
    Call("mkdir", "make", NO_FOLDER, 0, numbers=(83, -1)),
    Call("mkdirat", "make", 0, 1, numbers=(258, 34)),
    Call("rmdir", "name", NO_FOLDER, 0, numbers=(84, -1)),
    Call("unlink", "name", NO_FOLDER, 0, numbers=(87, -1)),
    Call("unlinkat", "name", 0, 1, numbers=(263, 35)),
    Call("symlink", "name", NO_FOLDER, 1, numbers=(88, -1)),
    Call("symlinkat", "name", 1, 2, numbers=(266, 36)),
    Call("mknod", "name", NO_FOLDER, 0, numbers=(133, -1)),
    Call("mknodat", "name", 0, 1, numbers=(259, 33)),
    Call("bind", "bind", NO_FOLDER, 1, flags=2, numbers=(49, 200)),
    Call("rename", "rename", NO_FOLDER, 0, NO_FOLDER, 1, numbers=(82, -1)),
    Call("renameat", "rename", 0, 1, 2, 3, numbers=(264, 38)),
    Call("renameat2", "rename", 0, 1, 2, 3, flags=4, numbers=(316, 276)),
    Call("link", "link", NO_FOLDER, 0, NO_FOLDER, 1, numbers=(86, -1)),
    Call("linkat", "link", 0, 1, 2, 3, numbers=(265, 37)),
    Call("chmod", "dress", NO_FOLDER, 0, numbers=(90, -1)),
    Call("fchmod", "dress", 0, BY_NUMBER, numbers=(91, 52)),
    Call("fchmodat", "dress", 0, 1, numbers=(268, 53)),
    Call("fchmodat2", "dress", 0, 1, numbers=(452, 452)),
    Call("chown", "dress", NO_FOLDER, 0, numbers=(92, -1)),
    Call("lchown", "dress", NO_FOLDER, 0, numbers=(94, -1)),
    Call("fchown", "dress", 0, BY_NUMBER, numbers=(93, 55)),
    Call("fchownat", "dress", 0, 1, numbers=(260, 54)),
    Call("utime", "dress", NO_FOLDER, 0, numbers=(132, -1)),
    Call("utimes", "dress", NO_FOLDER, 0, numbers=(235, -1)),
    Call("futimesat", "dress", 0, 1, numbers=(261, -1)),
    Call("utimensat", "dress", 0, 1, numbers=(280, 88)),
    Call("setxattr", "dress", NO_FOLDER, 0, numbers=(188, 5)),
    Call("lsetxattr", "dress", NO_FOLDER, 0, numbers=(189, 6)),
    Call("fsetxattr", "dress", 0, BY_NUMBER, numbers=(190, 7)),
    Call("removexattr", "dress", NO_FOLDER, 0, numbers=(197, 14)),
    Call("lremovexattr", "dress", NO_FOLDER, 0, numbers=(198, 15)),
    Call("fremovexattr", "dress", 0, BY_NUMBER, numbers=(199, 16)),
    Call("setxattrat", "dress", 0, 1, numbers=(463, 463)),
    Call("removexattrat", "dress", 0, 1, numbers=(466, 466)),
    Call("file_setattr", "dress", 0, 1, numbers=(469, 469)),
)
NOT_ALLOWED = {"io_uring_setup": (425, 425), "open_by_handle_at": (304, 265)}  # by which files are opened without these
OPENS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC  # by these flags an open is heard


def machine() -> str:
    """The architecture; "" where its numbers are not known."""
    found = platform.machine()
    return found if found in AUDIT_ARCH else ""


def numbered() -> dict[int, Call]:
    """The calls of this machine by number."""
    column = 0 if machine() == "x86_64" else 1
    return {call.numbers[column]: call for call in CALLS if call.numbers[column] >= 0}


def not_allowed() -> list[int]:
    """The numbers of calls that this machine answers as a kernel without them does."""
    return [numbers[0 if machine() == "x86_64" else 1] for numbers in NOT_ALLOWED.values()]
