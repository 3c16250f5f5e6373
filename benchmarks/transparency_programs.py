"""Programs around tensors: training, files, regions, with those of two other files. Each returns what can be compared."""

from __future__ import annotations

import contextlib
import io
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch
import transparency_compilers
import transparency_subclasses
from torch import Tensor, nn
from transparency_compilers import Holder, Net, X

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
    **transparency_compilers.PROGRAMS,
    **transparency_subclasses.PROGRAMS,
    **{
        f.__name__.replace("_", " "): f
        for f in (
            *(
                deterministic_mode,
                anomaly,
                hooks,
                checkpointed,
                trained,
                checkpoint_file,
                optimizers,
                scaler,
                dataloader,
            ),
            *(profiled, regions, printed, cyclic, held_function, functions_by_identity, jit_builtins),
        )
    },
}
