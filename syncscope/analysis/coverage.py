"""Whether a recording can be judged at all: the one place that says so, for reports, limits, comparisons and jobs.

A wait is seen by the call that waited and by the device's work that it waited for. Where one of the two was not recorded, no
wait is seen, and a report without waits would be a false one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.graph import NEVER
from syncscope.analysis.steps import counted_time, done_once, window
from syncscope.analysis.steps import steps as marked
from syncscope.analysis.waits import Launches, launches
from syncscope.errors import UserError
from syncscope.model.coverage import Coverage
from syncscope.model.report import Step
from syncscope.model.trace import Kind, Trace

# Calls that give the device work each time: a fill may be none, and what a graph launches has the number of its launch.
LAUNCH = re.compile(r"Launch(?:Cooperative)?Kernel|KernelLaunch|EnqueueNDRange|MemcpyAsync")
KERNELS = re.compile(r"Launch(?:Cooperative)?Kernel|KernelLaunch|EnqueueNDRange")  # of these, those that run kernels
EARLIER = 0.5  # the part of the counted time in which the device may work on what was enqueued before
WARM = 0.2  # the part of the counted steps that may be spent on what is done once
SETTLES = 24  # steps of a program that as a rule hold some in which it is done
CAPTURE = re.compile(r"StreamBeginCapture"), re.compile(r"StreamEndCapture")
FEW = 0.05  # the part of the launches whose work may be missing: what ran when the recording ended
# the part of the device's work that may have been launched before the recording, or by another process
UNLAUNCHED = 0.5
SHAPES = '"Input Dims"'


def coverage_of(trace: Trace, launched: Launches, steps: int) -> Coverage:
    """What a recording has and lacks, and why it cannot be judged if it cannot; `steps` is how many are marked in it."""
    kinds = set(np.unique(trace.kind).tolist())
    ours = trace.meta.get("recorder") == "syncscope"
    lines = bool(((trace.place >= 0) & (trace.kind != Kind.PYTHON)).any())
    facts = (
        (f"{steps} step{'s' * (steps > 1)}" if steps else "", "steps", "end each with `prof.step()` or `trace.step()`"),
        ("device work" if len(launched.row) else "", "device work", "`ProfilerActivity.CUDA`" if not ours else ""),
        ("driver calls" if Kind.CALL in kinds else "", "driver calls", "`ProfilerActivity.CUDA`" if not ours else ""),
        ("operators" if Kind.OP in kinds else "", "operators", "`ProfilerActivity.CPU`" if not ours else ""),
        (
            "lines" if lines else "functions" if Kind.PYTHON in kinds else "",
            "lines",
            "`syncscope run`" if not ours else "",
        ),
        (
            "shapes" if any(SHAPES in one for one in trace.details) else "",
            "shapes",
            "`--shapes`" if ours else "`record_shapes=True`",
        ),
        (
            "memory" if trace.memory is not None else "",
            "memory",
            "`--memory`" if ours else "`profile_memory=True`",
        ),
    )
    refusal, hint, whole = _refusal(trace, launched, kinds)
    return Coverage(
        has=tuple(there for there, _, _ in facts if there),
        lacks=()  # of one that is cut off nobody knows what the rest had
        if trace.meta.get("cut")
        else tuple((what, how) for there, what, how in facts if how and not there),
        refusal=refusal,
        hint=hint,
        whole=whole,
        empty=not kinds - {int(Kind.OTHER)},
    )


def of_settled_steps(found: Coverage, steps: Sequence[Step], part: float) -> Coverage:
    """The same, refused where the steps that are counted are those in which the program warmed up, for there are no others: for
    this `part` of them it did what is done once."""
    once = done_once(steps)
    part = part if steps else 0.0
    if found.refusal or max(part, once) <= WARM:
        return found
    enough = max(SETTLES, 2 * (1 + max(step.index for step in steps)))
    why = "kernels were compiled or loaded, or the driver was asked for memory"
    return replace(
        found,
        refusal=f"for {part:.0%} of the counted steps {why}"
        if part > WARM
        else f"{once:.0%} of the {len(steps)} steps is what a program does once: in it {why}",
        hint=f"let the program make {enough} steps or more (often by an option of its own), so that some follow it",
    )


def of_whole_steps(found: Coverage, steps: Sequence[Step]) -> Coverage:
    """The same, refused where half of the steps lost what the host asked of the device, or no two that did not follow one
    another."""
    lost = [step.lost for step in steps]
    together = any(not (one or other) for one, other in pairwise(lost))
    if found.refusal or not any(lost) or (together and 2 * sum(lost) < len(lost)):
        return found
    return replace(
        found,
        refusal=f"in {sum(lost)} of {len(lost)} steps operators ran that call the driver in others, and their calls were lost",
        hint="record fewer steps at once: the profiler's buffer may have run full",
        whole=False,
    )


def of_known_work(found: Coverage, event_graph: EventGraph, steps: Sequence[Step]) -> Coverage:
    """The same, refused where for most of the time the device worked on what was enqueued before the recording: that is not in
    it, and whether the host could have gone on meanwhile nobody knows."""
    until = max((time for time in event_graph.device_work.free.tolist() if time > NEVER), default=0.0)
    first, last = counted_time(steps)[:2] if steps else window(event_graph.trace, event_graph.launched)
    first = max(first, event_graph.host.origin)
    part = (min(event_graph.host.origin + until, last) - first) / (last - first) if last > first else 0.0
    if found.refusal or part <= EARLIER:
        return found
    return replace(
        found,
        refusal=f"for {part:.0%} of the time, more than {EARLIER:.0%}, the device had work that was enqueued before the "
        "recording and is not in it",
        hint="record from further back",
    )


def refuse(trace: Trace, name: str) -> None:
    """Nothing, where a recording can be judged.

    Raises:
        UserError: it cannot, with the reason.
    """
    launched = launches(trace)
    found = coverage_of(trace, launched, 0)
    found = of_whole_steps(found, () if found.refusal else marked(trace, launched))
    if found.refusal:
        raise UserError(f"{name} cannot be judged: {found.refusal}", found.hint, name)


def _refusal(trace: Trace, launched: Launches, kinds: set[int]) -> tuple[str, str, bool]:
    """Why nothing can be judged, what to do about it, and whether the device's work is all there."""
    if trace.meta.get("cut"):
        return "it is cut off before the end of its events", "copy it once more, or read more of it (--max-size)", False
    if trace.meta.get("damaged"):
        return (
            "its gzip data is damaged, and nobody knows how much of what came out of it is right",
            "copy it once more",
            False,
        )
    if (error := trace.meta.get("ended_by")) and Kind.STEP not in kinds:
        return f"{error} ended the program before its first step", "mend that, and record again", True
    if (why := trace.meta.get("ended_early")) and Kind.STEP not in kinds:
        return f"the recording ended before the first step did: {why}", "record into a folder with more room", True
    if not len(launched.row):
        return (*_idle(trace, kinds), True)
    if Kind.CALL not in kinds:
        why = "no call of the driver was recorded, and so no wait can be seen"
        return why, "record the host, too: leave no event of `cuda_runtime` out", True
    lonely = int((launched.call < 0).sum())
    if lonely > UNLAUNCHED * len(launched.row):
        why = f"of {len(launched.row):,} pieces of device work {lonely:,} have no call that launched them"
        return why, "record the process that launches, and from before its steps", True
    if Kind.KERNEL not in kinds and (kernels := len(_launching(trace, KERNELS))):
        why = f"no kernel was recorded, though {kernels:,} were launched: of the device's work there are copies and fills alone"
        return why, "let the profiler stop before the program ends, and no other profiler run beside it", False
    calls, lost = lost_work(trace, launched)
    if lost > FEW * calls:
        why = f"of {calls:,} launches {lost:,} have no work of the device, which was lost"
        return why, "record fewer steps at once, and stop the profiler before the program ends", False
    return "", "", True


def _idle(trace: Trace, kinds: set[int]) -> tuple[str, str]:
    """Why no work of a device is known, and what to do."""
    if unknown := trace.meta.get("unknown"):
        named = " and ".join(f"{count:,} {name}" for name, count in list(unknown.items())[:3])
        return (
            f"this recording has {named}, which syncscope does not know",
            "give what torch.profiler or syncscope recorded",
        )
    if not kinds:
        return "it has no events", "give what torch.profiler or syncscope recorded"
    if Kind.CALL in kinds:
        why = "no work of a device was recorded, though the driver was called"
        return why, "let the profiler stop before the program ends, and no other profiler run beside it"
    if trace.meta.get("dry"):
        why = "it was made on the CPU, for which the lines that would wait are known, and not what that costs"
        return why, "record with `syncscope run --device ocl`, or on a GPU"
    if trace.meta.get("recorder") == "syncscope":
        why = "no work of a device was recorded: all ran on the CPU"
        here = '`import syncscope.kernels` makes a device of this processor, `device = "ocl"`, which is waited for as a GPU is'
        return why, f"record on a GPU; without one {here}, as does `syncscope run --device ocl`"
    why = "no work of a device was recorded: all ran on the CPU, or the device was left out"
    return why, "record with `ProfilerActivity.CUDA` or `syncscope run`; without a GPU, `syncscope run --device ocl`"


def lost_work(trace: Trace, launched: Launches) -> tuple[int, int]:
    """How many calls give the device work each time, and of how many of them none was recorded.

    Of each name only where some have: a dialect may join none of them to their work. What is captured into a graph does not
    run.
    """
    calls = _launching(trace, LAUNCH)
    worked = np.zeros(len(trace), bool)
    worked[launched.call[launched.call >= 0]] = True
    known = np.bincount(trace.name[calls], worked[calls], len(trace.names)) > 0 if len(calls) else np.zeros(0, bool)
    calls = calls[known[trace.name[calls]]] if len(calls) else calls
    return len(calls), int((~worked[calls]).sum())


def _launching(trace: Trace, named: re.Pattern[str]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The calls of such a name that give the device work: not those that are captured into a graph."""
    calls = trace.rows(Kind.CALL)
    launching = np.array([bool(named.search(name)) for name in trace.names], bool)
    calls = calls[launching[trace.name[calls]] & (trace.correlation[calls] >= 0)]
    return calls[~_captured(trace, calls)]


def _captured(
    trace: Trace, calls: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of these calls lie between the begin and the end of a capture."""
    begin, end = (
        trace.start[trace.rows(Kind.CALL)][
            np.array([bool(pattern.search(name)) for name in trace.names], bool)[trace.name[trace.rows(Kind.CALL)]]
        ]
        for pattern in CAPTURE
    )
    inside = np.searchsorted(begin, trace.start[calls], "right") > np.searchsorted(end, trace.start[calls], "right")
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = inside
    return found
