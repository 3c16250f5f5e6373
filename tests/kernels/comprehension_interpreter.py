"""The notation by its definition: each statement point by point, in Python's own numbers."""

import itertools
import math

import numpy as np

from syncscope.kernels.comprehension.expressions import Apply, Name, Number, Poly, Read
from syncscope.kernels.comprehension.notation import parse

_START = {"+": 0.0, "*": 1.0, "min": math.inf, "max": -math.inf}
_MEET = {"+": lambda a, b: a + b, "*": lambda a, b: a * b, "min": min, "max": max}
_APPLY = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "neg": lambda a: -a,
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "==": lambda a, b: a == b, "tanh": math.tanh, "max": max, "min": min,
    "&&": lambda a, b: bool(a and b),
}  # fmt: skip


def interpret(text, **given):
    """Results by name; `given` are numpy arrays and integers."""
    function = parse(text)
    known = dict(given)
    sizes = {}
    for p in function.parameters:
        for dim, size in zip(p.dims or (), np.shape(given[p.name]), strict=True):
            sizes[dim.name] = size
    for s in function.statements:
        numbers = {name: Poly.of(int(size)) for name, size in sizes.items()}
        ends = {n: tuple(q.replaced(numbers).number for q in pair) for n, pair in s.ranges.items()}
        shape = tuple(ends[n][1] for n in s.out)
        made = known[s.target].copy() if s.target in known else np.full(shape, _START.get(s.op, 0.0))
        for values in itertools.product(*(range(*ends[n]) for n in ends)):
            at = dict(zip(ends, values, strict=True)) | sizes
            spot = tuple(at[n] for n in s.out)
            value = _value(s.value, at, known)
            made[spot] = value if s.op == "=" else _MEET[s.op](made[spot], value)
        known[s.target] = made
    return {name: known[name] for name in function.results}


def _value(node, at, known):
    match node:
        case Number(value):
            return value
        case Name(name):
            return at[name]
        case Poly(terms):
            return sum(f * math.prod(_value(v, at, known) for v in monomial) for monomial, f in terms)
        case Read(tensor, indexes, other):
            spot = tuple(int(_value(x, at, known)) for x in indexes)
            if any(not 0 <= i < size for i, size in zip(spot, known[tensor].shape, strict=True)):
                assert other is not None, (tensor, spot)
                return _value(other, at, known)
            return float(known[tensor][spot])
        case Apply("?", (condition, yes, no)):
            return _value(yes if _value(condition, at, known) else no, at, known)
        case Apply(function, args):
            values = [_value(x, at, known) for x in args]
            return _APPLY[function](*values)
    raise TypeError(node)
