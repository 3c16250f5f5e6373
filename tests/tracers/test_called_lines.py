"""A comprehension in a recording: its kernels carry names of their own and the line of the call, forward and backward."""

from __future__ import annotations

import inspect

import pytest

import syncscope
from syncscope import kineto
from syncscope.model.source import Place
from syncscope.model.trace import Kind

torch = pytest.importorskip("torch")
pytest.importorskip("pyopencl")


def test_kernels_of_a_comprehension_have_the_line_of_its_call(tmp_path):
    from syncscope.kernels import comprehension

    loss = comprehension("def loss(float(N) X, float(N) Y) -> (L) { L +=! (X(n) - Y(n)) * (X(n) - Y(n)) }")
    x, y = torch.randn(300, device="ocl", requires_grad=True), torch.randn(300, device="ocl")
    with syncscope.trace(tmp_path / "run.json") as trace:
        for _ in range(3):  # the third time its notes are followed
            made = loss(x, y)
            made.backward()
            trace.step()
    line = inspect.getsourcelines(test_kernels_of_a_comprehension_have_the_line_of_its_call)[1] + 7
    here = Place(__file__, line)
    recorded = kineto.read(next(tmp_path.rglob("*.json*")))
    events = [recorded[i] for i in range(len(recorded))]
    operators = [e for e in events if e.kind == Kind.OP and e.name.startswith("comprehension::")]
    assert [e.name for e in operators] == ["comprehension::loss", "comprehension::loss_grad"] * 3
    kernels = [e for e in events if e.kind == Kind.KERNEL and e.name.startswith("loss")]
    assert {e.name for e in kernels} >= {"loss_L", "loss_grad_d_X"}
    assert {e.place for e in (*operators, *kernels)} == {here}
    others = [e for e in events if e.kind == Kind.KERNEL and not e.name.startswith("loss")]
    assert all(e.place is None for e in others)
