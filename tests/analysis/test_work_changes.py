"""Which kernels got slower or more numerous between two recordings, and whose they are."""

from dataclasses import replace

import pytest
from drawn import Device
from drawn_ranks import MS, launch, work

from syncscope import kineto
from syncscope.analysis.compare import compare
from syncscope.model.source import Place
from syncscope.model.trace import Event, Kind, Lane, Trace


def loop(*kernels, lines=True):
    """Six steps of these kernels, one after another: name, line, how long (ms)."""
    events, at = [], 0
    for step in range(6):
        begun, host, number = at, at, 100 * step
        for name, line, takes in kernels:
            number += 1
            call = launch(host, number)
            events.append(replace(call, place=Place("train.py", line)) if lines else call)
            start = max(at, host + 15_000)
            at = start + round(takes * MS)
            events.append(work(name, start, at - start, number))
            host += 10_000
        at += 20_000
        events.append(Event(Kind.CALL, "cudaDeviceSynchronize", Lane(1, 1), host, at - host))
        at += 5_000
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", Lane(1, 1), begun, at - begun))
    return Trace.of(events)


BEFORE = [("gemm", 3, 1.0), ("gemm", 4, 1.0), ("relu", 5, 0.5), ("relu", 5, 0.5)]


def changes(before, after, **more):
    found = compare(loop(*before, **more), loop(*after, **more))
    return [
        (each.word, each.name, each.places[1] and each.places[1].line, each.counts, each.times)
        for each in found.kernels
    ]


def test_of_two_lines_that_launch_one_kernel_the_slower_is_named():
    after = [("gemm", 3, 1.0), ("gemm", 4, 1.6), *BEFORE[2:]]
    assert changes(BEFORE, after) == [("slower", "gemm", 4, (1, 1), (1.0 * MS, 1.6 * MS))]
    assert changes(after, BEFORE) == [("faster", "gemm", 4, (1, 1), (1.6 * MS, 1.0 * MS))]
    assert changes(BEFORE, after, lines=False) == [("slower", "gemm", None, (2, 2), (2.0 * MS, 2.6 * MS))]
    assert changes(BEFORE, BEFORE) == []


def test_more_of_a_kernel_and_one_that_came():
    after = [*BEFORE, ("relu", 5, 0.5), ("cast", 6, 0.3)]
    assert changes(BEFORE, after) == [
        ("more", "relu", 5, (2, 3), (1.0 * MS, 1.5 * MS)),
        ("new", "cast", 6, (0, 1), (0, 0.3 * MS)),
    ]
    assert [(word, name) for word, name, *_ in changes(after, BEFORE)] == [("fewer", "relu"), ("gone", "cast")]


def test_lines_that_moved_are_the_same():
    moved = [(name, line + 2, takes) for name, line, takes in BEFORE]
    assert changes(BEFORE, moved) == []
    assert changes(BEFORE, [*moved[:3], ("relu", 7, 0.9)]) == [("slower", "relu", 7, (2, 2), (1.0 * MS, 1.4 * MS))]


def test_of_one_recording_nothing_changed_and_of_two_machines_nothing_is_told():
    device = Device().run([[("launch", 0, 5 * MS)]] * 6)[0]
    assert compare(device, device).kernels == ()
    slow = loop(("gemm", 3, 2.0))
    one, other = (replace(t, meta={**t.meta, "devices": [{"name": n}]}) for t, n in ((loop(*BEFORE), "A"), (slow, "B")))
    assert compare(one, other).kernels == ()


def test_of_two_real_runs_it_is_other_kernels_of_the_same_convolutions(shared):
    """The same training, of which cuDNN chose others to compute the gradient of weights."""
    names = (f"v100_resnet50_train_workers{n}_6steps.pt.trace.json.gz" for n in (0, 4))
    found = compare(*(kineto.read(shared / "traces" / name) for name in names))
    told = {each.name.split("<")[0].rpartition("::")[2]: (each.word, *each.counts) for each in found.kernels}
    assert told["wgrad_alg0_engine"] == ("fewer", 26, 15)
    assert sum(each.more for each in found.kernels) == pytest.approx(0, abs=MS), "of which it takes as long"
