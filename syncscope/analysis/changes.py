"""What is otherwise in a replay than in the recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

After = Literal["work", "launch", "never"]  # so late begins what was late for no recorded reason
Added = Literal["nothing", "known", "most"]  # of what may run over all rows
# goes of selections whose rewrite takes rows all the same, or of all
How = Literal["waits", "offered", "fixed", "easiest"]


@dataclass(frozen=True, slots=True)
class Supposed:
    """What a replay supposes of what a recording does not tell.

    What began `late` for no recorded reason begins as late after the `work` before it, or after its `launch`, or `never` is
    late; then waits return, too, as fast as such waits do. A read that is taken out goes with all it did, if it only fetched
    values or asked how many there are, and what follows is called as ever. If something `stays` in its place, a copy or the
    latter only waits for nothing, and some launches of short kernels do what the host did with a value that was fetched
    (`analysis.leaving`). With `ordered`, work of different queues keeps the order in which it was done (`analysis.orders`).
    With `gone`, every read goes with all it did, uploads aside. With `slow`, what the host's next work took beyond
    the usual goes, too: a host that slept goes on more slowly.
    What runs over the rows of a selection runs over all rows without it, as far as it is `known` to, or the `most` that may
    (`analysis.selections`). Of selections whose rewrite takes rows all the same the waits go; by `how` what takes the rows
    stays, as it is offered, or they are in fixed shapes; for the easiest, what lines launched before reads that ask for rows
    goes, too.
    """

    late: After = "work"
    stays: bool = False
    ordered: bool = False
    gone: bool = False
    slow: bool = False
    added: Added = "known"
    how: How = "waits"


AS_RECORDED = Supposed()


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What is otherwise in a replay than recorded, ns: the host's time before each of its items (`gaps`) and in it (`cost`).

    And how long each piece of work takes, and whether it begins right after the one before it in its queue (`chained`).
    """

    gaps: NDArray[np.float64] | None = None
    cost: NDArray[np.float64] | None = None
    duration: NDArray[np.float64] | None = None
    chained: NDArray[np.bool_] | None = None
