"""A project as it stood at a revision, in a folder of its own.

Whether a line runs in every step hangs on the whole project: on what is imported, and on what the steps of other files call.
So the Python files of the commit are written into a folder, below the names of the folders around them, beside links to what
git ignores. It is removed afterwards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from syncscope.linter.config import Config
from syncscope.linter.revision import Revision
from syncscope.project.folders import MARKS, NEVER, SILENT, roots
from syncscope.project.folders import files as python_files


def moved(config: Config, top: str, there: str) -> Config:
    """The configuration with what it says of folders below `top` said of those below `there`."""

    def below(path: str) -> str:
        inner = os.path.relpath(path, top)
        return path if inner.startswith(os.pardir) else os.path.normpath(os.path.join(there, inner))

    return replace(config, root=below(config.root), src=tuple(map(below, config.src)), baseline="")


@contextlib.contextmanager
def stood(revision: Revision, also: Iterable[str]) -> Iterator[str]:
    """The Python files of a commit, and `also` these, in a folder that is removed afterwards; as it is called."""
    base = tempfile.mkdtemp(prefix="syncscope-since-")
    try:
        # what folders are called says what is in them: examples, tests
        top = os.path.join(os.path.realpath(base), *Path(revision.top).parts[1:])
        wanted = {name for name in revision.listed if name.endswith(".py") or name.rpartition("/")[2] in MARKS}
        for name, text in revision.texts(sorted(wanted.union(also))):
            path = os.path.join(top, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(text)
        os.makedirs(os.path.join(top, ".git"), exist_ok=True)  # here the project begins
        for path in ignored(revision):
            _stand_in(path, os.path.join(top, os.path.relpath(path, revision.top)))
        yield top
    finally:
        shutil.rmtree(base, ignore_errors=True)


@contextlib.contextmanager
def as_silent(revision: Revision, names: Iterable[str], there: str) -> Iterator[bool]:
    """Have nothing said of what stands for a project that is too large now, its data included, which no commit holds; whether
    there is one, which processes of our own would not know."""
    folders = {os.path.dirname(os.path.join(revision.top, name)) for name in names}
    every = {root for folder in folders for root in roots(Path(folder))}
    large = {os.path.join(there, root.relative_to(revision.top)) for root in every if not python_files(root)}
    large = {os.path.normpath(root) for root in large}
    SILENT.update(large)
    try:
        yield bool(large)
    finally:
        SILENT.difference_update(large)


def ignored(revision: Revision) -> Iterator[str]:
    """Python that git ignores and that the project has all the same: what it trains is trained with it, then as now."""
    for path in revision.ignored():
        parts = os.path.relpath(path, revision.top).split(os.sep)
        if any(part in NEVER or part.startswith(".") for part in parts):
            continue
        if os.path.isdir(path):
            yield from python_files(Path(path))
        elif path.endswith(".py"):
            yield path


def _stand_in(path: str, there: str) -> None:
    with contextlib.suppress(OSError):  # it is gone, or is no file
        os.makedirs(os.path.dirname(there), exist_ok=True)
        try:
            os.link(path, there)
        except OSError:  # another disk
            shutil.copyfile(path, there)
