"""Which steps still warm up: one rule for steps that are recorded, and for those that are timed beside a recording."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from statistics import median

LONG = 1.5  # times the median of the later half: such a step says nothing of others
ALIKE = 1.1  # times the longest of the later half that is not: so long may the first be


def much_longer(lengths: Sequence[float]) -> float:
    """The length from which a step is much longer than the others; inf where there is none to tell."""
    later = lengths[len(lengths) // 2 :]
    return LONG * median(later) if later else float("inf")


def warming(lengths: Sequence[float]) -> int:
    """How many of the first steps warm up: those before one that is like the later half, give or take a tenth."""
    most = much_longer(lengths)
    warm = ALIKE * max((length for length in lengths[len(lengths) // 2 :] if length <= most), default=0.0)
    return sum(1 for _ in takewhile(lambda length: length > warm, lengths))
