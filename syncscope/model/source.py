"""Where something stands in a source file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

LINE_END = re.compile(rb"\r\n|\r|\n")  # what `ast` counts, and `bytes.splitlines`


@lru_cache(maxsize=64)  # a file is asked for by all that look into it, in turns with those that it imports
def line_starts(code: bytes) -> tuple[int, ...]:
    """The offset at which each line begins."""
    starts = (0, *accumulate(map(len, code.splitlines(keepends=True))))
    return starts if code.endswith((b"\n", b"\r")) or not code else starts[:-1]  # the last line may have no end


_OTHER_NAMES = (b"paddle", b"mindspore", b"jittor")
_OTHERS = re.compile(rb"^(?:import|from) (?:%b)\b" % b"|".join(_OTHER_NAMES), re.MULTILINE)
_IMPORTED = re.compile(rb"^[ \t]*(?:import|from) (?:torch|pytorch|lightning)", re.MULTILINE)


def speaks_of_torch(code: bytes) -> bool:
    """Whether a file has to do with tensors: it names torch, or does what hardly anything else can: a loss that a base class
    has computed is read, `sup_loss.item()`, in a file that imports that class alone. What another library computes waits
    otherwise."""
    others = any(name in code for name in _OTHER_NAMES)  # most name none, which is seen in a tenth of the time
    if others and _OTHERS.search(code) and not _IMPORTED.search(code):
        return False
    return any(word in code for word in (b"torch", b"backward(", b".cpu()", b"loss.item()", b".detach()", b".cuda("))


FAR, NAMED = re.compile(r"(?:[A-Za-z]:)?[/\\]+"), 2  # a path from the root; the folders of it that are named
PACKAGES = r"(?:site|dist)-packages"
INSTALLED = re.compile(rf"(?:^|[/\\])(?:{PACKAGES}|lib[/\\]python3[.\d]*(?![/\\]{PACKAGES}))[/\\]|^<frozen ")


AS_RECORDED = " (as recorded)"
"""What stands behind the name of a file where the line of it is that of a recording, and no line of today's."""


def on_disk(path: str) -> str:
    """The file itself, for those who open it: a `Place` may say behind it that its line is not there any more."""
    return path.removesuffix(AS_RECORDED)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A file and a line (the first is 1): the key on which lint and trace meet."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def shortly(self) -> str:
        """The same, of a library's file without the folder that it is installed in: `torchvision/ops/boxes.py:40`."""
        return f"{shortly(self.path)}:{self.line}"


def text_hash(text: str) -> str:
    """By what a recording knows the text of a line or an expression again, whatever white space is in it."""
    return hashlib.blake2b("".join(text.split()).encode("utf-8", "replace"), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The bytes [start, end) of a source file."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Whether an edit of one could disturb the other; two insertions at one point do."""
        return (self.start < other.end and other.start < self.end) or self.start == other.start


def installed(path: str) -> bool:
    """Whether a file is a library's: an installed package's, or the standard library's."""
    return INSTALLED.search(path) is not None


def shortly(path: str) -> str:
    """A file as it is named in a sentence: a library's without the folder that it is installed in,
    `torchvision/models/resnet.py`; one far from here by the end of its path, `…/code/project/train.py`; any other as it is."""
    found = INSTALLED.search(path)
    if found:
        return path[found.end() :] if found.end() < len(path) else path
    *far, last = FAR.split(path) if FAR.match(path) else [path]
    return f"…/{'/'.join([*far[-NAMED:], last])}" if len(far) > NAMED + 1 else path
