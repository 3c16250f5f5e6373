"""What a run changes of files, as the kernel tells of it (seccomp's user notifications, Linux 5.5): every call by which a name
or a file is changed, of every process of the run, waits until we have noted what stands there.

So it is heard whoever writes: libraries in C, programs that are started, daemons. It needs no rights, and works in containers
that allow nothing else. Files are read, and written once they are open, as ever. The process that hears must be above those
that are heard: it reads the names from their memory.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import shutil
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from syncscope.verify import syscalls
from syncscope.verify.journal import Journal, where
from syncscope.verify.syscalls import BY_NUMBER, HERE, NO_FOLDER, SystemCall

# linux/seccomp.h, linux/filter.h, linux/prctl.h
SET_MODE_FILTER, NEW_LISTENER, NO_NEW_PRIVS = 1, 1 << 3, 38
NOTIFY, ALLOW, REFUSE = 0x7FC00000, 0x7FFF0000, 0x00050000 | errno.ENOSYS
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
OTHER_NUMBERS = 0x40000000  # from here on x86_64 has its calls a second time, for programs of 32 bits
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # where they lie in struct seccomp_data
RECEIVE, SEND, STILL_WAITS = 0xC0502100, 0xC0182101, 0x40082102
GO_ON = 1
EXCHANGE = 2  # RENAME_EXCHANGE
CREATES = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
LONGEST = 4096  # bytes of a path
TRIED = 5.0  # s


class GoneError(Exception):
    """Who asked waits no more, or asked for what is none of our business."""


def ask(ears: socket.socket) -> None:
    """In the process that is to be heard, with all that it starts: from now on its calls wait. Sends what they are heard by.

    Raises:
        OSError: the kernel does not offer that.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    program = _filter()

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    whole = Program(len(program) // 8, program)
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    number = syscalls.SECCOMP[syscalls.machine()]
    heard = libc.syscall(number, SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(whole))
    if heard < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    socket.send_fds(ears, [b"."], [heard])
    os.close(heard)


def _filter() -> bytes:
    """Which calls wait, as a program of classic BPF: files that are opened to be read only do not."""

    def line(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
        return struct.pack("HBBI", code, if_so, if_not, value)

    found = [line(LOAD, ARCHITECTURE), line(EQUAL, syscalls.AUDIT_ARCH[syscalls.machine()], 1, 0), line(RETURN, REFUSE)]
    found += [line(LOAD, NUMBER), line(AT_LEAST, OTHER_NUMBERS, 0, 1), line(RETURN, REFUSE)]
    for number in syscalls.not_allowed():
        found += [line(EQUAL, number, 0, 1), line(RETURN, REFUSE)]
    for number, call in syscalls.numbered().items():
        if call.does == "open":
            found += [line(EQUAL, number, 0, 4), line(LOAD, ARGUMENTS + 8 * call.flags)]
            found += [line(ANY_BIT, syscalls.OPENS, 0, 1), line(RETURN, NOTIFY), line(RETURN, ALLOW)]
        else:
            found += [line(EQUAL, number, 0, 1), line(RETURN, NOTIFY)]
    return b"".join([*found, line(RETURN, ALLOW)])


class Ears:
    """Who hears runs: one journal for those that run side by side. Without any, only waits."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal
        self._poll = select.poll() if hasattr(select, "poll") else None
        self.heard_by: list[int] = []
        self._calls = syscalls.numbered() if journal is not None else {}

    def hear(self, asking: socket.socket) -> bool:
        """Takes what a process that has just `ask`ed is heard by; whether it could."""
        _, found, _, _ = socket.recv_fds(asking, 1, 1)
        for one in found:
            os.set_inheritable(one, False)
            self.heard_by.append(one)
        return bool(found)

    def close(self) -> None:
        """Nobody hears any more: calls that wait come back with an error."""
        while self.heard_by:
            os.close(self.heard_by.pop())

    def wait(self, told: int, seconds: float) -> bool:
        """Answers what is asked until there is something to read from `told`; whether there is."""
        until = time.monotonic() + seconds
        poll = select.poll()
        for one in (told, *self.heard_by):
            poll.register(one, select.POLLIN)
        while True:
            ready = dict(poll.poll(max(0.0, until - time.monotonic()) * 1e3))
            for one in ready.keys() & set(self.heard_by):
                if ready[one] & select.POLLIN:
                    self._answer(one)
                else:  # all who asked have ended
                    poll.unregister(one)
                    self.heard_by.remove(one)
                    os.close(one)
            if told in ready or time.monotonic() >= until:
                return told in ready

    def _answer(self, one: int) -> None:
        import fcntl

        asked = bytearray(80)
        try:
            fcntl.ioctl(one, RECEIVE, asked)
        except OSError:  # it was killed meanwhile
            return
        number, process, _, call, _, _, *arguments = struct.unpack("QIIiIQ6Q", asked)

        def still_waits() -> None:
            try:
                fcntl.ioctl(one, STILL_WAITS, struct.pack("Q", number))
            except OSError:
                raise GoneError from None

        error = 0
        try:
            assert self._journal is not None
            _Asked(process, arguments, still_waits).tell(self._journal, self._calls[call])
        except GoneError:
            pass
        except OSError as why:
            error = -(why.errno or errno.EIO)
        except Exception:
            traceback.print_exc()
            error = -errno.EIO  # what is not noted is not done
        answer = struct.pack("QqiI", number, 0, error, 0 if error else GO_ON)
        try:
            fcntl.ioctl(one, SEND, answer)
        except OSError:  # it was killed, or a signal had it ask again
            return


class _Asked:
    """One call that waits: its arguments, and the memory of who called."""

    def __init__(self, process: int, arguments: list[int], still_waits: Callable[[], None]) -> None:
        self._process, self._arguments, self._still_waits = process, arguments, still_waits

    def tell(self, journal: Journal, call: SystemCall) -> None:
        """What the call is about to do.

        Raises:
            OSError: what stands there cannot be kept.
            GoneError: nothing, and it may.
        """
        if call.does == "bind":
            journal.named(where(self._bound(call)))
            return
        path = self._path(call.folder, call.path)
        if call.does == "open":
            journal.opened(os.path.realpath(path), self._arguments[call.flags] & 0xFFFFFFFF)
        elif call.does == "open2":
            (flags,) = struct.unpack("Q", self._read(self._arguments[call.flags], 8))
            if flags & syscalls.OPENS:
                journal.opened(os.path.realpath(path), flags)
        elif call.does == "create":
            journal.opened(os.path.realpath(path), CREATES)
        elif call.does == "truncate":
            journal.truncated(os.path.realpath(path))
        elif call.does == "make":
            journal.named(where(path), is_folder=True)
        elif call.does == "name":
            journal.named(where(path))
        elif call.does == "dress":
            journal.dressed(where(path))
            journal.dressed(os.path.realpath(path))
        else:
            other = where(self._path(call.folder_2, call.path_2))
            if call.does == "link":
                journal.linked(where(path), other)
            else:
                exchanged = call.flags != NO_FOLDER and bool(self._arguments[call.flags] & EXCHANGE)
                journal.renamed(where(path), other, exchanged)

    def _path(self, folder: int, path: int) -> str:
        address = 0 if path == BY_NUMBER else self._arguments[path]
        named = b"" if not address else self._read(address, LONGEST).partition(b"\0")[0]
        text = os.fsdecode(named)
        for own in ("/proc/self/", "/proc/thread-self/", "/dev/fd/"):
            if text.startswith(own):
                text = f"/proc/{self._process}/{'fd/' if own == '/dev/fd/' else ''}{text.removeprefix(own)}"
        if text.startswith(os.sep):
            return text
        number = HERE if folder == NO_FOLDER else ctypes.c_int(self._arguments[folder] & 0xFFFFFFFF).value
        above = self._link("cwd" if number == HERE else f"fd/{number}")
        return os.path.join(above, text) if text else above

    def _bound(self, call: SystemCall) -> str:
        address = self._read(self._arguments[call.path], min(self._arguments[call.flags], 110))
        if len(address) < 3 or struct.unpack("H", address[:2])[0] != socket.AF_UNIX or not address[2]:
            raise GoneError
        text = os.fsdecode(address[2:].partition(b"\0")[0])
        return os.path.join(self._link("cwd"), text)

    def _link(self, which: str) -> str:
        try:
            found = os.readlink(f"/proc/{self._process}/{which}")
        except FileNotFoundError:  # it has ended, or has no such file: the kernel says so
            raise GoneError from None
        self._still_waits()
        if not found.startswith(os.sep):
            raise GoneError  # a pipe, a socket
        return found

    def _read(self, address: int, most: int) -> bytes:
        """Bytes of the memory of who called.

        Raises:
            OSError: it is closed to us.
            GoneError: nothing is there.
        """
        try:
            memory = os.open(f"/proc/{self._process}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise GoneError from None
        try:
            found = os.pread(memory, most, address)
        except OSError as error:
            if error.errno in (errno.EIO, errno.EFAULT):
                raise GoneError from None
            raise
        finally:
            os.close(memory)
        self._still_waits()  # else it is the memory of another that was read
        return found


def works() -> bool:
    """Whether the kernel tells us: tried on a process that makes, renames and removes a file, a folder and a link."""
    if sys.platform != "linux" or not syscalls.machine():
        return False
    folder = tempfile.mkdtemp(prefix="syncscope-verify-tries-")
    try:
        return _tried(Path(folder))
    except OSError:
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tried(folder: Path) -> bool:
    wanted = [str(folder / name) for name in ("a", "b", "folder", "link")]
    heard = set()

    class Noted(Journal):
        def _keep(self, path: str, is_folder: bool = False, stays: bool = True) -> None:
            heard.add(path)

    ears = Ears(Noted(folder / "journal", lambda: False, hears_all=True))
    asking, told = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            told.close()
            ask(asking)
            (folder / "a").write_text("a")
            (folder / "a").rename(folder / "b")
            (folder / "folder").mkdir()
            (folder / "link").symlink_to("b")
            asking.sendall(b".")
        finally:
            os._exit(0)
    asking.close()
    try:
        return (
            ears.hear(told) and ears.wait(told.fileno(), TRIED) and heard.issuperset(map(os.path.realpath, wanted[:3]))
        )
    finally:
        told.close()
        ears.close()
        os.waitpid(child, 0)
