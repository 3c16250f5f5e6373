"""Where events come from while a recording runs. One source, one file; a file is found by being here.

```text
    start      the first window of a recording begins
    boundary   after each step, and when a window begins or wants something else: look for what has come since
    settle     an inner window ends, and its trace is made while the recording goes on
    stop       the last window ends
    add        the events go into the trace
```

A file in this folder holds a class `SOURCE` that is a `Source`; a recording makes one of each, starts them in the order of
their names, and stops them in the reverse order. What it hears it either tells `events` as it happens (they go to disk at
once, in time with everything else that Python saw), or keeps, and adds at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncscope.tracers.columns import Builder
from syncscope.tracers.python_events import PythonEvents
from syncscope.tracers.record_file import Contents

GOOD, WARN, BAD = "good", "warn", "bad"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that `syncscope doctor` looked at: how it is (GOOD, WARN, BAD), and what to do about it."""

    what: str
    state: str
    said: str
    hint: str = ""
    traceable: bool = False  # a device whose work would be in a trace


class Source:
    """One source of events. Every method may be left out."""

    lingers = False  # whether what it has used slows the program after `stop`: later steps are no baseline then

    def start(self, events: PythonEvents) -> None:
        """Begins.

        Raises:
            UserError: it cannot, and the recording is not to begin without it.
        """

    def boundary(self) -> None:
        """A step has ended: takes in what has been loaded since. To be cheap."""

    def settle(self) -> None:
        """Has what was heard so far ready for `add`, and goes on."""

    def stop(self) -> None:
        """Ends, and gives back what it took; also where `start` has raised."""

    def add(self, builder: Builder, origin: int) -> dict[str, Any]:
        """Adds the events, with times from `origin` (ns of CLOCK_MONOTONIC); what belongs into the trace's meta, `notes`
        among it."""
        return {}

    @property
    def files(self) -> Sequence[Path]:
        """What is written while it records, by a `record_file.RecordFile`: it outlives a process that is killed."""
        return ()

    @property
    def stopped(self) -> str:
        """Why it records nothing more though it has not been stopped, as on a full disk; "" while it does."""
        return ""

    def remove(self) -> None:
        """Takes its files away."""
        for path in self.files:
            path.unlink(missing_ok=True)

    @classmethod
    def recovered(cls, contents: Contents) -> Source:
        """The source that wrote this file in a process that has ended, for `add`."""
        return cls()

    @classmethod
    def describe(cls) -> Iterable[Item]:
        """What `syncscope doctor` tells of it on this machine."""
        return ()
