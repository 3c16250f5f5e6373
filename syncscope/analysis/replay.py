"""Run an event graph again, with some waits taken out or moved: when would everything have ended?"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis import in_c
from syncscope.analysis.entries import Hold, Run
from syncscope.analysis.graph import NEVER, Graph

Times = NDArray[np.float64]
FEW = 16  # scenarios up to which one after the other is faster
WIDTH = 512  # scenarios replayed side by side


@dataclass(frozen=True, slots=True)
class Outcome:
    """When everything had ended, and when each step had, on the host and on the device; ns since the graph's origin."""

    end: float
    ends: tuple[float, ...]


def replay(
    graph: Graph,
    freed: Collection[int] = (),
    moved: Mapping[int, tuple[int, ...]] | None = None,
    at_step_end: Mapping[int, tuple[int, ...]] | None = None,
    drained: bool = False,
) -> Outcome:
    """One forward pass over the graph.

    Reads in `freed` wait for nothing. `moved` gives positions in the stream other work to wait for, `at_step_end` the work
    that the end of a step waits for besides: all that was enqueued, where it is `drained`.
    """
    if in_c.library() is not None:
        row = np.zeros((1, len(graph.reads)), bool)
        row[0, [*freed]] = True
        end, ends_of_steps = in_c.replays(graph, _with_sets(graph, row), moved or {}, at_step_end or {}, drained)
        return Outcome(float(end[0]), tuple(ends_of_steps[0].tolist()))
    return _replay(graph, set(freed), moved, at_step_end, drained)


def _replay(
    graph: Graph,
    taken_out: set[int],
    moved: Mapping[int, tuple[int, ...]] | None = None,
    at_step_end: Mapping[int, tuple[int, ...]] | None = None,
    drained: bool = False,
) -> Outcome:
    taken_out |= {n for n, members in enumerate(graph.together, len(graph.reads)) if not taken_out.isdisjoint(members)}
    host = 0.0
    queues = list(graph.free)
    limited = graph.ops > graph.depth
    begun: list[tuple[int, float]] = [(-1, NEVER)]  # launches so far, and when the last of them began
    full = 0  # how far in `begun` the launches are that must have begun by now
    done: dict[int, float] = {}
    ends: list[float] = []
    for position, entry in enumerate(graph.stream.unnamed()):
        if isinstance(entry, Run):
            advance, moves, count, last, lasting = entry
            for queue, alpha, beta, number in moves:
                time = queues[queue] + beta
                if host + alpha > time:
                    time = host + alpha
                queues[queue] = time
                if number >= 0:
                    done[number] = time
            host += advance
        elif isinstance(entry, Hold):
            host_gap, targets, returns, freely, read, mark, _ = entry
            host += host_gap
            if read in taken_out and read >= 0:
                host += freely
                continue
            if moved is not None and position in moved:
                targets = moved[position]
            early = min(returns, 0.0)  # the device's clock was ahead: it had ended by then
            for target in targets:
                if done[target] + early > host:
                    host = done[target] + early
            host += returns - early
            if mark >= 0:
                if at_step_end is not None:
                    for target in at_step_end.get(mark, ()):
                        if done.get(target, NEVER) > host:  # what a broken recording launches later is not waited for
                            host = done[target]
                if drained:
                    host = max(host, *queues)
                ends.append(max(host, *queues))
            continue
        else:
            host_gap, latency, last, gap, lasting, source, lag, _, number, count, read, left, spare = entry
            host += host_gap
            if read >= 0 and read in taken_out:
                lasting = left
                host -= spare
            if lasting < 0:
                time, lasting = queues[last], 0.0
            else:
                time = max(host + latency, queues[last] + gap, done[source] + lag if source >= 0 else NEVER) + lasting
            queues[last] = time
            if number >= 0:
                done[number] = time
        if limited:
            begun.append((count, max(begun[-1][1], queues[last] - lasting)))
            while begun[full + 1][0] <= count - graph.depth:
                full += 1
            if begun[full][1] > host:
                host = begun[full][1]
    return Outcome(max(host, *queues), tuple(ends))


def replay_all(graph: Graph, freed: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Many replays side by side: `freed[s, r]` says whether scenario s takes read r out.

    Returns the ends, shape (scenarios,), and the ends of the steps, shape (scenarios, steps).
    """
    if in_c.library() is not None:
        return in_c.replays(graph, _with_sets(graph, freed), {}, {})
    if len(freed) <= FEW:
        outcomes = [_replay(graph, set(np.flatnonzero(row).tolist())) for row in freed]
        ends = np.array([o.ends for o in outcomes]).reshape(len(outcomes), len(graph.ends))
        return np.array([o.end for o in outcomes]), ends
    parts = [_side_by_side(graph, freed[i : i + WIDTH]) for i in range(0, len(freed), WIDTH)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _with_sets(graph: Graph, freed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The same with the sets of reads that are `together`: what belongs to one changes where any of them is taken out."""
    sets = [freed[:, list(members)].any(axis=1, keepdims=True) for members in graph.together]
    return np.concatenate([freed, *sets], axis=1)


def _side_by_side(graph: Graph, freed: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    course = walk(graph, freed)
    end = None
    while True:
        try:
            meeting = course.send(end)
        except StopIteration as over:
            result: tuple[NDArray[np.float64], NDArray[np.float64]] = over.value
            return result
        end = meeting.arrival + meeting.duration  # alone, nobody is late


class Meeting(NamedTuple):
    """A rank has come to a collective; `arrival` is when in each scenario, `duration` how long it took in the recording."""

    collective: int
    arrival: Times
    duration: float


def walk(
    graph: Graph, freed: NDArray[np.bool_], begin: float = 0.0
) -> Generator[Meeting, Times | None, tuple[Times, Times]]:
    """Replays side by side, stopping at each collective to be told when it ends; the host begins at `begin`."""
    width = len(freed)
    out = _with_sets(graph, freed).T.copy()
    host = np.full(width, begin)
    queues = np.repeat(np.array(graph.free)[:, None] + begin, width, axis=1)
    limited = graph.ops > graph.depth
    begun: list[tuple[int, NDArray[np.float64]]] = [(-1, np.full(width, NEVER))]  # launches so far, when the last began
    full = 0
    done: dict[int, NDArray[np.float64]] = {}
    ends: list[NDArray[np.float64]] = []
    for entry in graph.stream:
        if isinstance(entry, Run):
            for queue, alpha, beta, number in entry.moves:
                np.maximum(queues[queue] + beta, host + alpha, out=queues[queue])
                if number >= 0:
                    done[number] = queues[queue].copy()
            host = host + entry.advance
            last, lasting = entry.last, entry.lasting
        elif isinstance(entry, Hold):
            host = host + entry.host_gap
            held = host
            early = min(entry.returns, 0.0)
            for target in entry.targets:
                held = np.maximum(held, done[target] + early)
            held = held + (entry.returns - early)
            host = np.where(out[entry.read], host + entry.freed, held) if entry.read >= 0 else held
            if entry.mark >= 0:
                ends.append(np.maximum(host, queues.max(axis=0)))
            continue
        else:
            host = host + entry.host_gap
            last, lasting = entry.queue, entry.duration
            start = np.maximum(host + entry.latency, queues[last] + entry.gap)
            if entry.source >= 0:
                start = np.maximum(start, done[entry.source] + entry.lag)
            if entry.collective >= 0:
                end = yield Meeting(entry.collective, start, lasting)
                queues[last] = start + lasting if end is None else end
            elif entry.read >= 0:
                otherwise = start + entry.left if entry.left >= 0 else queues[last]
                host = np.where(out[entry.read], host - entry.spare, host)
                queues[last] = np.where(out[entry.read], otherwise, start + lasting)
            else:
                queues[last] = start + lasting
            if entry.number >= 0:
                done[entry.number] = queues[last].copy()
        if limited:
            begun.append((entry.upto, np.maximum(begun[-1][1], queues[last] - lasting)))
            while begun[full + 1][0] <= entry.upto - graph.depth:
                full += 1
            host = np.maximum(host, begun[full][1])
    over = np.maximum(host, queues.max(axis=0))
    return over, (np.stack(ends, axis=1) if ends else np.zeros((width, 0)))
