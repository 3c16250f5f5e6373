"""The one door to the device: enqueues return at once, reads wait, and whoever listens is told."""

import os
import threading
from time import monotonic_ns

import pyopencl as cl
import pytest
import torch

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.kernels import device, memory, queue


@pytest.fixture
def spans():
    seen = []

    def observer(name, start, how, args, kwargs, result):
        seen.append((name, start, monotonic_ns(), how, threading.get_ident()))

    queue.observers.append(observer)
    yield seen
    queue.observers.remove(observer)


def test_a_long_kernel_is_enqueued_at_once_and_item_waits_for_its_end():
    a = torch.ones(2048, 2048, device="ocl")  # of a smaller product a fast device is done before a slow host has asked
    out = torch.empty_like(a)
    corner = out[0, 0]
    torch.mm(a, a, out=out)
    corner.item()  # compiled, and nothing is queued

    def came_back_before_the_device_was_done():
        before, after = torch.ocl.Event(enable_timing=True), torch.ocl.Event(enable_timing=True)
        before.record()
        start = monotonic_ns()
        torch.mm(a, a, out=out)
        enqueued = monotonic_ns() - start
        after.record()
        was_running = not after.query()
        assert corner.item() == 2048
        assert after.query(), "the host had its number before the device was done"
        return was_running and enqueued < before.elapsed_time(after) * 1e6 / 4  # microseconds against milliseconds

    # A busy machine may stop the host between two lines; a device that blocks would fail every time.
    assert any(came_back_before_the_device_was_done() for _ in range(10))


def test_an_upload_does_not_wait_and_takes_the_bytes_as_they_were():
    a = torch.ones(1024, 1024, device="ocl")

    def came_back_before_the_device_was_done():
        host = torch.full((1000,), 3.0)
        for _ in range(8):  # one alone is done before a busy host has asked, on a fast device
            torch.mm(a, a)
        end = torch.ocl.Event()
        end.record()
        there = host.to("ocl")
        host.zero_()
        was_running = not end.query()
        assert there.sum().item() == 3000
        return was_running

    assert any(came_back_before_the_device_was_done() for _ in range(10))


def test_a_non_blocking_read_is_there_after_synchronize():
    x = torch.arange(10, device="ocl")
    host = x.to("cpu", non_blocking=True)
    torch.ocl.synchronize()
    assert host.tolist() == list(range(10))


def test_observers_see_operators_in_time_and_the_fallback_as_one_span(spans):
    x = torch.rand(4, 4, device="ocl")
    del spans[:]
    torch.linalg.inv(x @ x)
    names = [s[0] for s in spans]
    assert names.index("aten::mm") < names.index("fallback of aten::linalg_inv_ex")
    _, start, end, how, _ = spans[names.index("fallback of aten::linalg_inv_ex")]
    assert how == queue.ON_CPU
    assert "aten::_copy_from" in {s[0] for s in spans if start < s[1] and s[2] < end}
    assert all(s[1] <= s[2] for s in spans)


def test_the_backward_pass_reports_from_its_own_thread(spans):
    x = torch.rand(3, device="ocl", requires_grad=True)
    x.relu().sum().backward()
    threads = {s[0]: s[4] for s in spans}
    assert threads["aten::relu"] == threading.get_ident()
    assert threads["aten::threshold_backward"] != threading.get_ident()


def test_readers_hear_of_every_wait_with_its_bytes():
    heard = []
    queue.readers.append(lambda name, size, start, end: heard.append((name, size)))
    x = torch.arange(6.0, device="ocl")
    x[2].item()
    x.cpu()
    x.nonzero()
    x[x > 2]
    torch.unique(x)
    queue.readers.pop()
    assert heard == [
        ("aten::_local_scalar_dense", 4), ("aten::copy_", 24), ("aten::nonzero", 8), ("aten::index", 8), ("aten::_unique2", 8),
    ]  # fmt: skip


def test_events_time_the_device():
    small, large = torch.rand(64, 64, device="ocl"), torch.rand(1024, 1024, device="ocl")
    small @ small, large @ large  # compiled

    def the_larger_took_longer():
        events = [torch.ocl.Event(enable_timing=True) for _ in range(3)]
        events[0].record()
        small @ small
        events[1].record()
        large @ large
        events[2].record()
        said = ""
        try:
            events[0].elapsed_time(events[2])
        except RuntimeError as error:
            said = str(error)
        events[2].synchronize()
        return "not passed" in said and 0 < events[0].elapsed_time(events[1]) < events[1].elapsed_time(events[2])

    assert any(the_larger_took_longer() for _ in range(10))  # a busy machine may stop a device that is a processor


def test_events_that_were_not_made_for_timing_say_so():
    first, second = torch.ocl.Event(), torch.ocl.Event()
    first.record(), second.record()
    second.synchronize()
    with pytest.raises(RuntimeError, match="enable_timing"):
        first.elapsed_time(second)


def test_the_queue_keeps_times_only_while_somebody_observes(spans, monkeypatch):
    x = torch.ones(3, device="ocl")
    marker = queue.marker()
    torch.ocl.synchronize()
    assert marker.profile.end > 0
    monkeypatch.setattr(queue, "_always_timed", False)  # another test may have made an event for timing
    monkeypatch.setattr(queue, "observers", [])
    x += 1
    marker = queue.marker()
    assert x.tolist() == [2, 2, 2]
    with pytest.raises(cl.RuntimeError, match="PROFILING"):
        _ = marker.profile.end


def test_threads_may_share_the_device():
    results = {}

    def work(i):
        x = torch.full((50,), float(i), device="ocl", requires_grad=True)
        for _ in range(20):
            x.grad = None
            (x * x).sum().backward()
        results[i] = x.grad.cpu()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, grad in results.items():
        assert torch.equal(grad, torch.full((50,), 2.0 * i))


def test_a_forked_child_is_told_to_stay_off_the_device():
    x = torch.ones(2, device="ocl")
    child = os.fork()
    if child == 0:
        try:
            assert torch.ocl._is_in_bad_fork()
            torch.ones(2, device="ocl")
        except RuntimeError as error:
            os._exit(0 if "spawn" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert not torch.ocl._is_in_bad_fork()
    assert x.sum().item() == 2


def test_memory_returns_to_the_pool_and_empty_cache_gives_it_back():
    torch.ocl.empty_cache()
    before = torch.ocl.memory_allocated()
    x = torch.empty(1 << 20, device="ocl")
    assert torch.ocl.memory_allocated() - before == 4 << 20
    address = x.data_ptr()
    del x
    assert torch.ocl.memory_allocated() == before
    y = torch.empty(1 << 20, device="ocl")
    assert y.data_ptr() == address, "the pool did not give the block again"
    del y
    held = torch.ocl.memory_reserved()
    torch.ocl.empty_cache()
    assert torch.ocl.memory_reserved() <= held - (4 << 20)


def test_sizes_of_the_pool_waste_at_most_a_fifth():
    for size in (1, 256, 257, 1000, 4097, 1_000_003, 123_456_789):
        rounded = memory.size_class(size)
        assert size <= rounded
        assert rounded <= max(size * 1.25, 512)


def test_no_memory_is_an_error_of_pytorch_that_says_how_much():
    with pytest.raises(torch.OutOfMemoryError, match="MiB"):
        torch.empty(device.info().max_allocation + 1, dtype=torch.uint8, device="ocl")


def test_the_process_goes_on_after_the_device_was_full(monkeypatch):
    kept = torch.ones(1000, device="ocl")
    torch.ocl.empty_cache()  # else the blocks that earlier tests left in the pool make room
    monkeypatch.setattr(memory, "ROOM", memory.held + (8 << 20))
    first = torch.empty(1 << 20, device="ocl")
    with pytest.raises(torch.OutOfMemoryError, match=r"cannot allocate 6 MiB; .* MiB are in use, the device has"):
        torch.empty(3 << 19, device="ocl")
    del first
    assert torch.empty(3 << 19, device="ocl").zero_().sum().item() == 0  # another size: what was pooled is given back
    assert kept.sum().item() == 1000


def test_facts_of_the_device():
    facts = device.info()
    assert facts.name
    assert facts.kind in ("GPU", "CPU", "ACCELERATOR")
    assert facts.compute_units > 0
    assert facts.memory >= facts.max_allocation > 0
