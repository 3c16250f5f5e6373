"""Operators and how PyTorch finds them: a dictionary that the files of `ops/` fill, and its registration."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Hashable, Iterator
from time import monotonic_ns
from types import CodeType
from typing import Any, TypeVar

import torch

from syncscope.kernels import fallback, halves, plans, queue, storage
from syncscope.kernels.fallback import NotNative as NotNative
from syncscope.kernels.memo import Memo

Kernel = Callable[..., object]
AKernel = TypeVar("AKernel", bound=Kernel)
native: dict[str, Kernel] = {}  # an overload such as "add.out" or "relu" -> what runs it on the device
views: dict[str, Kernel] = {}  # likewise, but what only touches sizes and strides: called from C, and nobody is told
plain: set[str] = set()  # overloads that enqueue nothing, or depend on more than their arguments show
asked: dict[str, Callable[[], int]] = {}  # overloads that a setting decides, too: what it is now


def op(*names: str, keep: bool = True, asks: Callable[[], int] | None = None) -> Callable[[AKernel], AKernel]:
    """Declares a function as the kernel of these overloads; it is called as PyTorch calls the operator.

    What it enqueues is kept for calls that look the same (`plans`), unless told not to: views and reads have nothing to keep.
    Where a setting of PyTorch's decides what that is, `asks` says how it is set.

    PyTorch gives positional arguments without trailing defaults, wrapped numbers as Python numbers, and outputs of
    structured operators with their final shape, dtype and strides.
    """

    def declare(kernel: AKernel) -> AKernel:
        for name in names:
            native[name] = kernel
        if not keep:
            plain.update(names)
        if asks is not None:
            asked.update(dict.fromkeys(names, asks))
        return kernel

    return declare


def into_out(kernel: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The `out=` variant of a kernel that makes its own result."""

    def run(*args: object, out: torch.Tensor, **kwargs: object) -> torch.Tensor:
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
    return [name for name in names if known(name)]  # the others belong to TorchScript


def known(name: str) -> bool:
    """Whether this PyTorch has the overload."""
    return f"aten::{name}" in _names


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

    def run(*args: object, **kwargs: Any) -> object:
        if not kwargs[first].numel():
            shapes: dict[str, torch.Tensor] = {name: _bare(x) for name, x in kwargs.items()}
            target(*map(_bare, args), **shapes)
            for name in outputs:
                if kwargs[name].shape != shapes[name].shape:
                    storage.resize(kwargs[name], shapes[name].shape)
        return kernel(*args, **kwargs)

    return run


def is_structured(name: str) -> bool:
    """Whether PyTorch makes the variants of this `out=` operator itself: infers the result, has it allocated, calls `out=`."""
    return bool(
        torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CompositeExplicitAutogradNonFunctional")
    )


def functional(name: str) -> str | None:
    """The overload that makes what `name` writes into its outputs; None if there is none that PyTorch derives from it."""
    found = _derived(name, name.partition(".")[0])
    return None if found is None or overload(found)._schema.is_mutable else found


def in_place(name: str) -> str | None:
    """The overload that writes to `self` what `name` writes into its output, likewise."""
    return _derived(name, name.partition(".")[0] + "_")


def _derived(name: str, packet: str) -> str | None:
    given = [(a.name, str(a.type)) for a in overload(name)._schema.arguments if not a.is_out]
    for sibling in overloads(packet):
        if is_structured(sibling) and given == [(a.name, str(a.type)) for a in overload(sibling)._schema.arguments]:
            return sibling
    return None


_made: Memo[list[storage.Layout]] = Memo()


def making(name: str, into: str, kernel: Kernel) -> Kernel:
    """`name` by the kernel of its `out=` variant `into`: PyTorch infers, and checks, once for each kind of arguments.

    Its own way would come back here for the memory, and again for the kernel: each crossing costs as much as a launch.
    """
    target = overload(name)
    outputs = tuple(a.name for a in overload(into)._schema.arguments if a.is_out)

    def run(*args: object, **kwargs: object) -> object:
        key = (target, torch.get_default_dtype(), *map(_kind, args), *kwargs, *map(_kind, kwargs.values()))
        layouts = _made.get(key)
        if layouts is None:
            layouts = _made[key] = inferred(target, args, kwargs)
        made = [layout.make() for layout in layouts]
        kernel(*args, **kwargs, **dict(zip(outputs, made, strict=True)))
        return made[0] if len(made) == 1 else tuple(made)

    return run


def writing(like: str, into: str, kernel: Kernel) -> Kernel:
    """What writes to its first argument as `like` makes anew, by the kernel of the `out=` variant `into`.

    Raises:
        RuntimeError: its shape or dtype cannot hold the result; in PyTorch's words.
    """
    target = overload(like)
    (output,) = (a.name for a in overload(into)._schema.arguments if a.is_out)

    def run(self: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        key = (into, torch.get_default_dtype(), *map(_kind, (self, *args)), *kwargs, *map(_kind, kwargs.values()))
        if key not in _made:
            (made,) = inferred(target, (self, *args), kwargs)
            if made.shape != self.shape:
                raise RuntimeError(
                    f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(made.shape)}"
                )
            if not torch.can_cast(made.dtype, self.dtype):
                raise RuntimeError(
                    f"result type {_spelled(made.dtype)} can't be cast to the desired output type {_spelled(self.dtype)}"
                )
            _made[key] = [made]
        kernel(self, *args, **kwargs, **{output: self})
        return self

    return run


_SPELLED = {torch.int64: "Long", torch.int32: "Int", torch.int16: "Short", torch.int8: "Char", torch.uint8: "Byte",
            torch.bool: "Bool", torch.float32: "Float", torch.float64: "Double", torch.float16: "Half"}  # fmt: skip


def _spelled(dtype: torch.dtype) -> str:
    return _SPELLED.get(dtype) or str(dtype).removeprefix("torch.")


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """PyTorch may import its compiler where it first infers: for a second, a quarter of which goes into a search for garbage
    that is not there."""
    if "torch._dynamo" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def inferred(
    target: torch._ops.OpOverload, args: tuple[object, ...], kwargs: dict[str, object]
) -> list[storage.Layout]:
    """What PyTorch says that an operator makes, after its own checks of the arguments."""
    kinds = zip(target._schema.arguments, args, strict=False)
    if any(isinstance(x, (bool, int, float)) and isinstance(a.type, torch.TensorType) for a, x in kinds):
        target = (
            target.overloadpacket
        )  # `x % 3`: the dispatcher hands the 3 to `remainder.Tensor`, which Python may not
    with _uncollected():
        made = target(*map(_bare, args), **{k: _bare(x) for k, x in kwargs.items()})
    return [storage.Layout.of(x) for x in (made if isinstance(made, tuple) else (made,))]


def _kind(x: object) -> Hashable:
    """What of an argument decides the shape and dtype of results: never the value of a float."""
    if isinstance(x, torch.Tensor):
        return x.dtype, x.shape, x.stride()
    return float if type(x) is float else (type(x), tuple(map(_kind, x)) if isinstance(x, (list, tuple)) else x)


def _bare(x: object) -> object:
    """An argument without its data."""
    if isinstance(x, torch.Tensor):
        if x.device.type != storage.NAME:
            if x.dim():
                raise storage.elsewhere(x)
            return x
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
    return type(x)(map(_bare, x)) if isinstance(x, (list, tuple)) else x


def watched(name: str, kernel: Kernel) -> Kernel:
    """The kernel, told to the queue's observers, with the CPU behind it."""
    target = overload(name)
    label = "aten::" + name.partition(".")[0]
    infers_shape = torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta")
    if infers_shape and any(argument.is_out for argument in target._schema.arguments):
        kernel = _sized(target, kernel)
    if name not in plain:
        kernel = plans.kept(kernel, asked[name]) if name in asked else plans.kept(kernel)

    def run(*args: object, **kwargs: object) -> object:
        start = monotonic_ns() if queue.observers else 0
        before = plans.decided
        try:
            result = kernel(*args, **kwargs)
        except NotNative:
            try:
                result = halves.in_float(target, kernel, args, kwargs)
            except NotNative:
                return fallback.on_cpu(target, *args, **kwargs)
        if start:
            how = queue.ANEW if plans.decided != before else queue.AS_KNOWN
            for observer in queue.observers:
                observer(label, start, how, args, kwargs, result)
        return result

    return run


# The code of every operator's function, whose variable `label` is its name: who looks up a stack knows an operator by it.
RUNNING = next(x for x in watched.__code__.co_consts if isinstance(x, CodeType) and x.co_name == "run")


def install(library: torch.library.Library, registered: frozenset[str]) -> None:
    """Registers every native operator with PyTorch, but for those views that are `registered` already."""
    for name, kernel in list(native.items()):
        made, written = (functional(name), in_place(name)) if name.partition(".")[2] else (None, None)
        if made and made not in native:
            native[made] = making(made, name, kernel)
        if made and written and written not in native:
            native[written] = writing(made, name, kernel)
        if name in asked:
            asked.update({one: asked[name] for one in (made, written) if one})
    for name, kernel in native.items():
        run = watched(name, kernel)
        if name not in plain:
            run = plans.followed("aten::" + name.partition(".")[0], run, asked.get(name))
        library.impl(name, run, "PrivateUse1")
    for name in views.keys() - registered:
        library.impl(name, views[name], "PrivateUse1")
