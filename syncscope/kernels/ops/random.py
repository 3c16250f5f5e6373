"""Random numbers: drawn on the host by the device's own generator and uploaded, so that equal seeds give the CPU's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels import backend, storage
from syncscope.kernels.operators import into_out, native, op, overload


def _in_place(name: str) -> Callable[..., Tensor]:
    target = overload(name)

    def draw(self: Tensor, *args: Any, generator: torch.Generator | None = None, **kwargs: Any) -> Tensor:
        host = torch.empty(self.shape, dtype=self.dtype, device="cpu")
        args = tuple(a.cpu() if isinstance(a, Tensor) else a for a in args)
        return self.copy_(target(host, *args, generator=generator or backend.generator, **kwargs))

    return draw


for _name in (
    "normal_", "uniform_", "random_", "random_.to", "random_.from", "bernoulli_.float", "bernoulli_.Tensor",
    "exponential_", "log_normal_", "geometric_", "cauchy_",
):  # fmt: skip
    native[_name] = _in_place(_name)


@op("bernoulli.out")
def bernoulli(self: Tensor, *, generator: torch.Generator | None = None, out: Tensor) -> Tensor:
    """Ones with the probabilities given: the host waits for them."""
    if out.shape != self.shape:
        storage.resize(out, self.shape)
    return out.copy_(torch.bernoulli(self.cpu(), generator=generator or backend.generator))


def _from_tensors(name: str) -> Callable[..., Tensor]:
    target = overload(name)

    def draw(*args: Any, generator: torch.Generator | None = None) -> Tensor:
        args = tuple(a.cpu() if isinstance(a, Tensor) else a for a in args)
        return storage.upload(target(*args, generator=generator or backend.generator))

    return draw


for _name in ("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor"):
    native[_name] = _from_tensors(_name)
    native[_name + "_out"] = into_out(native[_name])


@op("randperm.generator_out")
def randperm(n: int, *, generator: torch.Generator | None = None, out: Tensor) -> Tensor:
    """The numbers below `n` in random order."""
    if out.shape != (n,):
        storage.resize(out, [n])
    return out.copy_(torch.randperm(n, generator=generator or backend.generator, dtype=out.dtype))


@op("native_dropout")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Zeroes elements with probability `p` and scales the others; gives the mask of those that stay."""
    if train is False:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    kept = torch.empty(input.shape, dtype=torch.bool).bernoulli_(1 - p, generator=backend.generator)
    mask = storage.upload(kept)
    return input * mask * (1 / (1 - p) if p < 1 else 0.0), mask


@op("native_dropout_backward")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Gradient of dropout."""
    return grad_output * mask * scale
