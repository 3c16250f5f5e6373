"""A baseline: the findings a project lives with, so that only new ones are reported.

A finding is known by its file, its function and what waits there, not by its line (`linter/known.py`). A file that was renamed
brings its own along, as does a function that was moved.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from syncscope import files
from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.linter.defined import Defined, defined
from syncscope.linter.earlier_identity import fingerprints
from syncscope.linter.known import Found, KnownFinding, Recalled, line_of, recall
from syncscope.linter.source import SourceFile
from syncscope.model.finding import Finding
from syncscope.project.folders import folder_around, located

VERSION = 5
"""4 knows what a statement says, and the function around it; 3 statements by their tokens, and no functions; 2 also findings of
OpenCL C by the text of their lines; 1 knows all so, and holds nothing of what waits in a step, too."""
HINT = "write one with --write-baseline"
NOTHING = "-"  # where a hash would stand
CONFLICT = re.compile(rb"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)

Entries = list[dict[str, str]]
Bodies = dict[str, dict[str, str]]  # by file and function: `Identity.body`


@dataclass(frozen=True)
class BaselineFile:
    """What a baseline says of findings, by file relative to its folder, and the functions around them."""

    version: int
    findings: dict[str, Entries]
    functions: Bodies

    def known(self, name: str, entry: dict[str, str]) -> KnownFinding:
        """An entry of a file as a known finding."""
        if self.version < VERSION:
            around = entry.get("function", "") if self.version > 3 else None
            return KnownFinding(name, around, "", entry["fingerprint"], code=entry.get("code", ""))
        function = entry.get("function", "")
        body = self.functions.get(name, {}).get(function, "")
        wait, text, value, *leaves = [*("" if word == NOTHING else word for word in entry["wait"].split()), "", ""]
        leaves_some = " ".join(leaves).rstrip()
        return KnownFinding(name, function, entry["rule"], wait, text, value, body, leaves_some, entry.get("code", ""))

    def hold(self, entry: dict[str, str], known: KnownFinding) -> None:
        """Add an entry that says what is known."""
        self.findings.setdefault(known.path, []).append(entry)
        if known.function is not None:
            self.functions.setdefault(known.path, {})[known.function] = known.body


@dataclass(frozen=True)
class Baseline:
    """How often each finding is known."""

    path: str
    version: int
    known: Counter[KnownFinding]
    functions: Mapping[str, Collection[str]]

    @property
    def holds_also(self) -> bool:
        """Whether it has what waits in a step, too."""
        return self.version > 1

    def is_of_elsewhere(self, root: str) -> bool:
        """Whether no file that it names is below this folder: then it is of another checkout, or was moved."""
        around, below = folder_around(self.path), os.path.join(located(root), "")
        paths = {os.path.normpath(os.path.join(around, entry.path)) for entry in self.known}
        return bool(paths) and not any(path.startswith(below) for path in paths)

    def recall(self, found: Sequence[Found]) -> Recalled:
        """Which of these findings it holds."""
        return recall(self, [(one, self._as_known(*one)) for one in found])

    @property
    def folder(self) -> str:
        """The folder that its paths are relative to."""
        return folder_around(self.path)

    def functions_of(self, path: str) -> Collection[str]:
        """The functions that a file had, as far as it is known."""
        return self.functions.get(path, ())

    def as_it_stood(self, path: str) -> Defined | None:
        """What a file defined: of no file the text is kept."""
        return None

    def is_added(self, source: SourceFile, finding: Finding) -> bool:
        """Whether the line of a finding was added: nobody knows."""
        return False

    def _as_known(self, source: SourceFile, finding: Finding) -> list[KnownFinding]:
        """What of a baseline of this version may be this finding."""
        if self.version == VERSION:
            return [as_known(source, finding, self.path)]
        path, function = relative(finding.place.path, self.path), finding.function if self.version > 3 else None
        code = line_of(source, finding)
        every = fingerprints(self.version, source, finding)
        return [KnownFinding(path, function, "", its, code=code) for its in every]


def as_known(source: SourceFile, finding: Finding, path: str) -> KnownFinding:
    """What a baseline at this path knows a finding as."""
    name, code = relative(finding.place.path, path), line_of(source, finding)
    return KnownFinding(name, finding.function, finding.rule, *finding.known_by, code)


def save(path: str, found: Iterable[Found], kept: BaselineFile) -> None:
    """Write these findings as a baseline, each with the text of its line, and what is `kept` of an earlier one.

    Raises:
        UserError: the file cannot be written.
    """
    for source, finding in found:
        if (name := relative(source.path, path)) not in kept.functions:
            kept.functions[name] = dict.fromkeys(defined(source.path, source.raw).nodes, "")
        kept.hold(_entry(source, finding), as_known(source, finding, path))
    _write(path, kept)


def _entry(source: SourceFile, finding: Finding) -> dict[str, str]:
    said = {"rule": finding.rule, "code": line_of(source, finding), "function": finding.function}
    its = finding.known_by
    hashes = [word or NOTHING for word in (its.wait, its.text, its.value)]
    said["wait"] = " ".join([*hashes, *its.leaves.split()]).rstrip(f" {NOTHING}")
    return {name: word for name, word in said.items() if word}


def not_looked_at(path: str, linted: Collection[str], named: Iterable[str]) -> BaselineFile:
    """What a baseline, if one is there, holds of files of which this run knows nothing; `linted` and `named` as in `missing`.

    Raises:
        UserError: it is of an earlier version, so that a new one cannot hold it.
    """
    try:
        told = _read(path)
        known = load(path)
    except UserError:  # there is none that could be kept
        return BaselineFile(VERSION, {}, {})
    looked_at = {entry.path for entry in missing(path, known.known, linted, named)}
    kept = {name: entries for name, entries in told.findings.items() if name not in looked_at}
    if kept and known.version != VERSION:
        others = f"{len(kept)} file{'s' if len(kept) > 1 else ''} that this run does not lint"
        raise UserError(
            f"{path} is of version {known.version}, and holds findings of {others}", "write it anew with all paths"
        )
    return BaselineFile(VERSION, kept, {name: told.functions[name] for name in kept if name in told.functions})


def prune(path: str, gone: Counter[KnownFinding], moved: Iterable[tuple[KnownFinding, KnownFinding, Found]]) -> None:
    """Write it again without these, and those that stand elsewhere now as what they are there.

    Raises:
        UserError: it cannot be read or written.
    """
    told, left = _read(path), Counter(gone)
    now: dict[KnownFinding, list[tuple[KnownFinding, Found]]] = {}
    for was, known, each in moved:
        now.setdefault(was, []).append((known, each))
    new = BaselineFile(told.version, {}, {name: dict(its) for name, its in told.functions.items()})
    for name, entries in told.findings.items():
        for entry in entries:
            known = told.known(name, entry)
            if left[known]:
                left[known] -= 1
            elif not now.get(known):
                new.hold(entry, known)
            else:
                there, (source, finding) = now[known].pop()
                function = {"function": finding.function} if finding.function else {}
                new.hold(entry | function if known.is_earlier else _entry(source, finding), there)
    _write(path, new)


def _write(path: str, known: BaselineFile) -> None:
    for entries in known.findings.values():
        entries.sort(key=lambda e: (e["rule"], e.get("function", ""), e["code"], *sorted(e.values())))
    told: dict[str, Any] = {"version": known.version, "findings": dict(sorted(known.findings.items()))}
    if known.version == VERSION:
        functions = sorted((name, its) for name, its in known.functions.items() if name in known.findings)
        told["functions"] = {name: dict(sorted(its.items())) for name, its in functions}
    files.write(path, _in_lines(told).encode())


def _in_lines(told: Mapping[str, Any]) -> str:
    """As JSON with a line for each finding, and for each function with one; names of the other functions share a line, so that
    what is edited, merged or mended is seen alone in a diff."""
    of_files = [f" {_json(name)}: [\n{_joined(map(_json, its), '  ')}\n ]" for name, its in told["findings"].items()]
    parts = [f'"version": {told["version"]}', f'"findings": {{\n{_joined(of_files)}\n}}']
    if "functions" in told:
        named = [f" {_json(name)}: {{\n{_joined(_bodies(its), '  ')}\n }}" for name, its in told["functions"].items()]
        parts.append(f'"functions": {{\n{_joined(named)}\n}}')
    return "{" + ",\n".join(parts) + "}\n"


def _bodies(functions: Mapping[str, str]) -> list[str]:
    """Names and bodies, those that have none in one line."""
    lines = [f"{_json(name)}: {_json(body)}" for name, body in functions.items() if body]
    rest = ", ".join(f'{_json(name)}: ""' for name, body in functions.items() if not body)
    return [rest, *lines] if rest else lines


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _joined(lines: Iterable[str], indent: str = "") -> str:
    return ",\n".join(f"{indent}{line}" for line in lines)


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
        known = Counter(told.known(name, entry) for name, entries in told.findings.items() for entry in entries)
    except (KeyError, TypeError, AttributeError) as error:
        raise _no_baseline(path, error) from None
    return Baseline(path, told.version, known, told.functions)


def _read(path: str) -> BaselineFile:
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
    try:
        return BaselineFile(version, dict(told["findings"]), dict(told.get("functions", {})))
    except (KeyError, TypeError, ValueError) as error:
        raise _no_baseline(path, error) from None


def _no_baseline(path: str, error: Exception) -> UserError:
    why = f"{type(error).__name__}: {error}"
    if isinstance(error, KeyError):
        why = f"it has no {error.args[0]!r}"
    elif isinstance(error, (TypeError, AttributeError)):
        why = "it is JSON of another shape"
    return UserError(f"{path}: not a baseline ({why})", HINT)


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
