"""Where a step of each rank goes, and at which line the one that makes the others wait takes longer."""

from dataclasses import replace

import pytest
from drawn_ranks import MS, buckets_of, launch, ranks_of, work

from syncscope.analysis.job import job
from syncscope.analysis.rank import rank_of
from syncscope.model.source import Place
from syncscope.model.trace import Event, Kind, Lane, Trace


def test_what_overlaps_is_compute_and_what_does_not_is_exposed():
    """Each rank computes for 4 ms a step; three of four all-reduces run beside, until the slow rank comes."""
    fast, slow = (rank.times for rank in job(buckets_of(0, MS // 2, count=4, steps=6)).ranks)
    assert fast.step == slow.step
    assert (fast.compute, slow.compute) == (4 * MS, 6 * MS)
    assert fast.exposed == pytest.approx(2 * MS + 100_000, rel=0.02)
    assert slow.exposed == pytest.approx(100_000, rel=0.02)
    assert slow.overlapped == pytest.approx(3 * 100_000, rel=0.02)
    assert fast.overlapped == pytest.approx(MS * (0.6 + 1.1 + 0.9), rel=0.01), "1 to 1.6, 2 to 3.1 and 3.1 to 4 ms"
    for times in (fast, slow):
        assert times.busy + times.idle == pytest.approx(times.step)
        assert sum(ns for _, ns in times.why) == pytest.approx(times.idle)


def drawn(slow, line, more):
    """Two ranks that launch a kernel at line 3 and at line 4, then an all-reduce; on one the work of a line is longer."""
    ranks = []
    at = [0, 0]
    for step in range(5):
        arrivals = []
        for r in range(2):
            longer = {line: more} if r == slow else {}
            begin = at[r] + 20_000
            ends = [begin + MS + longer.get(3, 0), begin + 2 * MS + longer.get(3, 0) + longer.get(4, 0)]
            arrivals.append((begin, ends))
        end = max(ends[-1] for _, ends in arrivals) + 100_000
        for r, (begin, (first, second)) in enumerate(arrivals):
            number = 10 * step
            ranks.append((r, replace(launch(at[r], number), place=Place("/home/me/train.py", 3))))
            ranks.append((r, replace(launch(at[r] + 10_000, number + 1), place=Place("/home/me/train.py", 4))))
            ranks.append((r, launch(at[r] + 20_000, number + 2)))
            ranks.append((r, work("gemm", begin, first - begin, number)))
            ranks.append((r, work("gemm", first, second - first, number + 1)))
            ranks.append((r, work("ncclDevKernel_AllReduce(x)", second, end - second, number + 2)))
            sync = Event(Kind.CALL, "cudaDeviceSynchronize", Lane(1, 1), at[r] + 30_000, end + 5_000 - at[r] - 30_000)
            ranks += [(r, sync), (r, Event(Kind.STEP, f"ProfilerStep#{step}", Lane(1, 1), at[r], end + 10_000 - at[r]))]
            at[r] = end + 20_000
    events = [[event for of, event in ranks if of == r] for r in range(2)]
    return [rank_of(Trace.of(e, origin_ns=10**18), number=r, name=f"rank {r}") for r, e in enumerate(events)]


@pytest.mark.parametrize("line", [3, 4])
def test_the_line_whose_work_makes_a_rank_late_is_named(line):
    found = job(drawn(1, line, MS))
    (longer,) = found.ranks[1].lines
    assert (longer.name, longer.own, longer.others) == (f"/home/me/train.py:{line}", 10 * MS, 5 * MS)
    assert found.ranks[0].lines == ()
    assert (
        f"By line, its device was longer at `/home/me/train.py:{line}` (10.00 ms, the others 5.00 ms)" in found.verdict
    )


def test_where_no_line_is_known_it_is_the_kernel():
    found = job(buckets_of(0, 0, 0, MS // 2))
    assert [longer.name for longer in found.ranks[3].lines] == ["gemm"]
    assert "Its device was longer in `gemm`" in found.verdict
    assert "By line" not in found.verdict, "a kernel is no line"
    assert job(ranks_of(0, 3 * MS)).ranks[1].lines == (), "a host of which no line is known"


@pytest.mark.parametrize(("syncs", "cause"), [(False, "host work"), (True, "waits in syncs")])
def test_the_line_where_the_host_of_a_rank_is_longer_is_named(syncs, cause):
    """On rank 1 the host takes 3 ms more before the launch of line 4: for work of its own, of which nothing says on which line
    between 3 and 4 it stands, or in a wait for the device."""
    ranks = []
    for r, more in enumerate((0, 3 * MS)):
        events, at = [], 0
        for step in range(5):
            begin, number = at, 10 * step
            events.append(replace(launch(at, number), place=Place("train.py", 3)))
            events.append(work("gemm", at + 20_000, (3 * MS if syncs else MS // 2) if more else MS // 2, number))
            if syncs and more:
                wait = Event(
                    Kind.CALL, "cudaStreamSynchronize", Lane(1, 1), at + 15_000, more, place=Place("train.py", 7)
                )
                events += [wait, replace(wait, kind=Kind.READ, name="item")]
            at += 20_000 + more
            events.append(replace(launch(at, number + 1), place=Place("train.py", 4)))
            events.append(launch(at + 12_000, number + 2))
            events.append(work("relu", at + 20_000, MS, number + 1))
            arrival, end = at + MS + 21_000, begin + 20_000 + 3 * MS + MS + 200_000
            events.append(work("ncclDevKernel_AllReduce(x)", arrival, end - arrival, number + 2))
            events.append(Event(Kind.CALL, "cudaDeviceSynchronize", Lane(1, 1), at + 30_000, end + 5_000 - at - 30_000))
            at = end + 20_000
            events.append(Event(Kind.STEP, f"ProfilerStep#{step}", Lane(1, 1), begin, at - begin))
        ranks.append(rank_of(Trace.of(events, origin_ns=10**18), number=r, name=f"rank {r}"))
    found = job(ranks)
    slow = found.ranks[1]
    assert (slow.late, slow.cause) == (5, cause)
    assert slow.lines[0].name == ("train.py:7" if syncs else "before train.py:4")
    assert slow.lines[0].own - slow.lines[0].others == pytest.approx(15 * MS, rel=0.02)
    where = "at `train.py:7`" if syncs else "before `train.py:4`"
    assert f"By line, its host was longer {where}" in found.verdict
