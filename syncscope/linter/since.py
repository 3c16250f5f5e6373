"""The findings that were there at a revision: its files linted as they stood, in their project as it stood (`checkout.py`).

What was found is kept, and what its steps reached: a commit does not change.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec

from syncscope import files
from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.heat.reach import Reach
from syncscope.linter import engine
from syncscope.linter.baseline import VERSION, Baseline
from syncscope.linter.cache import digest, rules_stamp, stamp
from syncscope.linter.checkout import as_silent, ignored, moved, stood
from syncscope.linter.config import Config
from syncscope.linter.defined import Defined, defined
from syncscope.linter.files import SUFFIXES
from syncscope.linter.known import KnownFinding, line_of
from syncscope.linter.notebooks import source_of
from syncscope.linter.revision import Revision
from syncscope.linter.run import Files, Job, run
from syncscope.linter.source import SourceFile
from syncscope.model.finding import Finding

Entries = list[tuple[str, ...]]  # of each finding of a file: its function, its rule, what it is known by, and its line
MOST = 200  # commits of which it is kept what was found


@dataclass(frozen=True)
class Stood(Baseline):
    """How often each finding was there at a revision."""

    revision: Revision

    def functions_of(self, path: str) -> Collection[str]:
        """The functions that a file had there."""
        its = self.as_it_stood(path)
        return () if its is None else its.nodes

    def as_it_stood(self, path: str) -> Defined | None:
        """What a file defined there; None where it was not there."""
        return next((defined(name, text) for name, text in self.revision.texts([path])), None)

    def is_added(self, source: SourceFile, finding: Finding) -> bool:
        """Whether the line of a finding was not in the file of that name."""
        return finding.place.line in _added(self.revision, source)


@lru_cache(maxsize=4)  # asked for each finding of a file
def _added(revision: Revision, source: SourceFile) -> Collection[int]:
    """The lines that a file did not have at the revision; none of one that was not there."""
    with contextlib.suppress(SyntaxError):  # a notebook that was broken
        for name, text in revision.texts([revision.relative(source.path)]):
            was, now = source_of(name, text).code.split(b"\n"), source.code.split(b"\n")
            blocks = difflib.SequenceMatcher(None, was, now).get_matching_blocks()
            stayed = {line for _, begin, size in blocks for line in range(begin + 1, begin + size + 1)}
            return set(range(1, len(now) + 1)) - stayed
    return ()


class Then:
    """What was found at a revision, under the configuration of today, and what its steps reached. Its project is written out
    once, where what is kept does not say; it is removed at the end."""

    def __init__(self, revision: Revision, given: Files, linted: Iterable[str], processes: int, cached: bool) -> None:
        self.revision, self.given, self.processes = revision, given, processes
        now = set(map(revision.relative, linted))
        were = revision.changed & revision.listed.keys()
        self.names = sorted(name for name in were if name.endswith(SUFFIXES) or name in now)
        self._store = _Store(revision, cached)
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Then:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def _project(self) -> tuple[str, bool]:
        """Where it stands, and whether nothing is said of a part of it."""
        top = self._open.enter_context(stood(self.revision, self.names))
        return top, self._open.enter_context(as_silent(self.revision, self.names, top))

    def found(self, also: Iterable[str]) -> Stood:
        """What was found in the files that are otherwise now, or gone, and in these."""
        names = [*self.names, *map(self.revision.relative, also)]
        jobs = {name: self.given.config(os.path.join(self.revision.top, name)) for name in names}
        keys = {name: _key(name, config) for name, config in jobs.items()}
        kept = self._store.kept.found
        if todo := [name for name in names if keys[name] not in kept]:
            top, silent = self._project
            old = [Job(os.path.join(top, name), moved(jobs[name], self.revision.top, top), named=True) for name in todo]
            for name, one in zip(todo, run(old, 1 if silent else self.processes, cached=False), strict=True):
                kept[keys[name]] = _entries(one.checked.path, (*one.checked.findings, *one.checked.also))
            self._store.save()
        entries = (KnownFinding(name, *each) for name in names for each in kept[keys[name]])
        return Stood(os.path.join(self.revision.top, self.revision.said), VERSION, Counter(entries), {}, self.revision)

    def reach(self, folder: str) -> Reach | None:
        """What the steps of the project reached that a folder (an absolute path) was in, its files relative to the
        repository."""
        key, kept = _key(f"{folder} {self._ignored}", self.given.config(folder)), self._store.kept.reach
        if key not in kept:
            top, _ = self._project
            config = moved(self.given.config(folder), self.revision.top, top)
            there = os.path.normpath(os.path.join(top, os.path.relpath(folder, self.revision.top)))
            found = engine.project_of(config).steps.around(there)
            kept[key] = found and found.below(top)
            self._store.save()
        return kept[key]

    @cached_property
    def _ignored(self) -> str:
        """What of the project no commit holds, as it is now."""
        told = []
        for path in ignored(self.revision):
            with contextlib.suppress(OSError):
                told.append(f"{path} {os.stat(path).st_mtime_ns}")
        return digest("\n".join(told).encode("utf-8", "surrogatepass"))


def _entries(path: str, findings: Iterable[Finding]) -> Entries:
    every = list(findings)
    if not every:
        return []
    try:
        source = source_of(path, regular(path))
    except SyntaxError:  # which is what was found
        return [(each.function, each.rule, *each.known_by, "") for each in every]
    return [(each.function, each.rule, *each.known_by, line_of(source, each)) for each in every]


def of_other_repositories(revision: Revision, jobs: Iterable[Job]) -> tuple[str, ...]:
    """A line for each repository within this one: what changed in it, this one does not know.

    Raises:
        UserError: a file is in no part of the repository.
    """
    paths = [job.path for job in jobs]
    for path in paths:
        if not revision.holds(path):
            raise UserError(
                f"--since {revision.said}: {path} is not in the repository {revision.top}",
                "lint it in a command of its own",
            )
    return tuple(
        f"{name} is a repository of its own, and left out: `syncscope lint --since` a commit of it"
        for name in revision.apart(paths)
    )


def _key(name: str, config: Config) -> str:
    return digest(f"{name}\n{config}\n{rules_stamp(config.rules)}".encode("utf-8", "surrogatepass"))


class _Kept(msgspec.Struct):
    """What is known of a commit: by file and configuration what was found, and by folder what the steps around it reached."""

    found: dict[str, Entries] = msgspec.field(default_factory=dict)
    reach: dict[str, Reach | None] = msgspec.field(default_factory=dict)


class _Store:
    """What was found out of a commit before. A store that is damaged, or that another user may have written, is none."""

    def __init__(self, revision: Revision, cached: bool) -> None:
        name = digest(f"{revision.top} {revision.commit} {stamp()}".encode("utf-8", "surrogatepass"))
        self.path = files.cache_folder("since") / f"{name}.json" if cached else None
        self.kept = _Kept()
        if self.path is not None:
            with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
                self.kept = msgspec.json.decode(files.own(self.path), type=_Kept)

    def save(self) -> None:
        """Write it, and keep of the commits those of which somebody asked last."""
        if self.path is None:
            return
        with contextlib.suppress(OSError, UserError, UnicodeEncodeError):
            files.private(self.path.parent)
            files.write(self.path, msgspec.json.encode(self.kept))
            every = sorted(self.path.parent.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
            _forget(every[MOST:])


def _forget(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
