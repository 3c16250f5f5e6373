"""What a change brings: the findings of the files that are otherwise since a revision, and of those others whose functions the
steps of the project reach only since."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from syncscope.files import regular
from syncscope.heat.reach import Reach
from syncscope.heat.reached_anew import reached_anew
from syncscope.linter import engine
from syncscope.linter.baseline import Baseline
from syncscope.linter.files import excluded
from syncscope.linter.revision import Revision
from syncscope.linter.run import Done, Files, Job, run
from syncscope.linter.since import Then
from syncscope.model.source import speaks_of_torch
from syncscope.project.folders import files as python_files
from syncscope.project.folders import located, roots


@dataclass(frozen=True)
class Brought:
    """What was done, what was `known` at the revision where that was asked for, how many of the files did not change and hold
    what steps have `reached` only since, and which such files were not named."""

    done: Sequence[Done]
    known: Baseline | None
    reached: int
    unnamed: tuple[str, ...]


def brought_since(
    revision: Revision,
    given: Files,
    jobs: Sequence[Job],
    processes: int,
    cached: bool,
    tick: Callable[[int, int], None],
) -> Brought:
    """Lint what is otherwise now."""
    changed = [job for job in jobs if revision.is_changed(job.path)]
    mends = any(job.safeties for job in jobs)
    with Then(revision, given, [job.path for job in changed], processes, cached) as then:
        done = [] if mends else run(changed, processes, cached, lambda n: tick(n, len(changed)))
        by_steps = _reached(then, [job.path for job in changed])
        at = {located(job.path): job for job in jobs}
        reached = [at[path] for path in by_steps if path in at]
        known = None
        if mends:
            known = then.found(job.path for job in reached)
            every = [replace(job, since=known) for job in (*changed, *reached)]
            done = run(every, processes, cached, lambda n: tick(n, len(every)))
        else:
            done += run(reached, processes, cached)
            if any(one.checked.findings or one.checked.also for one in done):
                known = then.found(job.path for job in reached)
    unnamed = tuple(path for path in by_steps if path not in at and not excluded(path, False, given.config(path)))
    return Brought(done, known, len(reached), unnamed)


def _reached(then: Then, changed: Iterable[str]) -> list[str]:
    """The files that did not change, named or not, and that hold what the steps of their project reach only since: by their
    absolute paths."""
    revision, paths = then.revision, set(map(located, changed))
    paths |= {os.path.join(revision.top, name) for name in revision.changed}
    folders = {os.path.dirname(path) for path in paths if path.endswith(".py")}
    found: list[str] = []
    seen: list[Reach] = []
    for root in sorted({root for folder in folders for root in roots(Path(folder)) if revision.holds(str(root))}):
        now = engine.project_of(then.given.config(str(root))).steps.around(str(root))
        if now is None or any(now is each for each in seen):
            continue
        seen.append(now)
        before = then.reach(str(root))
        if before is not None and (anew := reached_anew(now.below(revision.top), before)) is not None:
            others = ((path, revision.relative(path)) for path in python_files(root) if path not in paths)
            stayed = ((path, name, _text(path)) for path, name in others if name in revision.listed)
            found += [path for path, name, text in stayed if speaks_of_torch(text) and anew.is_in(name, text)]
    return found


def _text(path: str) -> bytes:
    with contextlib.suppress(OSError):  # which is said where it is linted
        return regular(path)
    return b""
