"""A program by torch's own functions, on any device: sums of products by einsum over views, the rest over the whole range."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor

from syncscope.kernels.comprehensions.dtypes import DTYPES, Argument
from syncscope.kernels.comprehensions.expressions import Apply, Name, Node, Number, Poly, Read, factors, interval
from syncscope.kernels.comprehensions.functions import FUNCTIONS, OPERATORS
from syncscope.kernels.comprehensions.program import Program, Step

Value: TypeAlias = "Tensor | float"
_FARTHER = 8  # times as large as a tensor what is padded to it may be


def _gamma(x: Tensor) -> Tensor:
    sign = torch.where((x < 0) & (torch.remainder(torch.floor(x), 2) != 0), -1, 1)
    return sign * torch.exp(torch.lgamma(x))


_CALLS: dict[str, Callable[..., Tensor]] = {
    name: eval(f"lambda x, y=None, z=None, w=None: {f.torch}", {"torch": torch, "_gamma": _gamma})
    for name, f in (OPERATORS | FUNCTIONS).items()
}


def run(program: Program, tensors: Mapping[str, Argument]) -> dict[str, Tensor]:
    """Everything that the program writes; `tensors` are its arguments by name."""
    known = dict(tensors)
    device = next((x.device for x in known.values() if isinstance(x, Tensor)), torch.device("cpu"))
    for step in program.steps:
        known[step.target] = _Space(step, known, device).made()
    return {step.target: known[step.target] for step in program.steps}


class _Space:
    """What a statement runs over: a dimension for each variable, those on the left first; absent ones have size one."""

    def __init__(self, step: Step, known: Mapping[str, Argument], device: torch.device) -> None:
        self.step, self.known, self.device = step, known, device
        self.names, self.sizes = tuple(step.ranges), [*map(step.size, step.ranges)]
        self.shape, self.reduced = self.sizes[: len(step.out)], tuple(range(len(step.out), len(self.sizes)))
        self.real = torch.float64 if step.dtype == torch.float64 else torch.get_default_dtype()

    def made(self) -> Tensor:
        """What the statement gives, of its dtype."""
        step = self.step
        if step.op == "+" and step.dtype.is_floating_point and 0 not in self.sizes:
            return self.product_sum()
        value = self.tensor(self.value(step.value)).expand(self.sizes)
        if not self.reduced:
            return value.to(step.dtype, copy=True)
        if step.op == "+":
            return value.sum(self.reduced, dtype=step.dtype)
        if step.op == "*":
            return value.to(step.dtype).flatten(len(self.shape)).prod(-1)
        if 0 in self.sizes:
            info, least = (torch.finfo if step.dtype.is_floating_point else torch.iinfo)(step.dtype), step.op == "max"
            limit = (
                (-math.inf if least else math.inf) if step.dtype.is_floating_point else info.min if least else info.max
            )
            return torch.full(self.shape, limit, dtype=step.dtype, device=self.device)
        return (value.amin if step.op == "min" else value.amax)(self.reduced).to(step.dtype)

    def product_sum(self) -> Tensor:
        """The sum over the reduced variables, by einsum of the factors."""
        scale: Value = 1
        operands: list[Tensor | list[int]] = []  # a tensor, and its dimensions
        for x in map(self.value, factors(self.step.value)):
            if isinstance(x, Tensor) and x.numel() > 1:
                operands += [x.squeeze().to(self.step.dtype), [d for d in range(x.dim()) if x.shape[d] != 1]]
            else:
                scale = scale * (x.reshape(()) if isinstance(x, Tensor) else x)
        seen = {d for dims in operands[1::2] for d in dims}
        made = torch.einsum(*operands, sorted(seen.difference(self.reduced))) if operands else self.tensor(1.0)
        made = made * scale * math.prod(self.sizes[d] for d in self.reduced if d not in seen)
        made = made.reshape([size if d in seen else 1 for d, size in enumerate(self.shape)])
        return made.expand(self.shape).to(self.step.dtype, copy=True)

    def tensor(self, value: Value) -> Tensor:
        if isinstance(value, Tensor):
            return value
        return torch.full((), value, device=self.device, dtype=self.real if isinstance(value, float) else None)

    def value(self, node: Node) -> Value:
        """A tensor that broadcasts over the space, or a number."""
        match node:
            case Number(value):
                return value
            case Name(name):
                shape = [size if n == name else 1 for n, size in zip(self.names, self.sizes, strict=True)]
                return torch.arange(*self.step.ranges[name], device=self.device).reshape(shape)
            case Read():
                return self.read(node)
            case Poly():
                return self.value(node.node())
            case Apply(function, (x,)) if function.startswith("cast "):
                name = function.removeprefix("cast ")
                default = torch.get_default_dtype() if name == "float" else torch.int64
                return self.tensor(self.value(x)).to(DTYPES.get(name, default))
            case Apply("?", (condition, yes, no)):
                return torch.where(self.tensor(self.value(condition)) != 0, self.value(yes), self.value(no))
            case Apply(function, args):
                values, known = [self.value(x) for x in args], OPERATORS.get(function) or FUNCTIONS[function]
                if function in FUNCTIONS:
                    tensors = [self.tensor(x) for x in values]
                    real = known.gives == "float"
                    values = [x.to(self.real) if real and not x.dtype.is_floating_point else x for x in tensors]
                return _CALLS[function](*(_counted(x) for x in values))
        raise TypeError(node)

    def read(self, node: Read) -> Value:
        x = self.known[node.tensor]
        if not isinstance(x, Tensor) or not node.indexes:
            return x
        view = self.view(node, x)
        if view is not None:
            return view
        indexes, fits = [], []
        for p, size in zip(node.indexes, x.shape, strict=True):
            index = self.tensor(self.value(p)).long()
            if (p, size) in node.bounds:
                fits.append((index >= 0) & (index < size))
                index = index.clamp(0, max(size - 1, 0))
            indexes.append(index)
        if node.other is None:
            return x[tuple(torch.broadcast_tensors(*indexes))]
        other = self.value(node.other)
        if 0 in x.shape:
            return self.tensor(other).to(x.dtype).expand([1] * len(self.names))
        return torch.where(functools.reduce(operator.and_, fits), x[tuple(torch.broadcast_tensors(*indexes))], other)

    def view(self, node: Read, x: Tensor) -> Tensor | None:
        """What is read without a copy, but for a margin of what is read outside; None where that is not possible."""
        lines = [line for p in node.indexes if (line := p.line()) and min(line[1].values(), default=0) >= 0]
        if len(lines) < x.dim():
            return None
        margins = [(0, 0)] * x.dim()
        if node.bounds:
            over = {n: (float(a), float(b - 1)) for n, (a, b) in self.step.ranges.items()}
            reach = zip((interval(p, over) for p in node.indexes), x.shape, strict=True)
            margins = [(max(0, -int(low)), max(0, int(high) - n + 1)) for (low, high), n in reach]
            far = any(sum(m) > _FARTHER * n + 64 for m, n in zip(margins, x.shape, strict=True))
            if far or 0 in x.shape or not isinstance(node.other, Number):
                return None
            x = torch.nn.functional.pad(x, [n for m in reversed(margins) for n in m], value=node.other.value)
        offset, strides = x.storage_offset(), dict.fromkeys(self.names, 0)
        for (start, steps), (before, _), stride in zip(lines, margins, x.stride(), strict=True):
            offset += (start + before) * stride
            for name, step in steps.items():
                offset += step * self.step.ranges[name][0] * stride
                strides[name] += step * stride
        seen = {name for _, steps in lines for name in steps}
        sizes = [size if n in seen else 1 for n, size in zip(self.names, self.sizes, strict=True)]
        return x.as_strided(sizes, [*strides.values()], offset)


def _counted(x: Value) -> Value:
    """Truth values as numbers: torch takes no difference of them."""
    return x.long() if isinstance(x, Tensor) and x.dtype == torch.bool else x
