"""What would help: predicted from a simulated recording, and beside it the simulated run in which it is so."""

import dataclasses
import inspect

import numpy as np
import pytest
from analysis.drawn import Device
from effort import in_turns

from syncscope.analysis.summary import summarize
from syncscope.analysis.what_if import TRAFFIC
from syncscope.exporters import markdown, terminal
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace
from syncscope.model.what_if import Effort, WhatIf, first_of

MS, US = 1_000_000, 1_000
HOST = Lane(1, 1)
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def recorded(steps, **changed) -> Trace:
    return Device(**changed).run(steps)[0]


def length(steps, **changed) -> float:
    """ns of a step in the middle, once all is done."""
    trace = recorded(steps, **changed)
    return (summarize(trace).saving_step or 0.0) if len(trace) else 0.0


def rows(trace: Trace) -> dict[str, object]:
    return {one.name: one for one in summarize(trace).what_if}


def lined(trace: Trace, line_of) -> Trace:
    """The recording with a line for each of its launches: `line_of(n)` of the n-th of its step."""
    starts = trace.start[trace.rows(Kind.STEP)]
    count: dict[int, int] = {}
    events = []
    for event in trace:
        if event.kind == Kind.CALL and event.correlation >= 0:
            step = int(np.searchsorted(starts, event.start, side="right"))
            count[step] = count.get(step, -1) + 1
            event = dataclasses.replace(event, place=Place("train.py", line_of(count[step])))
        events.append(event)
    return Trace.of(events)


def launching(launches=40, gap=30 * US, kernel=10 * US, steps=8):
    step = [what for _ in range(launches) for what in (("work", gap), ("launch", 0, kernel))]
    return [[*step, ("read", 57, 0)]] * steps


def test_launches_that_cost_nothing_are_one_launch_a_stretch():
    found = rows(recorded(launching()))["launches cost nothing"]
    graphed = [[("work", 30 * US), ("launch", 0, 10 * US), *[("launch", 0, 10 * US)] * 39, ("read", 57, 0)]] * 8
    truth = length(launching()) - length(graphed, launch=0)
    assert found.saving == pytest.approx(truth, rel=0.05)
    assert found.low <= truth <= found.high + 0.01 * found.saving
    assert found.saving <= found.bound
    assert "train.py:57" in found.advice, "the wait that no graph can hold"


def test_a_program_for_cuda_that_was_lent_ocl_is_told_of_cuda_graphs():
    trace = recorded(launching())
    names = [name.replace("cudaLaunchKernel", "clEnqueueNDRangeKernel") for name in trace.names]
    on_opencl = dataclasses.replace(trace, names=names)
    assert "torch.ocl.capture" in rows(on_opencl)["launches cost nothing"].advice
    lent = dataclasses.replace(on_opencl, meta=trace.meta | {"stands_for": "cuda"})
    assert "torch.cuda.graph" in rows(lent)["launches cost nothing"].advice
    assert rows(lent)["launches cost nothing"].advice.startswith("on CUDA "), "`ocl` has no code for it"
    assert "torch.ocl" not in rows(lent)["launches cost nothing"].advice


def test_where_the_device_is_always_busy_launches_are_worth_nothing():
    assert "launches cost nothing" not in rows(recorded(launching(gap=2 * US, kernel=100 * US)))


def test_the_launches_of_one_line_become_one():
    """Twenty launches of line 30 (an average of weights, say) among those of a network."""
    trace = lined(recorded(launching()), lambda n: 30 if 10 <= n < 30 else 100 + n)
    trace = Trace.of(dataclasses.replace(e, name="lerp") if e.kind == Kind.KERNEL else e for e in trace)
    found = rows(trace)
    (row,) = (one for name, one in found.items() if name == "train.py:30 launches once")
    truth = length(launching()) - length(launching(launches=21))
    assert row.saving == pytest.approx(truth, rel=0.1)
    assert row.lines[0] == Place("train.py", 30)


def stepping(optimizer, kernel="work", lent=False, call="cudaLaunchKernel"):
    """Of a recording in which half a millisecond of each step is that optimizer's; None where there is no such row."""
    trace = recorded(launching())
    trace = Trace.of(dataclasses.replace(e, name=kernel) if e.kind == Kind.KERNEL else e for e in trace)
    regions = [
        Event(Kind.ANNOTATION, f"Optimizer.step#{optimizer}.step", HOST, int(end - 600 * US), 500 * US)
        for end in trace.end[trace.rows(Kind.STEP)].tolist()
    ]
    found = Trace.of([*trace, *regions])
    names = [name.replace("cudaLaunchKernel", call) for name in found.names]
    meta = found.meta | ({"stands_for": "cuda"} if lent else {})
    return rows(dataclasses.replace(found, names=names, meta=meta)).get(f"{optimizer}'s step is one launch")


def test_an_optimizer_is_told_to_be_fused():
    row = stepping("AdamW")
    assert "fused=True" in row.advice
    assert 300 * US < row.saving < 600 * US


def test_only_optimizers_that_torch_can_fuse_are_told_to_be():
    optim = pytest.importorskip("torch").optim
    can = {
        name
        for name, kind in vars(optim).items()
        if isinstance(kind, type) and "fused" in inspect.signature(kind).parameters
    }
    assert can == set(TRAFFIC)
    for name in ("RMSprop", "Shampoo"):
        row = stepping(name)
        assert "fused" not in row.advice
        assert "torch.compile" in row.advice
        assert row.effort is Effort.LINES


@pytest.mark.parametrize("kernel", ["foreach_add_float", "void at::native::(anonymous)::multi_tensor_apply_kernel<>"])
def test_an_optimizer_that_goes_through_lists_already_is_not_told_to(kernel):
    """`foreach=True` stood in the line that was to be mended by `torch._foreach_*`."""
    assert "_foreach_" in stepping("RMSprop").advice
    assert stepping("RMSprop", kernel).advice == "`torch.compile` of its step"
    on_opencl = {"call": "clEnqueueNDRangeKernel"}
    assert stepping("RMSprop", kernel, **on_opencl) is None, "no code is generated for it"
    assert stepping("RMSprop", **on_opencl).advice == "`torch._foreach_*` in it"
    assert stepping("RMSprop", kernel, lent=True, **on_opencl).advice == "on CUDA `torch.compile` of its step"


def test_a_loader_that_is_never_late():
    steps = [[("work", 4 * MS), ("launch", 0, 3 * MS), ("read", 57, 0)]] * 8
    trace = recorded(steps)
    loads = [Event(Kind.ANNOTATION, LOADER, HOST, int(start), 4 * MS) for start in trace.start[trace.rows(Kind.STEP)]]
    found = rows(Trace.of([*trace, *loads]))
    row = found["the loader is never late"]
    truth = length(steps) - length([[("launch", 0, 3 * MS), ("read", 57, 0)]] * 8)
    assert row.saving == pytest.approx(truth, rel=0.05)
    assert not [name for name in found if "own work" in name], "which is not the host's own work besides"
    assert row.high <= row.bound <= length(steps) - 2.999 * MS, "the device's own work stays, whatever goes"


def test_the_first_batch_of_a_loop_that_begins_in_the_recording_is_not_late():
    """Of five in one marked step: nothing runs yet beside which it could be loaded. Where each step loads once, all count."""
    batch = [("work", 4 * MS), ("launch", 0, 3 * MS), ("read", 57, 0)]

    def row(steps):
        trace = recorded(steps)
        begins = [*trace.start[trace.rows(Kind.STEP)][:1], *(event.end for event in trace if event.kind == Kind.READ)]
        loads = [Event(Kind.ANNOTATION, LOADER, HOST, int(start), 4 * MS) for start in begins[:-1]]
        return rows(Trace.of([*trace, *loads]))["the loader is never late"]

    found = row([batch * 5])
    assert found.saving == pytest.approx(length([batch * 5]) - length([batch + batch[1:] * 4]), rel=0.05)
    assert found.saving == pytest.approx(16 * MS, rel=0.05)
    assert found.high >= 20 * MS
    assert "the first batch, 4.0 ms, aside" in found.advice
    each = row([batch] * 3)
    assert each.saving == pytest.approx(4 * MS, rel=0.05)
    assert "first batch" not in each.advice


def test_what_may_as_well_save_nothing_does_not_come_first():
    little = [
        WhatIf("nothing waits", 1.5, -1.1, 5.2, 5.2, answered=True, unsure=True),
        WhatIf("launches cost nothing", 1.0, 0.2, 2.0, 3.0, effort=Effort.STEP),
    ]
    assert first_of(little) is little[1]
    assert first_of(little[:1]) is None


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        ("_SingleProcessDataLoaderIter", "where the loader is made, or in the call of a library"),
        ("_MultiProcessingDataLoaderIter", "more `num_workers`"),
        ("of_ones_own", "`DataLoader(num_workers=..."),
    ],
)
def test_a_loader_is_given_workers_where_it_has_none_and_more_where_it_has(loader: str, said: str):
    trace = recorded([[("work", 4 * MS), ("launch", 0, 3 * MS), ("read", 57, 0)]] * 8)
    name = f"enumerate(DataLoader)#{loader}.__next__"
    loads = [Event(Kind.ANNOTATION, name, HOST, int(start), 4 * MS) for start in trace.start[trace.rows(Kind.STEP)]]
    assert said in rows(Trace.of([*trace, *loads]))["the loader is never late"].advice


def test_work_of_the_host_before_a_line_is_named_by_the_lines_around_it():
    step = [("launch", 0, 100 * US), ("work", 5 * MS), ("launch", 0, 100 * US), ("read", 57, 0)]
    trace = lined(recorded([step] * 8), lambda n: (20, 23)[n])
    row = rows(trace)["the host's own work between lines 20 and 23 of train.py is free"]
    assert "4.9 ms between two launches" in row.advice
    assert row.saving == pytest.approx(5 * MS, rel=0.05)
    assert row.lines == (Place("train.py", 23), Place("train.py", 20))


def test_what_is_done_once_is_no_work_between_two_lines_of_each_pass():
    """A loop without marked steps, which makes something ready at first use: one second of sixty passes."""

    def named(event: Event) -> Event:
        return dataclasses.replace(event, name="relu") if event.kind == Kind.KERNEL else event

    def of_passes(first: int) -> list[str]:
        step = [("launch", 0, 100 * US), ("work", 2 * MS), ("launch", 0, 100 * US), ("read", 57, 0)]
        opening = [("launch", 0, 100 * US), ("work", first), ("launch", 0, 100 * US), ("read", 57, 0)]
        trace = lined(recorded([opening, *[step] * 59]), lambda n: (20, 23)[n])
        found = rows(Trace.of(named(event) for event in trace if event.kind != Kind.STEP))
        return [one.advice for name, one in found.items() if "between lines 20 and 23" in name]

    (usual,), (with_first,) = of_passes(2 * MS), of_passes(1000 * MS)
    assert usual.startswith("114.0 ms between two launches")
    assert with_first.startswith("112.1 ms between two launches")


def test_a_line_saves_no_more_than_the_host_spends_before_it_however_long_steps_warm_up():
    """Without the host's work the steps that warm up would wait for the device, and the timed ones seem to catch up on that."""
    warm = [("launch", 0, 19 * MS), ("work", 20 * MS), ("launch", 0, 100 * US)]
    step = [("launch", 0, 100 * US), ("work", MS), ("launch", 0, 100 * US), ("work", 3 * MS)]
    trace = lined(recorded([*[warm] * 4, *[step] * 12]), lambda n: (20, 23)[n])
    row = rows(trace)["the host's own work between lines 20 and 23 of train.py is free"]
    assert row.saving == pytest.approx(0.9 * MS, rel=0.02)
    assert row.high <= row.bound <= 1.01 * MS, "all that the host did there, whatever a replay may be off"


def test_what_is_done_after_the_last_launch_of_a_step_is_between_it_and_the_next_steps_first():
    step = [("work", 5 * MS), ("launch", 0, 100 * US), ("launch", 0, 100 * US)]
    found = summarize(lined(recorded([step] * 8), lambda n: (32, 38)[n]))
    assert found.what_if[0].name == "the host's own work between lines 38 and 32 of train.py is free"
    (line,) = (one for one in found.by_line.lines if one.place == Place("train.py", 32))
    assert line.since == Place("train.py", 38)


def test_where_the_replay_does_not_hold_no_change_of_a_line_has_a_saving():
    step = [("work", 5 * MS), ("launch", 0, 100 * US), ("launch", 0, 100 * US)]
    found = summarize(lined(recorded([step] * 8), lambda n: (32, 38)[n]))
    held, off = (" ".join(terminal.export(dataclasses.replace(found, fidelity=by)).split()) for by in (0.01, 0.08))
    name = "if the host's own work between lines 38 and 32 of train.py is free"
    assert f"do first {name}, a step may be 4.80 ms" in held
    assert f"try {name}, a step may be shorter, by at most 4.81 ms" in off
    assert off.count(" - - 4.81 - ") == 1
    assert "| - | - |" in markdown.export(dataclasses.replace(found, fidelity=0.08))


def test_copies_from_pageable_memory():
    def copied(event: Event) -> list[Event]:
        if event.kind == Kind.KERNEL and event.duration == 3 * MS:
            return [dataclasses.replace(event, kind=Kind.COPY, name="Memcpy HtoD (Pageable -> Device)", bytes=36 << 20)]
        if event.kind == Kind.CALL and event.duration == 4 * MS:
            return [dataclasses.replace(event, name="cudaMemcpyAsync")]
        return [event]

    step = [("launch", 0, 3 * MS), ("work", MS), ("launch", 0, 3 * MS + 1), ("read", 57, 0)]
    trace = recorded([step] * 8, launch=4 * MS)
    trace = Trace.of(new for event in trace for new in copied(event))
    found = rows(trace)
    assert [name for name in found if name == "copies are pinned and asynchronous"]


@pytest.mark.parametrize(
    ("kernel", "says"),
    [(3 * MS, "the device is what holds it up"), (300 * US, "up to 3 times the batch, a step takes no longer")],
)
def test_a_device_that_is_twice_as_fast_tells_who_holds_it_up(kernel, says):
    steps = [[("work", MS), ("launch", 0, kernel), ("read", 57, 0)]] * 8
    row = rows(recorded(steps))["the device is twice as fast"]
    assert row.saving == pytest.approx(kernel / 2, rel=0.05)
    assert says in row.advice or kernel < MS


@pytest.mark.parametrize(("kernel", "work"), in_turns([50 * US, 25 * US, 14 * US], [0, 4 * US]))
def test_launches_that_a_full_queue_held_up_are_as_long_as_a_faster_device_makes_them(kernel, work):
    steps, faster = ([[("work", work), ("launch", 0, each)] * 200] * 8 for each in (kernel, kernel // 2))
    found = summarize(recorded(steps, depth=300))
    row = next(one for one in found.what_if if one.name == "the device is twice as fast")
    truth = length(steps, depth=300) - length(faster, depth=300)
    assert row.saving == pytest.approx(truth, rel=0.05)
    assert truth <= row.bound
    assert any("waited for a full queue, which holds 299" in note for note in found.notes)


def test_a_slow_host_whose_queue_is_never_full_stays_as_slow():
    steps = [[*[("launch", 0, 50 * US)] * 200, ("read", 57, 0)]] * 8
    found = summarize(recorded(steps, launch=60 * US))
    assert not [one for one in found.what_if if one.name == "the device is twice as fast"]
    assert not any("launch call" in note for note in found.notes)


def test_nothing_is_said_of_a_faster_device_where_launches_may_have_waited_or_not():
    """Two calls of a step are long with much before them: eight tell nothing."""
    steps = [[*[("launch", 0, 200 * US)] * 43, ("read", 57, 0)]] * 4
    found = summarize(recorded(steps, depth=40))
    assert not [one for one in found.what_if if one.name == "the device is twice as fast"]
    assert any("cannot be told whether they waited" in note for note in found.notes)
    free = summarize(recorded(steps))
    assert [one for one in free.what_if if one.name == "the device is twice as fast"]


def test_no_larger_batch_is_free_where_the_device_trails_the_host():
    trailing = [
        *[("work", 17 * US), ("launch", 0, 22 * US)] * 100,
        ("work", 200 * US),
        ("launch", 0, 22 * US),
        ("read", 57, 0),
    ]
    row = rows(recorded([trailing] * 12))["the device is twice as fast"]
    larger = [(what, rest[0], round(1.25 * rest[1])) if what == "launch" else (what, *rest) for what, *rest in trailing]
    longer = length([larger] * 12) / length([trailing] * 12) - 1
    assert longer > 0.1
    assert f"with 1.25 times the batch a step takes {longer:.0%} longer" in row.advice


def exchanging(trace: Trace) -> Trace:
    """The recording in which each second kernel is a collective."""
    count = iter(range(len(trace)))
    return Trace.of(
        dataclasses.replace(event, name="ncclDevKernel_AllReduce_Sum_f32" if next(count) % 2 else "gemm")
        if event.kind == Kind.KERNEL
        else event
        for event in trace
    )


def test_a_faster_device_exchanges_no_faster_and_is_nothing_to_do_first():
    steps = [[("launch", 0, 2 * MS), ("launch", 0, 9 * MS), ("read", 57, 0)]] * 8
    found = summarize(exchanging(recorded(steps)))
    row = next(one for one in found.what_if if one.name == "the device is twice as fast")
    assert row.saving <= 1.1 * MS
    assert row.high <= 2.1 * MS, "no more than all of its own work"
    assert row.bought
    assert "exchange with other ranks" in row.advice
    assert "twice as fast" not in found.uses.words
    assert "twice as fast" not in terminal.export(found).partition("goes to")[0]
    said = " ".join(terminal.export(found).split())
    assert "do first" in said
    assert "of a step is exchange with other ranks, or waiting for them `syncscope ranks`" in said


def test_where_only_a_faster_device_helps_nothing_is_to_be_done_first():
    found = summarize(recorded([[("launch", 0, 9 * MS), ("read", 57, 0)]] * 8))
    assert [one.name for one in found.what_if] == ["the device is twice as fast"]
    assert "do first" not in terminal.export(found)


def test_the_waits_stand_among_them_and_the_most_comes_first():
    steps = [[("work", MS), ("launch", 0, 3 * MS), ("read", 57, 0), ("work", 3 * MS), ("launch", 0, 3 * MS)]] * 8
    found = summarize(recorded(steps))
    savings = [one.saving for one in found.what_if]
    assert savings == sorted(savings, reverse=True)
    waits = next(one for one in found.what_if if one.name == "nothing waits")
    assert waits.saving == pytest.approx(found.saving)
    assert (waits.low, waits.high) == pytest.approx(
        (found.answer.low * found.saving_step, found.answer.high * found.saving_step)
    )
    assert waits.lines == (Place("train.py", 57),)


def preparing(ms: int) -> list[list[tuple[str, int]]]:
    kernels = [("launch", 0, 400 * US)] * 10
    return [[("work", 100 * US), ("work", ms * MS), ("launch", 0, 20 * US), *kernels, ("read", 57, 0)]] * 8


def uploading(trace: Trace, function: str) -> Trace:
    """The recording without lines, whose steps copy first, from pinned memory; before that the host is in a function."""
    copies = {event.correlation for event in trace if event.kind == Kind.KERNEL and event.duration == 20 * US}
    events = []
    for event in trace:
        if event.correlation in copies and event.kind == Kind.KERNEL:
            event = dataclasses.replace(event, kind=Kind.COPY, name="Memcpy HtoD (Pinned -> Device)")
        elif event.correlation in copies:
            event = dataclasses.replace(event, name="cudaMemcpyAsync")
        events.append(event)
        if event.kind == Kind.STEP:
            place = Place("clips.py", 12)
            events.append(Event(Kind.PYTHON, f"clips.py(12): {function}", HOST, event.start, 9 * MS, place=place))
    return Trace.of(events)


def test_an_input_that_the_main_thread_makes_between_steps_comes_first():
    found = rows(uploading(recorded(preparing(9)), "normalize"))["the input is ready when it is wanted"]
    truth = length(preparing(9)) - length(preparing(0))
    assert found.saving == pytest.approx(truth, rel=0.05)
    assert found.low < 0.6 * truth, "who makes it elsewhere may be too slow"
    assert found.advice.startswith("the main thread makes it for 9.0 ms, most in normalize (clips.py:12): ")
    assert "num_workers" in found.advice
    assert "the input is ready when it is wanted" not in rows(uploading(recorded(preparing(0)), "normalize"))


def test_the_hosts_own_work_is_named_by_its_function_where_no_line_is_known():
    names = rows(uploading(recorded([[*step[:2], *step[3:]] for step in preparing(9)]), "tokenize"))
    assert "the host's own work in tokenize (clips.py:12) is free" in names


def test_no_row_without_a_replay_that_can_be_trusted():
    assert summarize(Trace.of([Event(Kind.CALL, "clFinish", HOST, 0, 10, flags=Flag.BLOCKING)])).what_if == ()


def test_an_argument_comes_before_a_step_of_fixed_shape_that_saves_little_more():
    """The loader holds the device up for as long as launches do: the text names it, and so does what to do first."""
    step = [
        ("work", 4 * MS),
        *[what for _ in range(60) for what in (("work", 80 * US), ("launch", 0, 10 * US))],
        ("read", 57, 0),
    ]
    trace = recorded([step] * 8)
    loads = [Event(Kind.ANNOTATION, LOADER, HOST, int(start), 4 * MS) for start in trace.start[trace.rows(Kind.STEP)]]
    found = summarize(Trace.of([*trace, *loads]))
    assert found.what_if[0].name == "launches cost nothing"
    assert first_of(found.what_if).name == "the loader is never late"
    said = terminal.export(found)
    assert "do first if the loader is never late" in said
    assert said.index("answer ") < said.index("do first"), "as everywhere, also where it saves more than all waits cost"


def test_what_is_easy_and_saves_little_does_not_come_first():
    rows = [
        WhatIf("launches cost nothing", 40.0, 30.0, 50.0, 60.0, effort=Effort.STEP),
        WhatIf("the loader is never late", 15.0, 1.0, 45.0, 60.0, effort=Effort.WORD),
        WhatIf("nothing waits", 30.0, 28.0, 32.0, 40.0),
        WhatIf("the device is twice as fast", 70.0, 70.0, 70.0, 70.0, bought=True, effort=Effort.WORD),
    ]
    assert first_of(rows).name == "launches cost nothing"
    assert first_of(rows[-1:]) is None
