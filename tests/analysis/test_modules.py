"""The device's work by the modules whose calls launched it."""

from syncscope.analysis.work_done import work_done
from syncscope.model.trace import Event, Kind, Lane, Trace

HOST, OTHER, QUEUE = Lane(1, 1), Lane(1, 2), Lane(1, 7, 0)


def module(name, start, duration, kind=Kind.PYTHON):
    return Event(kind, f"nn.Module: {name}", HOST, start, duration)


def work(number, at, duration, lane=HOST):
    yield Event(Kind.CALL, "launch", lane, at, 2, number)
    yield Event(Kind.KERNEL, "k", QUEUE, 1000 + 100 * number, duration, number)


def lines(*events):
    return [(line.path, line.count, line.own, line.time) for line in work_done(Trace.of(events), ()).modules]


def test_work_is_of_the_innermost_module_and_in_the_time_of_those_around_it():
    found = lines(
        *(module("Net_0", 0, 100), module("Linear_0", 10, 20), module("ReLU_0", 40, 10), module("Linear_0", 60, 20)),
        *(*work(1, 5, 7), *work(2, 12, 10), *work(3, 42, 1), *work(4, 65, 30), *work(5, 85, 2)),
    )
    assert found == [
        (("Net_0",), 2, 9, 50),
        (("Net_0", "Linear_0"), 2, 40, 40),
        (("Net_0", "ReLU_0"), 1, 1, 1),
    ]


def test_what_no_module_launched_is_in_none():
    found = lines(module("model", 10, 10, Kind.ANNOTATION), *work(1, 5, 7), *work(2, 12, 10), *work(3, 12, 5, OTHER))
    assert found == [(("model",), 1, 10, 10)]
    assert lines(*work(1, 5, 7)) == []


def test_modules_that_launch_nothing_are_left_out():
    assert lines(module("a", 0, 10), module("b", 2, 2), *work(1, 7, 7)) == [(("a",), 1, 7, 7)]
