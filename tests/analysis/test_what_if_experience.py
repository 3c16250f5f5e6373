import random

import pytest

from syncscope.analysis.what_if_experience import MEASURED, OF_SAVING, SHARE, margin


def holds(width: float, said: float, true: float) -> bool:
    return abs(true - said) <= width + OF_SAVING * abs(said) + 1e-12


def test_too_few_loops_promise_nothing():
    assert margin(MEASURED[:3]) == 1.0


def test_the_margin_holds_as_many_of_the_loops_it_comes_from_as_it_says():
    assert sum(holds(margin(), *pair) for pair in MEASURED) / len(MEASURED) >= SHARE


@pytest.mark.parametrize("spread", [0.02, 0.2])
@pytest.mark.parametrize("loops", [9, 40])
def test_the_next_loop_is_held_in_four_of_five_whatever_the_errors_are(loops, spread):
    random.seed(7)
    held, rounds = 0, 2000
    for _ in range(rounds):
        said = [random.uniform(0, 0.9) for _ in range(loops + 1)]
        pairs = [(one, one + random.expovariate(1 / spread) * random.choice((-1, 1)) * random.random()) for one in said]
        held += holds(margin(pairs[:-1]), *pairs[-1])
    assert held / rounds > SHARE - 0.03
