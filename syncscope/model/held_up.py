"""What each event waited for last before it could begin."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Why(StrEnum):
    """In what way an event was held up by the one that it names."""

    UNKNOWN = "unknown"
    RETURN = "return"  # of a wait: by the work that it was for
    LAUNCH = "launch"  # of work: by its launch; before that its queue was empty
    QUEUE = "queue"  # by the work before it in its queue
    TOLD = "told"  # by work of another queue, as the driver recorded
    INFERRED = "inferred"  # by work of another queue, by the moment at which that ended
    FULL = "full"  # by work of other queues, which had the device to themselves
    BEFORE = "before"  # by what was enqueued before the recording
    NOTHING = "nothing"  # by nothing that was recorded
    HOST = "host"  # of a launch: the host had been in that wait before


@dataclass(frozen=True, slots=True, eq=False)
class HeldUp:
    """For each event of a trace, and after them for each of its reads: `why` (a number in `Why`'s order), and `by` what, -1 is
    none: a row of the trace, or beyond them a read, by its number."""

    why: NDArray[np.uint8]
    by: NDArray[np.int64]
