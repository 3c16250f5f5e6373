"""The public functions: each puts the rooms together for one task."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

if TYPE_CHECKING:
    from syncscope.analysis.roofline import Ceilings
    from syncscope.model.finding import Finding
    from syncscope.model.report import Report
    from syncscope.model.source import Place
    from syncscope.model.trace import Trace
    from syncscope.model.tried import FixesTried
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
    and `syncscope report`.
    Steps that nobody marks are found at `optimizer.step()`. `record_shapes` notes what each operator of the `ocl` device was
    given, for `syncscope roofline`; it costs some microseconds an operator. `operators` records the CPU's operators, too, on
    CUDA and ROCm, and on every device the calls of modules: reads, lines and prices need none, and most of what a recording
    costs is theirs. `memory` notes what is
    allocated and freed on `ocl`, CUDA and ROCm and on which line, some microseconds each: memory over time, and what made it
    the most. The trace is written also where the block raises.

    Raises:
        UserError: the numbers make no sense, or a folder cannot be written.
    """
    from syncscope.tracers.recording import Recording

    schedule = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat}
    wanted = {"record_shapes": record_shapes, "operators": operators, "memory": memory, "whole": whole}
    return Recording(_write, _report, _try_fixes, logdir=logdir, **wanted, **schedule)


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


def advice(op: str, place: Place) -> str:
    """What the linter has to say of this line, else the summary of the rule that knows the op; "" where none does."""
    if not os.path.isfile(place.path):
        return ""
    linted = _linted([place.path])
    known = {hazard.name: hazard.seen_as.index(op) for hazard in linted.hazards if op in hazard.seen_as}
    here = [f for f in linted.findings if f.place.line <= place.line <= f.end_line and (not known or f.rule in known)]
    if here:
        finding = min(here, key=lambda f: (f.fix is None, known.get(f.rule, 0)))
        rewrite = f": {finding.fix.title}" if finding.fix else ""
        return f"{finding.rule}{rewrite}; syncscope explain {finding.rule}"
    return f"{(name := min(known, key=known.__getitem__))}; syncscope explain {name}" if known else ""


def report(
    source: Trace | str | os.PathLike[str] | BinaryIO,
    *,
    name: str = "",
    code: str | os.PathLike[str] | None = None,
    steps: tuple[int | None, int | None] | None = None,
    prices: bool = True,
    most: int | None = None,
    pinned: float | None = None,
    sources: bool = True,
) -> Report:
    """Where the host waited in a recording, what each line costs a step, and which rewrite is known for it.

    `source` is a trace, or a file of one as `kineto.read` takes it, or the `.records` that a killed program left; `name` is
    its title. The source files that it names are linted where they are at hand, and never run: those below the working
    folder or the project around it, and all of a `Trace` that the caller's own program made. `code` is a folder in which
    they lie if the recording was made elsewhere. Without `sources` none of them is opened.
    `steps=(3, 6)` takes steps 3, 4 and 5 only. Without `prices` nothing is replayed.
    At most `most` bytes of a file are read, unpacked.
    `pinned` is how fast the device fetches from pinned memory, GB/s; by default what the recording shows.

    Raises:
        UserError: the file cannot be read, or it has none of the steps.
    """
    import shlex
    from dataclasses import replace

    from syncscope import kineto
    from syncscope.analysis.measured import with_measured
    from syncscope.analysis.sources import at_hand, elsewhere, waiting_files
    from syncscope.analysis.summary import summarize
    from syncscope.analysis.window import only_steps
    from syncscope.linter.passes_apart import loops_apart
    from syncscope.model.source import Place, installed
    from syncscope.model.trace import Kind, Trace

    if isinstance(source, Trace):
        trace = source
    elif isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(".records"):
        from syncscope.tracers.process_recording import recover_file

        trace = recover_file(Path(source))
    else:
        trace = kineto.read(source) if most is None else kineto.read(source, most)
    if not name and isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
    if steps is not None:
        trace = only_steps(trace, *steps)
    anywhere = isinstance(source, Trace)  # recorded by the caller's own program
    named = {place.path for place in trace.places} if sources else set()
    here = at_hand(named, None if code is None else Path(code), anywhere=anywhere)
    places = tuple(Place(str(here.get(p.path, p.path)), p.line) for p in trace.places)
    trace = replace(trace, places=places)
    linted = _linted(sorted({str(path) for path in here.values()}), waiting_files(trace))
    waiting = {places[code] for code in set(trace.place[trace.rows(Kind.READ)].tolist()) if code >= 0}
    loops = loops_apart(linted.sources, waiting)
    said = summarize(trace, linted.findings, linted.hazards, prices=prices, pinned=pinned, loops=loops)
    said = _without_unmet(said)
    shown = {line.place.path for line in said.lines if line.place}
    shown |= {one.place.path for one in (said.by_line.lines if said.by_line else ()) if one.place}
    others = {
        path: content
        for path in (shown - set(linted.sources)) & set(map(str, here.values()))
        if (content := _content(path)) is not None
    }
    lost = [] if here or code is None or not places else [f"none of the source files it names was found below {code}"]
    own = any(not installed(path) for path in here)
    if sources and code is None and not own and (folder := elsewhere(named)):
        outside = (
            "its source lies outside of the folder you work in, so neither lines of it, rewrites nor loops are shown"
        )
        lost = [f"{outside}: `--source {shlex.quote(folder)}`"]
    notes = (*lost, *said.notes, *linted.notes)
    _shown_in_notebooks()
    said = replace(said, name=name, sources={**others, **linted.sources}, notes=notes, hazards=linted.hazards)
    return with_measured(said, trace.meta.get("verified"))


def _without_unmet(report: Report) -> Report:
    """The report without what the linter says of libraries where nothing waited: it is not the user's to mend."""
    from dataclasses import replace

    met = {id(line.finding) for line in report.lines}
    findings, unseen = (
        tuple(one for one in found if id(one) in met or not _is_installed(one.place.path))
        for found in (report.findings, report.unseen)
    )
    return replace(report, findings=findings, unseen=unseen)


def _shown_in_notebooks() -> None:
    """Have IPython, where the program runs in it, show a report as its page: as the last line of a cell, and by `display`."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    from syncscope.exporters import html
    from syncscope.model.report import Report

    shell.display_formatter.formatters["text/html"].for_type(Report, lambda report: html.notebook(with_work(report)))


def with_work(report: Report, measure: bool = False) -> Report:
    """The report with what the device did in the counted steps, by kernel and by operator, which takes a moment to find out.

    With `measure`, what an OpenCL device of this machine can do at best is measured if the recording has shapes to hold against
    it: some seconds, once.
    """
    from dataclasses import replace

    from syncscope.analysis.work_done import work_done

    trace = report.trace
    if trace is None or report.uses is None or report.work is not None:
        return report
    devices = trace.meta.get("devices") or [None]
    name = str(devices[0].get("name", "")) if isinstance(devices[0], dict) else ""
    ceilings, source = ceilings_of(name, measure and any('"Input Dims"' in detail for detail in trace.details))
    return replace(report, work=work_done(trace, report.steps, ceilings, source))


def ceilings_of(name: str, measure: bool) -> tuple[Ceilings | None, str]:
    """What a device can do at best, and where that is from: its data sheet, else what was measured of an OpenCL device of this
    machine that is called so; None where neither is known."""
    from syncscope.analysis import data_sheets
    from syncscope.analysis.roofline import Ceilings

    if (sheet := data_sheets.ceilings_of(name)) is not None:
        return sheet, data_sheets.source_of(name)
    try:
        from syncscope.tracers import peaks
    except ImportError:  # without the extra `opencl` nothing can be measured
        return None, ""
    here = next((device for device in peaks.devices() if device.name.strip() == name.strip()), None)
    found = None if here is None else peaks.peaks(here) if measure else peaks.known(here)
    return (Ceilings(*found), f"measured on {name}: a copy, and a plain GEMM in 32 bits") if found else (None, "")


def lint(
    *paths: str | Path,
    source: str | bytes | None = None,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    min_confidence: str | None = None,
    all: bool | None = None,
    jobs: int = 1,
) -> list[Finding]:
    """The findings in files, in folders, or in a piece of source, as `syncscope lint` shows them; nothing is imported or run.

        for finding in syncscope.lint("train.py"):
            print(finding.place, finding.message)

    With `source`, the only path (if there is one) says what it is called. What is not said here is as the nearest
    pyproject.toml has it. `all` is cold code too; `min_confidence` is "low", "medium" or "high".

    Raises:
        UserError: something cannot be read, or no rule has that name.
    """
    from syncscope.errors import UserError
    from syncscope.linter.run import Files
    from syncscope.linter.session import gather, stdin

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
    return [finding for _, finding in linted.presented]


def _linted(paths: list[str], libraries: Collection[str] = ()) -> Report:
    """What the linter says of the user's own files among these, and of the files of `libraries`; and every hazard it knows."""
    from dataclasses import replace

    from syncscope.linter import rulesets
    from syncscope.linter.run import Files
    from syncscope.linter.session import gather
    from syncscope.rules import hazard

    own = [path for path in paths if path in libraries or not _is_installed(path)]
    waits_only = ("kernel", "host-program")  # the rules of OpenCL C speak of no line of a recording
    files = Files(own, {"all": True, "min_confidence": "low", "baseline": "", "ignore": waits_only})
    rules = rulesets.ruleset(files.config(".").rules)
    return replace(gather(files).report(), hazards=tuple(hazard(name, rule) for name, rule in rules.items()))


def _is_installed(path: str) -> bool:
    """Whether a file belongs to a library and not to the user."""
    from syncscope.model.source import installed

    return installed(path) or path.startswith(os.path.dirname(os.__file__))


def _content(path: str) -> bytes | None:
    from syncscope.files import regular

    try:
        return regular(path)
    except (OSError, ValueError):
        return None


def _write(recorded: Any, path: Path) -> list[Path]:
    """A trace as one JSON file, or as a folder for TensorBoard."""
    from syncscope.tracers.unseen import unseen

    with unseen():
        if path.name.endswith((".json", ".json.gz")):
            from syncscope import kineto

            kineto.save(recorded, path)
            return [path]
        from syncscope.exporters import tensorboard

        return tensorboard.save(recorded, path)


def _report(recorded: Any, show: bool) -> Any:
    from syncscope.tracers.unseen import unseen

    with unseen():
        result = report(recorded)
        if show:
            from syncscope.exporters import terminal

            _print(lambda width: [terminal.render(result, width)])
    return result


def _print(rows: Callable[[int], Iterable[Any]]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for row in rows(console.width):
        console.print(row)


def _try_fixes(
    recorded: Trace,
    files: list[Path],
    step: Callable[[], object] | None,
    frame: FrameType,
    budget: float | str,
    unsafe: bool,
    show: bool,
) -> FixesTried:
    """Tries fixes in the running program, which asks in this frame; the recording and its files know what is found."""
    from syncscope import kineto
    from syncscope.analysis.measured import tried
    from syncscope.cli._duration import seconds_of
    from syncscope.errors import UserError
    from syncscope.tracers.unseen import unseen
    from syncscope.verify.asked_for import AskedFor
    from syncscope.verify.results import as_object

    def tell(line: str) -> None:
        if show:
            print(f"syncscope: {line}", file=sys.stderr, flush=True)

    if not (seconds := seconds_of(budget)):
        raise UserError(f"budget={budget!r} is no time", "write 90, '90s' or '10m'")
    code = getattr(step, "__code__", None)
    paths = [place.path for place in recorded.places] + [of.co_filename for of in (frame.f_code, code) if of]
    with unseen():
        found = as_object(AskedFor(step, frame, paths, seconds, unsafe, tell).make())
        recorded.meta["verified"] = found
        for path in files:
            if path.name.endswith((".json", ".json.gz")) and path.exists():
                written = kineto.read(path)
                written.meta["verified"] = found
                kineto.save(written, path)
        if show:
            from syncscope.exporters import _tried

            _print(lambda width: _tried.rows(found, width))
    return tried(found)
