"""Launches folded side by side are what they are one after the other."""

import hypothesis.strategies as st
import numpy as np
import pytest
from effort import draws
from hypothesis import given, settings

from syncscope.analysis import folding
from syncscope.analysis.entries import Hold, Launch, Run
from syncscope.analysis.folding import Enqueued, folded
from syncscope.analysis.graph import NEVER

TIMES = st.integers(0, 50).map(float)


@st.composite
def recorded(draw):
    """Some items of a host, of which some wait and the others launch up to three pieces of work."""
    items = draw(st.integers(1, 40))
    waits = draw(st.lists(st.booleans(), min_size=items, max_size=items))
    item = [i for i in range(items) for _ in range(draw(st.integers(0, 3)))]
    count = len(item)

    def column(of, kind):
        return np.array(draw(st.lists(of, min_size=count, max_size=count)), kind)

    source = [draw(st.sampled_from([-1, -1, -1, *range(j)])) for j in range(count)]
    needed = column(st.booleans(), bool)
    needed[[j for j in source if j >= 0]] = True
    nothing = np.full(count, -1, np.intp)
    work = Enqueued(
        np.array(item, np.intp),
        column(TIMES | st.just(NEVER), float),
        column(st.integers(0, 2), np.int32),
        column(TIMES, float),
        column(TIMES, float),
        np.array(source, np.intp),
        column(TIMES, float),
        nothing,
        column(st.sampled_from([-1, -1, -1, 0]), np.intp),
        np.full(count, -1.0),
        np.zeros(count),
        needed,
    )
    gaps = np.array(draw(st.lists(TIMES, min_size=items, max_size=items)))
    cost = np.where(waits, 0.0, draw(st.lists(TIMES, min_size=items, max_size=items)))
    return work, gaps, cost, np.flatnonzero(waits)


def one_by_one(work, gaps, cost, holds):
    """When the host was at each wait, each queue at the end, and what others wait for was over: no launch is folded."""
    host, queues, done, at = 0.0, dict.fromkeys(range(3), 0.0), {}, []
    for item, (before, within) in enumerate(zip(gaps.tolist(), cost.tolist(), strict=True)):
        host += before
        for j in np.flatnonzero(work.item == item).tolist():
            queue, source = int(work.queue[j]), int(work.source[j])
            start = max(host + work.latency[j], queues[queue] + work.gap[j])
            start = max(start, done[source] + work.lag[j] if source >= 0 else NEVER)
            queues[queue] = float(start + work.duration[j])
            if work.needed[j]:
                done[j] = queues[queue]
        if item in holds:
            at.append(host)
        host += within
    return host, queues, done, at


def of_entries(stream):
    """The same from the entries."""
    host, queues, done, at = 0.0, dict.fromkeys(range(3), 0.0), {}, []
    for entry in stream:
        if isinstance(entry, Run):
            for queue, alpha, beta, number in entry.moves:
                queues[queue] = max(host + alpha, queues[queue] + beta)
                if number >= 0:
                    done[number] = queues[queue]
            host += entry.advance
            continue
        host += entry.host_gap
        if isinstance(entry, Hold):
            at.append(host)
            continue
        start = max(host + entry.latency, queues[entry.queue] + entry.gap)
        start = max(start, done[entry.source] + entry.lag if entry.source >= 0 else NEVER)
        queues[entry.queue] = start + entry.duration
        if entry.number >= 0:
            done[entry.number] = queues[entry.queue]
    return host, queues, done, at


@settings(max_examples=draws(50))
@given(recorded(), st.sampled_from([2, 3, 256]), st.sampled_from([1, 1 << 20]), st.sampled_from([2, 1024]))
def test_what_is_folded_takes_as_long_as_one_launch_after_the_other(given_work, longest, at_once, long):
    work, gaps, cost, holds = given_work
    places = {}

    def hold(item, host_gap, position, launched):
        places[position] = item
        return Hold(host_gap, (), 0.0, 0.0, -1, -1, launched)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(folding, "LONGEST", longest)
        patched.setattr(folding, "AT_ONCE", at_once)
        patched.setattr(folding, "LONG", long)
        stream = folded(work, gaps, cost, holds, 1024, hold)
    assert of_entries(stream) == one_by_one(work, gaps, cost, holds.tolist())
    assert [item for _, item in sorted(places.items())] == holds.tolist()
    assert all(isinstance(stream[position], Hold) for position in places)
    seen = 0
    for entry in stream:
        if isinstance(entry, Hold):
            assert entry.launched == int(seen < len(work.item))
        else:
            assert seen <= entry.upto <= seen + (1 if isinstance(entry, Launch) else longest)
            seen = entry.upto
    assert seen == len(work.item)


def test_a_row_of_launches_is_one_entry():
    count = 200
    column = np.ones(count)
    nothing = np.full(count, -1, np.intp)
    work = Enqueued(
        np.arange(count), column, np.zeros(count, np.int32), column, column, nothing, column, nothing, nothing, column,
        column, np.zeros(count, bool),
    )  # fmt: skip
    stream = folded(work, column, column, np.zeros(0, np.intp), 1024, lambda *_: pytest.fail("nothing waits"))
    assert list(stream) == [Run(400.0, ((0, 401.0, 400.0, -1),), count, 0, 1.0)]
