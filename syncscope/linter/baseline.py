"""A baseline: the findings a project lives with, so that only new ones are reported.

A finding is known by its file, its rule and the text of its statement (`Finding.fingerprint`), not by its line. A known finding
whose file is gone is looked for in all others: a file that was renamed brings its own along.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from syncscope import files
from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.linter.identity import of_lines
from syncscope.linter.source import SourceFile
from syncscope.model.finding import Finding
from syncscope.opencl_c import rules as kernel_rules
from syncscope.project.folders import folder_around, located

VERSION = 3
"""2 knows findings of OpenCL C by the text of their lines; 1 knows all so, and holds nothing of what waits in a step, too."""
HINT = "write one with --write-baseline"

Found = tuple[SourceFile, Finding]
Key = tuple[str, str]  # a file, relative to the baseline's folder, and a fingerprint


@dataclass(frozen=True)
class Baseline:
    """How often each finding is known."""

    path: str
    version: int
    known: Counter[Key]

    @property
    def holds_also(self) -> bool:
        """Whether it has what waits in a step, too."""
        return self.version > 1

    def new(self, found: Sequence[Found]) -> tuple[list[Found], Counter[Key]]:
        """Those of these that it does not hold, and what of it is none of these."""
        left = Counter(self.known)
        new = []
        for source, finding in found:
            key = (relative(finding.place.path, self.path), self._fingerprint(source, finding))
            if left[key]:
                left[key] -= 1
            else:
                new.append((source, finding))
        homeless: dict[str, list[Key]] = {}
        folder = folder_around(self.path)
        for key in left.elements():
            if not os.path.exists(os.path.join(folder, key[0])):
                homeless.setdefault(key[1], []).append(key)
        rest = []
        for source, finding in new:
            if moved := homeless.get(self._fingerprint(source, finding)):
                left[moved.pop()] -= 1
            else:
                rest.append((source, finding))
        return rest, +left

    def _fingerprint(self, source: SourceFile, finding: Finding) -> str:
        if self.version == 1 or (self.version == 2 and finding.rule in kernel_rules.builtin()):
            return of_lines(finding.rule, source, finding.place.line, finding.end_line)
        return finding.fingerprint


def save(path: str, found: Iterable[Found]) -> None:
    """Write these findings as a baseline, each with the text of its line.

    Raises:
        UserError: the file cannot be written.
    """
    known: dict[str, list[dict[str, str]]] = {}
    for source, finding in found:
        text = source.code[source.starts[finding.place.line - 1] :].split(b"\n", 1)[0].decode()
        entry = {"rule": finding.rule, "fingerprint": finding.fingerprint, "code": text.strip()}
        known.setdefault(relative(finding.place.path, path), []).append(entry)
    _write(path, VERSION, known)


def prune(path: str, gone: Counter[Key]) -> None:
    """Write it again without these.

    Raises:
        UserError: it cannot be read or written.
    """
    told, left = _read(path), Counter(gone)
    known: dict[str, list[dict[str, str]]] = {}
    for name, entries in told["findings"].items():
        for entry in entries:
            key = (name, entry["fingerprint"])
            if left[key]:
                left[key] -= 1
            else:
                known.setdefault(name, []).append(entry)
    _write(path, told["version"], known)


def _write(path: str, version: int, known: dict[str, list[dict[str, str]]]) -> None:
    for entries in known.values():
        entries.sort(key=lambda e: (e["rule"], e["fingerprint"], e["code"]))
    told = {"version": version, "findings": dict(sorted(known.items()))}
    files.write(path, (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())


def load(path: str) -> Baseline:
    """The baseline that is written there.

    Raises:
        UserError: no baseline, or none that can be read.
    """
    try:
        at = os.stat(path)
    except OSError as error:
        raise UserError(f"cannot read the baseline {path}: {error.strerror}", HINT) from None
    return _load(path, at.st_mtime_ns, at.st_size)


@lru_cache(maxsize=4)  # each file that is mended asks for it
def _load(path: str, _: int, __: int) -> Baseline:
    told = _read(path)
    try:
        known = Counter((name, e["fingerprint"]) for name, entries in told["findings"].items() for e in entries)
    except (KeyError, TypeError, AttributeError) as error:
        raise _no_baseline(path, error) from None
    return Baseline(path, told["version"], known)


def _read(path: str) -> dict[str, Any]:
    try:
        told = json.loads(regular(path))
        version = told["version"]
    except OSError as error:
        raise UserError(f"cannot read the baseline {path}: {error.strerror}", HINT) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _no_baseline(path, error) from None
    if version not in range(1, VERSION + 1):
        raise UserError(f"{path}: a baseline of version {version}, this syncscope reads up to {VERSION}", HINT)
    return dict(told)


def _no_baseline(path: str, error: Exception) -> UserError:
    return UserError(f"{path}: not a baseline ({type(error).__name__}: {error})", HINT)


def missing(path: str, left: Counter[Key], linted: Collection[str], named: Iterable[str]) -> Counter[Key]:
    """What of a baseline is not found any more: of files that were `linted`, or that would have been below the folders that
    were `named`, and are not there."""
    here = {relative(each, path) for each in linted}
    around = folder_around(path)
    folders = [os.path.join(located(each), "") for each in named if os.path.isdir(each)]

    def is_gone(name: str) -> bool:
        full = os.path.normpath(os.path.join(around, name))
        return name in here or (not os.path.exists(full) and full.startswith(tuple(folders)))

    return Counter({key: count for key, count in left.items() if is_gone(key[0])})


def relative(path: str, baseline: str) -> str:
    """A path as a baseline names it: relative to its folder, with slashes."""
    return os.path.relpath(located(path), folder_around(baseline)).replace(os.sep, "/")
