"""A recording and what the linter says of its source, as one report."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from syncscope.api.linted import is_installed, linted, of_cells

if TYPE_CHECKING:
    from syncscope.analysis.roofline import Ceilings
    from syncscope.model.report import Report
    from syncscope.model.trace import Trace


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
    from syncscope.analysis.edited_since import as_it_is_now
    from syncscope.analysis.measured import with_measured
    from syncscope.analysis.sources import ambiguous, at_hand, elsewhere, waiting_files
    from syncscope.analysis.summary import summarize
    from syncscope.analysis.window import only_steps
    from syncscope.linter.between import with_runs, with_what_runs
    from syncscope.linter.passes_apart import loops_apart
    from syncscope.model.source import installed
    from syncscope.model.trace import Kind, Trace

    if isinstance(source, Trace):
        trace = source
    elif isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(".records"):
        from syncscope.tracers.recovery import recover_file

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
    trace, edited = as_it_is_now(trace, here)
    places = trace.places
    found = linted(sorted({str(path) for path in here.values()}), waiting_files(trace))
    if sources and anywhere and (cells := _cells(trace)):
        of_them = of_cells(cells)
        found = replace(
            found, findings=(*found.findings, *of_them.findings), sources={**found.sources, **of_them.sources}
        )
    waiting = {places[code] for code in set(trace.place[trace.rows(Kind.READ)].tolist()) if code >= 0}
    loops = loops_apart(found.sources, waiting)
    said = summarize(trace, found.findings, found.hazards, prices=prices, pinned=pinned, loops=loops)
    said = _without_unmet(said)
    shown = {line.place.path for line in said.lines if line.place}
    shown |= {one.place.path for one in (said.by_line.lines if said.by_line else ()) if one.place}
    shown |= {place.path for one in said.what_if for place in one.between or ()}
    others = {
        path: content
        for path in (shown - set(found.sources)) & set(map(str, here.values()))
        if (content := _content(path)) is not None
    }
    lost = [] if here or code is None or not places else [f"none of the source files it names was found below {code}"]
    if code is not None and (several := ambiguous(named - set(here), Path(code))):
        lost = [f"{why}: {hint}" for why, hint in several]
    own = any(not installed(path) for path in here)
    if sources and code is None and not own and (folder := elsewhere(named)):
        outside = (
            "its source lies outside of the folder you work in, so neither lines of it, rewrites nor loops are shown, and no "
            "figure knows them"
        )
        lost = [f"{outside}: `--source {shlex.quote(folder)}`"]
    notes = (*edited, *lost, *said.notes, *found.notes)
    _shown_in_notebooks()
    read = {**others, **found.sources}
    what_if, by_line = with_what_runs(said.what_if, read, found.findings), with_runs(said.by_line, read)
    said = replace(said, name=name, sources=read, notes=notes, hazards=found.hazards, what_if=what_if, by_line=by_line)
    return with_measured(said, trace.meta.get("verified"))


def _cells(trace: Trace) -> dict[int, str]:
    """The cells of the notebook in which this was recorded, if that is this process; by their numbers."""
    from syncscope.tracers import cells

    own = any(lane.process == os.getpid() for lane in trace.lanes)
    return cells.texts() if own and any(cells.NAME.fullmatch(place.path) for place in trace.places) else {}


def _without_unmet(report: Report) -> Report:
    """The report without what the linter says of libraries where nothing waited: it is not the user's to mend."""
    from dataclasses import replace

    met = {id(line.finding) for line in report.lines}
    findings, unseen = (
        tuple(one for one in found if id(one) in met or not is_installed(one.place.path))
        for found in (report.findings, report.unseen)
    )
    return replace(report, findings=findings, unseen=unseen)


def shown_in_notebook(report: Report) -> bool:
    """Whether the running cell of a notebook shows the page of a report now; as its last line it is not shown once more."""
    from syncscope.tracers import cells

    if getattr(shell := cells.shell(), "kernel", None) is None:
        return False
    _shown_in_notebooks()
    sys.modules["IPython"].display.display(report)
    _shown[:] = [(id(report), shell.execution_count)]
    return True


_shown: list[tuple[int, int]] = []  # which report a cell has shown


def _shown_in_notebooks() -> None:
    """Have a notebook in which the program runs show a report as its page: as the last line of a cell, and by `display`."""
    from syncscope.tracers import cells

    if getattr(shell := cells.shell(), "kernel", None) is None:
        return
    from syncscope.exporters import html
    from syncscope.model.report import Report

    def show(report: Report) -> None:
        if (id(report), shell.execution_count) not in _shown:
            page = {"text/html": html.notebook(with_work(report)), "text/plain": repr(report)}
            sys.modules["IPython"].display.publish_display_data(page)

    shell.display_formatter.ipython_display_formatter.for_type(Report, show)


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


def _content(path: str) -> bytes | None:
    from syncscope.files import regular

    try:
        return regular(path)
    except (OSError, ValueError):
        return None
