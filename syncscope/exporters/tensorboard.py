"""A folder for TensorBoard: each recording as our own tab and the two profiler tabs read it, the waits as spans with names.

    FOLDER/<run>/<host>_<pid>.<digits>.page.json.gz             the tab "Syncscope": the page as it was concluded here
    FOLDER/<run>/<host>_<pid>.<digits>.pt.trace.json.gz         the tab "PyTorch Profiler"; Perfetto and our tab open it too
    FOLDER/plugins/profile/<run>/<host>.xplane.pb               the tab "Profile" of XProf, which works offline
    FOLDER/progress/events.out.tfevents.*                       the tabs of scalars: step, reads and saving over all recordings,
                                                                of the ranks of a job below progress/rank<n>

A viewer reads a run once and keeps what it has read, so every export has a run name of its own, and a file appears under its
name only when it is whole.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from syncscope import files, kineto
from syncscope.errors import UserError
from syncscope.exporters import _figures as figures
from syncscope.exporters import html
from syncscope.exporters._apart import apart
from syncscope.exporters._called import rank_of, run_of
from syncscope.exporters._fit import fit
from syncscope.exporters._owners import with_owners
from syncscope.exporters._scalars import Point, event_file
from syncscope.exporters._xplane import xspace
from syncscope.model.detail import Detail
from syncscope.model.report import Line, Read, Report
from syncscope.model.source import Place
from syncscope.model.trace import WAITS, Event, Kind, Lane, Trace

SUFFIX = ""  # a folder, not a file
TAKES = {"trace"}
WORK = True

MOST_EVENTS = 900_000
"""About 200 MB of JSON. The viewers that read JSON hold it as one string of JavaScript, which ends near 500 MB."""

ENDING = ".pt.trace.json.gz"
PAGE = ".page.json.gz"  # in place of it

# thread number of the row of waits: above any the system gives, and a number, as the viewers demand
ROW = 1_000_000_000


def write(report: Report, folder: Path) -> list[Path]:
    """Write the report's recording below `folder`; the files written.

    Raises:
        ValueError: the report holds no recording.
    """
    if report.trace is None:
        raise ValueError("only a report of a recording can be opened in TensorBoard")
    written = save(report.trace, folder, run_of(report.name), waits(report))
    page = written[0].with_name(written[0].name.removesuffix(ENDING) + PAGE)
    shown, events = html.parts(report)
    files.write(
        page, gzip.compress(json.dumps({"shown": shown, "events": events}, allow_nan=False).encode(), 6, mtime=0)
    )
    return [*written, page, _progress(report, folder)]


def _progress(report: Report, folder: Path) -> Path:
    """A point more on the curves over all recordings of the folder, of one rank of a job on that rank's; the file."""
    rank = rank_of(report.trace) if report.trace is not None else None
    place = folder / "progress" / ("" if rank is None else f"rank{rank}")
    before = len(list(place.glob("events.out.tfevents.*")))
    origin = int(report.trace.meta.get("origin_ns", 0)) / 1e9 if report.trace is not None else 0.0
    known = {
        "step_ms": report.step,
        "saving_ms": report.saving,
        "reads_per_step": report.syncs * 1e6 if report.steps else None,
        "device_busy": None if report.device_busy is None else report.device_busy * 1e6,
    }
    points = [
        Point(f"syncscope/{name}", before, origin, value / 1e6) for name, value in known.items() if value is not None
    ]
    file = place / f"events.out.tfevents.{int(origin):010d}.{before:06d}.syncscope"
    files.write(file, event_file(points, origin))
    return file


def how_to_open(folder: Path) -> str:
    """What to install and type to see it."""
    return (
        f"open it with: tensorboard --logdir {folder}   then http://localhost:6006/#syncscope\n"
        "  tab Syncscope                    pip install 'syncscope[tensorboard]'   works offline: this report\n"
        "  tab Profile, tool Trace Viewer   pip install 'xprof>=2.24.2'            works offline: the timeline alone\n"
        "  tab PyTorch Profiler             pip install torch-tb-profiler          its pages need the internet\n"
    )


def save(
    trace: Trace, folder: Path, run: str = "syncscope", spans: Iterable[Event] | None = None, most: int = MOST_EVENTS
) -> list[Path]:
    """Write a recording and its waits as a run that is not there yet; the files written.

    The waits are `spans` (see `waits`), else the Python reads that the recording holds. Where there are more than `most`
    events, the short operators and Python calls are left out first; steps and waits never are.
    """
    spans = list(recorded_waits(trace) if spans is None else spans)
    trace = merged(with_owners(fit(trace, most)), spans)
    run = claimed(folder, run)
    host = re.sub(r"[^A-Za-z0-9-]+", "-", str(trace.meta.get("host", "host"))) or "host"
    process = next((lane.process for lane in trace.lanes if lane.device < 0 and isinstance(lane.process, int)), 0)
    digits = int(trace.meta.get("origin_ns", 0)) // 1_000_000
    json_file = folder / run / f"{host}_{process}.{digits}{ENDING}"
    xplane_file = folder / "plugins" / "profile" / run / f"{host}.xplane.pb"
    try:
        kineto.save(apart(trace), json_file)
    except BaseException:
        with contextlib.suppress(OSError):  # somebody may have put something into it
            json_file.parent.rmdir()
        raise
    first = int(trace.start.min(initial=0))
    try:
        with files.whole(xplane_file) as file:
            file.writelines(xspace(replace(trace, start=trace.start - first), host))
    except UserError:  # no room for both: the first has everything
        return [json_file]
    return [json_file, xplane_file]


def waits(report: Report) -> Iterator[Event]:
    """A span for each read of the report, with what is known of its line."""
    lines = {(line.place, line.op): line for line in report.lines}
    process = next((lane.process for lane in report.trace.lanes if lane.device < 0), 0) if report.trace else 0
    rows: dict[int | str, int] = {}
    for read in report.reads:
        lane = row(rows, process, read.thread)
        detail = Detail(about=about(read, lines.get((read.place, read.op)))).text()
        yield span(read.op, read.place, read.held, lane, read.start, read.end - read.start, detail)


def recorded_waits(trace: Trace) -> Iterator[Event]:
    """A span for each Python read that the recorder itself saw, where nothing was concluded yet."""
    rows: dict[int | str, int] = {}
    for event in trace.take(trace.rows(Kind.READ)):
        lane = row(rows, event.lane.process, event.lane.thread)
        detail = Detail(about=str(event.place) if event.place else "").text()
        yield span(event.name, event.place, event.duration, lane, event.start, event.duration, detail)


def row(rows: dict[int | str, int], process: int | str, thread: int | str) -> Lane:
    """The row of the waits of a thread; the first thread's has the plain name."""
    number = rows.setdefault(thread, ROW + len(rows))
    return Lane(process, number, label=WAITS if number == ROW else f"{WAITS}, thread {thread}")


def span(op: str, place: Place | None, blocked: int, lane: Lane, start: int, duration: int, detail: str) -> Event:
    """A wait by the name `host waits 3.1 ms: train.py:57 item`."""
    where = f"{place.path.rpartition('/')[2]}:{place.line} " if place else ""
    what = f"host waits {figures.time(blocked)}" if blocked > 0 else "host syncs, no wait"
    return Event(Kind.ANNOTATION, f"{what}: {where}{op}", lane, start, duration, place=place, detail=detail)


def about(read: Read, line: Line | None) -> str:
    """What is known of a wait, in a sentence for the viewers."""
    parts = [str(read.place)] if read.place else []
    parts.append(f"for it the device had nothing to do for {figures.time(read.idle_after)}")
    if line and line.price:
        saved = (line.price.alone, line.price.last)
        parts.append(
            f"a step is {figures.time(min(saved))} to {figures.time(max(saved))} shorter without this line's syncs"
        )
    if line and line.rule:
        parts.append(f"rule {line.rule}")
    if line and line.finding and line.finding.fix:
        parts.append(f"rewrite: {line.finding.fix.title} ({line.finding.fix.standing})")
    return "; ".join(parts)


def merged(trace: Trace, spans: Iterable[Event]) -> Trace:
    """The trace with further events."""
    more = Trace.of(spans)
    if not len(more):
        return trace
    columns: dict[str, Any] = {}
    for column, table in (("name", "names"), ("lane", "lanes"), ("place", "places"), ("detail", "details")):
        first = len(getattr(trace, table))
        added = getattr(more, column)
        columns[column] = np.concatenate([getattr(trace, column), np.where(added < 0, added, added + first)])
        columns[table] = getattr(trace, table) + getattr(more, table)
    for column in ("caller", "forward"):
        added, first = getattr(more, column), len(trace.places)
        columns[column] = np.concatenate([getattr(trace, column), np.where(added < 0, added, added + first)])
    for column in ("kind", "start", "duration", "correlation", "external", "bytes", "column", "flags"):
        columns[column] = np.concatenate([getattr(trace, column), getattr(more, column)])
    order = np.lexsort((-columns["duration"], columns["start"]))
    return replace(trace, **columns).take(order)


def claimed(folder: Path, run: str) -> str:
    """A run name that was not taken below the folder, and is now, whoever else looks for one meanwhile.

    Raises:
        UserError: the folder cannot be written.
    """
    for number in range(1, 1 << 30):
        name = run if number == 1 else f"{run}-{number}"
        if (folder / "plugins" / "profile" / name).exists():
            continue
        try:
            (folder / name).mkdir(parents=True)
        except FileExistsError:
            if folder.is_dir():
                continue
            raise UserError(f"{folder} is no folder", "name another one") from None
        except OSError as error:
            raise UserError(f"{folder} cannot be written: {error.strerror}", "choose another folder with -o") from None
        return name
    raise AssertionError


def of_rank(name: str, trace: Trace) -> str:
    """The name with the rank, where the recording is one of several of a job: `train-rank3`."""
    rank = rank_of(trace)
    return name if rank is None else f"{name}-rank{rank}"
