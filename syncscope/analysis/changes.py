"""What is otherwise in a replay than in the recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

After = Literal["work", "launch", "never"]  # so late begins what was late for no recorded reason
Added = Literal["nothing", "known", "most"]  # of what may run over all rows
How = Literal[
    "waits", "offered", "fixed", "easiest"
]  # goes of selections whose rewrite takes rows all the same, or of all


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What is otherwise in a replay than recorded, ns: the host's time before each of its items (`gaps`) and in it (`cost`).

    And how long each piece of work takes, and whether it begins right after the one before it in its queue (`chained`).
    """

    gaps: NDArray[np.float64] | None = None
    cost: NDArray[np.float64] | None = None
    duration: NDArray[np.float64] | None = None
    chained: NDArray[np.bool_] | None = None
