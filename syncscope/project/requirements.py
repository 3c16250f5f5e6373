"""What a project asks for, as its own files say, which are read and not run: the oldest torch, and nothing of ours."""

from __future__ import annotations

import ast
import configparser
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from syncscope.files import regular
from syncscope.project.folders import is_installed_in, located, of_texts, root_of
from syncscope.project.syntax import text_of

Version = tuple[int, ...]
_LARGEST = 1 << 20  # bytes of such a file
_TORCH = re.compile(r"torch(?![\w.-])\s*(?:\[[^\]]*\])?([^;#]*)")  # a requirement, without what it holds for
_LEAST = re.compile(r"(?:>=|===?|~=|>|\^|~)\s*v?(\d+(?:\.\d+)*)")
_PYTHON = re.compile(
    r"""^\s*(?:requires-python|python_requires|python)\s*[=:]\s*["']?([^"'\n#]*)""", re.MULTILINE | re.IGNORECASE
)
_WHEELS: dict[Version, Version] = {
    (3, 9): (1, 7, 1), (3, 10): (1, 11), (3, 11): (1, 13), (3, 12): (2, 2), (3, 13): (2, 5),
}  # fmt: skip
"""By version of Python the first torch that PyPI has for it, as its list of files says: none older can be installed there."""


class Requirements(NamedTuple):
    """The oldest torch that a project takes, and its oldest Python has, () where it says none, and whether it is a package that
    lists what it needs."""

    torch: Version = ()
    listed: bool = False


def requirements(path: str) -> Requirements:
    """What the project around a file asks for."""
    path = located(path)
    folder = os.path.dirname(path)
    root = root_of(folder) or _installed_around(folder) if os.path.exists(path) else ""
    if not root:
        return Requirements()
    if is_installed_in(root):
        return _of_wheel(root, os.path.relpath(path, root).split(os.sep)[0])
    return _of_project(root)


def _installed_around(folder: str) -> str:
    """The nearest folder around that packages were installed in."""
    while not is_installed_in(folder):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return ""
    return folder


@of_texts
def _of_wheel(folder: str, package: str) -> Requirements:
    """What the metadata of an installed package asks for; of several the one that is called so, or says that it brings it."""
    infos = sorted(each for each in os.listdir(folder) if each.endswith(".dist-info"))
    if len(infos) > 1:
        infos = [each for each in infos if _brings(os.path.join(folder, each), package)]
    texts = [_text(os.path.join(folder, each, "METADATA")) for each in infos]
    lines = (line for text in texts for line in text.splitlines())
    said = _lowest(line.partition(":")[2] for line in lines if line.startswith("Requires-Dist:"))
    return Requirements(_there(said, texts), True)


def _brings(info: str, package: str) -> bool:
    name = os.path.basename(info).partition("-")[0].lower()
    return name == package.lower() or package in _text(os.path.join(info, "top_level.txt")).split()


@of_texts
def _of_project(root: str) -> Requirements:
    texts = {name: _text(os.path.join(root, name)) for name in _FILES}
    found = {name: [*said(texts[name])] for name, said in _FILES.items()}
    named = [name for name, said in found.items() if any(map(_IS_ONE.match, said))]
    oldest = _there(_lowest(each for said in found.values() for each in said), texts.values())
    return Requirements(oldest, named not in ([], [_LOOSE]))


def _there(oldest: Version, texts: Iterable[str]) -> Version:
    """The oldest torch that is asked for, but none that the oldest Python cannot have, as these texts name it."""
    named = (match[1] for text in texts for match in _PYTHON.finditer(text))
    pythons = [tuple(map(int, least[1].split(".")))[:2] for said in named for least in _LEAST.finditer(said)]
    python = min(pythons, default=())
    first = max((torch for version, torch in _WHEELS.items() if version <= python), default=())
    return max(oldest, first) if oldest else ()


def _lowest(requirements: Iterable[str]) -> Version:
    found = (_TORCH.match(each.strip().strip("\"'")) for each in requirements)
    versions = [tuple(map(int, least[1].split("."))) for each in found if each for least in _LEAST.finditer(each[1])]
    return min(versions, default=())


def _text(path: str) -> str:
    try:
        return regular(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _toml(text: str) -> Iterator[str]:
    """Dependencies of a `pyproject.toml`, optional ones and those of poetry, too."""
    import tomllib

    try:
        table: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    project, poetry = table.get("project"), table.get("tool")
    poetry = poetry.get("poetry") if isinstance(poetry, dict) else None
    if isinstance(project, dict):
        extra = project.get("optional-dependencies")
        listed = [project.get("dependencies"), *(extra.values() if isinstance(extra, dict) else ())]
        yield from (each for names in listed if isinstance(names, list) for each in names if isinstance(each, str))
    named = poetry.get("dependencies") if isinstance(poetry, dict) else None
    said = named.get("torch") if isinstance(named, dict) else None
    said = said.get("version") if isinstance(said, dict) else said
    if isinstance(said, str):
        yield f"torch {said if _LEAST.match(said) else f'=={said}'}"


def _ini(text: str) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    if parser.has_section("options"):
        yield from parser.get("options", "install_requires", fallback="").splitlines()
    if parser.has_section("options.extras_require"):
        yield from (line for _, value in parser.items("options.extras_require") for line in value.splitlines())


def _setup(text: str) -> Iterator[str]:
    """The texts of a `setup.py`, which is parsed and not run: a requirement may stand in any list."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for each in ast.walk(tree):
        yield from (text_of(each) or "").splitlines()


_LOOSE = "requirements.txt"  # which programs have, too
_IS_ONE = re.compile(r"\s*torch(?![\w.-])")
_FILES: dict[str, Callable[[str], Iterator[str]]] = {
    "pyproject.toml": _toml,
    "setup.cfg": _ini,
    "setup.py": _setup,
    _LOOSE: lambda text: iter(text.splitlines()),
}
