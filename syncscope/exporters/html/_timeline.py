"""The events of a recording for the page's canvas: sorted into rows, as packed columns.

Each column is split into the bytes of its numbers, all first bytes, then all second ones: most are 0, and gzip makes little of
them. The columns follow one another in the order of `COLUMNS`, and each takes as many bytes a number as its largest needs.
"""

from __future__ import annotations

import base64
import gzip
import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.exporters._fit import fit
from syncscope.model.held_up import Why
from syncscope.model.report import Read, Report
from syncscope.model.trace import DEVICE, WAITING, Kind, Table, Trace

MOST_EVENTS = 1_000_000  # about 9 MB of page
DEEPEST = 40  # levels of calls in calls that are shown
COLUMNS = ("start", "duration", "name", "kind", "link", "why", "by")
"""Start: ns since the event before it in the row. Duration: ns. Link: of device work the call that launched it,
of a wait the work it waited for, as 1 + its number, 0 is none; less that of the event before it, zigzag (0, -1, 1, -2, ...).
Why: what held it up, in the order of `Why`. By: the event that did, as link; 0 is that of its link, if it has one."""
WAIT = len(Kind)  # the kind of a wait, after those of a trace
KINDS = [*(kind.name.lower() for kind in Kind), "wait"]
LIBRARY = re.compile(r"(?:^|/)(?:torch|functorch|site-packages|dist-packages|lib/python3[.\d]*)/|^<")


def timeline(report: Report, most: int = MOST_EVENTS) -> tuple[dict[str, Any], str] | None:
    """Lanes, rows and names as JSON, at most so many events as base64 of gzip of columns; None where nothing was recorded.

    A row is `[lane, depth, first event, number of events]`; its events are sorted and do not overlap.
    """
    if report.trace is None or not len(report.trace):
        return None
    # `external` carries the number of each event through what is left out
    trace, notes = _shown(replace(report.trace, external=np.arange(len(report.trace))), most)
    waits = [read for read in report.reads if read.end > read.start]
    if not len(trace) and not waits:
        return None
    lanes = _Lanes(trace)
    start = np.concatenate([trace.start, [r.start for r in waits]]).astype(np.int64)
    duration = np.concatenate([trace.duration, [r.end - r.start for r in waits]]).astype(np.int64)
    lane = np.concatenate([lanes.lane(trace), [lanes.waits(read) for read in waits]]).astype(np.int64)
    kind = np.concatenate([trace.kind, np.full(len(waits), WAIT)]).astype(np.int64)
    names = Table[str]()
    codes = np.array([names[name] for name in trace.names], np.int64)
    own = [names[wait_name(read)] for read in waits]
    name = np.concatenate([codes[trace.name], own]).astype(np.int64)

    depth = depths(lane, start, start + duration)
    order = np.lexsort((start, depth, lanes.rank()[lane]))
    order = order[depth[order] < DEEPEST]
    at = np.full(len(start) + 1, -1, np.int64)  # where each went; the last is that of number -1
    at[order] = np.arange(len(order))
    link = _links(trace, waits, report.trace)
    link = np.where(link >= 0, at[link], -1)[order] + 1
    why, by = _held_up(report, trace.external, waits)
    by = np.where(by >= 0, at[by], -1)[order] + 1
    lane, depth, start, duration = lane[order], depth[order], start[order], duration[order]
    first = np.flatnonzero(np.diff(lane * DEEPEST + depth, prepend=-1))
    count = np.diff(first, append=len(order))
    origin = int(report.trace.start.min())
    since = np.diff(start, prepend=origin)
    since[first] = start[first] - origin
    numbers = {"start": since, "duration": duration, "name": name[order], "kind": kind[order]}
    numbers |= {"link": zigzag(link), "why": why[order], "by": zigzag(np.where(by == link, 0, by))}
    used, numbers["name"] = np.unique(numbers["name"], return_inverse=True)
    text = list(names)
    sizes = {column: -(-max(1, int(numbers[column].max()).bit_length()) // 8) for column in COLUMNS}
    facts = {
        "events": len(order),
        "origin": origin,
        "end": int((start + duration).max()) - origin,
        "lanes": lanes.facts,
        "rows": np.stack([lane[first], depth[first], first, count], axis=1).tolist(),
        "names": [text[code] for code in used.tolist()],
        "kinds": KINDS,
        "whys": list(Why),
        "columns": sizes,
        "notes": notes,
    }
    return facts, base64.b64encode(packed(numbers, sizes)).decode()


def zigzag(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each less the one before it, without a sign."""
    change = np.diff(numbers, prepend=0)
    return np.where(change < 0, -2 * change - 1, 2 * change)


def packed(numbers: dict[str, NDArray[np.int64]], sizes: dict[str, int]) -> bytes:
    """The columns, see above."""
    planes = []
    for column, size in sizes.items():
        by_byte = numbers[column].astype("<u8").view(np.uint8).reshape(-1, 8)
        planes.append(by_byte[:, :size].T.tobytes())
    return gzip.compress(b"".join(planes), 6, mtime=0)


def _shown(trace: Trace, most: int) -> tuple[Trace, list[str]]:
    """What is shown of a recording, all but its own spans of waits, steps and the Python of libraries; what was left out."""
    python = trace.kind == Kind.PYTHON
    library = np.array([bool(LIBRARY.search(place.path)) for place in (*trace.places,)] + [True], bool)[trace.place]
    kept = ~(python & library) & ~np.isin(trace.kind, (Kind.STEP, Kind.READ, Kind.OTHER))
    device = np.array([lane.device >= 0 for lane in trace.lanes], bool)[trace.lane]
    kept &= device | ~np.isin(trace.kind, (*DEVICE, Kind.SYNC))
    kept &= ~(python & _around(trace))
    notes = []
    if count := int((python & library).sum()):
        notes.append(
            f"{count:,} calls of Python within libraries are not in the timeline; --format tensorboard has them"
        )
    shown = fit(trace.take(kept), most, "events of the timeline")
    return shown, notes + shown.meta.get("notes", [])[len(trace.meta.get("notes", [])) :]


def _around(trace: Trace) -> NDArray[np.bool_]:
    """What was running before the first step and after the last: it says nothing of any."""
    steps = trace.rows(Kind.STEP)
    if not len(steps):
        return np.zeros(len(trace), bool)
    found: NDArray[np.bool_] = (trace.start <= trace.start[steps].min()) & (trace.end >= trace.end[steps].max())
    return found


class _Lanes:
    """The lanes of the page: of the trace those in use, one for the Python of each thread, and above one for its waits."""

    def __init__(self, trace: Trace) -> None:
        used = np.unique(trace.lane).tolist()
        self.of = np.full(len(trace.lanes), -1, np.int64)
        self.of[used] = np.arange(len(used))
        self.facts: list[dict[str, Any]] = []
        self._waits: dict[int | str, int] = {}
        self._threads = {
            trace.lanes[n].thread: position for position, n in enumerate(used) if trace.lanes[n].device < 0
        }
        several = len({trace.lanes[n].device for n in used if trace.lanes[n].device >= 0}) > 1
        for n in used:
            lane = trace.lanes[n]
            what = f"{'queue' if lane.device >= 0 else 'thread'} {lane.thread}"
            label = lane.label.strip() or what
            self.facts.append(
                {
                    "label": f"device {lane.device}: {label}" if several and lane.device >= 0 else label,
                    "device": lane.device,
                }
            )

    def lane(self, trace: Trace) -> NDArray[np.int64]:
        """The lane of each event: calls of Python have one of their own, below what they called."""
        found, python = self.of[trace.lane], trace.kind == Kind.PYTHON
        for number in np.unique(found[python]).tolist():
            found = np.where(python & (found == number), len(self.facts), found)
            self.facts.append({"label": f"{self.facts[number]['label']}: Python", "device": -1})
        return found

    def waits(self, read: Read) -> int:
        """The lane of the waits of the thread of a read."""
        if read.thread not in self._waits:
            self._waits[read.thread] = len(self.facts)
            label = WAITING + (f", thread {read.thread}" if len(self._waits) > 1 else "")
            self.facts.append({"label": label, "device": -1, "waits": True})
        return self._waits[read.thread]

    def rank(self) -> NDArray[np.int64]:
        """The position of each lane from the top: devices, then waits, then threads."""
        order = sorted(
            range(len(self.facts)), key=lambda n: (self.facts[n]["device"] < 0, "waits" not in self.facts[n], n)
        )
        found = np.zeros(len(order), np.int64)
        found[order] = np.arange(len(order))
        return found


def wait_name(read: Read) -> str:
    """`train.py:57 item`."""
    return (
        f"{read.place.path.rpartition('/')[2]}:{read.place.line} {read.op}"
        if read.place
        else f"{read.module} {read.op}".strip()
    )


def _links(trace: Trace, waits: list[Read], whole: Trace) -> NDArray[np.int64]:
    """For each event the one that it is linked to: device work to its call, a wait to the work it waited for; -1 is none."""
    link = np.full(len(trace) + len(waits), -1, np.int64)
    calls, work = trace.rows(Kind.CALL), np.flatnonzero(np.isin(trace.kind, DEVICE) & (trace.correlation >= 0))
    calls = calls[np.argsort(trace.correlation[calls], kind="stable")]
    if len(calls) and len(work):
        found = np.searchsorted(trace.correlation[calls], trace.correlation[work]).clip(0, len(calls) - 1)
        same = trace.correlation[calls[found]] == trace.correlation[work]
        link[work[same]] = calls[found[same]]
    here: dict[tuple[int, int], int] = {}
    targets = {read.waited_for for read in waits if 0 <= read.waited_for < len(whole)}
    if targets:
        device = np.flatnonzero(np.isin(trace.kind, DEVICE))
        spans = zip(trace.start[device].tolist(), trace.lane[device].tolist(), strict=True)
        here = dict(zip(spans, device.tolist(), strict=True))
    for number, read in enumerate(waits):
        row = read.waited_for
        if row in targets:
            link[len(trace) + number] = here.get((int(whole.start[row]), int(whole.lane[row])), -1)
    return link


def _held_up(report: Report, rows: NDArray[np.int64], waits: list[Read]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each of these rows and each wait: why it was held up, and the number of what did, -1 where that is not shown."""
    count = len(rows) + len(waits)
    if report.held_up is None or report.trace is None:
        return np.zeros(count, np.int64), np.full(count, -1, np.int64)
    events, shown = len(report.trace), {id(read) for read in waits}
    reads = np.array([number for number, read in enumerate(report.reads) if id(read) in shown], np.int64)
    own = np.concatenate([rows, events + reads])
    at = np.full(events + len(report.reads) + 1, -1, np.int64)  # the last is that of number -1
    at[own] = np.arange(count)
    return report.held_up.why[own].astype(np.int64), at[report.held_up.by[own]]


def depths(lane: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many events of its lane are running when an event starts."""
    depth = np.zeros(len(lane), np.int64)
    order = np.lexsort((-end, start, lane))
    of, running = -1, list[int]()  # the ends of what runs
    for row, here, since, until in zip(
        *(c.tolist() for c in (order, lane[order], start[order], end[order])), strict=True
    ):
        if here != of:
            of, running = here, []
        while running and running[-1] <= since:
            running.pop()
        depth[row] = len(running)
        running.append(until)
    return depth
