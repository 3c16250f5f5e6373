"""The native hook against a vendor that misbehaves as asked: no real driver is needed, and none would do this."""

import ctypes
import mmap
import shutil
import subprocess
import threading
from collections import Counter
from pathlib import Path
from time import monotonic_ns
from typing import Any

import numpy as np
import pytest

from syncscope.model.trace import Flag, Kind, Trace
from syncscope.tracers.opencl import abi, compiled, dispatch
from syncscope.tracers.opencl.dispatch import tables
from syncscope.tracers.session import Session
from syncscope.tracers.sources import opencl as opencl_source

SANE, ENDS_BEFORE_START, ZEROS, REFUSES, BACKWARDS, UNFINISHED, ENDS_MEANWHILE = range(7)


def record(fake: Any, launches: int = 100, reads: int = 1) -> Trace:
    session = Session()
    with session:
        tables.hook(fake.table, "fake")
        fake.enqueue(launches)
        fake.read(reads)
    return session.trace


def kinds(trace: Trace) -> dict[str, int]:
    return {kind.name: int((trace.kind == kind).sum()) for kind in Kind if (trace.kind == kind).any()}


def test_every_call_has_its_device_work(fake: Any) -> None:
    trace = record(fake, 1000, 3)
    assert kinds(trace) == {"CALL": 1003, "KERNEL": 1000, "COPY": 3}
    calls = trace.take(trace.kind == Kind.CALL)
    work = trace.take(trace.kind == Kind.KERNEL)
    assert set(work.correlation.tolist()) <= set(calls.correlation.tolist())
    assert {trace.names[n] for n in work.name} == {"nothing"}
    assert (work.duration == 100).all()
    assert {e.name for e in trace if e.flags & Flag.BLOCKING} == {"clEnqueueReadBuffer"}
    assert trace.meta["notes"] == []
    assert trace.meta["devices"] == [{"name": "fake", "totalGlobalMem": 1 << 30}]


def test_no_event_is_kept(fake: Any) -> None:
    record(fake, 5000)
    assert fake.value("live_events") == 0


@pytest.mark.parametrize("mood", [ENDS_BEFORE_START, ZEROS, BACKWARDS])
def test_stamps_that_make_no_sense_are_dropped_and_counted(fake: Any, mood: int) -> None:
    fake.change("mood", mood)
    trace = record(fake, 50, 0)
    assert kinds(trace) == {"CALL": 50}
    assert trace.meta["notes"] == ["50 device times of device 0 were dropped: the driver's stamps make no sense"]


def test_a_driver_that_gives_no_stamps_is_counted(fake: Any) -> None:
    fake.change("mood", REFUSES)
    trace = record(fake, 50, 0)
    assert trace.meta["notes"] == ["50 device times were lost: the driver gave none for the command"]
    assert fake.value("live_events") == 0


def test_a_command_that_ends_between_two_questions_is_not_lost(fake: Any) -> None:
    fake.change("mood", ENDS_MEANWHILE)
    trace = record(fake, 50, 0)
    assert kinds(trace) == {"CALL": 50, "KERNEL": 50}
    assert trace.meta["notes"] == []


def test_a_full_ring_is_counted_and_bounded(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl_source, "PATIENCE", 1_000_000)
    fake.change("mood", UNFINISHED)
    trace = record(fake, 70_000, 0)
    assert kinds(trace) == {"CALL": 70_000}
    assert any(note.startswith("65536 commands had not ended") for note in trace.meta["notes"])
    assert any(note.startswith("4464 device times were lost") for note in trace.meta["notes"])
    assert fake.value("live_events") == 0


def test_the_drivers_timer_sets_the_clock(fake: Any) -> None:
    fake.change("timer_works", 1)
    clock = record(fake).meta["clocks"]["0"]
    assert clock["source"] == "timer"
    assert abs(clock["offset_ns"] - 10**12) <= clock["uncertainty_ns"] + 1000


def test_without_a_timer_the_calls_bracket_the_clock(fake: Any) -> None:
    clock = record(fake).meta["clocks"]["0"]
    assert clock["source"] == "bracket"
    assert abs(clock["offset_ns"] - 10**12) <= clock["uncertainty_ns"] + 1000


def test_device_work_lies_in_the_recording(fake: Any) -> None:
    trace = record(fake, 300)
    call = {e.correlation: e for e in trace if e.kind == Kind.CALL}
    slack = trace.meta["clocks"]["0"]["uncertainty_ns"] + 1000
    for work in (e for e in trace if e.kind == Kind.KERNEL):
        assert call[work.correlation].start - slack <= work.start <= call[work.correlation].end + slack


def test_a_queue_without_profiling_is_said_once(fake: Any) -> None:
    fake.library.make_queue(0)
    trace = record(fake, 200, 0)
    assert kinds(trace) == {"CALL": 200}
    assert trace.meta["notes"] == ["queue 1 was made before the recording and without profiling: host times only"]


def test_new_queues_get_profiling(fake: Any) -> None:
    session = Session()
    with session:
        tables.hook(fake.table, "fake")
        fake.library.make_queue(0)
        fake.enqueue(20)
    assert kinds(session.trace) == {"CALL": 20, "KERNEL": 20}


def test_queues_made_while_waiting_get_profiling_too(fake: Any) -> None:
    session = Session(wait=1, active=1)
    with session:
        tables.hook(fake.table, "fake")
        fake.library.make_queue(0)
        fake.enqueue(20)
        session.step()
        fake.enqueue(5)
        session.step()
    assert kinds(session.trace) == {"STEP": 1, "CALL": 5, "KERNEL": 5}


def test_a_timer_that_is_not_the_clock_of_the_stamps_is_not_believed(fake: Any) -> None:
    fake.change("timer_works", 2)
    trace = record(fake, 100)
    assert kinds(trace) == {"CALL": 101, "KERNEL": 100, "COPY": 1}
    assert trace.meta["clocks"]["0"]["source"] == "bracket"
    assert [note.partition(":")[0] for note in trace.meta["notes"]] == [
        "the timer of device 0 is not the clock of its stamps"
    ]


def test_a_driver_without_profiling_gives_its_queue_all_the_same(fake: Any) -> None:
    fake.change("refuse_profiling", 1)
    with Session():
        tables.hook(fake.table, "fake")
        assert fake.library.make_queue(0) == fake.library.queue_handle()


def test_a_dispatch_table_that_the_loader_manages_is_hooked(fake: Any) -> None:
    fake.library.setup(1)
    assert abi.table_of(fake.library.platform_handle()) == fake.table
    assert kinds(record(fake, 30, 0)) == {"CALL": 30, "KERNEL": 30}


def test_the_table_is_given_back(fake: Any) -> None:
    table = (ctypes.c_void_p * abi.SLOTS).from_address(fake.table)
    before = list(table)
    with Session():
        tables.hook(fake.table, "fake")
        assert list(table) != before
    assert list(table) == before


def test_mappings_are_gone_through_once_for_all_functions(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has thousands of them: five for each kernel that PoCL has built."""
    seen: list[int] = []
    maps = dispatch.maps
    with Session():
        monkeypatch.setattr(dispatch, "maps", lambda: (seen.append(0), maps())[1])
        tables.hook(fake.table, "fake")
        assert len(seen) == 1


def test_empty_slots_stay_empty(fake: Any) -> None:
    with Session():
        tables.hook(fake.table, "fake")
        assert (ctypes.c_void_p * abi.SLOTS).from_address(fake.table)[129] is None


def test_somebody_else_may_have_hooked_over_us(fake: Any) -> None:
    table = (ctypes.c_void_p * abi.SLOTS).from_address(fake.table)
    with Session():
        tables.hook(fake.table, "fake")
        table[46] = 0x1234
    assert table[46] == 0x1234


def test_who_hooked_over_us_leads_to_us_and_we_not_to_him(fake: Any) -> None:
    table = (ctypes.c_void_p * abi.SLOTS).from_address(fake.table)
    flush = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    queue, vendor, called = fake.library.queue_handle(), table[46], []
    with Session() as first:
        tables.hook(fake.table, "fake")
        ours = flush(table[46])
        his = flush(lambda queue: called.append(queue) or ours(queue))
        table[46] = ctypes.cast(his, ctypes.c_void_p).value
        flush(table[46])(queue)
    with Session() as second:
        tables.hook(fake.table, "fake")
        flush(table[46])(queue)  # to him, to us, to the vendor, and not to him again
        table[46] = ctypes.cast(ours, ctypes.c_void_p).value  # he goes
        flush(table[46])(queue)
    with Session() as third:
        tables.hook(fake.table, "fake")
        flush(table[46])(queue)
    flush(table[46])(queue)
    assert called == [queue] * 2
    assert [kinds(s.trace) for s in (first, second, third)] == [{"CALL": 1}, {"CALL": 2}, {"CALL": 1}]
    table[46] = vendor


def test_a_protected_page_is_opened_for_one_store() -> None:
    page = mmap.mmap(-1, 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.mprotect(address, 4096, 1)
    dispatch.poke({address + 8: 42})
    assert ctypes.c_uint64.from_address(address + 8).value == 42
    assert next(perm for low, high, perm, _ in dispatch.maps() if low <= address < high).startswith("r-")


def test_two_vendors_in_one_process(fake: Any, tmp_path: Path) -> None:
    second = ctypes.CDLL(shutil.copy(fake.library._name, tmp_path / "second.so"))
    second.setup.restype = ctypes.c_void_p
    table = second.setup(0)
    ctypes.c_uint64.in_dll(second, "clock_offset").value = 7 * 10**15
    session = Session()
    with session:
        tables.hook(fake.table, "fake")
        tables.hook(table, "second")
        fake.enqueue(10)
        second.enqueue(20)
    trace = session.trace
    work = trace.take(trace.kind == Kind.KERNEL)
    assert sorted(np.unique([trace.lanes[n].device for n in work.lane], return_counts=True)[1].tolist()) == [10, 20]
    assert len(trace.meta["devices"]) == 2
    offsets = sorted(clock["offset_ns"] for clock in trace.meta["clocks"].values())
    assert offsets[1] - offsets[0] > 6 * 10**15
    assert abs(int(work.start.max()) - int(work.start.min())) < 10**9
    assert second.setup(0) == table  # nothing calls into what is about to be unloaded


def test_no_call_of_eight_threads_is_lost(fake: Any) -> None:
    session = Session()
    with session:
        tables.hook(fake.table, "fake")
        threads = [threading.Thread(target=fake.enqueue, args=(3000,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = session.trace
    assert kinds(trace) == {"CALL": 24_000, "KERNEL": 24_000}
    _, per_thread = np.unique(trace.lane[trace.kind == Kind.CALL], return_counts=True)
    assert per_thread.tolist() == [3000] * 8


def test_recordings_begin_and_end_while_threads_enqueue(fake: Any) -> None:
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.0005):
            fake.enqueue(100)

    threads = [threading.Thread(target=work) for _ in range(3)]
    traces = []
    for thread in threads:
        thread.start()
    for _ in range(10):
        with Session() as outer:
            tables.hook(fake.table, "fake")
            with Session() as inner:
                fake.enqueue(300)
            fake.enqueue(300)
        traces += [inner.trace, outer.trace]
    over.set()
    for thread in threads:
        thread.join()
    for trace in traces:
        calls, work_done = (trace.correlation[trace.kind == kind] for kind in (Kind.CALL, Kind.KERNEL))
        assert len(calls) >= 300
        assert np.unique(calls).size == len(calls)
        assert np.unique(work_done).size == len(work_done)
        assert np.isin(work_done, calls).all()
    assert fake.value("live_events") == 0


def test_no_two_threads_race(tmp_path: Path) -> None:
    program, here = tmp_path / "races", Path(__file__).parent
    sources = [compiled.SOURCE, here / "fake_icd.c", here / "races.c"]
    build = ["cc", "-O1", "-g", "-w", "-pthread", "-fsanitize=thread", *map(str, sources), "-o", str(program)]
    if shutil.which("cc") is None or subprocess.run(build, capture_output=True).returncode:
        pytest.skip("no C compiler with ThreadSanitizer")
    fixed = (
        ["setarch", "-R"] if shutil.which("setarch") else []
    )  # it cannot have its shadow where the kernel puts things
    done = subprocess.run(
        [*fixed, str(program), str(tmp_path / "records")], capture_output=True, text=True, check=False
    )
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert "data race" not in done.stderr, done.stderr
    assert done.returncode == 0


def test_operators_go_straight_into_the_file(fake: Any) -> None:
    told: list[Any] = []
    observer = compiled.observer(lambda *what: told.append(what))
    assert observer is not None
    nothing: Any = ((), {}, None)
    with Session() as session:
        tables.hook(fake.table, "fake")
        begin = monotonic_ns()
        for _ in range(3):
            observer("aten::mm", begin, False, *nothing)
        observer(f"fallback of aten::{'sort' * 20}", begin, True, *nothing)
        fake.read(1)
        assert not told
        observer("aten::item", begin, False, *nothing)
        with pytest.raises(TypeError):
            observer("aten::mm")
        with pytest.raises(TypeError):
            observer(1, begin, False)
        with pytest.raises(OverflowError):
            observer("aten::mm", -1, False)
    found = [e for e in session.trace if e.kind == Kind.OP]
    assert Counter((e.name, e.flags) for e in found) == {
        ("aten::mm", Flag.NONE): 3,
        (f"fallback of aten::{'sort' * 20}", Flag.FALLBACK): 1,
        ("aten::item", Flag.NONE): 1,
    }
    assert {e.lane.thread for e in found} == {threading.get_native_id()}
    assert all(0 < e.duration < 10**10 and e.bytes == -1 and e.place is None and not e.detail for e in found)
    (what,) = told  # the driver waited, and no read has said why
    assert (what[0], what[1], what[3]) == ("aten::item", begin, False)
    assert max(e.end for e in found) - min(e.start for e in found) == what[2] - begin
    observer("aten::mm", begin, False, *nothing)  # without a recording: nothing
    assert fake.value("live_events") == 0


def test_windows_of_the_file_are_appended_whole(fake: Any) -> None:
    trace = record(fake, 20_000)  # 40,000 records of 64 bytes: ten windows
    assert kinds(trace) == {"CALL": 20_001, "KERNEL": 20_000, "COPY": 1}
    assert np.unique(trace.correlation[trace.kind == Kind.KERNEL]).size == 20_000
