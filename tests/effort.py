"""How hard random tests look. `make test` draws two fifths of the examples that each test names, `make test-all` as many, and
`make fuzz` five times as many: it sets SYNCSCOPE_EFFORT.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")

EFFORT = float(os.environ.get("SYNCSCOPE_EFFORT", "0.4"))
SEARCHING = EFFORT > 1  # for what nobody knows: other examples each time, kernels as users have them, no case left out
ENOUGH = 3  # of few examples none are left out


def draws(examples: int) -> int:
    """So many examples, times the effort."""
    return max(round(examples * EFFORT), min(examples, ENOUGH))


def counts(examples: int) -> int:
    """So many and never fewer: of these a rate is told."""
    return max(round(examples * EFFORT), examples)


def some(cases: Sequence[Case]) -> Sequence[Case]:
    """Every other one of cases that are many and alike; all of them for who draws all examples."""
    return cases if EFFORT >= 1 else cases[::2]
