"""A program by torch's own functions, on any device: sums of products by einsum over views, the rest over the whole range."""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels.comprehension.algebra import Poly, interval
from syncscope.kernels.comprehension.functions import FUNCTIONS
from syncscope.kernels.comprehension.program import DTYPES, Load, Program, Step
from syncscope.kernels.comprehension.tree import Apply, Name, Node, Number

_FOLDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "+": torch.add, "*": torch.mul, "min": torch.minimum, "max": torch.maximum,
}  # fmt: skip
_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "neg": operator.neg,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "&&": lambda x, y: (x != 0) & (y != 0), "||": lambda x, y: (x != 0) | (y != 0), "not": lambda x: x == 0,
}  # fmt: skip


_WHOLE: dict[str, Callable[..., Tensor]] = {
    "/": torch.floor_divide, "%": torch.remainder, "min": torch.minimum, "max": torch.maximum,
}  # fmt: skip


def _gamma(x: Tensor) -> Tensor:
    sign = torch.where((x < 0) & (torch.remainder(torch.floor(x), 2) != 0), -1, 1)
    return sign * torch.exp(torch.lgamma(x))


_CALLS: dict[str, Callable[..., Any]] = {
    name: eval(f"lambda x, y=None, z=None, w=None: {f.torch}", {"torch": torch, "_gamma": _gamma})
    for name, f in FUNCTIONS.items()
}


def run(program: Program, tensors: Mapping[str, Any]) -> dict[str, Tensor]:
    """Everything that the program writes; `tensors` are its arguments by name."""
    known = dict(tensors)
    device = next((x.device for x in known.values() if isinstance(x, Tensor)), torch.device("cpu"))
    for step in program.steps:
        made = _Space(step, known, program, device).made()
        shape = program.shapes[step.target]
        whole = all(step.ranges[n] == (0, size) for n, size in zip(step.out, shape, strict=True))
        if step.sets:
            known[step.target] = made
            continue
        before = known[step.target]
        if whole:
            known[step.target] = _FOLDS[step.op](before, made)
        else:
            at = tuple(slice(*step.ranges[n]) for n in step.out)
            known[step.target] = before.clone()
            known[step.target][at] = _FOLDS[step.op](before[at], made)
    return {step.target: known[step.target] for step in program.steps}


class _Space:
    """What a statement runs over: a dimension for each variable, those on the left first; absent ones have size one."""

    def __init__(self, step: Step, known: Mapping[str, Any], program: Program, device: torch.device) -> None:
        self.step, self.known, self.program, self.device = step, known, program, device
        self.names = (*step.out, *step.reduced)
        self.sizes = [step.size(n) for n in self.names]
        self.over = {n: (float(a), float(b - 1)) for n, (a, b) in step.ranges.items()}

    def made(self) -> Tensor:
        step = self.step
        shape = self.sizes[: len(step.out)]
        dims = tuple(range(len(step.out), len(self.names)))
        if not dims:
            return self.tensor(self.value(step.value)).expand(shape).to(step.dtype, copy=True)
        if 0 in self.sizes:
            start = {"+": 0, "*": 1, "min": float("inf"), "max": float("-inf")}[step.op]
            if not step.dtype.is_floating_point and step.op in ("min", "max"):
                info = torch.iinfo(step.dtype)
                start = info.max if step.op == "min" else info.min
            return torch.full(shape, start, dtype=step.dtype, device=self.device)
        if step.op == "+" and step.dtype.is_floating_point:
            return self.product_sum().to(step.dtype)
        value = self.tensor(self.value(step.value)).expand(self.sizes)
        if step.op == "+":
            return value.sum(dims, dtype=step.dtype)
        if step.op == "*":
            return value.to(step.dtype).flatten(len(step.out)).prod(-1)
        return (value.amin(dims) if step.op == "min" else value.amax(dims)).to(step.dtype)

    def product_sum(self) -> Tensor:
        """The sum over the reduced variables, by einsum of the factors."""
        out = len(self.step.out)
        numbers: list[Any] = []
        terms: list[str] = []
        operands: list[Tensor] = []
        seen: set[int] = set()
        for factor in _factors(self.step.value):
            x = self.value(factor)
            if not isinstance(x, Tensor) or x.numel() == 1:
                numbers.append(x.reshape(()) if isinstance(x, Tensor) else x)
                continue
            kept = [d for d in range(x.dim()) if x.shape[d] != 1]
            seen.update(kept)
            terms.append("".join(string.ascii_letters[d] for d in kept))
            operands.append(x.squeeze().to(self.step.dtype))
        left = "".join(string.ascii_letters[d] for d in range(out) if d in seen)
        made = torch.einsum(f"{','.join(terms)}->{left}", *operands) if terms else self.tensor(1.0)
        for x in numbers:
            made = made * x
        made = made * math.prod(size for d, size in enumerate(self.sizes) if d >= out and d not in seen)
        shape = [size if d in seen else 1 for d, size in enumerate(self.sizes[:out])]
        return made.reshape(shape).expand(self.sizes[:out]).to(self.step.dtype, copy=True)

    def tensor(self, value: Any) -> Tensor:
        return value if isinstance(value, Tensor) else torch.full((), value, device=self.device)

    def variable(self, name: str) -> Tensor:
        d = self.names.index(name)
        shape = [1] * len(self.names)
        shape[d] = self.sizes[d]
        return torch.arange(*self.step.ranges[name], device=self.device).reshape(shape)

    def value(self, node: Node) -> Any:
        """A tensor that broadcasts over the space, or a number."""
        match node:
            case Number(value):
                return value
            case Name(name):
                return self.variable(name)
            case Load():
                return self.load(node)
            case Apply(function, (x,)) if function.startswith("cast "):
                name = function.removeprefix("cast ")
                default = torch.get_default_dtype() if name == "float" else torch.int64
                return self.tensor(self.value(x)).to(DTYPES.get(name, default))
            case Apply("?", (condition, yes, no)):
                chosen = self.value(condition)
                if not isinstance(chosen, Tensor):
                    return self.value(yes if chosen else no)
                return torch.where(chosen != 0, self.value(yes), self.value(no))
            case Apply(function, args) if function in _OPERATORS:
                return _OPERATORS[function](*(_counted(self.value(x)) for x in args))
            case Apply(function, args):
                values = [self.value(x) for x in args]
                return _CALLS[function](*map(self.real if FUNCTIONS[function].floats else self.tensor, values))
        raise TypeError(node)

    def real(self, value: Any) -> Tensor:
        """As a tensor of floating point."""
        x = self.tensor(value)
        return x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())

    def load(self, node: Load) -> Any:
        x = self.known[node.tensor]
        if not isinstance(x, Tensor) or not node.at_:
            return x
        shape, rank = self.program.shapes[node.tensor], len(self.names)
        lines = [self.linear(p) for p in node.at_]
        if all(line is not None and min(line[1], default=0) >= 0 for line in lines):
            view = self.view(node, x, [line for line in lines if line is not None])
            if view is not None:
                return view
        indexes, valid = [], None
        for p, checked, size in zip(node.at_, node.checked, shape, strict=True):
            index = self.place(p)
            if checked:
                fits = (index >= 0) & (index < size)
                valid = fits if valid is None else valid & fits
                index = index.clamp(0, max(size - 1, 0))
            indexes.append(index)
        if valid is not None and 0 in shape:
            return self.tensor(self.value(node.other or Number(0))).to(x.dtype).expand([1] * rank)
        found = x[tuple(torch.broadcast_tensors(*indexes))]
        return found if valid is None or node.other is None else torch.where(valid, found, self.value(node.other))

    def place(self, p: Poly) -> Tensor:
        """An index at every point."""
        total = torch.zeros((), dtype=torch.int64, device=self.device)
        for monomial, factor in p.terms:
            term = torch.full((), factor, dtype=torch.int64, device=self.device)
            for v in monomial:
                if isinstance(v, str):
                    term = term * self.variable(v)
                elif v.node is not None:
                    term = term * self.tensor(self.value(v.node)).long()
                else:
                    term = term * _WHOLE[v.kind](*map(self.place, v.parts))
            total = total + term
        return total

    def linear(self, p: Poly) -> tuple[int, list[int]] | None:
        """Where an index begins, and what each variable adds; None if it is not of that kind."""
        factors = [0] * len(self.names)
        start = 0
        for monomial, factor in p.terms:
            if not monomial:
                start = factor
            elif len(monomial) == 1 and monomial[0] in self.names:
                factors[self.names.index(str(monomial[0]))] = factor
            else:
                return None
        for d, name in enumerate(self.names):
            start += factors[d] * self.step.ranges[name][0]
        return start, factors

    def view(self, node: Load, x: Tensor, lines: list[tuple[int, list[int]]]) -> Tensor | None:
        """The load without a copy, but for zeros around."""
        if any(node.checked):
            other = self.value(node.other or Number(0))
            if isinstance(other, Tensor) or 0 in x.shape:
                return None
            padding: list[int] = []
            starts = []
            for (start, _), p, checked, size in reversed(
                list(zip(lines, node.at_, node.checked, x.shape, strict=True))
            ):
                low, high = interval(p, self.over) if checked else (0.0, 0.0)
                before, after = max(0, -int(low)), max(0, int(high) - size + 1)
                if before + after > 8 * size + 64:
                    return None
                padding += [before, after]
                starts.append(start + before)
            x = torch.nn.functional.pad(x, padding, value=other)
            lines = [(start, factors) for start, (_, factors) in zip(reversed(starts), lines, strict=True)]
        offset = x.storage_offset() + sum(start * stride for (start, _), stride in zip(lines, x.stride(), strict=True))
        strides, sizes = [], []
        for d, size in enumerate(self.sizes):
            factors = [f[d] for _, f in lines]
            sizes.append(size if any(factors) else 1)
            strides.append(sum(f * s for f, s in zip(factors, x.stride(), strict=True)))
        return x.as_strided(sizes, strides, offset)


def _counted(x: Any) -> Any:
    """Truth values as numbers: torch takes no difference of them."""
    return x.long() if isinstance(x, Tensor) and x.dtype == torch.bool else x


def _factors(node: Node) -> list[Node]:
    """What is multiplied."""
    if isinstance(node, Apply) and node.function == "*":
        return [f for x in node.args for f in _factors(x)]
    return [node]
