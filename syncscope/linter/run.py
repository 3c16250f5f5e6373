"""Many files: found, looked up in the cache, spread over processes, put in order."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.linter import baseline, engine
from syncscope.linter.baseline import Baseline
from syncscope.linter.checked import Checked
from syncscope.linter.config import Config, Configs, overlay
from syncscope.linter.files import find, is_code
from syncscope.linter.fixing import Mended, mend
from syncscope.linter.joined_in_pass import apart_from, left_out
from syncscope.linter.source import SourceFile, any_code
from syncscope.model.finding import Finding, Safety
from syncscope.project import folders
from syncscope.project.folders import folder_around, located

if TYPE_CHECKING:
    from syncscope.linter.cache import Cache

STRANGE = "neither Python nor a notebook nor OpenCL C"
PACKAGE = Path(__file__).parents[1]
FEW = 3  # files of which it is told what they import
WORTH_A_POOL = 150_000  # bytes of Python below which starting a process costs more than it saves


@dataclass(frozen=True, slots=True)
class Job:
    """A file to look at, under which configuration, and which fixes to make."""

    path: str
    config: Config
    safeties: frozenset[Safety] = frozenset()
    baseline: str = ""  # what it holds is not mended
    since: Baseline | None = None  # nor is what was there at a revision
    named: bool = False  # by itself: it has to be Python, whatever it speaks of


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a job: the findings (after fixing), and the mended bytes if anything was to be written."""

    checked: Checked
    mended: Mended | None = None
    before: bytes = b""


@dataclass
class Files:
    """The files of one command line, and what could not be read."""

    paths: Sequence[str]
    said: dict[str, object] = field(default_factory=dict)
    configs: Configs = field(default_factory=Configs)
    problems: list[str] = field(default_factory=list)
    # files that were named, and are called like nothing that is linted
    strange: list[str] = field(default_factory=list)
    linked: list[str] = field(
        default_factory=list
    )  # links to folders that are not followed, and hold what is not linted
    must_hold_some: bool = False  # somebody named them, and would take silence for there being no findings

    def config(self, path: str) -> Config:
        """The configuration of a file or folder, with what the command line said over it."""
        return overlay(self.configs.of(path), **self.said)

    @property
    def first(self) -> Config:
        """The configuration of the first path: what it says of the whole run counts."""
        return self.config(self.paths[0] if self.paths else os.curdir)

    @property
    def narrowed(self) -> bool:
        """Whether the command line asks for less than the configuration does: then what is not found may be there."""
        return any(self.said.get(name) for name in ("select", "ignore", "min_confidence"))

    def jobs(self, safeties: Iterable[Safety]) -> list[Job]:
        """What there is to do.

        Raises:
            UserError: nothing that was named is anything that is linted.
        """
        allowed = frozenset(safeties)
        merged: dict[str, Config] = {}

        def config(folder: str) -> Config:
            if folder not in merged:
                merged[folder] = overlay(self.configs.of_folder(folder), **self.said)
            return merged[folder]

        def unreadable(path: str, why: str) -> None:
            self.problems.append(f"{path}: {why}")

        linked: list[str] = []
        every = list(find(self.paths, config, unreadable, linked.append))
        self.linked = _elsewhere(linked, self.paths)
        strange = {path for path in every if not is_code(path)}
        self.strange, found = sorted(strange), [path for path in every if path not in strange]
        if self.strange and not found:
            raise UserError(f"{self.strange[0]} is {STRANGE}", "name files or folders of these")
        if self.must_hold_some and not every and not self.problems and not self.first.force_exclude:
            raise UserError(
                f"no files to lint in {', '.join(self.paths)}",
                "is it the right folder? What .gitignore or `exclude` leaves out is not looked for in it",
            )
        known, named = self.first.baseline, set(self.paths)
        return [Job(path, config(folder_around(path)), allowed, known, named=path in named) for path in found]


def _elsewhere(linked: Sequence[str], named: Iterable[str]) -> list[str]:
    """The links that lead to what lies below no folder that was named."""
    folders = {os.path.realpath(path) for path in named} if linked else set()
    leads = {path: os.path.realpath(path) for path in linked}
    return [path for path in linked if folders.isdisjoint([leads[path], *map(str, Path(leads[path]).parents)])]


@any_code()
def run(
    jobs: Sequence[Job], processes: int = 1, cached: bool = True, tick: Callable[[int], None] = lambda _: None
) -> list[Done]:
    """Every job done, in order. `tick` is told how many are, as they are.

    Ctrl-C and errors end all processes; nothing is written here.
    """
    folders.forget()
    store: Cache | None = None
    if cached and jobs and not any(job.safeties for job in jobs):
        from syncscope.linter.cache import Cache

        store = Cache(jobs[0].config.root, engine.project_of(jobs[0].config).steps)
    done: dict[str, Done] = {}
    todo: list[_Weighed] = []
    for job in jobs:
        one = _looked_up(job, store)
        if isinstance(one, Done):
            done[job.path] = one
        else:
            todo.append(one)
    tick(len(done))
    for answers in _worked(todo, processes, partial(work, noted=store is not None or len(jobs) <= FEW)):
        done |= {answer.checked.path: answer for answer in answers}
        tick(len(done))
    if store is not None:
        for each in todo:
            checked = done[each.job.path].checked
            if not (checked.problem or checked.failed):
                store.put(each.job.path, each.key, checked)
        store.save()
    return [done[job.path] for job in jobs]


class _Weighed(NamedTuple):
    """A job that is to be done, the bytes of its file, and the key under which a cache keeps its answer."""

    job: Job
    size: int
    key: str = ""


def _looked_up(job: Job, store: Cache | None) -> Done | _Weighed:
    """What came of a job where that is known, else what there is to do."""
    try:
        if store is None:  # who looks at it reads it
            return _Weighed(job, os.stat(job.path).st_size)
        raw = regular(job.path)
    except OSError as error:
        return Done(Checked(job.path, problem=f"{job.path}: {error.strerror}"))
    if engine.is_silent(job.path, raw, job.config, job.named):
        return Done(Checked(job.path, unread=True))
    key = store.key(job.path, raw, job.config, job.named)
    answer = store.get(job.path, key)
    return Done(answer) if answer else _Weighed(job, len(raw), key)


def _worked(todo: Sequence[_Weighed], processes: int, one: Callable[[Job], Done]) -> Iterator[Sequence[Done]]:
    """The answers as they come: of several processes, where starting them is worth it, else one by one."""
    heavy = sum(each.size for each in todo) > WORTH_A_POOL
    if processes > 1 and len(todo) > 1 and heavy:
        from syncscope.linter.pool import chunks, spread

        for each in todo:  # once, before the processes are forked
            engine.project_of(each.job.config).steps.around(os.path.dirname(located(each.job.path)))
        split = [[each.job for each in chunk] for chunk in chunks(todo, lambda each: each.size, processes)]
        yield from spread(one, split, processes, crashed)
        return
    saving: AbstractContextManager[None] = nullcontext()
    if heavy:
        from syncscope.linter.pool import frugal

        saving = frugal()
    with saving:
        for each in todo:
            yield [one(each.job)]
        if heavy:  # what is told needs the texts of files, and no trees
            for project in {engine.project_of(each.job.config) for each in todo}:
                project.forget()


def work(job: Job, noted: bool = False) -> Done:
    """One job; `noted`, with what the answer relied on."""
    try:
        if not job.safeties:
            checked = engine.check_file(job.path, job.config, job.named)
            relied = engine.project_of(job.config).relied(job.path) if noted else ()
            return Done(replace(checked, relied=relied))
        raw = regular(job.path)
        return mended(job, raw)
    except OSError as error:
        return Done(Checked(job.path, problem=f"{job.path}: {error.strerror}"))
    except UserError:
        raise
    except Exception as bug:  # the others are linted all the same
        return Done(
            Checked(
                job.path,
                problem=f"{job.path}: not linted, by a bug of syncscope: {where(bug)}; please report it with the file",
            )
        )


def mended(job: Job, raw: bytes) -> Done:
    """The fixes of a file with this content, and what is still found in it then."""
    first = engine.check(job.path, raw, job.config, job.named)
    if not any(f.fix and f.fix.tier in job.safeties for f in first.findings):
        return Done(first)
    result = mend(job.path, raw, lambda source: to_mend(source, job), job.safeties)
    return Done(engine.check(job.path, result.raw, job.config, job.named), result, raw)


def to_mend(source: SourceFile, job: Job) -> Sequence[Finding]:
    """The findings of a file that neither its baseline holds nor the revision that it is compared with."""
    found = engine.check_source(source, job.config).findings
    for known in (baseline.load(job.baseline) if job.baseline else None, job.since):
        if known is not None:
            new = [finding for _, finding in known.recall([(source, finding) for finding in found]).new]
            found = tuple(apart_from(left_out(found, new), new))
    return found


def where(bug: Exception) -> str:
    """What was raised, and the innermost place in our code that was on the way."""
    frames = traceback.extract_tb(bug.__traceback__)
    ours = [frame for frame in frames if PACKAGE in Path(frame.filename).parents] or frames
    said = traceback.format_exception_only(bug)[-1].strip()
    return f"{said} (in {ours[-1].name}, {os.path.relpath(ours[-1].filename, PACKAGE.parent)}:{ours[-1].lineno})"


def crashed(job: Job) -> Done:
    """What is said of a file whose worker died: the interpreter itself crashed, or the system killed it."""
    return Done(Checked(job.path, problem=f"{job.path}: the process that linted it died; please report this file"))
