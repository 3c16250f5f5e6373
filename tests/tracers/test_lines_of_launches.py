"""The line of every launch on the `ocl` device: in forward and backward, in libraries, threads and generators."""

import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pyopencl")

import syncscope.kernels  # noqa: E402, F401
from syncscope.model.trace import DEVICE, WAY, Kind, Trace  # noqa: E402
from syncscope.tracers.hooks import reads  # noqa: E402
from syncscope.tracers.hooks import torch as torch_hooks  # noqa: E402
from syncscope.tracers.lines import library as lines  # noqa: E402
from syncscope.tracers.session import Session  # noqa: E402

if lines.library() is None:
    pytest.skip("no compiler, or an interpreter whose frames nobody knows", allow_module_level=True)

LIBRARY = """
import torch

def doubled(x):
    return x * 2                                # 5

class Layer(torch.nn.Module):
    def forward(self, x):
        return x + 1                            # 9

def backward(loss):
    loss.backward()                             # 12
"""
PROGRAM = """
import threading
import torch
import zoo

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3                            # 9

    @staticmethod
    def backward(ctx, g):
        return g * 3                            # 13

def batches(x):
    yield x + 1                                 # 16

def forward(x, layer):
    y = zoo.doubled(x)                          # 19
    y = layer(y)                                # 20
    y = torch.nn.functional.relu(y)             # 21
    y = y.expand(2, *y.shape)                   # 22
    y = Own.apply(y)                            # 23
    return y.pow(2).sum()                       # 24

def main(x, w):
    for batch in batches(x):
        with torch.no_grad():
            w + batch                           # 29
        loss = forward(w * batch, zoo.Layer())  # 30
        zoo.backward(loss)                      # 31
    loss = (w * 2).sum()                        # 32
    torch.autograd.grad(loss, w)                # 33
    def work():
        [w * n                                  # 35
         for n in range(2)]
    thread = threading.Thread(target=work)
    thread.start(), thread.join()
    return (w.detach() * 2).sum().item()        # 39
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "zoo.py").write_text(textwrap.dedent(LIBRARY))
    (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM))
    for folder in (packages, tmp_path):
        monkeypatch.syspath_prepend(folder)
    for name in ("zoo", "train"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import train

    return train.main


def launched(trace: Trace) -> list[tuple[str, int, int | None, str, int | None]]:
    """Of each thing that the device was asked for, in order: file and line, the caller's line, and file and line of forward."""
    found = []
    for row in trace.rows(*DEVICE):
        call = next(r for r in trace.rows(Kind.CALL) if trace.correlation[r] == trace.correlation[row])
        event = trace[int(call)]
        assert event.place is not None, event
        caller, forward = event.caller, event.forward
        found.append(
            (
                Path(event.place.path).stem,
                event.place.line,
                caller.line if caller else None,
                Path(forward.path).stem if forward else "",
                forward.line if forward else None,
            )
        )
    return found


def check_a_distribution(x: Any, net: Any) -> None:
    torch.distributions.Categorical(logits=net(x), validate_args=True)


def check_a_search(x: Any, net: Any) -> None:
    loss = net(x).sum()
    torch.optim.LBFGS(net.parameters(), max_iter=1, lr=1e-3).step(lambda: loss.detach())


@pytest.mark.parametrize(("asks", "asked_for"), [(check_a_distribution, 3), (check_a_search, 1)])
def test_what_a_function_of_torch_launches_to_ask_is_told_from_the_rest_of_its_line(asks: Any, asked_for: int) -> None:
    """Not the net, nor that logits are made of what it gives; nor what a search does below decorators that pass all on."""
    net, x = torch.nn.Linear(3, 4).to("ocl"), torch.ones(2, 3, device="ocl")
    net(x).sum().backward()
    asks(x, net)
    with Session() as session:
        asks(x, net)
    trace = session.trace
    row = next(int(r) for r in trace.rows(Kind.READ) if trace.names[trace.name[r]] == "bool")
    read = trace[row]
    assert trace.known(row).library.startswith("torch/")
    calls = [trace[int(row)] for row in trace.rows(Kind.CALL) if trace.place[row] >= 0]
    (way,) = {call.flags >> WAY for call in calls if read.start <= call.start < read.end}
    before = [call.flags >> WAY for call in calls if call.start < read.start]
    for_it = next((n for n, one in enumerate(before[::-1]) if one != way), len(before))
    assert way > 0
    assert for_it <= asked_for
    assert len(before) > 2 * for_it


def test_each_launch_has_its_line(program: Callable[..., Any]) -> None:
    x, w = torch.ones(3, 4, device="ocl"), torch.ones(3, 4, device="ocl", requires_grad=True)
    program(x, w)
    w.grad = None
    with Session() as session:
        program(x, w)
    found = launched(session.trace)
    own = [(file, line, caller) for file, line, caller, forward, _ in found if not forward]
    assert sorted(set(own)) == sorted(
        [
            *[("train", line, None) for line in (9, 16, 21, 24, 29, 30, 32, 35, 39)],
            ("zoo", 5, 19),
            ("zoo", 9, 20),
            ("zoo", 12, 31),  # what backward makes itself: the gradient of the loss
            ("train", 33, None),
        ]
    )
    back = [(file, line, caller, forward, of) for file, line, caller, forward, of in found if forward]
    through = ("zoo", 12, 31)  # the line of backward(), in a library, and ours that called that
    assert set(back) == {
        (*through, "train", 24),
        ("train", 13, None, "train", 23),  # its own backward, in Python, on a thread of autograd's
        (*through, "train", 22),
        (*through, "train", 21),
        (*through, "zoo", 5),
        (*through, "train", 30),
        ("train", 33, None, "train", 32),
    }


def test_two_threads_call_backward_at_once() -> None:
    w = [torch.ones(64, device="ocl", requires_grad=True) for _ in range(2)]
    meet = threading.Barrier(2)

    def first() -> None:
        for _ in range(20):
            loss = (w[0] * 2).sum()
            meet.wait()
            loss.backward()

    def second() -> None:
        for _ in range(20):
            loss = (w[1] * 3).sum()
            meet.wait()
            loss.backward()

    def both() -> None:
        threads = [threading.Thread(target=work) for work in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    both()
    with Session() as session:
        both()
    one, other = first.__code__.co_firstlineno, second.__code__.co_firstlineno
    back = {(line, of) for _, line, _, forward, of in launched(session.trace) if forward}
    assert back == {(one + 4, one + 2), (other + 4, other + 2)}


def test_without_the_part_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "library", lambda: None)
    x = torch.ones(4, device="ocl")
    with Session() as session:
        x.add(1)
    calls = session.trace.rows(Kind.CALL)
    assert len(calls)
    assert (session.trace.place[calls] == -1).all()


@pytest.mark.parametrize("in_c", [True, False])
def test_a_read_in_a_library_stands_there_below_the_users_line(
    in_c: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "zoo.py").write_text(
        "class Log:\n    def mean(self, x):\n        return [n for n in range(1) if x.mean() > n]\n"
    )
    monkeypatch.syspath_prepend(packages)
    monkeypatch.delitem(sys.modules, "zoo", raising=False)
    import zoo

    if not in_c:
        monkeypatch.setattr(reads, "_in_c", lambda *_: None)
        torch_hooks._hooks.cache_clear()
    x = torch.ones(4, device="ocl")
    try:
        with Session() as session:
            zoo.Log().mean(x)
            x.sum().item()
            torch.unique(x)
    finally:
        torch_hooks._hooks.cache_clear()
    found = [event for event in session.trace if event.kind == Kind.READ]
    own = sys._getframe().f_code.co_firstlineno
    told = [(event.place.line, event.caller and event.caller.line, event.function) for event in found if event.place]
    here = "test_a_read_in_a_library_stands_there_below_the_users_line"
    first, *others = told
    assert (first[0], first[2]) == (3, "Log.mean")
    assert first[1] is not None
    assert others == [(first[1] + 1, None, here), (first[1] + 2, None, here)]
    assert first[1] > own
