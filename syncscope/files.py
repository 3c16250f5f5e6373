"""Files that are there whole or not at all, files that can be read to their end, and the folders that are the user's own."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from syncscope.errors import UserError

CACHE = "SYNCSCOPE_CACHE_DIR"
SETTINGS = "SYNCSCOPE_CONFIG_DIR"
LARGEST = 64 << 20  # bytes of a source file, notebooks with their pictures included
SMALL = 1 << 16  # bytes that are read of a file that does not say how many it has, as those of /proc
_TO_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def cache_folder(what: str) -> Path:
    """Where something is kept between runs: below `SYNCSCOPE_CACHE_DIR`, else below the user's cache folder.

    It need not be there yet.
    """
    named = os.environ.get(CACHE)
    if named:
        return Path(named) / what
    import platformdirs

    return platformdirs.user_cache_path("syncscope") / what


def cache_folder_of(library: str) -> Path:
    """Where another library keeps what is its own: `SYNCSCOPE_CACHE_DIR` does not move that."""
    import platformdirs

    return platformdirs.user_cache_path(library, library)


def settings_folder() -> Path:
    """Where the user's answers are kept: `SYNCSCOPE_CONFIG_DIR`, else the user's folder of settings."""
    named = os.environ.get(SETTINGS)
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_config_path("syncscope")


def regular(path: str | os.PathLike[str], most: int = LARGEST) -> bytes:
    """The content of a regular file: a stranger's folder may hold pipes, devices and files without end under any name.

    Raises:
        OSError: it cannot be read, is none, or holds more than `most` bytes.
    """
    _demand_regular(os.stat(path), path, most)  # before it is opened, which may wait or wake a device
    handle = os.open(path, _TO_READ)
    try:
        told = os.fstat(handle)
        _demand_regular(told, path, most)
        wanted = min(max(told.st_size, SMALL), most)  # more is not asked for: memory would be made ready for it
        found = os.read(handle, wanted)
        while len(found) < wanted and (more := os.read(handle, wanted - len(found))):
            found += more
        return found
    finally:
        os.close(handle)


def _demand_regular(told: os.stat_result, path: str | os.PathLike[str], most: int) -> None:
    if stat.S_ISDIR(told.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(told.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    if told.st_size > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", os.fspath(path))


def private(folder: Path) -> None:
    """Make a folder that only the user may write to, if it is not there yet.

    Raises:
        UserError: it cannot be made, or others can write to it: then what lies in it may be theirs.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made: {error.strerror}", "see who owns the folders above") from None
    if why := foreign(folder):
        raise UserError(f"{folder} is not used: {why}", f"chmod 700 {folder}, or name another one")


def own(path: Path) -> bytes:
    """The content of a file that only the user can have made: it is theirs, in a folder to which nobody else may write.

    Raises:
        OSError: it cannot be read, or somebody else may have written it.
    """
    for one, mask in ((path.parent, 0o022), (path, 0)):
        if why := foreign(one, mask):
            raise PermissionError(errno.EPERM, why, os.fspath(one))
    return regular(path, 1 << 30)


def foreign(path: Path, mask: int = 0o022) -> str:
    """Why what lies there may be another user's work; "" where it is the user's own, or not there."""
    try:
        told = os.stat(path)
    except OSError:
        return ""
    if not hasattr(os, "getuid"):  # Windows: the folders of a user are closed to others from the start
        return ""
    if told.st_uid != os.getuid():
        return "it belongs to another user"
    return "others may write to it" if told.st_mode & mask else ""


@contextlib.contextmanager
def whole(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write in a `with` block; as it ends it takes the place of `path`, and after an error there is no trace of it.

    A file that it replaces hands its mode and owner on, and a link stays a link. Folders above are made. While it is written
    it lies in the same folder, under a name that begins with a dot and ends in `.part`: nobody takes it for a recording.
    `durable` waits until the disk has it.

    Raises:
        UserError: it cannot be written.
    """
    real = Path(os.path.realpath(path))
    temporary = real.with_name(f".{os.urandom(8).hex()}.part")
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        told = os.stat(real) if real.exists() else None
        if told is not None and not stat.S_ISREG(told.st_mode):  # /dev/stdout, a pipe: not to be replaced
            with open(real, "wb") as file:
                yield file
            return
        try:
            with open(temporary, "xb") as file:  # with the user's umask, which mkstemp would not ask
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            if told is not None:
                _hand_on(path, temporary, told)
            os.replace(temporary, real)
        finally:  # Ctrl-C too
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{os.fspath(path)} cannot be written: {error.strerror or error}",
            "choose another place, or see who owns the file and its folder",
        ) from None


def write(path: str | os.PathLike[str], content: bytes, *, durable: bool = False) -> None:
    """Write a whole file, as `whole` does.

    Raises:
        UserError: it cannot be written.
    """
    with whole(path, durable=durable) as file:
        file.write(content)


def _hand_on(path: str | os.PathLike[str], new: Path, told: os.stat_result) -> None:
    """Give a new file the mode, owner and group of the old one, as far as we may."""
    os.chmod(new, told.st_mode & 0o7777)
    if hasattr(os, "chown") and (told.st_uid, told.st_gid) != (os.getuid(), os.getgid()):
        try:
            os.chown(new, told.st_uid, told.st_gid)
            os.chmod(new, told.st_mode & 0o7777)  # chown clears setuid
        except PermissionError:
            raise UserError(f"{os.fspath(path)}: belongs to somebody else; not written") from None
