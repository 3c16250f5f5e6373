"""Which lines run in steps: of functions that were called in them, and of what is under way since before, in any thread."""

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


def forward(trains: bool) -> int:
    number = 1
    if trains:
        number += 1
    else:
        number = [
            number,
            3,
        ][0]
    return number


def batches() -> Iterator[int]:
    first = 1
    yield first
    second = first + 1
    yield second


@pytest.mark.usefixtures("traced")
def test_an_arm_that_is_never_taken_does_not_run_and_what_goes_on_runs_from_where_it_was() -> None:
    started = Started()
    started.listen()
    given = batches()
    next(given)
    forward(False)
    started.boundary()
    assert next(given) + forward(True) == 4
    lines = set((started.lines() or {})[__file__])

    def ran(function: Any) -> list[bool]:
        source, first = getsourcelines(function)
        return [first + line in lines for line in range(len(source))]

    assert ran(forward) == [True, True, True, True, False, False, False, False, False, True]
    assert ran(batches)[1] is False
    assert ran(batches)[3:] == [True, True]


@pytest.mark.usefixtures("traced")
def test_a_function_is_listened_to_until_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncscope.verify.started.KNOWN", 50)
    heard = 0
    started = Started()

    def hear(frame: Any, event: str, argument: object, line: Any = started._line) -> Any:
        nonlocal heard
        heard += frame.f_code is forward.__code__
        return line(frame, event, argument)

    monkeypatch.setattr(started, "_line", hear)
    started.listen()
    started.boundary()
    for _ in range(100):
        forward(True)
    lines = (started.lines() or {})[__file__]
    assert 50 <= heard < 100  # of 500
    assert getsourcelines(forward)[1] in lines


@pytest.mark.usefixtures("traced")
def test_a_loop_is_listened_to_until_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncscope.verify.started.KNOWN", 50)
    heard = []
    started = Started()
    monkeypatch.setattr(started, "_line", lambda *told, line=started._line: (heard.append(told[1]), line(*told))[1])

    def loop() -> None:
        for number in range(1000):
            number += 1

    started.listen()
    started.boundary()
    loop()
    sys.settrace(None)
    assert heard.count("line") < 400  # of 2000, with those of other functions


@pytest.mark.usefixtures("traced")
def test_of_a_loop_that_goes_on_what_it_has_not_come_to_may_run_and_arms_that_it_passes_by_do_not() -> None:
    started, lines = Started(), set()

    def train(validates: bool) -> None:
        for step in range(4):
            if step == 0:
                started.boundary()
            if validates:
                lines.clear()
            if step == 2:
                lines.update((started.lines() or {})[__file__])
                return
        lines.clear()

    started.listen()
    train(False)
    source, first = getsourcelines(train)
    said = [first + line in lines for line in range(len(source))]
    assert [said[5], said[9]] == [False, True]
