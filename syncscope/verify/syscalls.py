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


class SystemCall(NamedTuple):
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
    SystemCall("open", "open", NO_FOLDER, 0, flags=1, numbers=(2, -1)),
    SystemCall("openat", "open", 0, 1, flags=2, numbers=(257, 56)),
    SystemCall("openat2", "open2", 0, 1, flags=2, numbers=(437, 437)),  # its flags lie behind a pointer
    SystemCall("creat", "create", NO_FOLDER, 0, numbers=(85, -1)),
    SystemCall("truncate", "truncate", NO_FOLDER, 0, numbers=(76, 45)),
    SystemCall("mkdir", "make", NO_FOLDER, 0, numbers=(83, -1)),
    SystemCall("mkdirat", "make", 0, 1, numbers=(258, 34)),
    SystemCall("rmdir", "name", NO_FOLDER, 0, numbers=(84, -1)),
    SystemCall("unlink", "name", NO_FOLDER, 0, numbers=(87, -1)),
    SystemCall("unlinkat", "name", 0, 1, numbers=(263, 35)),
    SystemCall("symlink", "name", NO_FOLDER, 1, numbers=(88, -1)),
    SystemCall("symlinkat", "name", 1, 2, numbers=(266, 36)),
    SystemCall("mknod", "name", NO_FOLDER, 0, numbers=(133, -1)),
    SystemCall("mknodat", "name", 0, 1, numbers=(259, 33)),
    SystemCall("bind", "bind", NO_FOLDER, 1, flags=2, numbers=(49, 200)),
    SystemCall("rename", "rename", NO_FOLDER, 0, NO_FOLDER, 1, numbers=(82, -1)),
    SystemCall("renameat", "rename", 0, 1, 2, 3, numbers=(264, 38)),
    SystemCall("renameat2", "rename", 0, 1, 2, 3, flags=4, numbers=(316, 276)),
    SystemCall("link", "link", NO_FOLDER, 0, NO_FOLDER, 1, numbers=(86, -1)),
    SystemCall("linkat", "link", 0, 1, 2, 3, numbers=(265, 37)),
    SystemCall("chmod", "dress", NO_FOLDER, 0, numbers=(90, -1)),
    SystemCall("fchmod", "dress", 0, BY_NUMBER, numbers=(91, 52)),
    SystemCall("fchmodat", "dress", 0, 1, numbers=(268, 53)),
    SystemCall("fchmodat2", "dress", 0, 1, numbers=(452, 452)),
    SystemCall("chown", "dress", NO_FOLDER, 0, numbers=(92, -1)),
    SystemCall("lchown", "dress", NO_FOLDER, 0, numbers=(94, -1)),
    SystemCall("fchown", "dress", 0, BY_NUMBER, numbers=(93, 55)),
    SystemCall("fchownat", "dress", 0, 1, numbers=(260, 54)),
    SystemCall("utime", "dress", NO_FOLDER, 0, numbers=(132, -1)),
    SystemCall("utimes", "dress", NO_FOLDER, 0, numbers=(235, -1)),
    SystemCall("futimesat", "dress", 0, 1, numbers=(261, -1)),
    SystemCall("utimensat", "dress", 0, 1, numbers=(280, 88)),
    SystemCall("setxattr", "dress", NO_FOLDER, 0, numbers=(188, 5)),
    SystemCall("lsetxattr", "dress", NO_FOLDER, 0, numbers=(189, 6)),
    SystemCall("fsetxattr", "dress", 0, BY_NUMBER, numbers=(190, 7)),
    SystemCall("removexattr", "dress", NO_FOLDER, 0, numbers=(197, 14)),
    SystemCall("lremovexattr", "dress", NO_FOLDER, 0, numbers=(198, 15)),
    SystemCall("fremovexattr", "dress", 0, BY_NUMBER, numbers=(199, 16)),
    SystemCall("setxattrat", "dress", 0, 1, numbers=(463, 463)),
    SystemCall("removexattrat", "dress", 0, 1, numbers=(466, 466)),
    SystemCall("file_setattr", "dress", 0, 1, numbers=(469, 469)),
)
NOT_ALLOWED = {"io_uring_setup": (425, 425), "open_by_handle_at": (304, 265)}  # by which files are opened without these
OPENS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC  # by these flags an open is heard


def machine() -> str:
    """The architecture; "" where its numbers are not known."""
    found = platform.machine()
    return found if found in AUDIT_ARCH else ""


def numbered() -> dict[int, SystemCall]:
    """The calls of this machine by number."""
    column = 0 if machine() == "x86_64" else 1
    return {call.numbers[column]: call for call in CALLS if call.numbers[column] >= 0}


def not_allowed() -> list[int]:
    """The numbers of calls that this machine answers as a kernel without them does."""
    return [numbers[0 if machine() == "x86_64" else 1] for numbers in NOT_ALLOWED.values()]
