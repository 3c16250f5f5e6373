"""What is said of a recording besides its figures: how far they are to be trusted, what was inferred, what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.fidelity import crowded
from syncscope.analysis.full_queue import FullQueue
from syncscope.analysis.graph import NEVER, Graph
from syncscope.analysis.not_waited_for import not_waited_for
from syncscope.analysis.outlying import set_aside_told
from syncscope.analysis.price import unpriced
from syncscope.analysis.recorder_cost import unmeasured
from syncscope.analysis.some_steps import replayed_of
from syncscope.analysis.steps import counted_time
from syncscope.model.durations import about_ms, in_ms
from syncscope.model.report import Read, Step
from syncscope.model.trace import Trace

ANOTHER = 0.05  # the part by which steps of the device and of the host differ from which that is worth a word
CROWD = 0.1  # the part of its time that others took from the device which is worth a word
OVERLAP = 0.01  # the part of the host's calls up to which threads that overlap are not worth a word
EARLIER = 0.01  # the part of a recording for which a queue was busy with earlier work which is worth a word
NAMED = 6  # lines outside of steps that are named


def notes_of(
    given: Trace,
    event_graph: EventGraph,
    replayed: EventGraph,
    graph: Graph,
    reads: Sequence[Read],
    steady: Sequence[Step],
    aside: int,
) -> Iterator[str]:
    """The notes, first what figures suffer from most. `given` is the recording with the baseline that it came with.

    `steady` are the steps that are counted, `aside` is the number of reads in others, on lines that do not read in these.
    """
    trace, steps = event_graph.trace, event_graph.steps
    if (others := crowded(replayed)) > CROWD:
        yield f"others had the processors, which are the device, for {others:.0%} of its time: savings may be as far off"
    yield from not_waited_for(trace, steps)
    if lost := sum(step.lost for step in steps):
        all_the_same = (
            "are counted all the same, for so did every step" if any(s.lost for s in steady) else "are not counted"
        )
        yield f"{lost} of {len(steps)} steps lost calls that their operators make in others, and {all_the_same}"
    if told := set_aside_told(steps):
        yield told
    yield from trace.meta.get("notes") or ()
    if copies := len(replayed.uploads):
        size, were = (f"{copies} copies", "they were") if copies > 1 else ("a copy", "it were")
        pinned = replayed.taken_out.pinned
        yield f"{size} from pageable memory counted as if {were} pinned, and fetched at {pinned:.3g} GB/s"
    if event_graph.rounds.words:
        yield event_graph.rounds.words
    if warm := sum(not step.settled and not step.lost for step in steps):
        too = "" if all(step.settled for step in steady) else ", and no two of the others follow one another"
        yield f"{warm} of {len(steps)} steps compiled or loaded kernels, or asked the driver for memory{too}"
    yield from _as_worked(event_graph)
    if unmeasured(given):  # of a baseline that was left out there is a note already
        yield "every step was recorded, so what the recorder weighs is not known: let some steps pass before it, or after"
    yield from replayed_of(steps, replayed)
    if aside:
        yield f"{_count(aside, 'sync')} in steps that are not counted left out"
    yield from _of_replay(steps, reads, graph, replayed.full)


def _as_worked(event_graph: EventGraph) -> Iterator[str]:
    """That steps are counted by the device, where those that the host marks have another length."""
    if not event_graph.by_work or not event_graph.steps:
        return
    marked, worked = (sum(counted_time(steps)[-1]) for steps in (event_graph.marked, event_graph.steps))
    count = len(counted_time(event_graph.steps)[-1])
    if abs(marked - worked) > ANOTHER * worked:
        yield (
            f"a step is counted from where the device has done the one before to where it has done this one, "
            f"{in_ms(worked / count)}; the host, which runs ahead of it, marks steps of {in_ms(marked / count)}"
        )


def _of_replay(steps: Sequence[Step], reads: Sequence[Read], graph: Graph, full: FullQueue) -> Iterator[str]:
    """What a reader must know to trust savings: the window, what was inferred, what could not be priced."""
    if steps and (outside := [read for read in reads if read.step < 0]):
        places = Counter(f"`{r.op}`" + (f" at {r.place}" if r.place else "") for r in outside)
        most = [f"{what} ({n} times)" if n > 1 else what for what, n in places.most_common(NAMED)]
        more = f" and on {len(places) - NAMED} more lines" if len(places) > NAMED else ""
        yield f"{_count(len(outside), 'sync')} outside of steps: {', '.join(most)}{more}"
    if steps and len(steps) < 4:
        yield (
            f"{len(steps)} step{'s' * (len(steps) > 1)} recorded: savings are over all of it; "
            "from four steps on, the first and the last are left out"
        )
    left = unpriced(graph)
    if left and len(graph.steps) < 4:
        yield (f"{_count(len(left), 'sync')} at the end of the recording has no saving: nothing was launched after it")
    if graph.inferred:
        yield f"{_count(graph.inferred, 'wait')} between queues inferred from times"
    if graph.assumed:
        yield (
            f"{_count(graph.assumed, 'call')} made a queue wait, for what was not recorded: taken as for the work enqueued "
            "last in another queue"
        )
    if graph.odd:
        yield f"{graph.odd:,} of {graph.ops:,} device events began late for no recorded reason; kept as late"
    if graph.crowded:
        yield (
            f"{graph.crowded:,} of {graph.ops:,} device events waited while others had the device; kept as they were"
        )
    busy = max((time for time in graph.free if time > NEVER), default=0.0)
    earlier = max(busy, graph.begin)
    if earlier > EARLIER * graph.end:
        there = ": the first step begins there" if graph.begin == earlier else ""
        yield (f"for the first {about_ms(earlier)} a queue was busy with what was enqueued before the recording{there}")
    if full.held:
        yield (
            f"{_count(full.held, 'launch call')} waited for a full queue, which holds {full.depth:,}: in a replay "
            "they are as long as the device makes them"
        )
    if full.unclear:
        yield (
            "launch calls are long while much is enqueued, and it cannot be told whether they waited for the device: of a "
            "faster one nothing is said"
        )
    if graph.guessed:
        yield f"what {_count(graph.guessed, 'call')} waited for is inferred from times"
    if graph.overlap > OVERLAP:
        yield (
            f"{graph.overlap:.0%} of the time in launches and waits two threads were in one at once; they are replayed in turns"
        )
    if any(read.function for read in reads):
        yield "lines are those on which the enclosing functions begin: the profiler records no others"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
