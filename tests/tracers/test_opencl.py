"""Plain pyopencl programs on a real driver: every kind of command, whoever made the queue."""

import ctypes
import itertools
import linecache
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_c import in_c

from syncscope.model.trace import DEVICE, Flag, Kind, Trace
from syncscope.tracers.opencl import abi, dispatch
from syncscope.tracers.session import Session


def names(trace: Trace, kind: Kind) -> Counter[str]:
    return Counter(event.name for event in trace if event.kind == kind)


@pytest.fixture
def queue(pocl: Any) -> Any:
    return pocl.cl.CommandQueue(pocl.context, properties=pocl.cl.command_queue_properties.PROFILING_ENABLE)


def buffer(pocl: Any, size: int = 4096) -> Any:
    return pocl.cl.Buffer(pocl.context, pocl.cl.mem_flags.READ_WRITE, size)


@in_c
def test_the_loader_calls_the_slots_that_we_know_by_name(pocl: Any, hook: Any) -> None:
    """An object whose table holds 149 functions of ours: each says which slot the loader went through."""
    called: list[int] = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int)
    functions = [kind(lambda slot=slot: called.append(slot) or 0) for slot in range(abi.SLOTS)]
    table = (ctypes.c_void_p * abi.SLOTS)(*(ctypes.cast(f, ctypes.c_void_p).value for f in functions))
    fake = (ctypes.c_void_p * 2)(ctypes.addressof(table), ctypes.addressof(table))
    listed = (ctypes.c_void_p * 1)(ctypes.addressof(fake))
    loader = ctypes.CDLL(dispatch.loaders()[0])
    slots = map(hook.slot_list().__getitem__, itertools.count())
    known = list(itertools.takewhile(lambda slot: slot.name, slots))
    for function in known:
        call = getattr(loader, f"cl{function.name.decode()}")
        first = (1, listed) if function.name == b"WaitForEvents" else (ctypes.c_void_p(ctypes.addressof(fake)),)
        call(*first, *[ctypes.c_void_p(0)] * 11)
    assert len(known) > 50
    assert called == [function.slot for function in known]


def test_kernels_copies_and_the_line_that_waits(pocl: Any, queue: Any) -> None:
    host, memory = np.ones(1024, np.float32), buffer(pocl)
    with Session() as session:
        pocl.cl.enqueue_copy(queue, memory, host, is_blocking=False).wait()
        for _ in range(50):
            pocl.twice(queue, (1024,), None, memory)
        pocl.cl.enqueue_copy(queue, host, memory)  # this line
    trace = session.trace
    assert names(trace, Kind.KERNEL) == {"twice": 50}
    assert names(trace, Kind.COPY) == {"Memcpy HtoD": 1, "Memcpy DtoH": 1}
    blocking = [e for e in trace if e.kind == Kind.CALL and e.flags & Flag.BLOCKING and "Read" in e.name]
    assert [e.bytes for e in blocking] == [4096]
    read = next(e for e in trace if e.kind == Kind.READ and e.name == "read_buffer")
    assert read.place is not None
    assert read.place.path == __file__
    assert "# this line" in linecache.getline(__file__, read.place.line)
    assert read.column == 9
    assert read.start <= blocking[0].start
    assert blocking[0].end <= read.end


def test_device_times_fit_to_the_hosts(pocl: Any, queue: Any) -> None:
    memory, host = buffer(pocl), np.zeros(1024, np.float32)
    slow = pocl.cl.Kernel(pocl.program, "slow")
    slow(queue, (1,), None, memory, np.int32(1)).wait()  # its first use compiles
    for _ in range(9):
        with Session() as session:
            slow(queue, (1,), None, memory, np.int32(50_000_000))
            pocl.cl.enqueue_copy(queue, host, memory)
        trace = session.trace
        call = {e.correlation: e for e in trace if e.kind == Kind.CALL}
        work = next(e for e in trace if e.name == "slow")
        if call[work.correlation].duration < work.duration:
            break  # a host that others stop just then takes longer
    read = next(e for e in trace if e.kind == Kind.CALL and "Read" in e.name)
    uncertainty = trace.meta["clocks"]["0"]["uncertainty_ns"] + 1000
    assert work.start >= call[work.correlation].start - uncertainty
    assert call[work.correlation].duration < work.duration  # the enqueue did not wait
    assert read.end >= work.end - uncertainty


@in_c
def test_every_kind_of_transfer(pocl: Any, queue: Any) -> None:
    cl = pocl.cl
    a, b, host = buffer(pocl), buffer(pocl), np.zeros((32, 32), np.float32)
    part = a.get_sub_region(0, 256)
    image = cl.create_image(
        pocl.context, cl.mem_flags.READ_WRITE, cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT), (8, 8)
    )
    pixels = np.zeros((8, 8, 4), np.float32)
    with Session() as session:
        cl.enqueue_copy(queue, b, a)
        cl.enqueue_copy(queue, b, part, byte_count=256)
        cl.enqueue_fill_buffer(queue, a, np.float32(1), 0, 4096)
        rect = {
            "buffer_origin": (0, 0),
            "host_origin": (0, 0),
            "region": (16, 4),
            "buffer_pitches": (128,),
            "host_pitches": (128,),
        }
        cl.enqueue_copy(queue, host, a, **rect)
        cl.enqueue_copy(queue, a, host, **rect)
        cl.enqueue_copy(queue, pixels, image, origin=(0, 0), region=(8, 8))
        cl.enqueue_copy(queue, image, pixels, origin=(0, 0), region=(8, 8))
        mapped, _ = cl.enqueue_map_buffer(queue, a, cl.map_flags.READ, 0, (1024,), np.float32)
        mapped.base.release(queue)
        cl.enqueue_marker(queue)
        cl.enqueue_barrier(queue)
        queue.finish()
    trace = session.trace
    copies = Counter((e.name, e.bytes) for e in trace if e.kind == Kind.COPY)
    assert copies[("Memcpy DtoD", 4096)] == 1
    assert copies[("Memcpy DtoD", 256)] == 1
    assert copies[("Memcpy DtoH", 64)] == copies[("Memcpy HtoD", 64)] == 1
    assert copies[("Memcpy DtoH", 1024)] == copies[("Memcpy HtoD", 1024)] == 1
    assert copies[("Memcpy DtoH (map)", 4096)] == 1
    assert names(trace, Kind.FILL) == {"Memset (Device)": 1}
    assert {"clEnqueueMarkerWithWaitList", "clEnqueueBarrierWithWaitList"} <= set(names(trace, Kind.CALL))
    waits = names(trace.take((trace.flags & Flag.BLOCKING) != 0), Kind.CALL)
    assert waits["clEnqueueReadBufferRect"] == waits["clEnqueueReadImage"] == waits["clEnqueueMapBuffer"] == 1


@in_c
def test_calls_on_shared_virtual_memory_are_recorded(pocl: Any, queue: Any) -> None:
    cl = pocl.cl
    if not pocl.device.svm_capabilities & cl.device_svm_capabilities.COARSE_GRAIN_BUFFER:
        pytest.skip("the driver has no shared virtual memory")
    memory = cl.SVM(cl.csvm_empty(pocl.context, 256, np.float32))
    with Session() as session:
        with memory.map_rw(queue) as array:
            array[:] = 1
        cl.enqueue_svm_memfill(queue, memory, np.float32(2))
        queue.finish()
    assert {"clEnqueueSVMMap", "clEnqueueSVMUnmap", "clEnqueueSVMMemFill"} <= set(names(session.trace, Kind.CALL))
    assert names(session.trace, Kind.FILL) == {"Memset (Device)": 1}


@in_c
def test_user_events_and_waits(pocl: Any, queue: Any) -> None:
    gate, memory = pocl.cl.UserEvent(pocl.context), buffer(pocl)
    here = Path(f"/proc/self/task/{threading.get_native_id()}/stat")

    def open_when_it_waits() -> None:
        asleep = 0
        while here.exists() and asleep < 10:
            time.sleep(0.01)
            asleep = asleep + 1 if here.read_text().rpartition(") ")[2][0] == "S" else 0
        gate.set_status(pocl.cl.command_execution_status.COMPLETE)

    with Session() as session:
        waiting = pocl.twice(queue, (16,), None, memory, wait_for=[gate])
        queue.flush()
        opener = threading.Thread(target=open_when_it_waits)
        opener.start()
        waiting.wait()
        waiting.wait()  # it has finished: nobody waits
        opener.join()
    calls = names(session.trace, Kind.CALL)
    assert calls["clWaitForEvents"] == calls["clSetUserEventStatus"] == calls["clFlush"] == 1
    wait = next(e for e in session.trace if e.name == "clWaitForEvents")
    assert wait.flags & Flag.BLOCKING
    assert wait.duration > 20_000_000


@in_c
def test_an_out_of_order_queue_without_profiling_of_its_own(pocl: Any) -> None:
    memory = [buffer(pocl) for _ in range(4)]
    with Session() as session:
        queue = pocl.cl.CommandQueue(
            pocl.context, properties=pocl.cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        )
        for i in range(200):
            pocl.twice(queue, (64,), None, memory[i % 4])
        queue.finish()
    assert names(session.trace, Kind.KERNEL) == {"twice": 200}
    assert session.trace.meta["notes"] == []


def test_several_contexts_queues_and_threads(pocl: Any) -> None:
    def work() -> None:
        context = pocl.cl.Context([pocl.device])
        queue = pocl.cl.CommandQueue(context)
        memory = pocl.cl.Buffer(context, pocl.cl.mem_flags.READ_WRITE, 4096)
        for _ in range(100):
            pocl.cl.enqueue_fill_buffer(queue, memory, np.float32(1), 0, 4096)
        queue.finish()

    with Session() as session:
        threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = session.trace
    assert names(trace, Kind.FILL) == {"Memset (Device)": 400}
    fills = trace.take(trace.kind == Kind.FILL)
    assert sorted(np.unique(fills.lane, return_counts=True)[1].tolist()) == [100] * 4
    host = [e.lane for e in trace if e.name == "clEnqueueFillBuffer"]
    assert sorted(Counter(host).values()) == [100] * 4


@in_c
def test_an_old_queue_without_profiling_is_said_once(pocl: Any) -> None:
    queue, memory = pocl.cl.CommandQueue(pocl.context), buffer(pocl)
    with Session() as session:
        for _ in range(5):
            pocl.twice(queue, (64,), None, memory)
        queue.finish()
    assert names(session.trace, Kind.CALL)["clEnqueueNDRangeKernel"] == 5
    assert not np.isin(session.trace.kind, DEVICE).any()
    assert session.trace.meta["notes"] == [
        "queue 1 was made before the recording and without profiling: host times only"
    ]


def test_builds_are_compilation_and_no_wait(pocl: Any) -> None:
    with Session() as session:
        pocl.cl.Program(pocl.context, f"__kernel void k{id(session)}(void) {{}}").build(cache_dir=False)
    builds = [e for e in session.trace if e.kind == Kind.COMPILE]
    assert builds
    assert not any(e.flags & Flag.BLOCKING for e in builds)


def test_kernels_of_one_name_after_release_of_another(pocl: Any, queue: Any) -> None:
    memory = buffer(pocl)
    with Session() as session:
        for i in range(60):  # handles are used again: a name must not be
            kernel = pocl.cl.Kernel(pocl.program, ("twice", "slow")[i % 2])
            arguments = (memory,) if i % 2 == 0 else (memory, np.int32(1))
            kernel(queue, (1,), None, *arguments)
            del kernel
        queue.finish()
    assert names(session.trace, Kind.KERNEL) == {"twice": 30, "slow": 30}


def test_an_exception_in_a_call_passes_as_it_is(pocl: Any, queue: Any) -> None:
    small, large = buffer(pocl, 16), np.zeros(1024, np.float32)
    with Session() as session, pytest.raises(pocl.cl.Error, match="INVALID_VALUE"):
        pocl.cl.enqueue_copy(queue, large, small)
    assert not np.isin(session.trace.kind, DEVICE).any()


def test_nested_traces_are_windows_of_one(pocl: Any, queue: Any) -> None:
    memory, twice = buffer(pocl), pocl.cl.Kernel(pocl.program, "twice")

    def launch(count: int) -> None:
        for _ in range(count):
            twice(queue, (64,), None, memory)

    with Session() as outer:
        launch(3)
        with Session() as inner:
            launch(4)
            inner.step()
        launch(5)
        outer.step()
    assert names(inner.trace, Kind.KERNEL) == {"twice": 4}
    assert names(outer.trace, Kind.KERNEL) == {"twice": 12}
    assert names(inner.trace, Kind.STEP) == names(outer.trace, Kind.STEP) == {"ProfilerStep#0": 1}
    step = next(e for e in inner.trace if e.kind == Kind.STEP)
    assert 0 <= step.start < step.end


def test_traces_may_follow_one_another(pocl: Any, queue: Any) -> None:
    memory = buffer(pocl)
    for count in (2, 7):
        with Session() as session:
            for _ in range(count):
                pocl.twice(queue, (64,), None, memory)
        assert names(session.trace, Kind.KERNEL) == {"twice": count}
