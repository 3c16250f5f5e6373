"""The pointwise operators, one line of OpenCL C each; the variables are the operator's own argument names.

A line serves every overload whose arguments it uses all (`add`: Tensor, Scalar, in place, out=); one with a variant
(`div.out`) serves that overload alone, and may leave arguments out. T is the type that is computed in, FLOATING whether it
is a floating-point type.
"""

from __future__ import annotations

# What an expression may call besides OpenCL's own functions.
HELPERS = """
#if FLOATING
#define WHOLE(f, x) f(x)
static inline T modulo(T a, T b) { const T r = fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
static inline T floor_quotient(T a, T b) {
    if (b == 0) return a / b;
    const T r = fmod(a, b);
    T q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return copysign((T)0, a / b);
    const T down = floor(q);
    return q - down > (T)0.5 ? down + 1 : down;
}
static inline T cut_quotient(T a, T b) { return trunc(a / b); }
static inline T rest(T a, T b) { return fmod(a, b); }
static inline T power(T a, T b) { return pow(a, b); }
static inline T sigmoid(T x) { return 1 / (1 + exp(-x)); }
static inline T softplus(T x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static inline T normal_cdf(T x) { return (T)0.5 * erfc(-x * (T)0.70710678118654752440); }
static inline T gelu_slope(T x) {
    return normal_cdf(x) + x * exp((T)-0.5 * x * x) * (T)0.39894228040143267794;
}
static inline T gelu_inner(T x) { return (T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x); }
static inline T gelu_tanh_slope(T x) {
    const T t = tanh(gelu_inner(x));
    return (T)0.5 * (1 + t) + (T)0.5 * x * (1 - t * t) * (T)0.79788456080286535588 * (1 + (T)0.134145 * x * x);
}
#else
// A GPU has no exception for a division by zero and a CPU would end the process: the quotient is 0 then.
#define WHOLE(f, x) (x)
static inline T modulo(T a, T b) {
    if (b == 0) return 0;
    const T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static inline T floor_quotient(T a, T b) {
    if (b == 0) return 0;
    const T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
static inline T cut_quotient(T a, T b) { return b == 0 ? 0 : a / b; }
static inline T rest(T a, T b) { return b == 0 ? 0 : a % b; }
static inline T power(T a, T b) {
    if (b < 0) return a == 1 ? 1 : a == (T)-1 ? (b % 2 ? -1 : 1) : 0;
    T result = 1;
    for (; b; b /= 2, a *= a)
        if (b % 2) result *= a;
    return result;
}
#endif
"""

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
}

# Integers only; PyTorch's own message for the others comes from the CPU.
_INTEGER = {
    "bitwise_and": "self & other",
    "bitwise_or": "self | other",
    "bitwise_xor": "self ^ other",
    "bitwise_left_shift": "self << other",
    "bitwise_right_shift": "self >> other",
}

TABLES = {"arithmetic": _ARITHMETIC, "floating": _FLOATING, "compare": _COMPARE, "integer": _INTEGER}
