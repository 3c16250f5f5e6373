"""Programs with subclasses of tensors, and modes that see every call. Each returns what can be compared."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transparency_compilers import X


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
    return [(type(value), value) for value in results], pickle.loads(pickle.dumps(x)), repr(x)


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


PROGRAMS: dict[str, Callable[[], Any]] = {
    f.__name__.replace("_", " "): f
    for f in (
        *(subclass_calls, strict_calls, plain_calls, own_calls, new_subclass, late_subclasses, dispatched_calls),
        *(function_mode, dispatch_mode, fake_mode),
    )
}
