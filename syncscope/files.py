"""Files that are there whole or not at all, and the one folder of caches."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from syncscope.errors import UserError

CACHE = "SYNCSCOPE_CACHE_DIR"


def cache_folder(what: str) -> Path:
    """Where something is kept between runs: below `SYNCSCOPE_CACHE_DIR`, else below the user's cache folder.

    It need not be there yet.
    """
    named = os.environ.get(CACHE)
    if named:
        return Path(named) / what
    import platformdirs

    return platformdirs.user_cache_path("syncscope") / what


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
    temporary = real.with_name(f".{secrets.token_hex(8)}.part")
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
