"""Waits inside of CUDA's operators: torch's own warnings as reads, and the operators they are given."""

import functools
import re
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import syncscope
from syncscope.model.source import Place
from syncscope.model.trace import Event, Kind, Lane, Trace
from syncscope.tracers.guard import SyncError
from syncscope.tracers.hooks.sync_debug import quiet
from syncscope.tracers.sync_attribution import MARK, placed

torch = pytest.importorskip("torch")
TOLD = "called a synchronizing CUDA operation (Triggered internally at CUDAFunctions.cpp:162.)"


@pytest.fixture
def modes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A torch with a CUDA device, as far as its debug mode goes; the modes it was set to."""
    seen = [0]
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("syncscope.tracers.sources.torch_profiler.wanted", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: seen[-1])
    monkeypatch.setattr(torch._C, "_cuda_get_sync_debug_mode", lambda: seen[-1], raising=False)
    monkeypatch.setattr(torch._C, "_cuda_set_sync_debug_mode", seen.append, raising=False)
    return seen


wait_inside_an_operator = functools.partial(
    warnings.warn, TOLD
)  # C, as torch: the frame is that of the line that calls


def test_a_wait_that_nothing_of_ours_stands_for_has_its_line(modes: list[int]) -> None:
    with warnings.catch_warnings(record=True) as others, syncscope.trace(), syncscope.watch() as watch:
        assert modes == [0, 1]
        line = here()
        wait_inside_an_operator()
        wait_inside_an_operator()
        warnings.warn("something else", stacklevel=1)
    wait_inside_an_operator_of_nobody()
    assert modes == [0, 1, 0]
    assert [(found.op, found.count, found.place.line - line) for found in watch.lines if found.place] == [
        (MARK, 1, 1),
        (MARK, 1, 2),
    ]
    assert [str(w.message) for w in others] == ["something else"]


def here() -> int:
    return sys._getframe(1).f_lineno


def wait_inside_an_operator_of_nobody() -> None:
    """Outside of a recording the warning is the program's own again."""
    with pytest.warns(UserWarning, match="called a synchronizing"):
        warnings.warn(TOLD, stacklevel=1)


@pytest.mark.parametrize("action", ["error", "ignore"])
def test_filters_of_the_program_neither_raise_nor_hide_ours(modes: list[int], action: str) -> None:
    with syncscope.trace(), syncscope.watch() as watch:
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            wait_inside_an_operator()
            if action == "error":
                with pytest.raises(UserWarning, match="another"):
                    warnings.warn("another", stacklevel=1)
        with warnings.catch_warnings():
            warnings.resetwarnings()
            warnings.filterwarnings(action, category=UserWarning)
            wait_inside_an_operator()
    assert watch.count == 2


def test_a_mode_that_the_program_chose_is_left_alone(modes: list[int]) -> None:
    modes.append(2)
    with syncscope.trace(), syncscope.watch() as watch, pytest.warns(UserWarning, match="called a synchronizing"):
        wait_inside_an_operator()
    assert modes == [0, 2]
    assert watch.count == 0


def test_the_wait_of_a_known_read_is_not_told_twice(modes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def text(self: object, **_: object) -> str:
        wait_inside_an_operator()
        return "a tensor"

    monkeypatch.setattr(torch._tensor_str, "_str", text)
    with syncscope.trace(), syncscope.watch(dry=True) as watch:
        loss = torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum()
        repr(loss)
    assert [(line.op, line.count) for line in watch.lines] == [("format", 1)]


def test_torch_does_not_warn_of_a_known_read_unless_other_threads_wait_too(modes: list[int]) -> None:
    loss = torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum()
    with syncscope.trace(), syncscope.watch(dry=True):
        loss.item()
        assert modes == [0, 1, 0, 1]
        wait_inside_an_operator()
        loss.item()
        assert modes == [0, 1, 0, 1, 0, 1]
        thread = threading.Thread(target=wait_inside_an_operator)
        thread.start()
        thread.join()
        loss.item()
        assert modes == [0, 1, 0, 1, 0, 1]
    assert modes[-1] == 0


def test_counting_alone_does_not_ask_torch_to_warn(modes: list[int]) -> None:
    """Operators of C++ that Python does not call through torch would write to the program's stderr."""
    with syncscope.watch():
        assert modes == [0]


def test_what_would_warn_on_stderr_is_not_asked_to(modes: list[int]) -> None:
    seen = []
    nms = quiet(lambda: seen.append(modes[-1]))
    with syncscope.trace():
        nms()
        assert modes == [0, 1, 0, 1]
    nms()
    assert seen == [0, 0]
    assert modes == [0, 1, 0, 1, 0]


def test_what_is_forbidden_raises_at_its_line(modes: list[int]) -> None:
    with syncscope.forbid_syncs(dry=False), pytest.raises(SyncError, match=f"{Path(__file__).name}"):
        wait_inside_an_operator()


MAIN, AUTOGRAD = Lane(1, 1, label="MainThread"), Lane(1, 2)


def events(drawing: str, lane: Lane, kinds: dict[str, tuple[Kind, str]], unit: int = 10_000) -> list[Event]:
    """`a--a` is an event of kind and name `kinds["a"]` over so many units; a single letter takes one."""
    found = []
    for letter, (kind, name) in kinds.items():
        for drawn in re.finditer(f"{letter}(-+{letter})?", drawing):
            place = Place("train.py", 7) if name == MARK else None
            duration = 0 if name == MARK else len(drawn[0]) * unit
            found.append(
                Event(kind, name, lane, drawn.start() * unit, duration, place=place, column=4 if place else -1)
            )
    return found


def reads_of(*parts: list[Event]) -> list[tuple[str, Lane, int, int]]:
    trace = placed(Trace.of([e for part in parts for e in part]))
    return [
        (e.name, e.lane, e.start // 10_000, -(-e.end // 10_000))
        for e in trace
        if e.kind == Kind.READ and e.place == Place("train.py", 7)
    ]


def test_a_mark_gets_the_last_operator_before_it_that_waits() -> None:
    """
    operators   a------a x--x        b--b     x: ends the call, after the copy
    driver         c                  c
    marks                    m            n   one for each call
    """
    kinds = {"a": (Kind.OP, "aten::to"), "x": (Kind.OP, "aten::lift_fresh"), "b": (Kind.OP, "aten::index")}
    driver = events("   c                  c", MAIN, {"c": (Kind.CALL, "cudaStreamSynchronize")})
    marks = {"m": (Kind.READ, MARK), "n": (Kind.READ, MARK)}
    found = reads_of(
        events("a------a x--x        b--b", MAIN, kinds), driver, events("             m            n", MAIN, marks)
    )
    assert found == [("to", MAIN, 0, 13), ("index", MAIN, 21, 26)]


def test_two_waits_of_one_call_are_two_operators_or_one() -> None:
    """
    operators   q--q r--r a--a b--b     c------c
    driver       w         w    w        w   w
    marks                           mm          mm     q's wait was not told of
    """
    names = {
        "q": "torchvision::nms",
        "r": "aten::mul",
        "a": "aten::to",
        "b": "aten::index_put_",
        "c": "aten::unique_dim",
    }
    kinds = {letter: (Kind.OP, name) for letter, name in names.items()}
    found = reads_of(
        events("q--q r--r a--a b--b     c------c", MAIN, kinds),
        events(" w         w    w        w   w", MAIN, {"w": (Kind.CALL, "cudaStreamSynchronize")}),
        events("                    m           ", MAIN, {"m": (Kind.READ, MARK)}),
        events("                     m           m", MAIN, {"m": (Kind.READ, MARK)}),
        events("                                  m", MAIN, {"m": (Kind.READ, MARK)}),
    )
    assert [(name, start) for name, _, start, _ in found] == [("to", 10), ("index_put_", 15), ("unique_dim", 24)]


def test_marks_of_a_backward_pass_go_to_its_threads() -> None:
    """
    main      a--a              m     a: waits itself, and is known by another line's mark
    driver
    autograd        b--b  d--d
    driver           c     c          both waits are the line's that called backward
    """
    kinds = {
        "a": (Kind.OP, "aten::mul"),
        "b": (Kind.OP, "aten::index_put_"),
        "d": (Kind.OP, "aten::nonzero"),
        "e": (Kind.OP, "autograd::engine::evaluate_function: IndexBackward0"),
    }
    mark = events("                  m", MAIN, {"m": (Kind.READ, MARK)})[0]
    mark = replace(mark, detail='{"library": "torch/autograd/graph.py:869"}')
    found = reads_of(
        events("a--a", MAIN, kinds),
        events(" c", MAIN, {"c": (Kind.CALL, "cudaStreamSynchronize")}),
        [mark, mark],
        events("     e----e        ", AUTOGRAD, kinds),
        events("      b--b  d--d   ", AUTOGRAD, kinds),
        events("       c     c     ", AUTOGRAD, {"c": (Kind.CALL, "cudaStreamSynchronize")}),
    )
    assert found == [("index_put_", AUTOGRAD, 6, 10), ("nonzero", AUTOGRAD, 12, 16)]


def test_a_mark_in_a_known_read_is_dropped_and_one_without_operators_stays() -> None:
    """
    read      r------r
    operator   a--a
    driver      c
    mark             m  then a second, of a trace without operators
    """
    kinds = {"a": (Kind.OP, "aten::item"), "r": (Kind.READ, "item"), "m": (Kind.READ, MARK)}
    driver = events("  c", MAIN, {"c": (Kind.CALL, "cudaStreamSynchronize")})
    assert reads_of(events("r------r", MAIN, kinds), events(" a--a   m", MAIN, kinds), driver) == []
    assert reads_of(events("      m", MAIN, kinds)) == [(MARK, MAIN, 6, 6)]


def test_without_operators_the_drivers_calls_stand_for_them() -> None:
    """
    reads       r--r
    driver       cw   cw cw   cw        a copy goes with the wait after it; what a read explains is left out
    marks                   mm    m     two waits of one call are one read
    """
    kinds = {"r": (Kind.READ, "item"), "c": (Kind.CALL, "cudaMemcpyAsync"), "w": (Kind.CALL, "cudaStreamSynchronize")}
    marks = {"m": (Kind.READ, MARK), "n": (Kind.READ, MARK)}
    found = reads_of(
        events("r--r", MAIN, kinds), events(" cw   cw cw   cw", MAIN, kinds), events("            mn    m", MAIN, marks)
    )
    assert found == [(str(MARK), MAIN, 6, 13), (str(MARK), MAIN, 14, 18)]


def test_without_operators_marks_of_a_backward_pass_go_to_its_threads() -> None:
    """
    main        w m l      n     m: of a call of its own, before it launches; n: of the backward pass
    autograd         l w
    """
    kinds = {"w": (Kind.CALL, "cudaStreamSynchronize"), "l": (Kind.CALL, "cudaLaunchKernel"), "m": (Kind.READ, MARK)}
    last = [
        replace(e, detail='{"library": "torch/autograd/graph.py:800"}') for e in events("           m", MAIN, kinds)
    ]
    found = reads_of(events("w m l", MAIN, kinds), last, events("     l w", AUTOGRAD, kinds))
    assert found == [(str(MARK), MAIN, 0, 2), (str(MARK), AUTOGRAD, 7, 8)]


def test_without_operators_the_kernels_tell_of_a_gradient_that_goes_back_to_its_rows() -> None:
    main, engine, queue = Lane(1, 1), Lane(1, 2), Lane(0, 7, 0)
    kernels = [
        "gemm",
        "cub::DeviceReduceKernel",
        "cub::DeviceReduceSingleTile",
        "",
        "",
        "write_indices",
        "indexing_backward_kernel",
        "gemm",
    ]
    calls = ["cudaLaunchKernel"] * 3 + ["cudaMemcpyAsync", "cudaStreamSynchronize"] + ["cudaLaunchKernel"] * 3
    events = [Event(Kind.CALL, "cudaLaunchKernel", main, 0, 1_000, correlation=99)]
    for number, (call, kernel) in enumerate(zip(calls, kernels, strict=True), 1):
        start = number * 10_000
        events.append(Event(Kind.CALL, call, engine, start, 9_000, correlation=number))
        if kernel:
            events.append(Event(Kind.KERNEL, kernel, queue, start + 5_000, 1_000, correlation=number))
    told = '{"library":"torch/autograd/graph.py:869"}'
    events.append(Event(Kind.READ, MARK, main, 95_000, 0, place=Place("train.py", 29), detail=told))
    found = placed(Trace.of(sorted(events, key=lambda e: e.start)))
    (read,) = [found[int(row)] for row in found.rows(Kind.READ)]
    assert (read.name, read.lane, read.place) == ("index_put_", engine, Place("train.py", 29))
    assert (read.start, read.end) == (20_000, 79_000)  # from the count to the kernel that writes
