"""Operators and how PyTorch finds them: a dictionary that the files of `ops/` fill, and its registration."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

import torch

from syncscope.kernels import fallback, queue, storage

Kernel = Callable[..., Any]
native: dict[str, Kernel] = {}  # an overload such as "add.out" or "relu" -> what runs it on the device


class NotNative(Exception):  # noqa: N818 - no error: a way of saying "the CPU's turn"
    """Raised by an operator, before it has done anything, for arguments it has no kernel for: the CPU runs it instead."""


def op(*names: str) -> Callable[[Kernel], Kernel]:
    """Declares a function as the kernel of these overloads; it is called as PyTorch calls the operator.

    PyTorch gives positional arguments without trailing defaults, wrapped numbers as Python numbers, and outputs of
    structured operators with their final shape, dtype and strides.
    """

    def declare(kernel: Kernel) -> Kernel:
        for name in names:
            native[name] = kernel
        return kernel

    return declare


def into_out(kernel: Kernel) -> Kernel:
    """The `out=` variant of a kernel that makes its own result."""

    def run(*args: Any, out: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        result = kernel(*args, **kwargs)
        if out.shape != result.shape:
            storage.resize(out, result.shape)
        return out.copy_(result)

    return run


def overload(name: str) -> torch._ops.OpOverload:
    """The operator behind `add.out` or `relu`."""
    base, _, variant = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), variant or "default")


_names = frozenset(torch._C._dispatch_get_all_op_names())


def overloads(packet: str) -> list[str]:
    """The overloads of `add` by name: `add.Tensor`, `add.out`...; none if there is no such operator."""
    variants = getattr(torch.ops.aten, packet).overloads() if hasattr(torch.ops.aten, packet) else []
    names = (packet if variant == "default" else f"{packet}.{variant}" for variant in variants)
    return [name for name in names if f"aten::{name}" in _names]  # the others belong to TorchScript


def on_cpu(name: str) -> bool:
    """Whether an overload has a CPU kernel, that is, whether a device is expected to bring one."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CPU"))


def has_composite(name: str) -> bool:
    """Whether PyTorch itself expresses this overload by others on every device."""
    keys = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key) for key in keys)


def _sized(target: torch._ops.OpOverload, kernel: Kernel) -> Kernel:
    """The kernel, with its outputs given the shape that PyTorch infers where they come without elements.

    The variants without `out=` bring a tensor of the right shape; a caller of `out=` may pass an empty one.
    """
    outputs = tuple(a.name for a in target._schema.arguments if a.is_out)
    first = outputs[0]

    def bare(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
        return type(x)(map(bare, x)) if isinstance(x, (list, tuple)) else x

    def run(*args: Any, **kwargs: Any) -> Any:
        if not kwargs[first].numel():
            shapes = {name: bare(x) for name, x in kwargs.items()}
            target(*map(bare, args), **shapes)
            for name in outputs:
                if kwargs[name].shape != shapes[name].shape:
                    storage.resize(kwargs[name], shapes[name].shape)
        return kernel(*args, **kwargs)

    return run


def watched(name: str, kernel: Kernel) -> Kernel:
    """The kernel, told to the queue's observers, with the CPU behind it."""
    target = overload(name)
    label = "aten::" + name.partition(".")[0]
    infers_shape = torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta")
    if infers_shape and any(argument.is_out for argument in target._schema.arguments):
        kernel = _sized(target, kernel)

    def run(*args: Any, **kwargs: Any) -> Any:
        start = monotonic_ns() if queue.observers else 0
        try:
            result = kernel(*args, **kwargs)
        except NotNative:
            return fallback.on_cpu(target, *args, **kwargs)
        if start:
            for observer in queue.observers:
                observer(label, start, False, args, kwargs, result)
        return result

    return run


def install(library: torch.library.Library) -> None:
    """Registers every native operator with PyTorch."""
    for name, kernel in native.items():
        library.impl(name, watched(name, kernel), "PrivateUse1")
