"""Over how many of their first steps two runs of one version have something in common, where in the end they have not.

Programs whose sums come in another order each time drift apart: a detector's losses share no digit after two hundred steps, and
are the same to some bits over the first twenty. There a change can be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from syncscope.verify.values import Values, difference, pieces

# what runs as written may differ by: where it is more, values prove little, and fewer steps are compared
IN_COMMON = 2.0**-10
FEWEST = 2


def steps_in_common(one: Values, others: Iterable[Values]) -> int:
    """So many that the losses and reads of these runs are no further apart than `IN_COMMON`; 0 where not even the first are."""
    return min(_common(one, other) for other in others)


def _common(one: Values, other: Values) -> int:
    if one.steps != other.steps or one.steps < FEWEST or not _are_near(one, other, FEWEST):
        return 0
    low, high = FEWEST, one.steps
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _are_near(one, other, middle) else (low, middle - 1)
    return low


def _are_near(one: Values, other: Values, steps: int) -> bool:
    """Of parameters and what modules hold only the end is known."""
    apart = difference(_first(one, steps), _first(other, steps), *pieces({}, {}))
    return replace(apart, held=0.0).largest <= IN_COMMON


def _first(run: Values, steps: int) -> Values:
    return replace(
        run,
        steps=steps,
        losses=[loss for loss in run.losses if loss.step < steps],
        reads={place: [value for value in noted if value.step < steps] for place, noted in run.reads.items()},
        digests=[],
        parameters=[],
        told=(),
        state={},
        held={},
    )
