import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscope.tracers.clocks import from_brackets, from_timer


def calls(offset: int, drift: float, count: int = 4000, span: int = 60 * 10**9) -> tuple[np.ndarray, ...]:
    """Host start and end of calls, and the device's stamp taken inside of each."""
    random = np.random.default_rng(0)
    before = np.sort(random.integers(0, span, count))
    after = before + random.integers(2_000, 90_000, count)
    inside = before + ((after - before) * random.random(count)).astype(np.int64)
    return inside + offset + (inside * drift).astype(np.int64), before, after, inside


@given(st.integers(1, 10**18))
def test_a_constant_offset_is_found_within_its_uncertainty(offset: int) -> None:
    queued, before, after, inside = calls(offset, 0)
    clock = from_brackets(queued, before, after)
    assert np.abs(clock.to_host(queued) - inside).max() <= clock.uncertainty + 1
    assert clock.uncertainty < 1000


@given(st.floats(-1e-4, 1e-4), st.sampled_from([10**7, 1_700_000_000 * 10**9]))
def test_drift_is_corrected_over_a_long_run(drift: float, offset: int) -> None:
    queued, before, after, inside = calls(offset, drift)
    clock = from_brackets(queued, before, after)
    assert np.abs(clock.to_host(queued) - inside).max() < 120_000 + abs(drift) * 2 * 60e9 / 32
    if abs(drift) > 2e-5:
        assert abs(clock.drift - drift * 1e9) < abs(drift) * 1e9 * 0.1


def test_the_end_of_a_wait_narrows_the_bracket() -> None:
    queued, before, after = (np.array([x]) for x in (1_000_100, 0, 3_000_000))
    wide = from_brackets(queued, before, after)
    narrow = from_brackets(queued, before, after, latest=np.array([3_999_000]))
    assert narrow.uncertainty < wide.uncertainty / 2
    assert abs(narrow.offset[0] - 1_000_000) <= narrow.uncertainty


def test_the_timer_is_followed_as_it_drifts() -> None:
    host = np.arange(0, 100) * 10**9
    device = host + 5 * 10**17 + (host * 5e-5).astype(np.int64)
    clock = from_timer(device, host - 500, host + 500)
    assert np.abs(clock.to_host(device) - host).max() <= 1
    assert abs(clock.drift - 50_000) < 100
    assert clock.uncertainty == 500


def test_a_driver_that_never_says_when_it_queued_has_no_clock() -> None:
    zeros = np.zeros(10, np.int64)
    clock = from_brackets(zeros, zeros, zeros)
    assert clock.source == "none"
    assert clock.to_host(np.array([7])).tolist() == [7]
