"""Which file here is the one that a trace names: paths of another machine, found by what their ends have in common.

A trace is a stranger's, and what it names is shown: a source is a Python file below a folder that the user names or works in.
"""

from __future__ import annotations

import os
import shlex
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np

from syncscope.model.source import installed
from syncscope.model.trace import Kind, Trace

SUFFIXES = (".py", ".ipynb")
NAMED = 2  # of what is not clear
SKIPPED = {"__pycache__", "node_modules", "site-packages"}


def at_hand(paths: Iterable[str], root: Path | None = None, *, anywhere: bool = False) -> dict[str, Path]:
    """The files at hand of these paths; those that are not are left out.

    With `root`, the file below it that shares the most trailing parts of the path; where two share as many, neither is
    taken. Without it, the path as it stands, where that lies below the working folder or the project around it, among the
    packages of this interpreter, or `anywhere`. A link that leads out of there is no file at hand. Paths are given relative
    to the working folder where they lie below it.
    """
    if root is None:
        folders = (os.sep,) if anywhere else (project(Path.cwd()), *_packages())
        found = {
            path: Path(path)
            for path in paths
            if path.endswith(SUFFIXES) and any(is_below(path, folder) for folder in folders)
        }
    else:
        found = {path: best[0] for path, best in _best(paths, root).items() if len(best) == 1}
    return {path: nearest(file) for path, file in found.items()}


def ambiguous(paths: Iterable[str], root: Path) -> list[tuple[str, str]]:
    """Of the user's own paths that several files below the root share as many parts with: which these are, and how to choose,
    of two at most."""
    said: list[tuple[str, str]] = []
    for path, best in _best(sorted(path for path in paths if not installed(path)), root).items():
        if len(best) > 1 and len(said) < NAMED:
            named = " or ".join(str(nearest(file)) for file in sorted(best)[:NAMED])
            more = f" or {len(best) - NAMED} more" if len(best) > NAMED else ""
            folder = shlex.quote(str(nearest(min(best)).parent))
            said.append(
                (f"{path} may be {named}{more}, so none is taken", f"`--source {folder}` names the first one's folder")
            )
    return said


def _best(paths: Iterable[str], root: Path) -> dict[str, list[Path]]:
    """The files below the root that share the most trailing parts with each of these paths."""
    by_name: dict[str, list[Path]] = {}
    within = os.path.realpath(root)
    for file in python_files(Path(within)):
        if is_below(str(file), within):
            by_name.setdefault(file.name, []).append(file)
    found = {}
    for path in paths:
        ends = parts(path)
        common = {file: _common(ends, parts(str(file))) for file in by_name.get(ends[-1], ())}
        if common:
            found[path] = [file for file, many in common.items() if many == max(common.values())]
    return found


def elsewhere(paths: Iterable[str]) -> str:
    """The folder that holds the user's own source files of these paths, which exist here and are not at hand: outside of the
    working folder and its project a recording does not lead to them; "" where there are none, or no folder is theirs."""
    found = sorted({path for path in paths if path.endswith(SUFFIXES) and _is_own(path)})
    if not found:
        return ""
    folder = os.path.commonpath([os.path.dirname(path) for path in found])
    return "" if folder == os.path.dirname(folder) else folder


def _is_own(path: str) -> bool:
    return os.path.isabs(path) and not installed(path) and is_below(path, os.sep) and os.path.realpath(path) == path


def waiting_files(trace: Trace) -> frozenset[str]:
    """The files in which the host waits, as places name them."""
    waits = trace.place[trace.rows(Kind.READ)]
    return frozenset(trace.places[code].path for code in np.unique(waits[waits >= 0]).tolist())


@cache
def _packages() -> tuple[str, ...]:
    """The folders in which this interpreter's packages are installed."""
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys(os.path.realpath(paths[name]) for name in ("purelib", "platlib")))


def project(folder: Path) -> str:
    """The folder itself, or the nearest above it that holds a repository or a pyproject.toml; without links."""
    here = Path(os.path.realpath(folder))
    marks = (at for at in (here, *here.parents) if (at / ".git").exists() or (at / "pyproject.toml").exists())
    return str(next(marks, here))


def is_below(path: str, folder: str) -> bool:
    """Whether a path names a regular file that really lies below a folder (one without links) or is that itself."""
    try:
        real = os.path.realpath(path)
        return os.path.commonpath((real, folder)) == folder and os.path.isfile(real)
    except ValueError:  # a path that no system allows, or on another drive
        return False


def python_files(root: Path) -> Iterator[Path]:
    """The Python files and notebooks below a folder, or the file itself; hidden folders and installed packages are skipped."""
    if root.is_file():
        yield root
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in SKIPPED)
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(SUFFIXES))


def parts(path: str) -> tuple[str, ...]:
    """The parts of a path of any system."""
    return (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).parts or ("",)


def nearest(file: Path) -> Path:
    """The file as a person in the working folder would name it."""
    absolute = file.absolute()
    here = Path.cwd()
    return absolute.relative_to(here) if absolute.is_relative_to(here) else absolute


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many parts at the end are the same."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
