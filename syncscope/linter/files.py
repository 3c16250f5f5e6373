"""Which files a command line means: paths, folders, globs; what .gitignore and the configuration leave out."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.linter import globs
from syncscope.linter.globs import Pattern
from syncscope.linter.source import C_SUFFIXES
from syncscope.project.folders import NEVER, folder_around, located

if TYPE_CHECKING:
    from syncscope.linter.config import Config

LARGEST = 1 << 20  # bytes of a .gitignore
LONGEST_LINE = 200  # bytes of a first line
SUFFIXES = (".py", ".pyw", ".ipynb", *C_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Ignore:
    """The patterns of one .gitignore, and the folder they are relative to."""

    folder: str
    patterns: tuple[Pattern, ...]

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """Ignored, kept by a `!pattern`, or not spoken of: the last pattern that matches says so."""
        relative = os.fsencode(os.path.relpath(path, self.folder).replace(os.sep, "/"))
        return next((not p.keeps for p in reversed(self.patterns) if p.matches(relative, is_folder)), None)


def find(
    paths: Iterable[str],
    config_of: Callable[[str], Config],
    unreadable: Callable[[str, str], None],
    linked: Callable[[str], None] = lambda _: None,
) -> Iterator[str]:
    """The files, each once, in the order of the paths and by name below them. What is named itself is left out only where the
    configuration says `force-exclude`.

    `config_of` gives the configuration of a folder (absolute path), `unreadable` is told of what cannot be listed: path, why;
    `linked` of the links to folders that are not followed.

    Raises:
        UserError: a path that is not there, a glob that matches nothing.
    """
    seen: set[str] = set()
    folders: dict[str, str] = {}  # without links: asked once for each, as every part of a path costs a call
    for path in expanded(paths):
        if os.path.isdir(path):
            found: Iterable[str] = walk(path, config_of, unreadable, linked)
        else:
            absolute = os.path.join(folder_around(path), os.path.basename(path))
            config = config_of(os.path.dirname(absolute))
            found = [] if config.force_exclude and excluded(absolute, False, config) else [path]
        for file in found:
            folder, name = os.path.split(file)
            if folder not in folders:
                folders[folder] = os.path.realpath(folder)
            real = os.path.join(folders[folder], name)
            if os.path.islink(real):
                real = os.path.realpath(real)
            if real not in seen:
                seen.add(real)
                yield file


def expanded(paths: Iterable[str]) -> Iterator[str]:
    """The paths with globs resolved, for shells that leave that to us and for quoted ones."""
    for path in paths:
        if os.path.lexists(path):
            yield path
        elif glob.has_magic(path):
            matches = sorted(glob.glob(path, recursive=True))
            files = [m for m in matches if os.path.isdir(m) or m.endswith(SUFFIXES)]
            if not files:
                raise UserError(f"nothing matches {path!r}", "** stands for any number of folders: 'src/**/*.py'")
            # A folder that matched beside its own files would bring in what the pattern leaves out.
            yield from [m for m in files if not os.path.isdir(m)] or files
        else:
            raise UserError(f"there is no {path!r}", "name files, folders, or globs in quotes")


def is_code(path: str) -> bool:
    """Whether a file is called like what is linted, or by nothing, or says in its first line that Python runs it."""
    ending = os.path.splitext(path)[1].lower()
    if not ending or ending in (*SUFFIXES, ".pyi"):
        return True
    try:
        with open(path, "rb") as file:
            first = file.readline(LONGEST_LINE)
    except OSError:
        return True  # which is said where it is read
    return first.startswith(b"#!") and b"python" in first


def walk(
    folder: str,
    config_of: Callable[[str], Config],
    unreadable: Callable[[str, str], None],
    linked: Callable[[str], None],
) -> Iterator[str]:
    """The files below a folder that may hold something. Links to folders are not followed, so that no loop can form."""
    absolute = located(folder)
    config = config_of(absolute)
    above = list(ignores_above(absolute)) if config.respect_gitignore else []
    if any(ignored(parent, True, above) for parent in (absolute, *parents(absolute, above))):
        return
    yield from _walk(folder, absolute, config_of, unreadable, linked, above)


def _walk(
    folder: str,
    absolute: str,
    config_of: Callable[[str], Config],
    unreadable: Callable[[str, str], None],
    linked: Callable[[str], None],
    above: list[Ignore],
) -> Iterator[str]:
    stack = [(folder, absolute, above)]
    while stack:
        folder, absolute, above = stack.pop()
        config = config_of(absolute)
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda e: e.name)
        except OSError as error:
            unreadable(folder, error.strerror or str(error))
            continue
        names = {e.name for e in entries}
        if "pyvenv.cfg" in names and "lib" in {n.lower() for n in names}:
            continue
        if ".gitignore" in names and config.respect_gitignore:
            above = [*above, *ignore(absolute, os.path.join(absolute, ".gitignore"))]
        below = []
        for entry in entries:
            is_linked = entry.is_symlink() and os.path.isdir(os.path.join(folder, entry.name))
            is_folder = is_linked or entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.name.endswith(SUFFIXES):
                continue
            path = os.path.join(absolute, entry.name)
            if (
                (is_folder and entry.name in NEVER)
                or ignored(path, is_folder, above)
                or excluded(path, is_folder, config)
            ):
                continue
            if is_linked:
                linked(os.path.normpath(os.path.join(folder, entry.name)))
            elif is_folder:
                below.append((os.path.join(folder, entry.name), path, above))
            elif os.path.isfile(path):  # `entry.is_file` raises where links go in circles
                yield os.path.normpath(os.path.join(folder, entry.name))
        stack += reversed(below)


def ignored(path: str, is_folder: bool, by: list[Ignore]) -> bool:
    """What the nearest .gitignore that speaks of it says."""
    for one in reversed(by):
        verdict = one.verdict(path, is_folder)
        if verdict is not None:
            return verdict
    return False


def parents(folder: str, by: list[Ignore]) -> Iterator[str]:
    """The folders above this one, up to the first that has patterns."""
    while by and folder != by[0].folder and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        yield folder


def excluded(path: str, is_folder: bool, config: Config) -> bool:
    """Whether `exclude` of the configuration leaves it out."""
    if not config.exclude:
        return False
    from syncscope.linter.config import matches

    relative = os.path.relpath(path, config.root)
    return any(matches(pattern, relative, is_folder) for pattern in config.exclude)


def ignores_above(folder: str) -> Iterator[Ignore]:
    """The .gitignore files of the folders above, down from the root of the repository, and its own exclude file."""
    chain = [folder]
    while not os.path.exists(os.path.join(chain[-1], ".git")):
        parent = os.path.dirname(chain[-1])
        if parent == chain[-1]:
            return  # in no repository: only what lies below counts
        chain.append(parent)
    root = chain[-1]
    yield from ignore(root, os.path.join(root, ".git", "info", "exclude"))
    for at in reversed(chain[1:]):
        yield from ignore(at, os.path.join(at, ".gitignore"))


def ignore(folder: str, path: str) -> Iterator[Ignore]:
    """The patterns in this file, if it is there and holds any."""
    try:
        found = tuple(globs.patterns(regular(path, LARGEST)))
    except OSError:
        return
    if found:
        yield Ignore(folder, found)
