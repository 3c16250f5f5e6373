"""A program by torch's own functions, on any device: sums of products by einsum over views, the rest over the whole range."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels.comprehension.dtypes import DTYPES
from syncscope.kernels.comprehension.expressions import Apply, Name, Node, Number, Poly, Read, factors, interval
from syncscope.kernels.comprehension.functions import FUNCTIONS, OPERATORS
from syncscope.kernels.comprehension.program import Program, Step

_FOLDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "+": torch.add, "*": torch.mul, "min": torch.minimum, "max": torch.maximum,
}  # fmt: skip
_STARTS = {"+": 0, "*": 1, "min": math.inf, "max": -math.inf}
_FARTHER = 8  # times as large as a tensor what is padded to it may be


def _gamma(x: Tensor) -> Tensor:
    sign = torch.where((x < 0) & (torch.remainder(torch.floor(x), 2) != 0), -1, 1)
    return sign * torch.exp(torch.lgamma(x))


_CALLS: dict[str, Callable[..., Any]] = {
    name: eval(f"lambda x, y=None, z=None, w=None: {f.torch}", {"torch": torch, "_gamma": _gamma})
    for name, f in (OPERATORS | FUNCTIONS).items()
}


def run(program: Program, tensors: Mapping[str, Any]) -> dict[str, Tensor]:
    """Everything that the program writes; `tensors` are its arguments by name."""
    known = dict(tensors)
    device = next((x.device for x in known.values() if isinstance(x, Tensor)), torch.device("cpu"))
    for step in program.steps:
        made = _Space(step, known, device).made()
        if not step.sets:
            at = tuple(slice(*step.ranges[n]) for n in step.out)
            whole = known[step.target].clone()
            whole[at] = _FOLDS[step.op](whole[at], made)
            made = whole
        known[step.target] = made
    return {step.target: known[step.target] for step in program.steps}


class _Space:
    """What a statement runs over: a dimension for each variable, those on the left first; absent ones have size one."""

    def __init__(self, step: Step, known: Mapping[str, Any], device: torch.device) -> None:
        self.step, self.known, self.device = step, known, device
        self.names, self.out = tuple(step.ranges), len(step.out)
        self.sizes = [step.size(n) for n in self.names]
        self.over = {n: (float(a), float(b - 1)) for n, (a, b) in step.ranges.items()}

    def made(self) -> Tensor:
        """What the statement gives, of its dtype; before what is there already."""
        step, shape, dims = self.step, self.sizes[: self.out], tuple(range(self.out, len(self.sizes)))
        if not dims:
            return self.tensor(self.value(step.value)).expand(shape).to(step.dtype, copy=True)
        if 0 in self.sizes:
            start = _STARTS[step.op]
            if math.isinf(start) and not step.dtype.is_floating_point:
                info = torch.iinfo(step.dtype)
                start = info.max if start > 0 else info.min
            return torch.full(shape, start, dtype=step.dtype, device=self.device)
        if step.op == "+" and step.dtype.is_floating_point:
            return self.product_sum()
        value = self.tensor(self.value(step.value)).expand(self.sizes)
        if step.op == "+":
            return value.sum(dims, dtype=step.dtype)
        if step.op == "*":
            return value.to(step.dtype).flatten(self.out).prod(-1)
        return (value.amin(dims) if step.op == "min" else value.amax(dims)).to(step.dtype)

    def product_sum(self) -> Tensor:
        """The sum over the reduced variables, by einsum of the factors."""
        numbers: list[Any] = []
        operands: list[Any] = []  # a tensor, and its dimensions
        for x in map(self.value, factors(self.step.value)):
            if isinstance(x, Tensor) and x.numel() > 1:
                operands += [x.squeeze().to(self.step.dtype), [d for d in range(x.dim()) if x.shape[d] != 1]]
            else:
                numbers.append(x.reshape(()) if isinstance(x, Tensor) else x)
        seen = {d for dims in operands[1::2] for d in dims}
        made = torch.einsum(*operands, sorted(d for d in seen if d < self.out)) if operands else self.tensor(1.0)
        for x in (*numbers, math.prod(size for d, size in enumerate(self.sizes) if d >= self.out and d not in seen)):
            made = made * x
        shape = self.sizes[: self.out]
        made = made.reshape([size if d in seen else 1 for d, size in enumerate(shape)])
        return made.expand(shape).to(self.step.dtype, copy=True)

    def tensor(self, value: Any) -> Tensor:
        return value if isinstance(value, Tensor) else torch.full((), value, device=self.device)

    def variable(self, name: str) -> Tensor:
        shape = [size if n == name else 1 for n, size in zip(self.names, self.sizes, strict=True)]
        return torch.arange(*self.step.ranges[name], device=self.device).reshape(shape)

    def value(self, node: Node) -> Any:
        """A tensor that broadcasts over the space, or a number."""
        match node:
            case Number(value):
                return value
            case Name(name):
                return self.variable(name)
            case Read():
                return self.read(node)
            case Poly():
                return self.value(node.node())
            case Apply(function, (x,)) if function.startswith("cast "):
                name = function.removeprefix("cast ")
                default = torch.get_default_dtype() if name == "float" else torch.int64
                return self.tensor(self.value(x)).to(DTYPES.get(name, default))
            case Apply("?", (condition, yes, no)):
                chosen = self.value(condition)
                if not isinstance(chosen, Tensor):
                    return self.value(yes if chosen else no)
                return torch.where(chosen != 0, self.value(yes), self.value(no))
            case Apply(function, args) if function in OPERATORS:
                return _CALLS[function](*(_counted(self.value(x)) for x in args))
            case Apply(function, args):
                values = [self.tensor(self.value(x)) for x in args]
                if FUNCTIONS[function].gives == "float":
                    values = [x if x.dtype.is_floating_point else x.to(torch.get_default_dtype()) for x in values]
                return _CALLS[function](*values)
        raise TypeError(node)

    def read(self, node: Read) -> Any:
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
            reach = [interval(p, self.over) for p in node.indexes]
            margins = [
                (max(0, -int(low)), max(0, int(high) - n + 1)) for (low, high), n in zip(reach, x.shape, strict=True)
            ]
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
        return x.as_strided(sizes, [strides[n] for n in self.names], offset)


def _counted(x: Any) -> Any:
    """Truth values as numbers: torch takes no difference of them."""
    return x.long() if isinstance(x, Tensor) and x.dtype == torch.bool else x
