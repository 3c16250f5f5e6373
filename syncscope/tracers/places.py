"""From a frame of the running program to the user's line: which frame is the user's, and where its expression stands."""

from __future__ import annotations

import contextlib
import os
import sysconfig
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from syncscope.model.source import Place
from syncscope.tracers import cells

HERE = str(Path(__file__).parents[1]) + "/"
_PATHS = sysconfig.get_paths()
_STANDARD = tuple({_PATHS["stdlib"] + "/", _PATHS["platstdlib"] + "/"})
# The halves in Python of what torch has in C: `torch.unique(x)` is one call to whoever calls it.
_HALVES = (
    *("/torch/functional.py", "/torch/_jit_internal.py", "/torch/_tensor.py", "/torch/_tensor_str.py"),
    *("/torch/overrides.py", "/torch/cuda/__init__.py", "/torch/cuda/streams.py", "/torch/xpu/__init__.py"),
    *("/torch/xpu/streams.py", "/torch/accelerator/__init__.py"),
)
_INSTALLED = ("/site-packages/", "/dist-packages/")

# What carries out what others want, below the folder of packages, and code of theirs without a file.
_CARRIERS = ("torch/", "functorch/", "torchgen/", "triton/", "pyopencl/")
_MADE = ("<frozen ", "<eval_with_key>", "<generated: 'pyopencl")

USER, LIBRARY, BETWEEN, CARRIER = 0, 1, 2, 3
kinds: dict[str, int] = {}  # by file: to hash code takes microseconds, since Python goes through all of it


class Spot:
    """A point in running code, as cheap to take as can be: resolved to a line afterwards. `at` is the instruction's offset.

    There is one of each (`spot`), so that they are compared and hashed as objects are: to hash code takes microseconds."""

    __slots__ = ("at", "code")

    def __init__(self, code: CodeType, at: int) -> None:
        self.code, self.at = code, at


class Seen(NamedTuple):
    """Who reads: the user's frame (None on a thread that has none), and the library's frame that reads, if another does.

    `inner` is the innermost frame of an installed package, where that is further in than the user's: torch and the standard
    library only carry out what others want.
    """

    user: Spot | None
    library: Spot | None
    inner: Spot | None = None


_new = tuple.__new__  # what a NamedTuple is made by, without the function in Python before it
spots: dict[tuple[int, int], Spot] = {}  # by the address of the code, which they keep, and the instruction


def spot(frame: FrameType) -> Spot:
    """Where a frame is."""
    code = frame.f_code
    key = id(code), frame.f_lasti
    found = spots.get(key)
    if found is None:
        found = spots.setdefault(key, Spot(code, key[1]))
    return found


def kind_of(code: CodeType) -> int:
    """USER, LIBRARY (installed packages), CARRIER (torch, pyopencl and the standard library) or BETWEEN
    (ours, and of torch what others take for C), by the file the code comes from."""
    return kind_of_file(code.co_filename)


def kind_of_file(path: str) -> int:
    """The same of a file."""
    kind = kinds.get(path)
    if kind is None:
        if path.startswith(HERE) or path.endswith(_HALVES):
            kind = BETWEEN
        else:
            kind = _kind_of(path)
        kinds[path] = kind
    return kind


def _kind_of(path: str) -> int:
    """In C once more: lines/codes.h. Code without a file is the user's (exec, a notebook), unless Python's or torch.fx's."""
    installed = [path.rpartition(part)[2] for part in _INSTALLED if part in path]
    if installed:
        return CARRIER if min(installed, key=len).startswith(_CARRIERS) else LIBRARY
    if path.startswith("<"):
        return CARRIER if path.startswith(_MADE) else USER
    return CARRIER if path.startswith(carriers()) or "/torchinductor_" in path else USER


@cache
def carriers() -> tuple[str, ...]:
    """Where files are of which no line is ever shown, unless they are below the folder of packages: ours, Python's, torch's
    that is built in its sources, and what torch.compile writes."""
    torch = find_spec("torch")
    folders = [f"{folder}/" for folder in (torch.submodule_search_locations or () if torch else ())]
    written = [f"{folder}/"] if (folder := os.environ.get("TORCHINDUCTOR_CACHE_DIR")) else []
    return (HERE, *_STANDARD, *folders, *written)


def seen_from(frame: FrameType | None) -> Seen:
    """The user's and the library's frame among the callers of `frame`, itself included."""
    library = inner = None
    while frame is not None:
        code = frame.f_code
        kind = kinds.get(code.co_filename)
        if kind is None:
            kind = kind_of(code)
        if kind == USER:
            return _new(Seen, (spot(frame), library, inner))
        if kind != BETWEEN and library is None:
            library = spot(frame)
        if kind == LIBRARY and inner is None:
            inner = spot(frame)
        frame = frame.f_back
    return Seen(None, library, inner)


@lru_cache(maxsize=65536)
def resolve(spot: Spot) -> tuple[Place, int]:
    """The place of the expression at this instruction, and its column: characters, the first is 1; -1 where unknown."""
    line, _, column, _ = _positions(spot.code)[spot.at // 2]
    line, path = line or spot.code.co_firstlineno, direct(spot.code.co_filename)
    if column is None:
        return Place(path, line), -1
    if column:  # Python counts bytes
        text = "".join(cells.lines(path)[line - 1 : line])
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="replace"))
    return Place(path, line), column + 1


@lru_cache(maxsize=4096)
def direct(path: str) -> str:
    """The path without `..` on the way: a folder in `sys.path` may lead by another one, and the file would have two names. Of a
    notebook's cell, which is in no file, its name."""
    if cell := cells.named(path):
        return cell
    straight = os.path.normpath(path)
    if straight == path or f"{os.sep}{os.pardir}{os.sep}" not in path:
        return path
    with contextlib.suppress(OSError):  # a link on the way, behind which `..` is elsewhere
        return straight if os.path.samefile(path, straight) else path
    return path


@lru_cache(maxsize=4096)
def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


def short(spot: Spot) -> str:
    """A library's line without the folder it is installed in: `torch/nn/utils/clip_grad.py:43`."""
    place, _ = resolve(spot)
    path = place.path
    for part in _INSTALLED:
        path = path.rpartition(part)[2]
    for folder in _STANDARD:
        path = path.removeprefix(folder)
    return f"{path}:{place.line}"
