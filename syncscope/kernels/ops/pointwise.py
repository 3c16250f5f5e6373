"""Operators that work element by element: one line of OpenCL C each; the variables are the operator's own argument names.

A line serves every overload whose arguments it uses all (`add`: Tensor, Scalar, in place, out=); one with a variant
(`div.out`) serves that overload alone, and may leave arguments out. T is the type that is computed in, FLOATING whether it
is a floating-point type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from syncscope.kernels import storage
from syncscope.kernels.elementwise import Pointwise, apply, layout
from syncscope.kernels.operators import functional, has_composite, inferred, native, on_cpu, overload, overloads
from syncscope.kernels.ops import activation  # noqa: F401  what it declares comes before the tables
from syncscope.kernels.walks import result_shape

# Numbers that decide the result's dtype as tensors do; others (alpha, eps, negative_slope) never do.
_OPERANDS = {"self", "other", "exponent", "min", "max", "end", "weight", "values"}

# Computed in the dtype that the inputs promote to.
_ARITHMETIC = {
    "add": "self + alpha * other",
    "sub": "self - alpha * other",
    "rsub": "other - alpha * self",
    "mul": "self * other",
    "neg": "-self",
    "abs": "self < 0 ? -self : self == 0 ? 0 : self",
    "sign": "(self > 0) - (self < 0)",
    "sgn": "(self > 0) - (self < 0)",
    "fmod": "rest(self, other)",
    "remainder": "modulo(self, other)",
    "floor_divide": "floor_quotient(self, other)",
    "pow": "power(self, exponent)",
    "floor": "WHOLE(floor, self)",
    "ceil": "WHOLE(ceil, self)",
    "trunc": "WHOLE(trunc, self)",
    "round.out": "WHOLE(rint, self)",
    "frac": "self - WHOLE(trunc, self)",
    "maximum": "self != self ? self : other != other ? other : self > other ? self : other",
    "minimum": "self != self ? self : other != other ? other : self < other ? self : other",
    "fmax": "self != self ? other : other != other ? self : self > other ? self : other",
    "fmin": "self != self ? other : other != other ? self : self < other ? self : other",
    "clamp_min": "self != self ? self : min != min ? min : self < min ? min : self",
    "clamp_max": "self != self ? self : max != max ? max : self > max ? max : self",
    "heaviside": "self == 0 ? values : self > 0",
    "relu": "self > 0 || self != self ? self : 0",
    "threshold": "self <= threshold ? value : self",
    "threshold_backward": "self <= threshold ? 0 : grad_output",
    "hardtanh": "self != self ? self : self < min_val ? min_val : self > max_val ? max_val : self",
    "hardtanh_backward": "self <= min_val || self >= max_val ? 0 : grad_output",
    "_prelu_kernel": "self > 0 ? self : weight * self",
    "leaky_relu": "self > 0 ? self : self * negative_slope",
    "leaky_relu_backward.grad_input": "self > 0 ? grad_output : grad_output * negative_slope",
    "masked_fill_": "mask != 0 ? value : self",
    "where": "condition != 0 ? self : other",
    "addcmul": "self + value * tensor1 * tensor2",
    "addcdiv": "self + value * (tensor1 / tensor2)",
    "lerp": "fabs(weight) < (T)0.5 ? self + weight * (end - self) : end - (end - self) * (1 - weight)",
    "hardshrink": "self >= -lambd && self <= lambd ? 0 : self",
    "hardshrink_backward": "self >= -lambd && self <= lambd ? 0 : grad_out",
    "softshrink": "self > lambd ? self - lambd : self < -lambd ? self + lambd : self * 0",
    "softshrink_backward": "self >= -lambd && self <= lambd ? 0 : grad_output",
    "sigmoid_backward": "grad_output * (1 - output) * output",
    "tanh_backward": "grad_output * (1 - output * output)",
}

# Computed in floating point also for integers.
_FLOATING = {
    "div.out": "self / other",
    "reciprocal": "1 / self",
    "sqrt": "sqrt(self)",
    "rsqrt": "1 / sqrt(self)",
    "exp": "exp(self)",
    "exp2": "exp2(self)",
    "expm1": "expm1(self)",
    "log": "log(self)",
    "log2": "log2(self)",
    "log10": "log10(self)",
    "log1p": "log1p(self)",
    "sin": "sin(self)",
    "cos": "cos(self)",
    "tan": "tan(self)",
    "asin": "asin(self)",
    "acos": "acos(self)",
    "atan": "atan(self)",
    "sinh": "sinh(self)",
    "cosh": "cosh(self)",
    "tanh": "tanh(self)",
    "asinh": "asinh(self)",
    "acosh": "acosh(self)",
    "atanh": "atanh(self)",
    "sinc": "self == 0 ? 1 : sinpi(self) / ((T)M_PI * self)",
    "sigmoid": "sigmoid(self)",
    "erf": "erf(self)",
    "erfc": "erfc(self)",
    "lgamma": "lgamma(self)",
    "atan2": "atan2(self, other)",
    "copysign": "copysign(self, other)",
    "hypot": "hypot(self, other)",
    "xlogy": "other != other ? other : self == 0 ? 0 : self * log(other)",
    "logaddexp": "isinf(self) && self == other ? self : fmax(self, other) + log1p(exp(-fabs(self - other)))",
    "logaddexp2": "isinf(self) && self == other ? self : fmax(self, other) + log2(1 + exp2(-fabs(self - other)))",
    "silu": "self * sigmoid(self)",
    "silu_backward": "grad_output * sigmoid(self) * (1 + self * (1 - sigmoid(self)))",
    "mish": "self * tanh(softplus(self))",
    "softplus": "self * beta > threshold ? self : log1p(exp(self * beta)) / beta",
    "softplus_backward": "self * beta > threshold ? grad_output : grad_output * sigmoid(self * beta)",
    "elu": "self > 0 ? self * scale : expm1(self * input_scale) * alpha * scale",
    "elu_backward": "self_or_result > 0 ? grad_output * scale : is_result != 0 ? "
    "grad_output * input_scale * (self_or_result + alpha * scale) : "
    "grad_output * input_scale * alpha * scale * exp(self_or_result * input_scale)",
    "hardswish": "self * fmin(fmax(self + 3, (T)0), (T)6) / 6",
    "hardswish_backward": "self <= -3 ? 0 : self < 3 ? grad_output * (self / 3 + (T)0.5) : grad_output",
    "hardsigmoid": "fmin(fmax(self + 3, (T)0), (T)6) / 6",
    "hardsigmoid_backward": "self > -3 && self < 3 ? grad_output / 6 : 0",
}

# The result is bool; computed in the dtype that the inputs promote to.
_COMPARE = {
    "eq": "self == other",
    "ne": "self != other",
    "lt": "self < other",
    "le": "self <= other",
    "gt": "self > other",
    "ge": "self >= other",
    "logical_and": "self != 0 && other != 0",
    "logical_or": "self != 0 || other != 0",
    "logical_xor": "(self != 0) != (other != 0)",
    "logical_not": "self == 0",
    "isnan": "self != self",
    "isneginf": "self == -INFINITY",
    "isposinf": "self == INFINITY",
}

# Integers only; PyTorch's own message for the others comes from the CPU.
_INTEGER = {
    "bitwise_and": "self & other",
    "bitwise_or": "self | other",
    "bitwise_xor": "self ^ other",
    "bitwise_left_shift": "self << other",
    "bitwise_right_shift": "self >> other",
}

_TABLES = {"arithmetic": _ARITHMETIC, "floating": _FLOATING, "compare": _COMPARE, "integer": _INTEGER}


def caller(op: Pointwise, name: str) -> Callable[..., object]:
    """What PyTorch calls for an overload: new output, in place, or `out=`, read off the schema."""
    target = overload(name)
    arguments = target._schema.arguments
    positions = {a.name: i for i, a in enumerate(arguments)}
    written = [a for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    out_name = written[0].name if written else None
    tensors = [(positions[n], n) for n in op.tensors]
    numbers = [(positions[n], n, arguments[positions[n]].default_value) for n in op.numbers]
    in_place = out_name == "self"
    composed = has_composite(name)

    def call(*args: Any, **kwargs: Any) -> torch.Tensor:
        given = len(args)
        inputs = [args[i] if i < given else kwargs[n] for i, n in tensors]
        scalars = [args[i] if i < given else kwargs.get(n, default) for i, n, default in numbers]
        if out_name is None:
            infer = (lambda: inferred(target, args, kwargs)[0]) if composed else (lambda: layout(op, inputs))
            return apply(op, None, inputs, scalars, infer=infer)
        if in_place:
            out = inputs[0]
        else:
            out = kwargs[out_name]
            shape = result_shape(inputs)
            if out.shape != shape:
                storage.resize(out, shape)
        return apply(op, out, inputs, scalars)

    return call


def declare(kind: str, table: dict[str, str]) -> None:
    """Makes every overload of each name native that has a CPU kernel, is not composed of others, and asks for nothing that
    the expression leaves out; a name with a variant (`div.out`) is that overload alone; what has a function stays."""
    for name, expression in table.items():
        base, _, variant = name.partition(".")
        words = set(re.findall(r"[a-z_]\w*", expression))
        for packet in (base, base + "_", f"special_{base}"):
            for full in [name] if variant else overloads(packet):
                arguments = overload(full)._schema.arguments
                taken = _taken(arguments, words, bool(variant))
                if taken is not None and full not in chosen and (variant or (on_cpu(full) and not has_composite(full))):
                    op = Pointwise(base.rstrip("_"), expression, *taken, kind)
                    native[full] = caller(op, full)
                    if any(a.is_out for a in arguments) and (plain := functional(full)):
                        native[plain] = caller(op, plain)


def _taken(
    arguments: Sequence[torch.Argument], words: set[str], partly: bool
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The names of a schema that are operands, and those that are plain numbers; None if one of another type is asked for,
    or one is left out (unless `partly`)."""
    operands, numbers = [], []
    for argument in arguments:
        kind = str(argument.type)
        if argument.name not in words:
            if argument.is_out or partly:
                continue
            return None
        if kind == "Tensor" or (kind == "number" and argument.name in _OPERANDS):
            operands.append(argument.name)
        elif kind in ("number", "float", "int", "bool"):
            numbers.append(argument.name)
        else:
            return None
    return tuple(operands), tuple(numbers)


chosen = frozenset(native)  # between expressions, by functions of activation.py
for _kind_of_table, _table in _TABLES.items():
    declare(_kind_of_table, _table)
