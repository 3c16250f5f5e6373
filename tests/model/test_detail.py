"""What is known of an event, read from text and written back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscope.model.detail import Detail
from syncscope.model.trace import Event, Kind, Lane, Trace

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KNOWN = st.sampled_from(["module", "Input Dims", "Input type", "Output Dims", "flops", "wait_on_stream", "grid", "own"])


@given(st.dictionaries(KNOWN | st.text(max_size=4), JSON, max_size=6))
def test_nothing_that_a_text_says_is_lost(facts: dict[str, object]) -> None:
    known = Detail.of(json.dumps(facts))
    assert Detail.of(known.text()) == known
    written = json.loads(known.text() or "{}")
    assert written == {key: value for key, value in facts.items() if key in written}
    assert all(facts[key] in ("", 0, []) for key in facts.keys() - written.keys())  # only what says nothing is left out


@pytest.mark.parametrize("text", ["", "no json", "{", "[1]", "3", '{"module": 3}'])
def test_a_text_of_others_says_nothing(text: str) -> None:
    assert Detail.of(text).module == ""


def test_names_are_kinetos_in_the_text_and_pythons_in_the_value() -> None:
    known = Detail(module="Net.head", input_dims=([2, 3], []), wait_on_stream="7")
    assert json.loads(known.text()) == {"module": "Net.head", "Input Dims": [[2, 3], []], "wait_on_stream": "7"}


def test_an_event_without_detail_knows_nothing() -> None:
    lane = Lane(1, 1)
    events = [Event(Kind.OP, "a", lane, 0, 1), Event(Kind.READ, "b", lane, 2, 1, detail='{"module":"m"}')]
    trace = Trace.of(events)
    assert (trace.known(0), trace.known(1)) == (Detail(), Detail(module="m"))
