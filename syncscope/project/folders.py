"""The folders of projects: where one begins, and which files of Python are its own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from syncscope.files import regular

P = ParamSpec("P")
R = TypeVar("R")
NEVER = frozenset(
    """
    .bzr .direnv .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox .pytest_cache .ruff_cache .svn .tox .venv
    __pycache__ __pypackages__ _build buck-out build dist node_modules site-packages venv
    """.split()
)
"""Folders that hold no source of the user's own, as ruff has them; linted only when they are named."""
_OFFERS = rb"^(?:from[ \t]+(?:\.|%b\b)|__all__\b)"
MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
LARGEST, MOST_SOURCES = 500_000, 4000  # bytes of a file, and files of a project, that are looked through for a word
SILENT: set[str] = set()
"""Projects of which nothing is said, however few their files are: they stand for others that are too large."""

_INSTALLED = "site-packages"
_PASSED_BY = frozenset((_INSTALLED, "node_modules", "__pycache__"))
_LEVELS = 5  # folders within one another that are looked into for a package without `__init__`
# bytes of Python in a project, and files of any kind: of larger ones nothing is said
_MOST, _MOST_FILES = 60_000_000, 20_000


def located(path: str) -> str:
    """Where a file or folder is, absolute and through no link: what asks for its surroundings asks here, however it is written.

    A link to a file with another suffix is where the link is: a store that calls files by their content knows no packages.
    """
    folder, name = os.path.split(path)
    here = os.path.join(_real(os.path.join(os.getcwd(), folder)), name)
    if name not in ("", os.curdir, os.pardir) and not os.path.islink(here):
        return here
    real = os.path.realpath(path)
    return real if os.path.splitext(path)[1] == os.path.splitext(real)[1] or os.path.isdir(real) else here


def folder_around(path: str) -> str:
    """The folder in which a file was put, as `located` has it: a link obeys the project that it was put into."""
    return _real(os.path.join(os.getcwd(), os.path.dirname(path)))


@cache
def _real(folder: str) -> str:
    """A folder through no link: a project has a hundred files in each, and every part of a path is asked for."""
    return os.path.realpath(folder)


@cache
def root_of(folder: str) -> str:
    """The nearest folder around that a project begins in; "" where there is none, and for what was built or installed apart."""
    for each in (Path(folder), *Path(folder).parents):
        if is_installed_in(str(each)):
            break
        if any((each / name).exists() for name in MARKS):
            return str(each)
        if _is_apart(str(each.parent), each.name):
            break
    return ""


@cache
def is_installed_in(folder: str) -> bool:
    """Whether packages were installed in a folder: each is a project of its own, whatever else one of them left there."""
    try:
        return os.path.basename(folder) == _INSTALLED or any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False


def is_library(root: Path) -> bool:
    """Whether what is below a folder is installed by others, or is to be: what nothing of it uses is for them to call."""
    if is_installed_in(str(root.parent)) or any((root / name).is_file() for name in ("setup.py", "setup.cfg")):
        return True
    return b"[build-system]" in content(str(root / "pyproject.toml"))


def stands_alone(root: Path) -> bool:
    """Whether a folder is no project, as of a package that was unpacked by itself."""
    return not any((root / name).exists() for name in MARKS)


def offers(package: str, source: bytes) -> bool:
    """Whether a package brings what its `__init__` holds from its own files, or says what there is of it."""
    return re.search(_OFFERS % re.escape(package.encode()), source, re.MULTILINE) is not None


def roots(folder: Path) -> Iterator[Path]:
    """The folders that may be the project of a folder: what is marked as one, then the outermost package, around it or one
    whose folder it is without being one itself; of what was installed and is no package, what lies beside the others; a package
    without `__init__` whose own files import it by its name; of scripts in no project, their folder, if one of them trains: it
    is a whole program then, and no part of one.
    """
    package, above, below, marked = folder, folder, folder, False
    if not (folder / "__init__.py").is_file():
        package = folder.parent
    while (package / "__init__.py").is_file() and (package.parent / "__init__.py").is_file():
        package = package.parent
    while above.name and not is_installed_in(str(above)):
        if marked := any((above / name).exists() for name in MARKS):
            yield above
            break
        if _is_apart(str(above.parent), above.name):
            break
        above, below = above.parent, above
    if (package / "__init__.py").is_file():
        yield package
    elif below != above and is_installed_in(str(above)):
        yield below
    elif not (marked or is_installed_in(str(folder))):
        if (named := _package_by_name(folder)) is not None:
            yield named
        elif any(map(_trains, folder.glob("*.py"))):
            yield folder


def _package_by_name(folder: Path) -> Path | None:
    """The folder around, or this one, from which a file in it imports by its name, where no script beside it may, too."""
    for each in (folder, *folder.parents)[:_LEVELS]:
        imports = re.compile(rb"^[ \t]*(?:from|import)[ \t]+%b\." % re.escape(each.name.encode()), re.MULTILINE)
        if each.name and any(imports.search(content(str(path))) for path in each.glob("*.py")):
            return each if not any(each.parent.glob("*.py")) else None
    return None


def _trains(path: Path) -> bool:
    return b".backward(" in content(str(path))


def _is_apart(folder: str, name: str) -> bool:
    """Whether what stands in a folder was built or installed there, and is none of the project around it: `build/lib`.

    A package may be called so, too, but for the folders that installers make.
    """
    if name not in NEVER:
        return False
    return name in _PASSED_BY or not os.path.isfile(os.path.join(folder, name, "__init__.py"))


def files(root: Path) -> dict[str, tuple[int, int]]:
    """Its files of Python, with time and size of each; none where they are too many to be read."""
    found: dict[str, tuple[int, int]] = {}
    if str(root) in SILENT:
        return found
    size = number = 0
    for folder, below, names in os.walk(root):
        below[:] = sorted(each for each in below if not (each.startswith(".") or _is_apart(folder, each)))
        number += len(names)
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                try:
                    told = os.stat(path)
                except OSError:
                    continue
                found[path] = (told.st_mtime_ns, told.st_size)
                size += told.st_size
        if size > _MOST or number > _MOST_FILES:
            return {}
    return found


_KEPT: list[Any] = []  # answers that hang on the texts of projects


def of_texts(function: Callable[P, R]) -> Callable[P, R]:
    """Keeps what a function says of the texts of a project, until they are forgotten."""
    kept = lru_cache(maxsize=64)(function)
    _KEPT.append(kept)
    return cast("Callable[P, R]", kept)


def forget() -> None:
    """Have the texts of projects asked anew: they may have changed since."""
    for each in _KEPT:
        each.cache_clear()


@of_texts
def sources(root: str) -> tuple[str, ...]:
    """The files of Python of a project that begins here, none in a folder of `NEVER`; none of one that is installed."""
    if not root or _INSTALLED in Path(root).parts:
        return ()
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in NEVER and not f.startswith("."))
        found += (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))
        if len(found) >= MOST_SOURCES:
            break
    return tuple(found[:MOST_SOURCES])


def content(path: str) -> bytes:
    """What one of them holds; nothing where it cannot be read, or is too large to be looked through."""
    try:
        return regular(path, LARGEST)
    except OSError:
        return b""


_PAGES = (".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".gin", ".sh", ".md", ".rst", ".ipynb")
_TOLD_BESIDE = ("METADATA", "entry_points.txt")
_MOST_PAGES, _LARGEST_PAGE = 400, 200_000  # files in a project, and bytes of each


@of_texts
def pages(root: str) -> tuple[bytes, ...]:
    """What a project's pages show and its settings hold; of what was unpacked alone, what its distribution says of it."""
    found: list[str] = []
    for folder, below, names in os.walk(root) if root else ():
        below[:] = sorted(each for each in below if each not in NEVER and not each.startswith("."))
        found += (os.path.join(folder, name) for name in sorted(names) if name.endswith(_PAGES))
        if len(found) >= _MOST_PAGES:
            break
    around = os.path.dirname(root)
    told = [each for each in os.listdir(around) if each.endswith(".dist-info")] if root else []
    if len(told) == 1:
        found[:0] = [os.path.join(around, told[0], name) for name in _TOLD_BESIDE]
    return tuple(text for text in map(content, found[:_MOST_PAGES]) if len(text) <= _LARGEST_PAGE)


def project_around(path: str) -> str:
    """The folder of the project that a file is of; "" where there is none."""
    folder = os.path.dirname(path)
    return root_of(folder) or next(map(str, roots(Path(folder))), "")


def has_others(path: str) -> bool:
    """Whether a file is one of several of a project, as far as is known."""
    path = located(path)
    return os.path.isfile(path) and len(sources(project_around(path))) > 1
