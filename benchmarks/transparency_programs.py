"""Programs that people write around tensors: compilers, tracers, subclasses, modes. Each returns what can be compared."""

from __future__ import annotations

import contextlib
import io
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


# ---- what the calls use ----


def set_item(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def saved(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


def gradient(function: Callable[[Tensor], Tensor]) -> Any:
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    function(leaf).sum().backward()
    return leaf.grad, leaf.is_leaf


def leaf_after(function: Callable[[Tensor], Tensor]) -> Any:
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    other = function(leaf)
    (other * other).sum().backward()
    return other.is_leaf, other.grad, leaf.grad


def optimized(function: Callable[[Tensor], Tensor]) -> Any:
    parameter = function(nn.Parameter(torch.tensor([1.0, 2.0])))
    optimizer = torch.optim.SGD([parameter], 0.1)
    (parameter * parameter).sum().backward()
    optimizer.step()
    return parameter, vars(parameter), optimizer.state_dict()


def grad_of(parameter: Tensor) -> Tensor:
    (parameter * 2).sum().backward()
    return parameter


def backward_error() -> Any:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    return y.backward()


def in_context(context: Any, function: Callable[[], Any]) -> Any:
    with context:
        return function()


def with_default(device: str, function: Callable[[], Any]) -> Any:
    torch.set_default_device(device)
    try:
        return function()
    finally:
        torch.set_default_device(None)


def autocast_dtype() -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return (X @ X.T).dtype


def threaded(function: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found


def traceback_of(function: Callable[[], Any]) -> Any:
    try:
        function()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        return [(frame.filename.rpartition("/")[2], frame.lineno, frame.name) for frame in frames]
    return None


def context_of(function: Callable[[], Any]) -> Any:
    try:
        function()
    except Exception as error:
        return type(error.__context__), type(error.__cause__), getattr(error, "__notes__", None)
    return None


# ---- programs ----


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


class Named(Tensor):
    """Keeps what was called, by name."""

    seen: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(getattr(func, "__qualname__", repr(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


class Strict(Tensor):
    """Knows some functions of torch by identity, and refuses others."""

    HANDLED: ClassVar[dict[Any, str]] = {
        torch.nonzero: "nonzero",
        Tensor.item: "item",
        Tensor.__getitem__: "getitem",
        torch.where: "where",
    }

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in cls.HANDLED:
            raise NotImplementedError(f"{func}")
        return cls.HANDLED[func]


class Plain(Tensor):
    """A subclass that changes nothing."""


class Own(Tensor):
    """A subclass with methods of its own."""

    def __getitem__(self, key: Any) -> Any:
        return ("own", super().__getitem__(key))

    def item(self) -> Any:
        return -1


class Dispatched(Tensor):
    """A wrapper that sees operators."""

    seen: ClassVar[list[str]] = []

    @staticmethod
    def __new__(cls, inner: Tensor) -> Any:
        return Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(str(func))
        unwrapped = [a.inner if isinstance(a, Dispatched) else a for a in args]
        return func(*unwrapped, **(kwargs or {}))


def subclass_calls() -> Any:
    Named.seen = []
    x = X.clone().as_subclass(Named)
    results = [x[0], x[x > 0], x.sum().item(), x.to("cpu"), x.cpu(), torch.nonzero(x), torch.where(x > 0), x.tolist()]
    results += [bool(x.sum() > 0), float(x.sum()), x.numpy(), repr(x), f"{x.sum():.2f}", 1.0 in x, torch.equal(x, x)]
    results += [torch.unique(x), x.masked_select(x > 0), x.new_zeros(2), torch.zeros_like(x), len(x), list(x)]
    return results, Named.seen


def strict_calls() -> Any:
    x = X.clone().as_subclass(Strict)
    found: list[Any] = [torch.nonzero(x), x.item(), x[0], torch.where(x)]
    for call in (
        x.cpu,
        x.tolist,
        lambda: torch.equal(x, x),
        lambda: x.to("cpu"),
        lambda: bool(x),
        lambda: torch.unique(x),
    ):
        try:
            found.append(call())
        except Exception as error:
            found.append((type(error), str(error).partition(" at 0x")[0]))
    return found


def plain_calls() -> Any:
    x = X.clone().as_subclass(Plain)
    results = [x[0], x[x > 0], x.cpu(), x.to("cpu"), torch.nonzero(x), torch.tensor([x[0, 0], x[0, 1]]), x.clone()]
    return [(type(value), value) for value in results], pickled(x), repr(x)


def own_calls() -> Any:
    x = X.clone().as_subclass(Own)
    return x[0], x[x > 0], x.item(), Tensor.item(x.sum()), [type(v) for v in x]


def new_subclass() -> Any:
    """A class that is made while somebody listens works as one that was made before, and after."""
    kind = type("Late", (Tensor,), {})
    x = X.clone().as_subclass(kind)
    LATE.append(x)
    return torch.tensor([x[0, 0], x[0, 1]]), x[x > 0], x.sum().item(), repr(x)


LATE: list[Tensor] = []


def late_subclasses() -> Any:
    """What is left of those."""
    return [(torch.tensor([x[0, 0], x[0, 1]]), x[x > 0]) for x in LATE[:1]]


def dispatched_calls() -> Any:
    Dispatched.seen = []
    x = Dispatched(X.clone())
    results: list[Any] = []
    for call in (lambda: x + 1, lambda: x.sum().item(), lambda: x[0], lambda: x.cpu(), lambda: torch.nonzero(x)):
        try:
            results.append(call())
        except Exception as error:
            results.append((type(error), str(error)[:80]))
    return results, Dispatched.seen


def function_mode() -> Any:
    seen: list[str] = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(getattr(func, "__qualname__", repr(func)))
            return func(*args, **(kwargs or {}))

    x = X.clone()
    with Mode():
        results = [x[0], x[x > 0], x.sum().item(), x.to("cpu"), torch.nonzero(x), torch.zeros(2), x.tolist(), repr(x)]
    return results, seen


def dispatch_mode() -> Any:
    seen: list[str] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = X.clone()
    with Mode():
        results = [x[0], x[x > 0], x.sum().item(), x.to(torch.float64), torch.nonzero(x), torch.zeros(2), x.cpu()]
    return results, seen


def fake_mode() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        x = mode.from_tensor(X)
        found: list[Any] = [(x + 1).shape, x.cpu().device, x[0].shape]
        for call in (lambda: x.sum().item(), lambda: torch.nonzero(x), lambda: x[x > 0], lambda: bool(x.sum())):
            try:
                found.append(call())
            except Exception as error:
                found.append(type(error))
    return found


def deterministic_mode() -> Any:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        return X.clone().index_put_((torch.tensor([0, 0]),), torch.ones(3), accumulate=True)
    finally:
        torch.use_deterministic_algorithms(False)


def anomaly() -> Any:
    with torch.autograd.detect_anomaly(check_nan=False):
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()
    return x.grad


def hooks() -> Any:
    seen: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: seen.append(grad.sum().item()))
    y.sum().backward()
    return seen, x.grad


def checkpointed() -> Any:
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(2, requires_grad=True)
    checkpoint(lambda v: v * v.sum().item(), x, use_reentrant=False).sum().backward()
    return x.grad


def trained() -> Any:
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), 0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = net(X).pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, net.state_dict(), optimizer.state_dict(), [vars(p) for p in net.parameters()]


def checkpoint_file() -> Any:
    """A checkpoint after training and moving: its bytes hold nothing of ours."""
    net = Net().cpu().to("cpu")
    net(X).sum().backward()
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "p": list(net.parameters())}, file)
    return b"syncscope" in file.getvalue(), len(file.getvalue())


def optimizers() -> Any:
    found = []
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop):
        p = nn.Parameter(torch.tensor([1.0, 2.0]))
        optimizer = kind([p.cpu()], lr=0.1)
        (p * p).sum().backward()
        optimizer.step()
        found.append((p, optimizer.state_dict()))
    return found


def scaler() -> Any:
    p = nn.Parameter(torch.tensor([1.0, 2.0]))
    optimizer, amp = torch.optim.SGD([p], 0.1), torch.amp.GradScaler("cpu")
    amp.scale((p * p).sum()).backward()
    amp.step(optimizer)
    amp.update()
    return p, amp.get_scale()


def dataloader() -> Any:
    data = torch.utils.data.TensorDataset(X, torch.arange(2))
    return list(torch.utils.data.DataLoader(data, 2, shuffle=False))


def profiled() -> Any:
    which = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=which) as profile, torch.profiler.record_function("region"):
        X.sum().item()
    names = {event.key for event in profile.key_averages()}
    return "region" in names, "aten::item" in names


def regions() -> Any:
    @torch.profiler.record_function("decorated")
    def inner(x: Tensor) -> Tensor:
        return x + 1

    with torch.profiler.record_function("outer"), contextlib.suppress(ValueError):
        inner(X)
        raise ValueError
    return inner(X)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def printed() -> Any:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print(X, X.sum(), nn.Parameter(X), [X])
    return out.getvalue()


def cyclic() -> Any:
    """A tensor that only a cycle holds is freed."""
    import gc
    import weakref

    x = X.clone()
    seen = weakref.ref(x)
    x.sum().item(), x.cpu(), x[x > 0]
    del x
    gc.collect()
    return seen() is None


def functions_by_identity() -> Any:
    table = {torch.nonzero: 1, torch.where: 2, Tensor.item: 3, Tensor.__getitem__: 4, torch.unique: 5, Tensor.to: 6}
    return [table[f] for f in (torch.nonzero, torch.where, Tensor.item, Tensor.__getitem__, torch.unique, Tensor.to)]


def jit_builtins() -> Any:
    from torch.jit._builtins import _find_builtin

    return [
        _find_builtin(f) for f in (torch.where, torch.nonzero, torch.equal, torch.zeros, torch.tensor, torch.unique)
    ]


def held_function() -> Any:
    net = Holder()
    return pickled(net)(X), torch.fx.symbolic_trace(net)(X), saved_module(net)


def saved_module(net: nn.Module) -> Any:
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    return type(torch.load(file, weights_only=False).function)


PROGRAMS: dict[str, Callable[[], Any]] = {
    **{f"jit.script {name[8:]}": lambda f=f: scripted(f, X) for name, f in SCRIPTS.items()},
    "jit.script module": lambda: (
        torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval())(torch.zeros(1, 3)).shape
    ),
    **{f"fx {f.__name__[3:]}": lambda f=f: fx_graph(f) for f in (fx_where, fx_nonzero, fx_many, fx_index, fx_item)},
    **{f"fx {f.__name__[3:]}": lambda f=f: fx_graph(f) for f in (fx_bool, fx_iterate)},
    "fx module": lambda: fx_graph(Net()),
    **{
        f"compile {f.__name__[3:]}": lambda f=f: compiled(f, X)
        for f in (fx_where, fx_nonzero, fx_many, fx_index, fx_item, fx_bool)
    },
    "compile fullgraph": lambda: compiled(fx_where, X, fullgraph=True),
    "compile fullgraph net": lambda: compiled(Net(), X, fullgraph=True),
    "compile fullgraph item": lambda: compiled(fx_item, X, fullgraph=True),
    "compile with a tensor's device": lambda: compiled(to_device_of, X, torch.ones(3)),
    **{
        f"graph breaks {f.__name__[3:]}": lambda f=f: broken(f)
        for f in (fx_where, fx_nonzero, fx_item, fx_index, fx_bool)
    },
    **{f"export {f.__name__[3:]}": lambda f=f: exported(f) for f in (fx_where, fx_many, fx_nonzero, fx_item)},
    "export strict": lambda: exported(fx_where, strict=True),
    **{f"make_fx {f.__name__[3:]}": lambda f=f: made_fx(f) for f in (fx_where, fx_nonzero, fx_many, fx_item)},
    **{f"jit.trace {f.__name__[3:]}": lambda f=f: traced(f) for f in (fx_where, fx_nonzero, fx_index)},
    **{
        f.__name__.replace("_", " "): f
        for f in (
            *(subclass_calls, strict_calls, plain_calls, own_calls, new_subclass, late_subclasses, dispatched_calls),
            *(function_mode, dispatch_mode, fake_mode, deterministic_mode, anomaly, hooks, checkpointed, trained),
            *(checkpoint_file, optimizers, scaler, dataloader, profiled, regions, printed, cyclic, held_function),
            *(functions_by_identity, jit_builtins),
        )
    },
}
