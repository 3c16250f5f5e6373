"""How hard tests look. `make test` draws two fifths of the examples that a random test names, and of many cases that are alike
asks one of each kind; `make test-all` asks all of both, and `make fuzz` draws five times as many: they set SYNCSCOPE_EFFORT.
"""

import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

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


def each_kind(cases: Iterable[Case], kind: Callable[[Case], Hashable]) -> list[Case]:
    """The first case of each kind; all of them for who draws all examples."""
    cases = list(cases)
    return cases if EFFORT >= 1 else [*{kind(case): case for case in reversed(cases)}.values()][::-1]


def in_turns(*parts: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations in which each value of each part comes, with those of the others in turns; all of them for who draws all
    examples."""
    if EFFORT >= 1:
        return [*itertools.product(*parts)]
    return [tuple(part[turn % len(part)] for part in parts) for turn in range(max(map(len, parts)))]
