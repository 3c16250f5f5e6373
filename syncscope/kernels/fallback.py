"""Every operator without a kernel of its own runs on the CPU: copied there and back, and named for what it is."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from time import monotonic_ns
from typing import Any

import torch

from syncscope.kernels import queue, storage

counts: dict[str, int] = {}  # how often each operator fell back in this process


class NotNative(Exception):  # noqa: N818 - no error: a way of saying "the CPU's turn"
    """Raised by an operator, before it has done anything, for arguments it has no kernel for: the CPU runs it instead."""


def on_cpu(op: torch._ops.OpOverload, *args: object, **kwargs: object) -> Any:
    """Runs an operator on host copies of its tensors; writes back what it changes, uploads what it returns.

    Each input costs one wait of the host. Observers see one span, `fallback of aten::x`, that holds all of it.
    """
    name = _name(op._schema.name)
    if any(r.alias_info is not None and not r.alias_info.is_write for r in op._schema.returns):
        raise NotImplementedError(f"{op._schema.name} gives a view, and the device `ocl` has no kernel for it")
    counts[name] = counts.get(name, 0) + 1
    start = monotonic_ns()
    result = _run(op, name, args, kwargs)
    for observer in queue.observers:
        observer(name, start, queue.ON_CPU, args, kwargs, result)
    return result


@functools.cache
def _name(schema: str) -> str:
    """One string for an operator, always the same object: observers may know it by its address."""
    return "fallback of aten::" + schema.partition("::")[2]


def _run(op: torch._ops.OpOverload, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    copies: dict[int, torch.Tensor] = {}  # id of a device tensor -> its host copy

    def to_host(value: object) -> object:
        if isinstance(value, torch.Tensor) and value.device.type == storage.NAME:
            if id(value) not in copies:
                copies[id(value)] = read(value, name)
            return copies[id(value)]
        if isinstance(value, torch.device) and value.type == storage.NAME:
            return torch.device("cpu")
        if isinstance(value, (list, tuple)):
            return type(value)(map(to_host, value))
        return value

    schema = op._schema.arguments
    named = {**{a.name: v for a, v in zip(schema, args, strict=False)}, **kwargs}
    host = {}
    for argument in schema:
        if argument.name not in named:
            continue
        value = named[argument.name]
        if argument.is_out and isinstance(value, torch.Tensor) and value.device.type == storage.NAME:
            copies.setdefault(id(value), torch.empty_strided(value.shape, value.stride(), dtype=value.dtype))
        host[argument.name] = to_host(value)
    positional = [host.pop(a.name) for a in schema if not a.kwarg_only and a.name in host]
    try:
        result = op(*positional, **host)
    except RuntimeError as error:
        if " not implemented for '" not in str(error):
            raise
        raise NotImplementedError(
            f"ocl has no kernel of {op._schema.name} for these dtypes, and neither has the CPU, which would run it: {error}"
        ) from error

    for argument in schema:
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = named.get(argument.name)
        for tensor in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(tensor, torch.Tensor) and id(tensor) in copies:
                write_back(copies[id(tensor)], tensor)
    originals = {id(copies[id(v)]): v for v in _tensors(named.values()) if id(v) in copies}
    return _to_device(result, originals)


def read(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """A host copy with the same shape and strides (as far as strides can be kept)."""
    contiguous = tensor if tensor.is_contiguous() else tensor.contiguous()
    host = storage.download(contiguous, name)
    if contiguous is tensor:
        return host
    kept = torch.empty_like(tensor, device="cpu")
    return kept.copy_(host)


def write_back(host: torch.Tensor, tensor: torch.Tensor) -> None:
    """Gives a device tensor the shape and content of its host copy."""
    if tensor.shape != host.shape:
        storage.resize(tensor, host.shape)
    tensor.copy_(host)


def _tensors(values: Iterable[object]) -> list[torch.Tensor]:
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _to_device(value: object, originals: dict[int, torch.Tensor]) -> object:
    if isinstance(value, torch.Tensor):
        if id(value) in originals:
            return originals[id(value)]
        if value.layout != torch.strided:
            raise NotImplementedError("ocl has no sparse tensors: use x.cpu() first, or stay with dense ones")
        uploaded = storage.upload(value)
        if value.is_contiguous() or not value.numel():
            return uploaded
        kept = storage.empty(value.shape, value.dtype, torch.empty_like(value).stride())
        return kept.copy_(uploaded)
    if isinstance(value, (list, tuple)):
        return type(value)(_to_device(v, originals) for v in value)
    return value
