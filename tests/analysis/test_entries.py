import hypothesis.strategies as st
import pytest
from hypothesis import given

from syncscope.analysis.entries import Hold, HostOrder, Launch, Run

TIMES = st.floats(-1e18, 1e15)
WHOLE = st.integers(-1, 2**31 - 1)
LAUNCHES = st.builds(
    Launch,
    *(WHOLE if kind is int else TIMES for kind in (float, float, int, float, float, int, float)),
    WHOLE,
    WHOLE,
    WHOLE,
    WHOLE,
    TIMES,
    TIMES,
)
HOLDS = st.builds(Hold, TIMES, st.tuples(WHOLE), TIMES, TIMES, WHOLE, WHOLE, st.integers(0, 1))
RUNS = st.builds(Run, TIMES, st.tuples(st.tuples(WHOLE, TIMES, TIMES, WHOLE)), WHOLE, WHOLE, TIMES)


@given(st.lists(LAUNCHES | HOLDS | RUNS, max_size=12))
def test_a_stream_gives_back_what_was_added_in_its_order_and_by_position(entries: list[Launch | Hold | Run]) -> None:
    stream = HostOrder.of(entries)
    assert len(stream) == len(entries)
    assert list(stream) == entries
    assert [stream[n] for n in range(-len(entries), len(entries))] == entries * 2
    assert list(stream[1:-1]) == entries[1:-1]
    assert [type(entry) for entry in stream] == [type(entry) for entry in entries]
    assert all(isinstance(entry.queue, int) for entry in stream if isinstance(entry, Launch))  # it is an index
    with pytest.raises(IndexError):
        stream[len(entries)]
