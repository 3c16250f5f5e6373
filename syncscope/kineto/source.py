"""The bytes of a trace file in pieces, wherever they lie and however they are packed."""

from __future__ import annotations

import contextlib
import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from syncscope.errors import UserError, naming

PIECE = 1 << 16  # bytes read from a packed file at once
AT_ONCE = 1 << 18  # bytes of JSON: as many as are decoded together
GZIP = b"\x1f\x8b"


@contextlib.contextmanager
def opened(source: str | os.PathLike[str] | bytes | BinaryIO) -> Iterator[tuple[str, BinaryIO]]:
    """A name for messages, in each that is raised inside, and an open binary file: of a path, an fsspec URL, the bytes
    themselves or a file.

    Raises:
        UserError: it cannot be opened.
    """
    if isinstance(source, bytes):
        yield "the trace", io.BytesIO(source)
        return
    if not isinstance(source, (str, os.PathLike)):
        yield str(getattr(source, "name", "the trace")), source
        return
    name = os.fspath(source)
    with naming(name), _file(name) as file:
        yield name, file


def _file(name: str) -> BinaryIO:
    try:
        return _remote(name) if "://" in name else open(name, "rb")
    except FileNotFoundError:
        raise UserError(f"{name}: no such file", "give the .json or .json.gz that torch.profiler wrote") from None
    except IsADirectoryError:
        raise UserError(
            f"{name} is a directory", "give one trace, or `syncscope ranks` for all ranks of a job"
        ) from None
    except OSError as error:
        raise UserError(f"{name}: {error.strerror or error}", "check the path and the permissions") from None


def _remote(url: str) -> BinaryIO:
    try:
        import fsspec
    except ImportError:
        raise UserError(f"{url} needs fsspec to be read", "pip install fsspec, or copy the file here first") from None
    try:
        return cast(BinaryIO, fsspec.open(url, "rb").open())
    except (ValueError, ImportError) as error:  # an unknown protocol, or one whose package is not installed
        raise UserError(f"{url}: {error}", "install the package that fsspec asks for, or copy the file here") from None


@dataclass
class Unpacking:
    """What is to be said of how a file was read, and why what is packed in it did not come out whole: "" where it did. Where it
    is `damaged`, what came out may be wrong, too."""

    notes: list[str] = field(default_factory=list)
    failure: str = ""
    damaged: bool = False

    def failed(self, why: str, damaged: bool) -> None:
        """Nothing more comes out of it; what did is used."""
        self.failure, self.damaged = why, damaged
        self.notes.append(f"{why}; what could be unpacked is used")


def pieces(file: BinaryIO, how: Unpacking, most: int | None = None) -> Iterator[bytes]:
    """The text of the file, unpacked where it is gzip; what cannot be unpacked is left out, and so is what lies beyond `most`
    bytes of text: `how` says so."""
    read = 0
    for piece in _pieces(file, how):
        read += len(piece)
        if most is not None and read > most:
            yield piece[: len(piece) - (read - most)]
            how.notes.append(f"{too_much(most)}; what came before is used")
            return
        yield piece


def too_much(most: int) -> str:
    """What is said where a limit is met."""
    return f"the recording holds more than {most / (1 << 30):.3g} GiB of text (--max-size takes more)"


def _pieces(file: BinaryIO, how: Unpacking) -> Iterator[bytes]:
    first = file.read(PIECE)
    if first[:2] == GZIP:
        yield from _unpacked(first, file, how)
        return
    while first:
        yield first
        first = file.read(AT_ONCE)


def _unpacked(packed: bytes, file: BinaryIO, how: Unpacking) -> Iterator[bytes]:
    inflate = zlib.decompressobj(31)
    while packed:
        before = inflate.copy()
        try:
            text = inflate.decompress(packed, AT_ONCE)  # a bomb unpacks to a thousand times as much
        except zlib.error as error:
            yield _last_words(before, packed)
            how.failed(f"the gzip data is damaged ({error})", damaged=True)
            return
        if text:
            yield text
        if inflate.eof:  # a file may hold several gzip members, and padding after the last
            packed = inflate.unused_data.lstrip(b"\0")
            packed = packed or file.read(PIECE)
            if not packed:
                return
            if packed[:2] != GZIP:
                how.notes.append("what follows the gzip data is not gzip and was left out")
                return
            inflate = zlib.decompressobj(31)
        else:
            packed = inflate.unconsumed_tail or file.read(PIECE)
    yield inflate.flush()
    how.failed("the gzip data ends too early", damaged=False)


def _last_words(inflate: zlib._Decompress, packed: bytes) -> bytes:
    """What can still be unpacked before the damage: smaller and smaller pieces up to the first that fails."""
    out = []
    for size in (4096, 64, 1):
        while packed:
            before = inflate.copy()
            try:
                out.append(inflate.decompress(packed[:size]))
            except zlib.error:
                inflate = before
                break
            packed = packed[size:]
        packed = packed[:size] if size > 1 else b""
    return b"".join(out)
