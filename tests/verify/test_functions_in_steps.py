"""Which functions run in steps: what was called in them, and what is under way since before, in any thread."""

import sys
import threading
from collections.abc import Iterator
from inspect import getsourcelines
from typing import Any

import pytest

from syncscope.tracers import places
from syncscope.verify.started import Started


def prepare() -> None:
    """Is called before the steps, and is over then."""


def step() -> None:
    """Is called in a step."""


def produce(begun: threading.Event, ended: threading.Event) -> None:
    """What a thread does as long as there are steps."""
    begun.set()
    ended.wait()


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A debugger of the tests' own gets its place back."""
    monkeypatch.setattr(places, "kind_of_file", lambda path: places.USER)
    before = sys.gettrace()
    yield
    sys.settrace(before)
    threading.settrace(before)  # type: ignore[arg-type]


@pytest.mark.usefixtures("traced")
def test_what_runs_in_steps_is_what_was_called_in_them_or_has_not_ended() -> None:
    begun, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=produce, args=(begun, ended))
    started = Started()
    started.listen()
    prepare()
    thread.start()
    begun.wait()
    started.boundary()
    step()
    lines = (started.lines() or {})[__file__]
    ended.set()
    thread.join()

    def ran(function: Any) -> bool:
        return getsourcelines(function)[1] in lines

    assert ran(produce)
    assert ran(step)
    assert ran(test_what_runs_in_steps_is_what_was_called_in_them_or_has_not_ended)
    assert not ran(prepare)
