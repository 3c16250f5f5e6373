"""A baseline: the findings a project lives with, so that only new ones are reported.

A finding is known by its file, its rule and what its statement says (`Finding.fingerprint`), not by its line. One that is
gone from its file is looked for in the others: a file that was renamed brings its own along, as does a function that was moved.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from syncscope import files
from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.linter.earlier_identity import fingerprints
from syncscope.linter.source import SourceFile
from syncscope.model.finding import Finding
from syncscope.project.folders import folder_around, located

VERSION = 4
"""3 knows statements by their tokens, and no functions; 2 also findings of OpenCL C by the text of their lines; 1 knows all so,
and holds nothing of what waits in a step, too."""
HINT = "write one with --write-baseline"
CONFLICT = re.compile(rb"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)

Found = tuple[SourceFile, Finding]
Written = dict[str, list[dict[str, str]]]  # by file, relative to the baseline's folder


class KnownFinding(NamedTuple):
    """A known finding: its file, relative to the baseline's folder, its fingerprint, and the function around it, where that is
    known."""

    path: str
    fingerprint: str
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is `new`, what of a baseline is none of the findings (`left`), and what of it is in another file now, and which."""

    new: list[Found]
    left: Counter[KnownFinding]
    moved: list[tuple[KnownFinding, str]]


@dataclass(frozen=True)
class Baseline:
    """How often each finding is known."""

    path: str
    version: int
    known: Counter[KnownFinding]

    @property
    def holds_also(self) -> bool:
        """Whether it has what waits in a step, too."""
        return self.version > 1

    def is_of_elsewhere(self, root: str) -> bool:
        """Whether no file that it names is below this folder: then it is of another checkout, or was moved."""
        around, below = folder_around(self.path), os.path.join(located(root), "")
        paths = {os.path.normpath(os.path.join(around, entry.path)) for entry in self.known}
        return bool(paths) and not any(path.startswith(below) for path in paths)

    def recall(self, found: Sequence[Found], linted: Iterable[str]) -> Recalled:
        """Which of these findings it holds. A known one that is not in its file may be in another if its file is not there, or
        was `linted`, and then in a function of the same name."""
        here, around = {relative(path, self.path) for path in linted}, folder_around(self.path)
        is_there = cache(lambda path: os.path.exists(os.path.join(around, path)))
        left, moved = Counter(self.known), list[tuple[KnownFinding, str]]()
        todo = [(each, self._as_entries(*each)) for each in found]
        ways: tuple[tuple[Callable[[KnownFinding], bool], Callable[[KnownFinding], Hashable]], ...] = (
            (lambda _: True, lambda entry: entry),
            (lambda _: True, lambda entry: entry[:2]),
            (lambda entry: not is_there(entry.path), lambda entry: entry[1:]),
            (lambda entry: not is_there(entry.path), lambda entry: entry.fingerprint),
            (lambda entry: entry.path in here and entry.function is not None, lambda entry: entry[1:]),
        )
        for may_be, key in ways:
            if not todo or not left.total():
                break
            at_hand: dict[Hashable, list[KnownFinding]] = {}
            for entry in filter(may_be, left.elements()):
                at_hand.setdefault(key(entry), []).append(entry)
            rest = []
            for each, its in todo:
                same = next((known for one in its if (known := at_hand.get(key(one)))), None)
                if same is None:
                    rest.append((each, its))
                    continue
                entry = same.pop()
                left[entry] -= 1
                if entry.path != its[0].path:
                    moved.append((entry, its[0].path))
            todo = rest
        return Recalled([each for each, _ in todo], +left, moved)

    def _as_entries(self, source: SourceFile, finding: Finding) -> list[KnownFinding]:
        """What of a baseline of this version may be this finding."""
        path = relative(finding.place.path, self.path)
        return [KnownFinding(path, its, finding.function) for its in fingerprints(self.version, source, finding)]


def save(path: str, found: Iterable[Found], kept: Written) -> None:
    """Write these findings as a baseline, each with the text of its line, and what is `kept` of an earlier one.

    Raises:
        UserError: the file cannot be written.
    """
    known: Written = {name: [*entries] for name, entries in kept.items()}
    for source, finding in found:
        text = source.code[source.starts[finding.place.line - 1] :].split(b"\n", 1)[0].decode()
        entry = {"rule": finding.rule, "fingerprint": finding.fingerprint, "code": text.strip()}
        if finding.function:
            entry["function"] = finding.function
        known.setdefault(relative(finding.place.path, path), []).append(entry)
    _write(path, VERSION, known)


def not_looked_at(path: str, linted: Collection[str], named: Iterable[str]) -> Written:
    """What a baseline, if one is there, holds of files of which this run knows nothing; `linted` and `named` as in `missing`.

    Raises:
        UserError: it is of an earlier version, so that a new one cannot hold it.
    """
    try:
        told = _read(path)
        known = load(path)
    except UserError:  # there is none that could be kept
        return {}
    looked_at = {entry.path for entry in missing(path, known.known, linted, named)}
    kept = {name: entries for name, entries in told["findings"].items() if name not in looked_at}
    if kept and known.version != VERSION:
        others = f"{len(kept)} file{'s' if len(kept) > 1 else ''} that this run does not lint"
        raise UserError(
            f"{path} is of version {known.version}, and holds findings of {others}", "write it anew with all paths"
        )
    return kept


def prune(path: str, gone: Counter[KnownFinding], moved: Iterable[tuple[KnownFinding, str]] = ()) -> None:
    """Write it again without these, and those that are in another file now as that file's.

    Raises:
        UserError: it cannot be read or written.
    """
    told, left = _read(path), Counter(gone)
    now: dict[KnownFinding, list[str]] = {}
    for entry, other in moved:
        now.setdefault(entry, []).append(other)
    known: Written = {}
    for name, entries in told["findings"].items():
        for entry in entries:
            key = _entry(name, entry, told["version"])
            if left[key]:
                left[key] -= 1
            else:
                known.setdefault(now[key].pop() if now.get(key) else name, []).append(entry)
    _write(path, told["version"], known)


def _entry(name: str, entry: dict[str, str], version: int) -> KnownFinding:
    return KnownFinding(name, entry["fingerprint"], entry.get("function", "") if version > 3 else None)


def _write(path: str, version: int, known: Written) -> None:
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
        known = Counter(_entry(name, e, told["version"]) for name, entries in told["findings"].items() for e in entries)
    except (KeyError, TypeError, AttributeError) as error:
        raise _no_baseline(path, error) from None
    return Baseline(path, told["version"], known)


def _read(path: str) -> dict[str, Any]:
    raw = b""
    try:
        raw = regular(path)
        told = json.loads(raw)
        version = told["version"]
    except OSError as error:
        raise UserError(f"cannot read the baseline {path}: {error.strerror}", HINT) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if conflict := CONFLICT.search(raw):
            line = raw.count(b"\n", 0, conflict.start()) + 1
            hint = "take what both sides hold; then `syncscope lint --prune-baseline` takes out what is found no more"
            raise UserError(f"{path}:{line}: a merge conflict", hint) from None
        raise _no_baseline(path, error) from None
    if version not in range(1, VERSION + 1):
        raise UserError(f"{path}: a baseline of version {version}, this syncscope reads up to {VERSION}", HINT)
    return dict(told)


def _no_baseline(path: str, error: Exception) -> UserError:
    return UserError(f"{path}: not a baseline ({type(error).__name__}: {error})", HINT)


def missing(
    path: str, left: Counter[KnownFinding], linted: Collection[str], named: Iterable[str]
) -> Counter[KnownFinding]:
    """What of a baseline is not found any more: of files that were `linted`, or that would have been below the folders that
    were `named`, and are not there."""
    here = {relative(each, path) for each in linted}
    around = folder_around(path)
    folders = [os.path.join(located(each), "") for each in named if os.path.isdir(each)]

    def is_gone(name: str) -> bool:
        full = os.path.normpath(os.path.join(around, name))
        return name in here or (not os.path.exists(full) and full.startswith(tuple(folders)))

    gone = cache(is_gone)
    return Counter({entry: count for entry, count in left.items() if gone(entry.path)})


def relative(path: str, baseline: str) -> str:
    """A path as a baseline names it: relative to its folder, with slashes."""
    return os.path.relpath(located(path), folder_around(baseline)).replace(os.sep, "/")
