"""Whatever is in a trace: the analysis says something about it, and what it says adds up."""

import hypothesis.strategies as st
import pytest
from effort import draws
from hypothesis import given, settings

from syncscope.analysis.intervals import gaps, union
from syncscope.analysis.job import job
from syncscope.analysis.rank import rank_of
from syncscope.analysis.summary import summarize
from syncscope.analysis.waits import launches
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace

CALLS = ["cudaLaunchKernel", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpyAsync", "hipMemcpyWithStream"]
NAMES = [
    *CALLS,
    "clFinish",
    "cudaMalloc",
    "aten::item",
    "ProfilerStep#1",
    "Memcpy DtoH (Device -> Pageable)",
    "ncclKernel(x)",
]
EVENTS = st.builds(
    Event,
    kind=st.sampled_from(Kind),
    name=st.sampled_from(NAMES),
    lane=st.sampled_from([Lane(1, 1), Lane(1, 2), Lane(0, 7, 0), Lane(0, 8, 0), Lane(1, 7, 1)]),
    start=st.integers(0, 10**6),
    duration=st.integers(0, 3 * 10**5),
    correlation=st.integers(-1, 6),
    external=st.integers(-1, 3),
    place=st.none() | st.just(Place("train.py", 3)),
    flags=st.sampled_from([Flag.NONE, Flag.NONE, Flag.BLOCKING, Flag.FALLBACK]),
)


@settings(max_examples=draws(60))
@given(st.lists(EVENTS, max_size=30))
def test_any_events_are_summarised(events):
    trace = Trace.of(events)
    report = summarize(trace)
    assert report.verdict
    work = launches(trace).row
    idle = gaps(union(trace.start[work], trace.end[work])).length
    assert sum(read.idle_after for read in report.reads) <= idle
    assert all(0 <= read.blocked <= sum(int(trace.duration[c]) for c in read.calls) for read in report.reads)
    if report.saving is not None:
        shares = sum(line.price.share for line in report.lines)
        assert shares == pytest.approx(report.saving, abs=1)


@settings(max_examples=draws(40))
@given(st.lists(st.lists(EVENTS, max_size=15), min_size=1, max_size=3))
def test_any_ranks_are_a_job(ranks):
    found = job([rank_of(Trace.of(events), number) for number, events in enumerate(ranks)])
    assert found.verdict
    assert len(found.ranks) == len(ranks)
