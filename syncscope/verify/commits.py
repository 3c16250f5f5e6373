"""A program as it is, and with its files as a commit had them: no second checkout is made, the texts stand in for the files."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from syncscope.errors import UserError


@dataclass(frozen=True)
class Texts:
    """The Python files that differ, absolute, links resolved: as a commit had them, and as they are. `missing` are those that
    only one of both has: no text stands in for them."""

    commit: str
    before: dict[str, bytes]
    after: dict[str, bytes]
    missing: tuple[str, ...] = ()


def texts_of(commit: str) -> Texts:
    """What differs between a commit of the repository in which we are, and its files as they are now.

    Raises:
        UserError: there is no such commit, or no Python file differs from it.
    """
    root = Path(os.path.realpath(_git("rev-parse", "--show-toplevel").decode().rstrip("\n")))
    try:
        found = _git("rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").decode().strip()
    except UserError as error:
        raise UserError(f"git knows no commit {commit}", error.hint) from None
    listed = _git("-C", str(root), "diff", "--name-only", "--no-renames", "-z", found, "--", "*.py").split(b"\0")
    before, after, missing = {}, {}, []
    for name in map(os.fsdecode, filter(None, listed)):
        path = root / name
        try:
            text = _git("-C", str(root), "show", f"{found}:{name}")
            now = path.read_bytes()
        except (UserError, OSError):
            missing.append(name)
            continue
        before[os.path.realpath(path)], after[os.path.realpath(path)] = text, now
    if not before:
        raise UserError(
            f"no Python file here differs from {commit}", "--before takes the commit to compare with: main, HEAD~3"
        )
    return Texts(commit, before, after, tuple(missing))


def _git(*arguments: str) -> bytes:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise UserError(
            "there is no git here", "two versions of a script: syncscope verify before.py after.py"
        ) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines() or ["git failed"]
        raise UserError(f"--before: {said[0]}", "start it inside of the repository, with one of its commits") from None
