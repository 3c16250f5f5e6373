"""What waits in the files that a file imports: who lints `train.py` alone is told that its `losses.py` waits, too."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from syncscope.linter.files import excluded
from syncscope.linter.run import FEW, Done, Files, Job, run
from syncscope.linter.session import plural
from syncscope.project.folders import located

MOST, LARGEST = 20, 400_000  # imported files that are looked at, and their bytes


def waiting_beside(files: Files, done: Sequence[Done], cached: bool) -> str:
    """What is said of the files that these import of their project, and that were not named; "" where there is nothing."""
    named = [one.checked.path for one in done]
    if not named or len(named) > FEW or any(map(os.path.isdir, files.paths)):
        return ""
    paths = _imported(files, done)
    who = named[0] if len(named) == 1 else "what was named"
    if len(paths) > MOST or sum(map(os.path.getsize, paths)) > LARGEST:
        around = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in (*named, *paths)])
        folder = shlex.quote(os.path.relpath(around))
        return f"{who} imports {len(paths)} files of its project: `syncscope lint {folder}` looks at them, too"
    looked_at = run([Job(path, files.config(path)) for path in paths], cached=cached)
    waits = {one.checked.path: len(one.checked.findings) for one in looked_at if one.checked.findings}
    if not waits:
        return ""
    number, more = sum(waits.values()), shlex.join((*named, *waits))
    has, them = (f"{next(iter(waits))} has", "it") if len(waits) == 1 else (f"{len(waits)} files have", "them")
    return f"{has} {plural(number, 'finding')}, and {who} imports {them}: `syncscope lint {more}`"


def _imported(files: Files, done: Sequence[Done]) -> list[str]:
    """The files behind what was said of these, by the paths from here, without those that the configuration leaves out."""
    named = {os.path.realpath(one.checked.path) for one in done}
    found = {path for one in done for path, _ in one.checked.relied if "\0" not in path}
    here = os.getcwd()
    paths = (os.path.relpath(path, here) if not _is_far(path, here) else path for path in sorted(found))
    return [p for p in paths if os.path.realpath(p) not in named and not excluded(located(p), False, files.config(p))]


def _is_far(path: str, here: str) -> bool:
    """Whether a path is shorter as it is than from here."""
    return os.path.relpath(path, here).startswith(os.path.join(os.pardir, os.pardir))
