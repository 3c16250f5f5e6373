"""The pointwise operators, one line of OpenCL C each; the variables are the operator's own argument names."""

from __future__ import annotations

# Visible to every expression. T is the type that is computed in.
HELPERS = """
ushort to_bfloat16(float x) {
    const uint bits = as_uint(x);
    return x != x ? (ushort)0x7fc0 : (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
"""

# Computed in the dtype that the inputs promote to.
_ARITHMETIC = {
    "add": "self + alpha * other",
    "sub": "self - alpha * other",
    "rsub": "other - alpha * self",
    "mul": "self * other",
    "neg": "-self",
    "square": "self * self",
    "relu": "self > 0 || self != self ? self : 0",
    "abs": "self < 0 ? -self : self == 0 ? 0 : self",
    "sign": "(self > 0) - (self < 0)",
    "sgn": "(self > 0) - (self < 0)",
    "maximum": "self != self ? self : other != other ? other : self > other ? self : other",
    "minimum": "self != self ? self : other != other ? other : self < other ? self : other",
    "fmax": "self != self ? other : other != other ? self : self > other ? self : other",
    "fmin": "self != self ? other : other != other ? self : self < other ? self : other",
    "clamp_min": "self != self ? self : min != min ? min : self < min ? min : self",
    "clamp_max": "self != self ? self : max != max ? max : self > max ? max : self",
    "threshold": "self <= threshold ? value : self",
    "threshold_backward": "self <= threshold ? 0 : grad_output",
    "masked_fill": "mask != 0 ? value : self",
    "where": "condition != 0 ? self : other",
    "addcmul": "self + value * tensor1 * tensor2",
    "addcdiv": "self + value * (tensor1 / tensor2)",
    "lerp": "fabs(weight) < (T)0.5 ? self + weight * (end - self) : end - (end - self) * (1 - weight)",
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
    "sigmoid": "1 / (1 + exp(-self))",
    "erf": "erf(self)",
    "erfc": "erfc(self)",
    "atan2": "atan2(self, other)",
    "tanh_backward": "grad_output * (1 - output * output)",
    "sigmoid_backward": "grad_output * (1 - output) * output",
    "silu": "self / (1 + exp(-self))",
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
}

# Integers only; torch's own message for the others comes from the CPU.
_INTEGER = {
    "bitwise_and": "self & other",
    "bitwise_or": "self | other",
    "bitwise_xor": "self ^ other",
}

TABLES = {"arithmetic": _ARITHMETIC, "floating": _FLOATING, "compare": _COMPARE, "integer": _INTEGER}
