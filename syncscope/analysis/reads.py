"""The several driver calls of one `.item()`, copy, nonzero or mask as one `Read`, with the line it stands on."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from syncscope.analysis.intervals import gaps, union
from syncscope.analysis.nesting import Nesting
from syncscope.analysis.waits import FROM_HOST, PINNED, TO_HOST, Launches, Wait
from syncscope.model import ops
from syncscope.model.ops import Op
from syncscope.model.report import Read, Step
from syncscope.model.source import Place
from syncscope.model.trace import Flag, Kind, Trace, numbers_used

Times = np.ndarray[tuple[int], np.dtype[np.int64]]
OPERATOR = re.compile(r"^(?:aten|prims|torchvision|c10d)::")
# Frames that only carry the user's wish: torch's own, the interpreter's and the standard library's.
CARRIER = re.compile(r"(?:^|/)(?:torch|functorch)/|^<|(?:^|/)lib/python3[.\d]*/(?!site-packages|dist-packages)")
READ, FALLBACK = int(Kind.READ), int(Flag.FALLBACK)  # asked for in every event around a wait: an enum is slow to ask
OF_TORCH = (  # what reads like this in a file of torch's own is called: the user's line has no `bool` and no `item`
    ("torch/distributions/", Op.BOOL, Op.DISTRIBUTION_VALIDATE),
    ("torch/nn/utils/clip_grad.py", Op.BOOL, Op.CLIP_GRAD_NORM),
    ("torch/nn/modules/transformer.py", Op.BOOL, Op.TRANSFORMER_MASK),
    ("torch/amp/grad_scaler.py", Op.ITEM, Op.GRAD_SCALER),
)
MEMCPY = re.compile(r"Memcpy|EnqueueWriteBuffer")
AFTER_COPY = re.compile(r"StreamSynchronize$")
CALL = 2  # what stands for a wait around which nothing was recorded: the call itself
# regions that say nothing of the user's code
OURS = re.compile(r"^(?:ProfilerStep#|host (?:waits|reads))|^PyTorch Profiler")
OF_LIBRARIES = re.compile(r"^nccl:|^enumerate\(DataLoader\)")  # nor do these say where it stands
REGION = "region "
MODULE = re.compile(r"^nn\.Module: (?P<name>.+?)(?:_\d+)?$")


def reads(trace: Trace, waits: Iterable[Wait], launched: Launches, steps: tuple[Step, ...] = ()) -> tuple[Read, ...]:
    """The logical reads of a recording, in order of their start; the recorder's own closing wait is none.

    `waits` and `launched` are what `analysis.waits` gives, `steps` number the reads.
    """
    around, copying = _Around(trace), _copies_before(trace, launched)
    units: dict[tuple[int, int], list[Wait]] = {}
    for wait in waits:
        if not wait.closing:
            rank, unit = around.unit(wait.row)
            units.setdefault((rank, copying.get(unit, unit) if rank == CALL else unit), []).append(wait)
    end = trace.start + trace.duration
    queue, copies = _Queued(trace, launched), _Copies(trace, launched)
    found = [_read(trace, around, queue, copies, unit, members, end) for (_, unit), members in units.items()]
    found.sort(key=lambda read: read.start)
    return tuple(_numbered(_charged(trace, found, launched, end), steps))


def _read(
    trace: Trace, around: _Around, queue: _Queued, copies: _Copies, unit: int, members: list[Wait], end: Times
) -> Read:
    start = min(int(trace.start[w.row]) for w in members)
    stop = max(int(end[w.row]) for w in members)
    targets = [t for w in members for t in w.targets]
    last = max(targets, key=lambda t: int(end[t]), default=-1)
    blocked = staged = 0
    for wait in members:
        staged += int(trace.duration[wait.row]) if wait.staged else 0
        until = max((int(end[t]) for t in wait.targets), default=0)
        blocked += max(0, min(until, int(end[wait.row])) - int(trace.start[wait.row]))
    place, column, function, caller = around.place(unit, members[0].row)
    name, fallback = around.name(unit, members[0].row)
    return Read(
        op=_as_copied(name, copies.only_to_device(unit)),
        start=start,
        end=stop,
        blocked=blocked,
        thread=trace.lanes[trace.lane[unit]].thread,
        place=place,
        column=column,
        module=around.module(unit, members[0].row) or ("" if place else around.region(members[0].row)),
        bytes=max(int(trace.bytes[unit]), int(max((trace.bytes[t] for t in targets), default=-1))) if targets else -1,
        waited_for=last if blocked else -1,
        ahead=queue.ahead(start),
        fallback=fallback,
        calls=tuple(w.row for w in members),
        function=function,
        caller=caller,
        row=unit,
        staged=staged,
        besides=max(0, int(trace.duration[unit]) - sum(int(trace.duration[w.row]) for w in members)),
    )


def _charged(trace: Trace, found: list[Read], launched: Launches, end: Times) -> list[Read]:
    """Each gap of the device goes to the one read after whose work it began; every idle nanosecond is charged once.

    ```text
    device  --K1--)      (--K2--
    host    [-- read --] launch
                  |<-->|  idle after the read: K1's end to K2's start
    ```
    """
    idle = gaps(union(trace.start[launched.row], end[launched.row]))
    over = np.array([end[read.waited_for] if read.waited_for >= 0 else -1 for read in found], np.int64)
    at = np.searchsorted(idle.start, over)
    charged, taken = [], set[int]()
    for read, number, moment in zip(found, at.tolist(), over.tolist(), strict=True):
        after = 0
        if read.waited_for >= 0 and number < len(idle.start) and idle.start[number] == moment and number not in taken:
            after = int(idle.end[number] - idle.start[number])
            taken.add(number)
        charged.append(replace(read, idle_after=after))
    return charged


def _numbered(found: list[Read], steps: tuple[Step, ...]) -> list[Read]:
    starts = [s.start for s in steps]
    numbered = []
    for read in found:
        at = bisect_right(starts, read.start) - 1
        inside = at >= 0 and read.start < steps[at].end
        numbered.append(replace(read, step=steps[at].index if inside else -1))
    return numbered


def _as_copied(op: str, uploads: bool) -> str:
    """What an operator is called that makes the host wait for a copy, by the way that it goes."""
    return ops.UPLOADS.get(op, Op.TO_DEVICE if MEMCPY.search(op) else op) if uploads else op


def _copies_before(trace: Trace, launched: Launches) -> dict[int, int]:
    """The call that enqueued a copy, of each call that waits for a queue right after it: torch does both where it copies, and
    where no operator was recorded nothing else says that they are one."""
    calls = trace.rows(Kind.CALL)
    order = calls[np.lexsort((trace.start[calls], trace.lane[calls]))]
    waits = np.array([bool(AFTER_COPY.search(name)) for name in trace.names], bool)
    pinned = np.array([bool(PINNED.search(name)) for name in trace.names], bool)[trace.name[launched.row]]
    copied = np.zeros(len(trace), bool)
    copied[launched.call[(trace.kind[launched.row] == Kind.COPY) & (launched.call >= 0) & ~pinned]] = True
    before, after = order[:-1], order[1:]
    one = copied[before] & waits[trace.name[after]] & (trace.lane[before] == trace.lane[after])
    return dict(zip(after[one].tolist(), before[one].tolist(), strict=True))


class _Copies:
    """Which copies between host and device were enqueued when, on each thread."""

    def __init__(self, trace: Trace, launched: Launches) -> None:
        ways = np.array([2 if TO_HOST.search(n) else 1 if FROM_HOST.search(n) else 0 for n in trace.names], np.uint8)
        copied = (trace.kind[launched.row] == Kind.COPY) & (launched.call >= 0)
        rows, calls = launched.row[copied], launched.call[copied]
        rows, calls = (of[ways[trace.name[rows]] > 0] for of in (rows, calls))
        order = np.argsort(trace.start[calls], kind="stable")
        self._trace = trace
        self._start, self._lane = trace.start[calls][order], trace.lane[calls][order]
        self._up = ways[trace.name[rows]][order] == 1

    def only_to_device(self, unit: int) -> bool:
        """Whether all that was copied in this read or operator, and something was, went to the device."""
        trace = self._trace
        begin, lane = int(trace.start[unit]), trace.lane[unit]
        first, last = np.searchsorted(self._start, [begin, begin + int(trace.duration[unit]) + 1])
        own = self._lane[first:last] == lane
        return bool(own.any() and self._up[first:last][own].all())


class _Queued:
    """How much device work had been enqueued and not done at a moment."""

    def __init__(self, trace: Trace, launched: Launches) -> None:
        known = launched.call >= 0
        rows, calls = launched.row[known], launched.call[known]
        order = np.argsort(trace.start[calls], kind="stable")
        self._since = trace.start[calls][order]
        self._start = trace.start[rows][order]
        self._end = self._start + trace.duration[rows][order]
        self._reach = np.maximum.accumulate(self._end)

    def ahead(self, now: int) -> int:
        """Sum of the work (or rest of work) that was enqueued before `now` and not done then, ns."""
        last = int(np.searchsorted(self._since, now, side="right"))
        first = int(np.searchsorted(self._reach, now, side="right"))  # all before it are done
        part = slice(first, last)
        rest = self._end[part] - np.maximum(self._start[part], now)
        return int(rest[rest > 0].sum())


class _Around:
    """What encloses a call: the read or operator it belongs to, its line, its module."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._units = Nesting(trace, Kind.READ, Kind.OP)
        self._frames = Nesting(trace, Kind.PYTHON)
        self._regions = Nesting(trace, Kind.ANNOTATION)
        self._chains: dict[int, list[int]] = {}
        lanes = [int(x) for x in numbers_used(trace.lane[trace.rows(Kind.PYTHON)])]
        steps = trace.rows(Kind.STEP)
        main = int(trace.lane[steps[0]]) if len(steps) else -1
        self._main = main if main in lanes else (lanes[0] if len(lanes) == 1 else -1)

    def _chain(self, row: int) -> list[int]:
        if row not in self._chains:
            trace = self._trace
            start = int(trace.start[row])
            self._chains[row] = self._units.around(int(trace.lane[row]), start, start + int(trace.duration[row]))
        return self._chains[row]

    def unit(self, row: int) -> tuple[int, int]:
        """The row that stands for the whole read: the Python expression, else the outermost operator, else the call."""
        trace = self._trace
        chain = self._chain(row)
        for above in chain:
            if trace.kind[above] == READ:
                return 0, above
        for above in chain:
            if trace.flags[above] & FALLBACK or OPERATOR.match(trace.names[trace.name[above]]):
                return 1, above
        return (1, chain[-1]) if chain else (CALL, row)

    def name(self, unit: int, call: int) -> tuple[str, bool]:
        """What users call it (`item`, `nonzero`, `fallback of aten::x`, `cudaStreamSynchronize`), and whether it waits only
        because the device has no such operator: what asks for a value or for a shape waits on every device."""
        trace = self._trace
        name: str = trace.names[trace.name[unit]]
        if trace.kind[unit] == READ:
            known = trace.known(unit)
            if trace.flags[unit] & FALLBACK:
                asked = ops.of_fallback(known.operator)
                return asked or name, asked is None
            return next(
                (op for file, read, op in OF_TORCH if name == read and known.library.startswith(file)), name
            ), False
        if any(trace.flags[above] & FALLBACK for above in self._chain(call)):
            asked = ops.of_fallback(name)
            whole = name if name.startswith(ops.FALLBACK_OF) else ops.FALLBACK_OF + name
            return asked or whole, asked is None
        return ops.of_operator(name.removeprefix("aten::")), False

    def place(self, unit: int, call: int) -> tuple[Place | None, int, str, Place | None]:
        """Line and column as recorded, and of a library's the user's line that led there; else the innermost user's function
        around, where it begins, and its name."""
        trace = self._trace
        recorded = next((r for r in (unit, *reversed(self._chain(call))) if trace.place[r] >= 0), -1)
        if recorded >= 0:
            caller = int(trace.caller[recorded])
            led = trace.places[caller] if caller >= 0 else None
            return trace.places[trace.place[recorded]], int(trace.column[recorded]), "", led
        for frame in reversed(self._stack(call)):
            if trace.place[frame] >= 0:
                place = trace.places[trace.place[frame]]
                if not carries(place.path):
                    return place, -1, trace.names[trace.name[frame]].rpartition(": ")[2], None
        return None, -1, "", None

    def module(self, unit: int, call: int) -> str:
        """The `nn.Module` in whose forward it happened, as recorded or by the Python frames."""
        trace = self._trace
        for row in (unit, *reversed(self._chain(call))):
            if module := trace.known(row).module:
                return module
        for frame in reversed(self._stack(call)):
            found = MODULE.match(trace.names[trace.name[frame]])
            if found:
                return found["name"]
        return ""

    def region(self, call: int) -> str:
        """The innermost region of the program (`record_function`) around a call: `region forward_loss`; "" where none is."""
        trace = self._trace
        start, end = int(trace.start[call]), int(trace.start[call] + trace.duration[call])
        for row in reversed(self._regions.around(int(trace.lane[call]), start, end)):
            name: str = trace.names[trace.name[row]]
            if not OURS.match(name) and not OF_LIBRARIES.match(name):
                return f"{REGION}{name.strip('# ')}"
        return ""

    def _stack(self, call: int) -> list[int]:
        """The Python frames around a call, those of the main thread where its own has none (backward), outermost first."""
        trace = self._trace
        start, end = int(trace.start[call]), int(trace.start[call] + trace.duration[call])
        frames = self._frames.around(int(trace.lane[call]), start, end)
        if not frames and self._main >= 0 and self._main != trace.lane[call]:
            frames = self._frames.around(self._main, start, end)
        return frames


def carries(path: str) -> bool:
    """Whether a file only carries the user's wish: torch's own, the interpreter's and the standard library's do."""
    bare = "/" not in path and path.removesuffix(".py") in sys.stdlib_module_names
    return bare or bool(CARRIER.search(path))
