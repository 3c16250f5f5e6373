"""`os._exit`, which runs nothing that is still to run: the recordings of this process are ended first."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import NoReturn, Protocol

from syncscope.tracers.process_recording import Window, changes, recordings_made


class Open(Protocol):
    """A session that has begun and not ended."""

    def takes(self) -> list[Window]:
        """All that it has recorded of which there is no trace yet."""

    def __exit__(self, kind: None, error: None, traceback: None) -> None:
        """Ends it and gives the trace away."""


_exit = os._exit
_sessions: list[tuple[Open, bool]] = []  # from the outermost, and whether somebody is given the trace


@contextlib.contextmanager
def saving(session: Open, wanted: bool) -> Iterator[None]:
    """Inside, `os._exit` ends the session first; `wanted` says whether somebody is given its trace."""
    one = session, wanted
    _sessions.append(one)
    os._exit = _after_saving
    try:
        yield
    finally:
        if one in _sessions:
            _sessions.remove(one)
        if not _sessions:
            os._exit = _exit


def _after_saving(status: int) -> NoReturn:
    """Other threads would go on meanwhile, for seconds: where somebody waits for what is left in a folder, that is enough, and
    where nobody is to be given the trace, there is nothing to end.
    """
    others_run = threading.active_count() > 1
    try:
        for session, wanted in reversed(_sessions.copy()):
            recordings = [take.recording for take in session.takes()]
            if others_run and any(recording.kept for recording in recordings):
                recordings[0].events.flush()
                break
            if wanted or not recordings:
                session.__exit__(None, None, None)
        changes.acquire()  # for good: another thread would begin the next
        for recording in list(recordings_made):  # last: an outer session may want what the same recording has
            if not recording.kept:
                recording.unlink()
    finally:
        _exit(status)


def _forget() -> None:
    """In the child of a fork: the recordings are the parent's."""
    _sessions.clear()
    if os._exit is _after_saving:
        os._exit = _exit


os.register_at_fork(after_in_child=_forget)
