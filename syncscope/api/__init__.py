"""The public functions: each puts the rooms together for one task."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from syncscope.api.reports import ceilings_of as ceilings_of
from syncscope.api.reports import report as report
from syncscope.api.reports import with_work as with_work

if TYPE_CHECKING:
    from syncscope.model.finding import Finding
    from syncscope.tracers.recording import Recording
    from syncscope.tracers.watch import Watch

T = TypeVar("T")


def trace(
    logdir: str | Path | None = None,
    wait: int = 0,
    warmup: int = 0,
    active: int | None = None,
    repeat: int = 1,
    record_shapes: bool = False,
    operators: bool = False,
    memory: bool = False,
    whole: bool = False,
) -> Recording:
    """Records the steps of a training loop: every kernel, every copy, and every line at which the host waits.

        with syncscope.trace("runs", wait=1, warmup=1, active=5) as trace:
            for batch in loader:
                train(batch)
                trace.step()
        trace.report()

    Also a decorator. Without a number it chooses for itself: it lets the program's own first steps pass, times some without a
    recording, records until there are enough, times some more, and then only counts; of a short program it has what there is.
    With `whole`, or `memory`, everything is recorded. After `wait` and `warmup` steps, `active` steps are recorded, `repeat`
    times (0: until the end); without `active` everything up to the end. Each recording is written to `logdir`, for TensorBoard
    and `syncscope report`; without one it is kept in memory, for `trace.report()`, `trace.trace` and `trace.save()`, and where
    none of these follows, a line on standard error says that it was lost.
    Steps that nobody marks are found at `optimizer.step()`. `record_shapes` notes what each operator of the `ocl` device was
    given, for `syncscope roofline`; it costs some microseconds an operator. `operators` records the CPU's operators, too, on
    CUDA and ROCm, and on every device the calls of modules: reads, lines and prices need none, and most of what a recording
    costs is theirs. `memory` notes what is
    allocated and freed on `ocl`, CUDA and ROCm and on which line, some microseconds each: memory over time, and what made it
    the most. The trace is written also where the block raises.

    What cannot be recorded or written ends no program: a line on standard error says so, and what there is is kept.

    Raises:
        UserError: the numbers make no sense, or `logdir` is a file that is no recording.
    """
    from syncscope.api import recorded
    from syncscope.tracers.recording import Recording

    if logdir is not None:
        recorded.spare(Path(logdir))

    schedule = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat}
    wanted = {"record_shapes": record_shapes, "operators": operators, "memory": memory, "whole": whole}
    return Recording(recorded.write, recorded.report, recorded.try_fixes, logdir=logdir, **wanted, **schedule)


def steps(loader: Iterable[T]) -> Iterator[T]:
    """The batches of a loader, each of them a step of the recording that is running, if one is."""
    from syncscope.tracers.loader_steps import steps_of

    return steps_of(loader)


def forbid_syncs(*, warn: bool = False, dry: bool | None = None) -> AbstractContextManager[None]:
    """Inside, a line that would make the host wait raises `SyncError` before it waits, with the rewrite of the rule that knows
    it; with `warn`, it warns, once a line. For this thread and this task only; also a decorator. The first rewrite
    that is asked for takes most of a second, since the linter is imported then; later ones take milliseconds.

    `dry` treats tensors of the CPU that come from parameters and batches as if they were on a device, so that a laptop finds
    what would wait on a GPU; None does so where there is no device.
    """
    from syncscope.api.linted import advice
    from syncscope.tracers import guard

    return guard.forbid_syncs(warn=warn, dry=dry, advise=advice)


def allow_syncs(reason: str = "") -> AbstractContextManager[None]:
    """Inside, reads are allowed again: `with syncscope.allow_syncs("logging"):`."""
    from syncscope.tracers import guard

    return guard.allow_syncs(reason)


def watch(*, dry: bool | None = False) -> AbstractContextManager[Watch]:
    """Counts which lines read and for how long they held the host, without device times; cheap enough for production.

        with syncscope.watch() as watch:
            train()
        print(watch)

    `dry` as in `forbid_syncs`.
    """
    from syncscope.tracers.watch import watch

    return watch(dry=dry)


def lint(
    *paths: str | Path,
    source: str | bytes | None = None,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    min_confidence: str | None = None,
    all: bool | None = None,
    jobs: int = 1,
) -> list[Finding]:
    """The findings in files, in folders, or in a piece of source, as the JSON of `syncscope lint` has them; nothing is imported
    or run.

        for finding in syncscope.lint("train.py"):
            print(finding.place, finding.message)

    What a line says is enough of, `also waits in a step`, is `short`: the command does not fail for it. With
    `source`, the only path (if there is one) says what it is called. What is not said here is as the nearest
    pyproject.toml has it. `all` is cold code too; `min_confidence` is "low", "medium" or "high".

    Raises:
        UserError: something cannot be read, or no rule has that name.
    """
    from syncscope.errors import UserError
    from syncscope.linter.gathering import gather, stdin
    from syncscope.linter.run import Files

    said: dict[str, object] = {"min_confidence": min_confidence, "all": all, "ignore": tuple(ignore) or None}
    said["select"] = None if select is None else tuple(select)
    files = Files([str(path) for path in paths] or ["."], said)
    if source is not None:
        raw = source.encode() if isinstance(source, str) else source
        linted = stdin(raw, str(paths[0]) if paths else "<source>", files, [])
    else:
        linted = gather(files, (), jobs)
    for line in linted.notices:
        warnings.warn(line, stacklevel=2)
    if linted.problems:
        raise UserError("\n".join(linted.problems), "name files that can be read")
    return linted.told
