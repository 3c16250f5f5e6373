"""Which folders of rules may run: rules are code, and a repository that is linted may be a stranger's.

A folder runs as it was when the user said so, by `syncscope trust`: the answer is kept with a hash of every file in it, among
the user's own settings and never in the repository. What the command line names itself needs no answer.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from syncscope import files
from syncscope.errors import UserError

LARGEST = 16 << 20  # bytes of a file beside rules


def store() -> Path:
    """The file that holds the answers: folder to hash."""
    return files.settings_folder() / "trusted-rules.json"


def trusted() -> dict[str, str]:
    """The folders that the user trusts, each with the hash of what it held then."""
    try:
        known = json.loads(files.own(store()))
    except (OSError, ValueError):
        return {}
    return {path: said for path, said in known.items() if isinstance(said, str)} if isinstance(known, dict) else {}


def trust(folder: str) -> list[str]:
    """Trust the folder as it is now; the names of the modules that will run.

    Raises:
        UserError: it cannot be read, or the answer cannot be kept.
    """
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: no such folder of rules", "name the folder that holds your rules' .py files")
    try:
        said = digest(folder)
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}", "a folder of rules holds rules only") from None
    _keep(trusted() | {os.path.realpath(folder): said})
    return sorted(path.name for path in Path(folder).glob("[!_]*.py"))


def forget(folder: str) -> bool:
    """Trust it no more; whether it was trusted."""
    known = trusted()
    was = known.pop(os.path.realpath(folder), None)
    _keep(known)
    return was is not None


def is_trusted(folder: str) -> bool:
    """Whether the user trusts this folder, and with what it now holds."""
    said = trusted().get(os.path.realpath(folder))
    try:
        return said is not None and said == digest(folder)
    except OSError:
        return False


def refused(folders: Iterable[str]) -> Iterator[str]:
    """A line for each folder that is not loaded: what was not, and how to allow it."""
    for folder in folders:
        known = os.path.realpath(folder) in trusted()
        why = "has changed since you trusted it" if known else "is code that you have not said you trust"
        here = os.path.relpath(folder)
        name = folder if here.startswith(os.pardir) else here
        yield f"the rules in {name} were not loaded: it {why}; read it, then `syncscope trust {name}` (CI: --rules {name})"


def digest(folder: str) -> str:
    """A hash of all files in the folder and below, by name; of a file that is linked to, too.

    Raises:
        OSError: something in it is no regular file, too large for one that lies beside rules, or a link to a folder, of which
            nobody would hear when what lies behind it changes.
    """
    total = hashlib.blake2b(digest_size=32)
    for at, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if name != "__pycache__")  # from which nothing is loaded
        for name in below:
            if os.path.islink(path := os.path.join(at, name)):
                raise OSError(errno.ELOOP, "a link to a folder, and what lies behind it may change unseen", path)
        for name in sorted(names):
            path = os.path.join(at, name)
            content = hashlib.blake2b(files.regular(path, LARGEST)).hexdigest()
            total.update(f"{os.path.relpath(path, folder)!r} {content}\n".encode())
    return total.hexdigest()


def _keep(known: dict[str, str]) -> None:
    files.private(store().parent)
    files.write(store(), json.dumps(known, indent=2).encode())
