"""The findings that were there at a revision: its files linted as they stood, in their project as it stood.

Whether a line runs in every step hangs on the whole project: on what is imported, and on what the steps of other files call.
So the Python files of the commit are written into a folder of their own, below the names of the folders around them, beside
links to what git ignores, and what changed is linted there. It is removed afterwards. What was found is kept: a commit does
not change.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from syncscope import files
from syncscope.errors import UserError
from syncscope.linter.baseline import VERSION, Baseline
from syncscope.linter.cache import digest, rules_stamp, stamp
from syncscope.linter.config import Config
from syncscope.linter.defined import defined
from syncscope.linter.files import SUFFIXES
from syncscope.linter.known import KnownFinding
from syncscope.linter.revision import Revision
from syncscope.linter.run import Files, Job, run
from syncscope.project.folders import MARKS, NEVER, SILENT, roots
from syncscope.project.folders import files as python_files

Entries = list[tuple[str, ...]]  # of each finding of a file: its function, its rule, and what it is known by
MOST = 200  # commits of which it is kept what was found


@dataclass(frozen=True)
class Stood(Baseline):
    """How often each finding was there at a revision."""

    revision: Revision

    def functions_of(self, path: str) -> Collection[str]:
        """The functions that a file had there."""
        return next((defined(name, text).nodes for name, text in self.revision.texts([path])), ())


def known_at(revision: Revision, given: Files, paths: Iterable[str], processes: int, cached: bool) -> Stood:
    """What was found at the revision in the files that are otherwise now, or gone, under the configuration of today; `paths`
    are those that are linted now."""
    now = set(map(revision.relative, paths))
    were = revision.changed & revision.listed.keys()
    names = sorted(name for name in were if name.endswith(SUFFIXES) or name in now)
    jobs = {name: given.config(os.path.join(revision.top, name)) for name in names}
    store = _Store(revision) if cached else None
    keys = {name: _key(name, config) for name, config in jobs.items()}
    found = {name: store.entries[keys[name]] for name in names if store and keys[name] in store.entries}
    todo = [name for name in names if name not in found]
    if todo:
        with stood(revision, todo) as top, as_silent(revision, todo, top) as silent:
            old = [Job(os.path.join(top, name), moved(jobs[name], revision.top, top), named=True) for name in todo]
            for name, one in zip(todo, run(old, 1 if silent else processes, cached=False), strict=True):
                every = (*one.checked.findings, *one.checked.also)
                found[name] = [(each.function, each.rule, *each.known_by) for each in every]
        if store:
            store.add({keys[name]: found[name] for name in todo})
    entries = (KnownFinding(name, *each) for name in names for each in found[name])
    return Stood(os.path.join(revision.top, revision.said), VERSION, Counter(entries), {}, revision)


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


def moved(config: Config, top: str, there: str) -> Config:
    """The configuration with what it says of folders below `top` said of those below `there`."""

    def below(path: str) -> str:
        inner = os.path.relpath(path, top)
        return path if inner.startswith(os.pardir) else os.path.normpath(os.path.join(there, inner))

    return replace(config, root=below(config.root), src=tuple(map(below, config.src)), baseline="")


@contextlib.contextmanager
def stood(revision: Revision, also: Iterable[str]) -> Iterator[str]:
    """The Python files of a commit, and `also` these, in a folder that is removed afterwards; as it is called."""
    base = tempfile.mkdtemp(prefix="syncscope-since-")
    try:
        # what folders are called says what is in them: examples, tests
        top = os.path.join(os.path.realpath(base), *Path(revision.top).parts[1:])
        wanted = {name for name in revision.listed if name.endswith(".py") or name.rpartition("/")[2] in MARKS}
        for name, text in revision.texts(sorted(wanted.union(also))):
            path = os.path.join(top, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(text)
        os.makedirs(os.path.join(top, ".git"), exist_ok=True)  # here the project begins
        for path in _ignored(revision):
            _stand_in(path, os.path.join(top, os.path.relpath(path, revision.top)))
        yield top
    finally:
        shutil.rmtree(base, ignore_errors=True)


@contextlib.contextmanager
def as_silent(revision: Revision, names: Iterable[str], there: str) -> Iterator[bool]:
    """Have nothing said of what stands for a project that is too large now, its data included, which no commit holds; whether
    there is one, which processes of our own would not know."""
    folders = {os.path.dirname(os.path.join(revision.top, name)) for name in names}
    every = {root for folder in folders for root in roots(Path(folder))}
    large = {os.path.join(there, root.relative_to(revision.top)) for root in every if not python_files(root)}
    large = {os.path.normpath(root) for root in large}
    SILENT.update(large)
    try:
        yield bool(large)
    finally:
        SILENT.difference_update(large)


def _ignored(revision: Revision) -> Iterator[str]:
    """Python that git ignores and that the project has all the same: what it trains is trained with it, then as now."""
    for path in revision.ignored():
        parts = os.path.relpath(path, revision.top).split(os.sep)
        if any(part in NEVER or part.startswith(".") for part in parts):
            continue
        if os.path.isdir(path):
            yield from python_files(Path(path))
        elif path.endswith(".py"):
            yield path


def _stand_in(path: str, there: str) -> None:
    with contextlib.suppress(OSError):  # it is gone, or is no file
        os.makedirs(os.path.dirname(there), exist_ok=True)
        try:
            os.link(path, there)
        except OSError:  # another disk
            shutil.copyfile(path, there)


def _key(name: str, config: Config) -> str:
    return digest(f"{name}\n{config}\n{rules_stamp(config.rules)}".encode("utf-8", "surrogatepass"))


class _Store:
    """What was found at a commit before, by file and configuration. A store that is damaged, or that another user may have
    written, is none."""

    def __init__(self, revision: Revision) -> None:
        name = digest(f"{revision.top} {revision.commit} {stamp()}".encode("utf-8", "surrogatepass"))
        self.path = files.cache_folder("since") / f"{name}.json"
        self.entries: dict[str, Entries] = {}
        with contextlib.suppress(OSError, ValueError, TypeError):
            told = json.loads(files.own(self.path))
            self.entries = {key: [tuple(map(str, each)) for each in found] for key, found in told.items()}

    def add(self, found: Mapping[str, Entries]) -> None:
        """Keep more, and of the commits those of which somebody asked last."""
        with contextlib.suppress(OSError, UserError):
            files.private(self.path.parent)
            files.write(self.path, json.dumps(self.entries | dict(found)).encode())
            every = sorted(self.path.parent.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
            _forget(every[MOST:])


def _forget(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
