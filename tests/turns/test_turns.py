"""Turns on a machine that does other things: how often an interval leaves the truth out, and how soon it tells."""

import math
import random
from collections.abc import Callable
from statistics import fmean

import pytest
from effort import counts

from syncscope.turns.sequential import interval, tamed
from syncscope.turns.turns import Turns

MANY, TURNS = counts(150), 40
WRITTEN, AGAIN, OTHER = 0, -1, 1
Noise = Callable[[random.Random], list[float]]  # logarithms of what the machine does to each block in a row


def pauses(draw: random.Random, often: float, long: float) -> Noise:
    """A block now and then is longer."""
    return lambda _: [
        math.log(1 + (draw.random() < often) * draw.expovariate(1 / long)) + draw.gauss(0, 0.03)
        for _ in range(3 * TURNS)
    ]


def drifting(draw: random.Random) -> list[float]:
    """The machine is slower for a while, and faster again, as its clocks and neighbours are."""
    found, level = [], 0.0
    for _ in range(3 * TURNS):
        level = 0.97 * level + draw.gauss(0, 0.05)
        found.append(level + draw.gauss(0, 0.03))
    return found


def in_phases(draw: random.Random) -> list[float]:
    """Some blocks in a row are a quarter longer, beside somebody else's work."""
    found, busy = [], False
    for _ in range(3 * TURNS):
        busy ^= draw.random() < 1 / 6
        found.append(0.25 * busy + draw.gauss(0, 0.03))
    return found


KINDS: dict[str, Noise] = {
    "quiet": lambda draw: [draw.gauss(0, 0.03) for _ in range(3 * TURNS)],
    "pauses": lambda draw: pauses(draw, 0.1, 0.5)(draw),
    "rare and long pauses": lambda draw: pauses(draw, 0.03, 1.5)(draw),
    "heavy tails": lambda draw: [0.03 * draw.gauss(0, 1) / math.sqrt(draw.expovariate(1)) for _ in range(3 * TURNS)],
    "drifts": drifting,
    "phases": in_phases,
    "all of it": lambda draw: [
        sum(parts) for parts in zip(drifting(draw), in_phases(draw), pauses(draw, 0.08, 0.5)(draw), strict=True)
    ],
}


def turns(draw: random.Random, kind: Noise, effect: float) -> Turns[int]:
    """Blocks of three versions in an order that is drawn for each turn, of which one is as much longer as is said."""
    found, noise = Turns((WRITTEN, AGAIN)), iter(kind(draw))
    for _ in range(TURNS):
        order = [WRITTEN, AGAIN, OTHER]
        draw.shuffle(order)
        found.add({version: math.exp(next(noise) + effect * (version == OTHER)) for version in order})
    return found


def intervals(times: Turns[int]) -> list[tuple[float, float, float]]:
    """After each turn but the first two, and a last one."""
    logs = times.ratios(OTHER)
    return [*(interval(logs[:count]) for count in range(3, TURNS + 1)), interval(logs, is_last=True)]


@pytest.mark.parametrize("effect", [0.0, -0.05])
@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_is_left_out_in_one_case_of_twenty_at_most(kind: str, effect: float) -> None:
    draw = random.Random(f"{kind} {effect}")
    wrong = sum(
        any(not low <= effect <= high for _, low, high in intervals(turns(draw, KINDS[kind], effect)))
        for _ in range(MANY)
    )
    assert wrong / MANY <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / MANY)


def test_equal_versions_are_a_gain_in_one_case_of_forty_at_most() -> None:
    draw, gains, count = random.Random(4), 0, 0
    for kind in KINDS.values():
        for _ in range(MANY // 3):
            count += 1
            gains += any(high < 0 for _, _, high in intervals(turns(draw, kind, 0.0)))
    assert gains / count <= 0.025 + 2 * math.sqrt(0.025 * 0.975 / count)


def test_a_gain_is_told_on_a_machine_that_does_all_of_that() -> None:
    draw = random.Random(5)
    told = sum(any(high < 0 for _, _, high in intervals(turns(draw, KINDS["all of it"], -0.08))) for _ in range(60))
    assert told >= 48


def test_pauses_make_no_version_faster() -> None:
    """Cut off in the ratio to the mean of two blocks, they would: either may have had one."""
    draw, cut, ratios = random.Random(6), [], []
    for _ in range(150):
        times = turns(draw, lambda of: pauses(of, 0.2, 0.5)(of), 0.0)
        cut.append(fmean(times.ratios(OTHER)))
        logs = [{version: math.log(time) for version, time in turn.items()} for turn in times.turns]
        ratios.append(fmean(tamed([one[OTHER] - (one[WRITTEN] + one[AGAIN]) / 2 for one in logs])))
    assert abs(fmean(cut)) < 0.005 < -fmean(ratios)


def test_a_version_may_come_late_and_miss_turns() -> None:
    times = Turns((WRITTEN, AGAIN))
    for turn in range(30):
        blocks = {WRITTEN: 100.0 + turn % 3, AGAIN: 100.0 + (turn + 1) % 3}
        late, seldom = {OTHER: 80.0 + turn % 2} if turn > 12 else {}, {2: 90.0} if turn % 2 else {}
        times.add(blocks | late | seldom)
    assert len(times) == 30
    assert len(times.ratios(OTHER)) == 17
    assert len(times.ratios(2)) == 15
    assert len(times.ratios(OTHER, 2)) == len(times.pairs(OTHER, 2)) == 9
    assert math.exp(fmean(times.ratios(OTHER, 2))) == pytest.approx(80.5 / 90, rel=0.02)
    assert math.exp(fmean(times.ratios(OTHER))) == pytest.approx(0.8, rel=0.02)
    assert times.pairs(AGAIN, WRITTEN, since=29) == [(102.0, 100.0)]
    assert times.pairs(2, WRITTEN, since=29) == [(pytest.approx((102.0 * 100.0) ** 0.5), 90.0)]
    assert times.ratios(3) == []


def test_one_block_that_is_far_off_moves_little() -> None:
    draw = random.Random(7)
    times, other = (Turns((WRITTEN, AGAIN)) for _ in range(2))
    for turn in range(20):
        blocks = {version: math.exp(draw.gauss(0, 0.01)) for version in (WRITTEN, AGAIN, OTHER)}
        times.add(blocks)
        other.add(blocks | ({OTHER: 20.0} if turn == 17 else {}))
    assert abs(fmean(times.ratios(OTHER)) - fmean(other.ratios(OTHER))) < 0.004
