"""One rank of a job, cut down to what the others need: its graph, its collectives and what it did between them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from syncscope.analysis.collectives import Collective, collectives, numbered
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.fidelity import fidelity_of, unforeseen_lines
from syncscope.analysis.graph import Graph
from syncscope.analysis.host_operators import HostOperators, OwnTime
from syncscope.analysis.rank_times import RankTimes, mean_times, rank_times
from syncscope.analysis.steps import alike
from syncscope.analysis.summary import by_line
from syncscope.model.source import installed
from syncscope.model.trace import Trace


@dataclass(frozen=True, slots=True)
class Rank:
    """What a job's analysis needs of one rank. `origin` is time 0 of its graph, Unix ns; `error` the part of its own
    steps that is wrong in a replay or unexplained: None without device work. Of the reads (by number) that are `unforeseen`
    nobody can say what a step takes without them."""

    number: int
    origin: int
    graph: Graph
    collectives: tuple[Collective, ...]
    error: float | None
    name: str = ""
    world: int = 0  # how many ranks the job had, 0 where the recording does not say
    unforeseen: frozenset[int] = frozenset()
    devices: tuple[str, ...] = ()  # the names of those that its recording knows
    times: tuple[RankTimes, ...] = ()  # of each step, or of the recording; none without work of a device
    host: tuple[OwnTime, ...] = ()  # of the threads that launch
    machine: str = ""  # by its name
    files: frozenset[str] = frozenset()  # of the program's own, in which lines of the recording are

    def counted(self) -> tuple[frozenset[int], int]:
        """The reads (by number) of the steps that a report counts, too, and how many steps these are; all without steps."""
        chosen = self.counted_steps()
        reads = frozenset(n for n, read in enumerate(self.graph.reads) if not chosen or read.step in chosen)
        return reads, max(1, len(chosen))

    def counted_steps(self) -> frozenset[int]:
        """The indices of the steps that a report counts, too; none where no step is marked."""
        steps = self.graph.steps
        return frozenset(steps[n].index for n in alike(steps) or range(len(steps)))

    def times_of(self, indices: Collection[int]) -> RankTimes | None:
        """Where the mean of the steps with these indices goes, of all where it has none of them."""
        chosen = [each for step, each in zip(self.graph.steps, self.times, strict=False) if step.index in indices]
        return mean_times(chosen or self.times)


def common_steps(ranks: Sequence[Rank]) -> frozenset[int]:
    """The indices of the steps that figures of a job are of: a report of each rank counts them, else each rank has them."""
    if not ranks:
        return frozenset()
    counted = frozenset.intersection(*(rank.counted_steps() for rank in ranks))
    return counted or frozenset.intersection(*(frozenset(step.index for step in rank.graph.steps) for rank in ranks))


def rank_of(trace: Trace, number: int | None = None, name: str = "") -> Rank:
    """A rank out of its recording; its number is the recording's, if none is given."""
    event_graph = event_graph_of(trace, by_work=True)  # ranks meet on their devices
    these = numbered(trace, event_graph)
    graph = event_graph.graph(collectives={row: i for i, row in enumerate(one.row for one in these)})
    trusted = fidelity_of(event_graph, graph)
    members = list(by_line(event_graph.reads).values())
    unforeseen = unforeseen_lines(event_graph, event_graph.graph(), members) if event_graph.selections else ()
    host = HostOperators(trace)
    calls = event_graph.launched.call
    if number is None:
        number = int(trace.meta.get("rank", -1))
    return Rank(
        number=number,
        origin=int(trace.meta.get("origin_ns", 0)) + graph.origin,
        graph=graph,
        collectives=collectives(trace, event_graph, these, graph.origin, host),
        error=None if trusted.error is None else max(trusted.error, trusted.unexplained),
        name=name,
        world=int(trace.meta.get("world_size", 0)),
        unforeseen=frozenset(read for line in unforeseen for read in members[line]),
        devices=device_names(trace),
        times=rank_times(trace, event_graph),
        machine=str(trace.meta.get("host") or ""),
        files=frozenset(p.path for p in trace.places if p.path.endswith(".py") and not installed(p.path)),
        host=host.own_times(sorted(set(trace.lane[calls[calls >= 0]].tolist()))),
    )


def device_names(trace: Trace) -> tuple[str, ...]:
    """The names of the devices that a recording knows, each once."""
    known = trace.meta.get("devices") or []
    return tuple(dict.fromkeys(str(one["name"]) for one in known if isinstance(one, dict) and one.get("name")))
