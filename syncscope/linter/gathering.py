"""The findings of one command, from its files, from what another program gives, or from texts in no file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from syncscope.linter import engine, own_rules
from syncscope.linter.config import Config, nowhere
from syncscope.linter.files import excluded
from syncscope.linter.known_before import SinceRevision
from syncscope.linter.named_rules import check_names, check_some
from syncscope.linter.rulesets import broken
from syncscope.linter.run import STRANGE, Done, Files, Job, mended, run
from syncscope.linter.session import Linted
from syncscope.linter.trust import refused
from syncscope.model.finding import Safety
from syncscope.project.folders import located

if TYPE_CHECKING:
    from syncscope.linter.revision import Revision


def gather(
    files: Files,
    safeties: Sequence[Safety] = (),
    processes: int = 1,
    *,
    cached: bool = True,
    tick: Callable[[int, int], None] = lambda _, __: None,
    revision: Revision | None = None,
) -> Linted:
    """Lint the files of a command; of a revision, those that are otherwise now, for what was not found in them then."""
    begin = perf_counter()
    jobs = files.jobs(safeties)
    configs = dict.fromkeys([files.first, *(job.config for job in jobs)])
    check_names(configs)
    check_some({job.config for job in jobs})
    apart: tuple[str, ...] = ()
    if revision is None:
        done = run(jobs, processes, cached, lambda n: tick(n, len(jobs)))
        linted = Linted(files, done, [*files.problems, *broken_rules(configs), *problems(done)])
    else:
        from syncscope.linter.brought import brought_since
        from syncscope.linter.since import of_other_repositories

        apart = of_other_repositories(revision, jobs)
        its = brought_since(revision, files, jobs, processes, cached, tick)
        told = [*files.problems, *broken_rules(configs), *problems(its.done)]
        linted = Linted(files, its.done, told, since=SinceRevision(revision, its.known, its.reached))
        if its.unnamed:
            first, more = os.path.relpath(its.unnamed[0]), len(its.unnamed) - 1
            who = f"{first} and {more} more" if more else first
            apart += (f"{who}: steps may reach more there since {revision.name}, and it was not named to be linted",)
    linted.notices = tuple(refused(dict.fromkeys(folder for config in configs for folder in config.refused)))
    linted.notices += tuple(dict.fromkeys(line for config in configs for line in nowhere(config))) + apart
    if files.strange:
        first, others = files.strange[0], len(files.strange) - 1
        linted.notices += (f"{first}{f' and {others} more' if others else ''}: left out, {STRANGE}",)
    if left := [job.path for job in jobs if job.named and excluded(located(job.path), False, job.config)]:
        which = left[0] if len(left) == 1 else f"{left[0]} and {len(left) - 1} more"
        linted.notices += (f"{which}: linted for being named, though `exclude` has it (--force-exclude leaves it out)",)
    if cached and not safeties:
        from syncscope.linter.cache import distrusted

        linted.notices += tuple(filter(None, [distrusted()]))
    linted.tell()
    linted.seconds = perf_counter() - begin
    return linted


def stdin(raw: bytes, name: str, files: Files, safeties: Sequence[Safety]) -> Linted:
    """Lint one file's content, given by another program."""
    job = Job(name, files.config(name), frozenset(safeties), files.first.baseline, named=True)
    check_names([job.config])
    check_some([job.config])
    one = mended(job, raw)
    one = one if one.mended else Done(one.checked, None, raw)
    linted = Linted(
        files, [one], [*broken_rules([job.config]), *problems([one])], tuple(refused(job.config.refused)), is_stdin=True
    )
    linted.tell()
    return linted


def texts(named: Iterable[tuple[str, bytes]], files: Files) -> Linted:
    """Lint texts that are in no file of their own, each under a name."""
    jobs = [(Job(name, files.first), raw) for name, raw in named]
    check_names([files.first])
    done = [Done(engine.check(job.path, raw, job.config), None, raw) for job, raw in jobs]
    wrong = broken_rules([files.first])
    linted = Linted(files, done, wrong, tuple(refused(files.first.refused)), in_files=False)
    linted.tell()
    return linted


def broken_rules(configs: Iterable[Config]) -> list[str]:
    """A line for each of the user's rules that could not be loaded: the others are asked all the same."""
    wrong = dict.fromkeys(error for config in configs for error in broken(config.rules))
    return [f"{error.message}; {error.hint}" if error.hint else error.message for error in wrong]


def problems(done: Sequence[Done]) -> list[str]:
    """What could not be read, and which of the user's own rules failed."""
    return [
        *(one.checked.problem for one in done if one.checked.problem),
        *own_rules.told(one.checked.failed for one in done),
    ]
