"""What a file holds, as UTF-8 that `ast` and byte spans agree on, and how edits of it go back into the file's own bytes."""

from __future__ import annotations

import codecs
import re
import sys
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from syncscope.errors import UserError
from syncscope.model.finding import Edit
from syncscope.model.source import LINE_END, line_starts

COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)  # PEP 263
BLANK = re.compile(rb"[ \t\f]*(?:#|$)")
COOKIE_LINES = re.compile(rb"\A(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)){1,2}")
NEWLINES = re.compile(r"\r\n|\r|\n")
LONE_CR = re.compile(rb"\r(?!\n)")

DEEPEST = 200  # levels of syntax: libcst's parser recurses on the C stack, and is not asked for a rewrite beyond them
OPENCL_SUFFIXES = (".cl", ".clh", ".ocl", ".opencl")
C_SUFFIXES = (*OPENCL_SUFFIXES, ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx")
"""What is read as C; of those that are not OpenCL C by name, only files that speak of it."""

RECURSION = 6000  # Python frames: enough for a chain of a thousand `elif`


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One file, of Python or (`CFile`) of C.

    `code` is what is analysed: the same text as UTF-8, without a byte order mark, lone carriage returns as line feeds and a
    foreign coding cookie defused, so that offsets into it are offsets into the text, however the file is encoded.
    """

    path: str
    raw: bytes
    code: bytes
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"
    text: bytes = field(default=b"", repr=False)  # as `code`, before carriage returns and cookie were changed

    @classmethod
    def of(cls, path: str, raw: bytes) -> SourceFile:
        """Decode as Python would.

        Raises:
            SyntaxError: the bytes are not text in the encoding that the file declares.
        """
        bom = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
        text = raw[len(bom) :]
        cookie, line = declared(text)
        try:
            encoding = codecs.lookup(cookie).name if cookie else "utf-8"
            if encoding != "utf-8":
                if bom:
                    raise UnicodeError(f"a byte order mark of UTF-8 and a cookie that says {cookie}")
                text = text.decode(encoding).encode()
            elif not text.isascii():
                text.decode()
        except LookupError:
            raise SyntaxError(f"unknown encoding: {cookie}", (path, line, 1, "")) from None
        except UnicodeError as error:
            at = getattr(error, "start", 0)
            said = f"not {cookie or 'utf-8'}: {getattr(error, 'reason', error)}"
            raise SyntaxError(said, (path, len(LINE_END.findall(text, 0, at)) + 1, 1, "")) from None
        code, newline = text, "\n"
        if encoding != "utf-8":  # `ast.parse` would decode the UTF-8 once more
            code = COOKIE_LINES.sub(lambda m: m[0].replace(b"coding", b"c0ding"), code, count=1)
        if b"\r" in code:
            newline = dominant_newline(code)
            code = LONE_CR.sub(b"\n", code)
        return cls(path, raw, code, encoding, bom, newline, text)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The offset at which each line of `code` begins."""
        return line_starts(self.code)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of the byte at `offset` of `code`: both begin at 1, columns count characters."""
        row = bisect_right(self.starts, offset) - 1
        return row + 1, len(self.code[self.starts[row] : offset].decode("utf-8", "replace")) + 1

    def label(self, offset: int) -> str:
        """What the part of the file is called in which the byte at `offset` of `code` lies."""
        return self.path

    def texts(self) -> dict[str, bytes]:
        """The lines that findings speak of, by `Finding.source_name`."""
        return {self.path: self.code}

    def versions(self, edits: Iterable[Edit]) -> Iterator[tuple[str, bytes, bytes]]:
        """Name, text before and text after of every part that the edits change."""
        yield self.path, self.text, splice(self.text, edits)

    def edited(self, edits: Iterable[Edit]) -> bytes:
        """The file's bytes with these edits of `code` made; what they do not touch stays byte for byte.

        Raises:
            UserError: the file cannot be written back in its encoding.
        """
        edits = list(edits)
        if self.encoding == "utf-8":
            return self.bom + splice(self.text, edits)
        try:
            if self.text.decode().encode(self.encoding) != self.raw:
                raise UserError(f"{self.path}: its bytes are not the only way to write this text in {self.encoding}")
            return splice(self.text, edits).decode().encode(self.encoding)
        except UnicodeEncodeError as error:
            raise UserError(f"{self.path}: a fix cannot be written in {self.encoding}: {error.reason}") from None


class CFile(SourceFile):
    """A file of OpenCL C, or of C or C++ that may hold some: UTF-8, or else bytes that are taken one by one."""

    @classmethod
    def of(cls, path: str, raw: bytes) -> CFile:
        """Decode; there is nothing that cannot be."""
        bom = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
        text, encoding = raw[len(bom) :], "utf-8"
        try:
            text.decode()
        except UnicodeError:
            text, encoding = raw.decode("latin-1").encode(), "latin-1"
            bom = b""
        code = LONE_CR.sub(b"\n", text)
        return cls(path, raw, code, encoding, bom, dominant_newline(text) if b"\r" in text else "\n", text)


def declared(text: bytes) -> tuple[str, int]:
    """The encoding that one of the first two lines declares, and that line; ("", 0) where none does."""
    if b"coding" not in text[:4000]:
        return "", 0
    for number, row in enumerate(LINE_END.split(text[:4000], 2)[:2], 1):
        if found := COOKIE.match(row):
            return found.group(1).decode(), number
        if not BLANK.match(row):
            break
    return "", 0


def dominant_newline(code: bytes) -> str:
    """The line ending that most lines have."""
    crlf = code.count(b"\r\n")
    counts = {"\r\n": crlf, "\r": code.count(b"\r") - crlf, "\n": code.count(b"\n") - crlf}
    return max(counts, key=lambda k: counts[k])


def splice(text: bytes, edits: Iterable[Edit]) -> bytes:
    """The text with edits made that do not overlap."""
    pieces, at = [], 0
    for edit in sorted(edits, key=lambda e: e.span):
        pieces += [text[at : edit.span.start], edit.text.encode()]
        at = edit.span.end
    return b"".join([*pieces, text[at:]])


def disjoint(edits: Iterable[Edit]) -> bool:
    """Whether no edit could disturb another."""
    return not any(a.span.overlaps(b.span) for a, b in pairwise(sorted(edits, key=lambda e: e.span)))


def with_newlines(edits: Iterable[Edit], newline: str) -> tuple[Edit, ...]:
    """The edits in order, what they put in with the file's line endings."""
    ordered = sorted(edits, key=lambda e: e.span)
    return tuple(Edit(e.span, NEWLINES.sub(newline, e.text)) for e in ordered)


@contextmanager
def any_code() -> Iterator[None]:
    """Room for the frames that deeply nested code takes, and no warning of Python's of what it parses (`"\\d"` in a docstring),
    which it gives when that is run; then the caller's own limit and filters again."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(RECURSION, before))
    try:
        with warnings.catch_warnings():
            for told in (SyntaxWarning, DeprecationWarning):  # the latter until Python 3.11
                warnings.simplefilter("ignore", told)
            yield
    finally:
        sys.setrecursionlimit(before)
