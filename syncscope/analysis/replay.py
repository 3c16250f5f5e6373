"""Run an event graph again, with some waits taken out or moved: when would everything have ended?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.graph import NEVER, Graph, Hold, Op

CALL = 4_000.0  # ns that the call of a read takes at most if it does not wait
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
) -> Outcome:
    """One forward pass over the graph.

    Reads in `freed` wait for nothing. `moved` gives positions in the stream other work to wait for, `at_step_end` the work
    that the end of a step waits for besides.
    """
    taken_out = set(freed)
    host = 0.0
    queues = [NEVER] * max(1, graph.queues)
    depth = graph.depth
    begun: list[float] = []  # running maximum of the starts
    done: list[float] = []
    latest = NEVER
    ends: list[float] = []
    begun_append, done_append = begun.append, done.append
    count = 0
    for position, entry in enumerate(graph.stream):
        if len(entry) == 8:  # Op: a tuple's length is its cheapest tag
            host_gap, latency, queue, gap, duration, host_cost, source, lag = entry
            host += host_gap
            if count >= depth and begun[count - depth] > host:
                host = begun[count - depth]
            start = host + latency
            bound = queues[queue] + gap
            if bound > start:
                start = bound
            if source >= 0 and done[source] + lag > start:
                start = done[source] + lag
            if start > latest:
                latest = start
            begun_append(latest)
            end = start + duration
            done_append(end)
            if end > queues[queue]:
                queues[queue] = end
            host += host_cost
            count += 1
            continue
        host_gap, targets, returns, read, mark = entry
        host += host_gap
        if read in taken_out and read >= 0:
            host += min(returns, CALL) if returns > 0 else 0.0
            continue
        if moved is not None and position in moved:
            targets = moved[position]
        for target in targets:
            if done[target] > host:
                host = done[target]
        host += returns
        if mark >= 0:
            if at_step_end is not None:
                for target in at_step_end.get(mark, ()):
                    if done[target] > host:
                        host = done[target]
            ends.append(max(host, *queues))
    return Outcome(max(host, *queues), tuple(ends))


def replay_all(graph: Graph, freed: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Many replays side by side: `freed[s, r]` says whether scenario s takes read r out.

    Returns the ends, shape (scenarios,), and the ends of the steps, shape (scenarios, steps).
    """
    if len(freed) <= FEW:
        outcomes = [replay(graph, np.flatnonzero(row).tolist()) for row in freed]
        ends = np.array([o.ends for o in outcomes]).reshape(len(outcomes), len(graph.ends))
        return np.array([o.end for o in outcomes]), ends
    parts = [_side_by_side(graph, freed[i : i + WIDTH]) for i in range(0, len(freed), WIDTH)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _side_by_side(graph: Graph, freed: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    width = len(freed)
    out = freed.T.copy()
    host = np.zeros(width)
    queues = np.full((max(1, graph.queues), width), NEVER)
    depth = graph.depth
    limited = graph.ops > depth
    ring = np.full((depth if limited else 1, width), NEVER)
    latest = np.full(width, NEVER)
    done: dict[int, NDArray[np.float64]] = {}
    ends: list[Any] = []
    start, bound = np.empty(width), np.empty(width)
    needed = graph.needed
    add, maximum = np.add, np.maximum
    count = 0
    for entry in graph.stream:
        if len(entry) == 8:
            host_gap, latency, queue, gap, duration, host_cost, source, lag = entry
            if host_gap:
                host += host_gap
            line = queues[queue]
            if limited:
                maximum(host, ring[count % depth], out=host)
            add(line, gap, out=start)
            if latency > NEVER:
                add(host, latency, out=bound)
                maximum(start, bound, out=start)
            if source >= 0:
                add(done[source], lag, out=bound)
                maximum(start, bound, out=start)
            if limited:
                maximum(latest, start, out=latest)
                ring[count % depth] = latest
            start += duration
            maximum(line, start, out=line)
            if count in needed:
                done[count] = start.copy()
            if host_cost:
                host += host_cost
            count += 1
            continue
        host_gap, targets, returns, read, mark = entry
        host += host_gap
        if targets:
            wait = done[targets[0]]
            for target in targets[1:]:
                wait = maximum(wait, done[target])
            held = maximum(host, wait) + returns
        else:
            held = host + returns
        if read >= 0:
            host = np.where(out[read], host + min(max(returns, 0.0), CALL), held)
        else:
            host = held
        if mark >= 0:
            ends.append(maximum(host, queues.max(axis=0)))
    last = maximum(host, queues.max(axis=0))
    return last, (np.stack(ends, axis=1) if ends else np.zeros((width, 0)))


def fidelity(graph: Graph, outcome: Outcome) -> float | None:
    """The largest relative error of a replay that changes nothing: of its end and of the ends of its steps."""
    if graph.end <= 0 or not graph.stream:
        return None
    errors = [abs(outcome.end - graph.end)]
    errors += [abs(a - b) for a, b in zip(outcome.ends, graph.ends, strict=True)]
    return max(errors) / graph.end


__all__ = ["Hold", "Op", "Outcome", "fidelity", "replay", "replay_all"]
