"""Programs that compile, trace and export code with tensors. Each returns what can be compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


def scripted(function: Callable[..., Any], *args: Any) -> Any:
    compiled = torch.jit.script(function)
    return compiled(*args), str(compiled.graph).count("\n"), "aten::" in str(compiled.graph)


def _script_where(x: Tensor) -> list[Tensor]:
    return torch.where(x > 0)


def _script_nonzero(x: Tensor) -> Tensor:
    return torch.nonzero(x)


def _script_nonzero_method(x: Tensor) -> Tensor:
    return x.nonzero()


def _script_equal(x: Tensor) -> bool:
    return torch.equal(x, x)


def _script_one_hot(x: Tensor) -> Tensor:
    return torch.nn.functional.one_hot((x > 0).long())


def _script_unique(x: Tensor) -> Tensor:
    return torch.unique(x)


def _script_masked(x: Tensor) -> Tensor:
    return torch.masked_select(x, x > 0)


def _script_item(x: Tensor) -> float:
    return float(x.sum().item())


def _script_to(x: Tensor) -> Tensor:
    return x.to("cpu").to(torch.float64).cpu()


def _script_mask(x: Tensor) -> Tensor:
    return x[x > 0]


def _script_tensor(x: Tensor) -> Tensor:
    return torch.tensor([1.0, 2.0]) + torch.zeros(2) + x.sum()


def _script_if(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        return x
    return -x


def _script_repeat(x: Tensor) -> Tensor:
    return torch.repeat_interleave(x, 2)


def _script_bincount(x: Tensor) -> Tensor:
    return torch.bincount((x > 0).long().flatten())


def _script_allclose(x: Tensor) -> bool:
    return torch.allclose(x, x)


def _script_record(x: Tensor) -> Tensor:
    with torch.autograd.profiler.record_function("region"):
        return x + 1


SCRIPTS = {name: value for name, value in globals().items() if name.startswith("_script_")}


class Net(nn.Module):
    """A small network."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)
        self.activation = torch.relu  # a function of torch, held by a module

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.linear(x)).sum(-1)


class Holder(nn.Module):
    """Holds functions of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.function = torch.nonzero
        self.equal = torch.equal

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def fx_graph(function: Any) -> Any:
    traced = torch.fx.symbolic_trace(function)
    nodes = [(node.op, str(node.target), node.target if callable(node.target) else None) for node in traced.graph.nodes]
    return [(op, name) for op, name, _ in nodes], traced.code, traced(X)


def fx_where(x: Tensor) -> Any:
    return torch.where(x > 0, x, torch.zeros_like(x))


def fx_nonzero(x: Tensor) -> Any:
    return torch.nonzero(x) + x.nonzero()


def fx_many(x: Tensor) -> Any:
    y = x.to("cpu").cpu().to(torch.float64)
    z = torch.masked_select(y, y > 0).sum() + torch.unique(y).sum()
    return z + torch.repeat_interleave(y, 2).sum() + torch.argwhere(y).sum()


def fx_index(x: Tensor) -> Any:
    return x[x > 0] + x[0, 0]


def fx_item(x: Tensor) -> Any:
    return x.sum().item() + 1


def fx_bool(x: Tensor) -> Any:
    return x if x.sum() > 0 else -x


def fx_iterate(x: Tensor) -> Any:
    return [row for row in x]  # noqa: C416


def compiled(function: Any, *args: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    try:
        return torch.compile(function, backend="eager", **options)(*args)
    finally:
        torch._dynamo.reset()


def broken(function: Any) -> Any:
    """How often torch.compile gives up in a function."""
    torch._dynamo.reset()
    said = torch._dynamo.explain(function)(X)
    torch._dynamo.reset()
    return said.graph_count, said.graph_break_count


def to_device_of(x: Tensor, y: Tensor) -> Tensor:
    return y.to(x.device) + torch.zeros(3, device=x.device)


def exported(function: Any, **options: Any) -> Any:
    class Wrapped(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return function(x)

    program = torch.export.export(Wrapped(), (X,), **options)
    return [(node.op, str(node.target)) for node in program.graph.nodes], program.module()(X)


def made_fx(function: Any) -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(function)(X)
    return graph.code, graph(X)


def traced(function: Any) -> Any:
    found = torch.jit.trace(function, X)
    return str(found.graph).count("aten::"), found(X)


PROGRAMS: dict[str, Callable[[], Any]] = {
    **{f"jit.script {name[8:]}": partial(scripted, f, X) for name, f in SCRIPTS.items()},
    "jit.script module": lambda: (
        torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval())(torch.zeros(1, 3)).shape
    ),
    **{f"fx {f.__name__[3:]}": partial(fx_graph, f) for f in (fx_where, fx_nonzero, fx_many, fx_index, fx_item)},
    **{f"fx {f.__name__[3:]}": partial(fx_graph, f) for f in (fx_bool, fx_iterate)},
    "fx module": lambda: fx_graph(Net()),
    **{
        f"compile {f.__name__[3:]}": partial(compiled, f, X)
        for f in (fx_where, fx_nonzero, fx_many, fx_index, fx_item, fx_bool)
    },
    "compile fullgraph": lambda: compiled(fx_where, X, fullgraph=True),
    "compile fullgraph net": lambda: compiled(Net(), X, fullgraph=True),
    "compile fullgraph item": lambda: compiled(fx_item, X, fullgraph=True),
    "compile with a tensor's device": lambda: compiled(to_device_of, X, torch.ones(3)),
    **{
        f"graph breaks {f.__name__[3:]}": partial(broken, f) for f in (fx_where, fx_nonzero, fx_item, fx_index, fx_bool)
    },
    **{f"export {f.__name__[3:]}": partial(exported, f) for f in (fx_where, fx_many, fx_nonzero, fx_item)},
    "export strict": lambda: exported(fx_where, strict=True),
    **{f"make_fx {f.__name__[3:]}": partial(made_fx, f) for f in (fx_where, fx_nonzero, fx_many, fx_item)},
    **{f"jit.trace {f.__name__[3:]}": partial(traced, f) for f in (fx_where, fx_nonzero, fx_index)},
}
