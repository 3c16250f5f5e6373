"""Has every launch its line, and is it the right one?

    python benchmarks/lines_of_launches.py                       five programs, whose libraries are installed
    python benchmarks/lines_of_launches.py classifier vae dcgan --device ocl     these, also of PyTorch's examples

Of each program the table has the share of launches, of the device's time and of the host's time whose line is known, and how
many stand at a library's line. Host and device of a step are the report's `by_line`. Then the program runs once more below a
mode of torch's that is told of each operator: 200 launches, drawn at random, are compared with what `sys._getframe` says there,
in backward with the line of `backward()` and with the stack that torch's own anomaly mode has noted where the node was made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from library_programs import EXAMPLES, PROGRAMS, Run
from torch.utils._python_dispatch import TorchDispatchMode

import syncscope
from syncscope.analysis.waits import launches
from syncscope.model.trace import Kind, Trace
from syncscope.tracers import places
from syncscope.tracers.lines import library as lines

SAMPLE = 200
STEPS = 6
LAUNCHES = re.compile(r"Launch|Memcpy|Memset|Enqueue(?!Marker|Barrier)")


class Where(NamedTuple):
    """A line and the user's that led there, by Python's account."""

    place: tuple[str, int] | None
    caller: tuple[str, int] | None


def where(frame: FrameType | None) -> Where:
    """Of the frames that run."""
    found = []
    while frame is not None:
        kind = places.kind_of_file(frame.f_code.co_filename)
        if kind in (places.USER, places.LIBRARY):
            found.append((kind, (frame.f_code.co_filename, frame.f_lineno)))
        frame = frame.f_back
    return _of(found)


def of_stack(text: list[str]) -> Where:
    """Of a stack as Python prints it, the innermost frame last."""
    frames = [(m[1], int(m[2])) for part in reversed(text) if (m := re.match(r'\s*File "(.*?)", line (\d+)', part))]
    kinds = [(places.kind_of_file(path), (path, line)) for path, line in frames]
    return _of([one for one in kinds if one[0] in (places.USER, places.LIBRARY)])


def _of(found: list[tuple[int, tuple[str, int]]]) -> Where:
    if not found or found[0][0] == places.USER:
        return Where(found[0][1] if found else None, None)
    return Where(found[0][1], next((at for kind, at in found if kind == places.USER), None))


class Told(NamedTuple):
    """An operator by Python's account: when and on which thread it ran, where, and in backward the forward operator's line."""

    begin: int
    end: int
    thread: int
    at: Where
    forward: tuple[str, int] | None


def carried(function: Any) -> Any:
    """The function as one of torch's, so that it is no line of the program's."""
    code = function.__code__.replace(co_filename=f"{Path(torch.__file__).parent}/beside.py")
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


class Beside(TorchDispatchMode):  # type: ignore[misc]
    """Notes where each operator runs, and who called backward."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Told] = []
        self.called = [Where(None, None)]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        at, node, forward = where(sys._getframe(0)), torch._C._current_autograd_node(), None
        if node is not None:
            forward = of_stack(node.metadata.get("traceback_") or []).place
            at = self.called[-1] if at.place is None else at
        begin = time.monotonic_ns()
        result = func(*args, **(kwargs or {}))
        self.told.append(Told(begin, time.monotonic_ns(), threading.get_native_id(), at, forward))
        return result

    __torch_dispatch__ = carried(__torch_dispatch__)


def beside(run: Run) -> tuple[Trace, list[Told]]:
    """A recording, and what Python says of the same steps."""
    mode, original = Beside(), torch.autograd.backward

    def backward(*args: Any, **kwargs: Any) -> Any:
        mode.called.append(where(sys._getframe(0)))
        return original(*args, **kwargs)

    noted = torch.autograd.set_detect_anomaly(True, check_nan=False)
    shift = time.time_ns() - time.monotonic_ns()
    with (
        mock.patch.object(torch.autograd, "backward", carried(backward)),
        noted,
        mock.patch.object(
            torch.autograd, "set_detect_anomaly", contextlib.nullcontext
        ),  # Lightning would switch it off
        mode,
        syncscope.trace(whole=True) as recording,
    ):
        run(STEPS)
    trace = recording.trace
    origin = trace.meta["origin_ns"] - shift
    return trace, [t._replace(begin=t.begin - origin, end=t.end - origin) for t in mode.told]


def compared(trace: Trace, told: list[Told]) -> dict[str, Any]:
    """How many launches could be compared, and where a sample of them differs."""
    calls = [int(row) for row in trace.rows(Kind.CALL) if LAUNCHES.search(trace.names[trace.name[row]])]
    of: dict[int | str, list[Told]] = {}
    for one in told:
        of.setdefault(one.thread, []).append(one)
    pairs = []
    for row in calls:
        event = trace[row]
        ran = of.get(event.lane.thread, [])
        at = int(np.searchsorted([one.begin for one in ran], event.start, side="right")) - 1
        if at >= 0 and event.end <= ran[at].end:
            pairs.append((event, ran[at]))
    chosen = random.Random(0).sample(pairs, min(SAMPLE, len(pairs)))
    wrong = Counter[str]()
    unknown = unchecked = backward = 0
    for event, one in chosen:
        place, caller, forward = ((p.path, p.line) if p else None for p in (event.place, event.caller, event.forward))
        unknown += place is None
        backward += one.forward is not None
        if place is not None and (place, caller) != one.at:
            wrong[f"line {place} {caller}, is {one.at}"] += 1
        if forward is not None and one.forward is not None and forward != one.forward:
            wrong[f"forward {forward}, is {one.forward}"] += 1
        unknown += one.forward is not None and forward is None
        unchecked += forward is not None and one.forward is None
    return {
        "launches": len(calls),
        "in operators": len(pairs),
        "sample": len(chosen),
        "of backward": backward,
        "wrong": sum(wrong.values()),
        "unknown": unknown,
        "forward unchecked": unchecked,
        "which": wrong.most_common(5),
    }


def shares(trace: Trace) -> dict[str, Any]:
    """What has a line."""
    calls, steps = trace.rows(Kind.CALL, Kind.COMPILE), syncscope.report(trace).by_line
    known, length = trace.place >= 0, trace.duration
    launched = launches(trace)
    joined = launched.call >= 0
    own = np.zeros(len(trace), bool)
    own[launched.row[joined]] = known[launched.call[joined]]
    asks = calls[[bool(LAUNCHES.search(trace.names[trace.name[row]])) for row in calls]]
    lost = Counter(trace.names[trace.name[row]] for row in calls[~known[calls]])
    return {
        "launches": len(asks),
        "with a line %": _percent(known[asks].sum(), len(asks)),
        "device time %": _percent(length[launched.row][own[launched.row]].sum(), length[launched.row].sum()),
        "time in the driver %": _percent(length[calls][known[calls]].sum(), length[calls].sum()),
        "at a library's %": _percent((trace.caller[asks] >= 0).sum(), len(asks)),
        "host of a step %": _percent(steps.host_known, 1) if steps else None,
        "device of a step %": _percent(steps.device_known, 1) if steps else None,
        "in backward %": _percent((trace.forward[asks] >= 0).sum(), len(asks)),
        "lines": len(np.unique(trace.place[asks])),
        "without": lost.most_common(4),
    }


def _percent(part: Any, whole: Any) -> float:
    return round(100 * float(part) / max(1.0, float(whole)), 2)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", choices=[[], *PROGRAMS, *EXAMPLES])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep a recording of each program")
    given = parser.parse_args()
    if given.device == "ocl":
        from syncscope import kernels  # noqa: F401  registers the device
    device = torch.device(given.device)
    if lines.library() is None:
        raise SystemExit("lines cannot be read here: no compiler, or a Python whose frames nobody knows")
    for name in given.programs or PROGRAMS:
        try:
            run = (PROGRAMS | EXAMPLES)[name](device)
            run(2)
            with syncscope.trace(whole=True) as recording:
                run(STEPS)
            print(f"\n{name}:", json.dumps(shares(recording.trace)), flush=True)
            if given.save:
                recording.save(given.save / f"{name}.json.gz")
            print("  beside sys._getframe:", json.dumps(compared(*beside(run))), flush=True)
        except ImportError as error:
            print(f"\n{name}: {error}")
        except Exception:  # one that fails is not to cost the others
            print(f"\n{name} failed")
            traceback.print_exc()


if __name__ == "__main__":
    main()
