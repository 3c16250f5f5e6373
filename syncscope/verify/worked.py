"""The processor time of steps: what they take where others disturb the clock, and threads are all that works.

It is that of all threads of the process, so that PoCL's and torch's own count, and a loader's workers do not. What a thread
waits for is not in it: a wait that costs a GPU's time costs none here. So the clock is believed as long as it can be.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from statistics import stdev
from time import process_time_ns

from syncscope.turns.sequential import FIRM, tamed

DISTURBED = 0.03  # by so much two equal versions differ from turn to turn, by the clock
QUIETER = 2.0  # times less, by processor time


def worked() -> int | None:
    """ns of the processors that this process has taken so far; None where something else does the work."""
    torch, device = sys.modules.get("torch"), sys.modules.get("syncscope.kernels.device")
    others = any(getattr(getattr(torch, name, None), "_initialized", False) for name in ("cuda", "xpu"))
    return None if others or getattr(device, "is_gpu", False) else process_time_ns()


def is_disturbed(clock: Sequence[float], work: Sequence[float]) -> bool:
    """Whether others disturb the clock, and processor time less: by the ratios of two equal versions in each turn, so that
    what a rewrite does has no say."""
    if min(len(clock), len(work)) <= FIRM:
        return False
    by_clock, by_work = (stdev(tamed([math.log(ratio) for ratio in ratios])) for ratios in (clock, work))
    return by_clock > DISTURBED and by_clock > QUIETER * by_work
