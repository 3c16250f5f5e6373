"""What an expression may apply: the operators, Tensor Comprehensions' own functions, `min` and `max`.

Each has its OpenCL C and its torch in the arguments x, y, z, w, and its slopes in each, as comprehensions again. T(...) is a
literal in the type that is computed in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """`slopes` has one text for each argument; "" is a slope of zero, None one that is not known."""

    c: str
    torch: str
    slopes: tuple[str | None, ...]
    gives: str = "float"  # for integers; or "same", or "truth" of anything
    whole: str = ""  # C of integers, where it is another

    @property
    def arity(self) -> int:
        """How many arguments it takes."""
        return len(self.slopes)


def _f(c: str, torch: str, *slopes: str | None, gives: str = "float", whole: str = "") -> Function:
    return Function(c, torch, slopes, gives, whole)


def _one(name: str, slope: str | None, torch: str = "") -> Function:
    """A function of one argument that OpenCL calls by the same name."""
    return _f(f"{name}(x)", torch or f"torch.{name}(x)", slope)


OPERATORS: dict[str, Function] = {
    **{op: _f(f"x {op} y", f"x {op} y", "", "", gives="truth") for op in ("==", "!=", "<", "<=", ">", ">=")},
    "&&": _f("x && y", "(x != 0) & (y != 0)", "", "", gives="truth"),
    "||": _f("x || y", "(x != 0) | (y != 0)", "", "", gives="truth"),
    "not": _f("!x", "x == 0", "", gives="truth"),
    "neg": _f("-x", "-x", "-1", gives="same"),
    "+": _f("x + y", "x + y", "1", "1", gives="same"),
    "-": _f("x - y", "x - y", "1", "-1", gives="same"),
    "*": _f("x * y", "x * y", "y", "x", gives="same"),
    "/": _f("x / y", "x / y", "1 / y", "-(x / y / y)"),
    "//": _f("floor(x / y)", "x // y", "", "", gives="same", whole="y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0))"),
    "%": _f("x - y * floor(x / y)", "x % y", "1", "", gives="same", whole="y == 0 ? 0 : (x % y + y) % y"),
}  # fmt: skip
_LOG2, _LOG10, _ROOT_PI = "0.6931471805599453", "2.302585092994046", "1.1283791670955126"
_NORM3 = "sqrt(x * x + y * y + z * z)"

FUNCTIONS: dict[str, Function] = {
    "min": _f("x != x ? x : y != y ? y : x < y ? x : y", "torch.minimum(x, y)",
            "x <= y ? 1 : 0", "x <= y ? 0 : 1", gives="same"),
    "max": _f("x != x ? x : y != y ? y : x > y ? x : y", "torch.maximum(x, y)",
            "x >= y ? 1 : 0", "x >= y ? 0 : 1", gives="same"),
    "fmin": _f("fmin(x, y)", "torch.fmin(x, y)", "x <= y ? 1 : 0", "x <= y ? 0 : 1"),
    "fmax": _f("fmax(x, y)", "torch.fmax(x, y)", "x >= y ? 1 : 0", "x >= y ? 0 : 1"),
    "fabs": _f("fabs(x)", "torch.abs(x)", "x > 0 ? 1 : x < 0 ? -1 : 0"),
    "acos": _one("acos", "-1 / sqrt(1 - x * x)"),
    "acosh": _one("acosh", "1 / sqrt(x * x - 1)"),
    "asin": _one("asin", "1 / sqrt(1 - x * x)"),
    "asinh": _one("asinh", "1 / sqrt(x * x + 1)"),
    "atan": _one("atan", "1 / (1 + x * x)"),
    "atan2": _f("atan2(x, y)", "torch.atan2(x, y)", "y / (x * x + y * y)", "-x / (x * x + y * y)"),
    "atanh": _one("atanh", "1 / (1 - x * x)"),
    "cbrt": _one("cbrt", "cbrt(x) / (3 * x)", "torch.sign(x) * torch.abs(x) ** (1 / 3)"),
    "ceil": _one("ceil", ""),
    "copysign": _f("copysign(x, y)", "torch.copysign(x, y)", "copysign(1.0, x) * copysign(1.0, y)", ""),
    "cos": _one("cos", "-sin(x)"),
    "cosh": _one("cosh", "sinh(x)"),
    "cospi": _one("cospi", "-3.141592653589793 * sinpi(x)", "torch.cos(torch.pi * x)"),
    "erf": _one("erf", f"{_ROOT_PI} * exp(-x * x)"),
    "erfc": _one("erfc", f"-{_ROOT_PI} * exp(-x * x)"),
    "erfcx": _f("exp(x * x) * erfc(x)", "torch.special.erfcx(x)", f"2 * x * erfcx(x) - {_ROOT_PI}"),
    "exp": _one("exp", "exp(x)"),
    "exp10": _one("exp10", f"{_LOG10} * exp10(x)", "10.0 ** x"),
    "exp2": _one("exp2", f"{_LOG2} * exp2(x)"),
    "expm1": _one("expm1", "exp(x)"),
    "fdim": _f("fdim(x, y)", "torch.clamp(x - y, min=0)", "x > y ? 1 : 0", "x > y ? -1 : 0"),
    "fdivide": _f("x / y", "x / y", "1 / y", "-x / (y * y)"),
    "floor": _one("floor", ""),
    "fma": _f("fma(x, y, z)", "x * y + z", "y", "x", "1"),
    "fmod": _f("fmod(x, y)", "torch.fmod(x, y)", "1", "-trunc(x / y)"),
    "hypot": _f("hypot(x, y)", "torch.hypot(x, y)", "x / hypot(x, y)", "y / hypot(x, y)"),
    "lgamma": _one("lgamma", None),
    "log": _one("log", "1 / x"),
    "log10": _one("log10", f"1 / ({_LOG10} * x)"),
    "log1p": _one("log1p", "1 / (1 + x)"),
    "log2": _one("log2", f"1 / ({_LOG2} * x)"),
    "logb": _one("logb", "", "torch.frexp(x)[1].to(x.dtype) - 1"),
    "nextafter": _f("nextafter(x, y)", "torch.nextafter(x, y)", "1", ""),
    "norm3d": _f(_NORM3, _NORM3.replace("sqrt", "torch.sqrt"), *(f"{a} / norm3d(x, y, z)" for a in "xyz")),
    "norm4d": _f(
        "sqrt(x * x + y * y + z * z + w * w)", "torch.sqrt(x * x + y * y + z * z + w * w)",
        *(f"{a} / norm4d(x, y, z, w)" for a in "xyzw"),
    ),
    "normcdf": _f(
        "T(0.5) * erfc(-x * T(0.7071067811865476))", "torch.special.ndtr(x)", "0.3989422804014327 * exp(-0.5 * x * x)"
    ),
    "pow": _f("pow(x, y)", "torch.pow(x, y)", "y == 0 ? 0 : y * pow(x, y - 1)", "x == 0 ? 0 : pow(x, y) * log(x)"),
    "rcbrt": _f("1 / cbrt(x)", "torch.sign(x) * torch.abs(x) ** (-1 / 3)", "-rcbrt(x) / (3 * x)"),
    "remainder": _f("remainder(x, y)", "x - y * torch.round(x / y)", "1", "-round(x / y)"),
    "rhypot": _f("1 / hypot(x, y)", "1 / torch.hypot(x, y)", *(f"-{a} * pow(rhypot(x, y), 3.0)" for a in "xy")),
    "rnorm3d": _f(
        f"1 / {_NORM3}", f"1 / torch.{_NORM3}", *(f"-{a} * pow(rnorm3d(x, y, z), 3.0)" for a in "xyz")
    ),
    "rnorm4d": _f(
        "1 / sqrt(x * x + y * y + z * z + w * w)", "1 / torch.sqrt(x * x + y * y + z * z + w * w)",
        *(f"-{a} * pow(rnorm4d(x, y, z, w), 3.0)" for a in "xyzw"),
    ),
    "round": _f("rint(x)", "torch.round(x)", ""),
    "rsqrt": _one("rsqrt", "-0.5 * rsqrt(x) / x"),
    "sin": _one("sin", "cos(x)"),
    "sinh": _one("sinh", "cosh(x)"),
    "sinpi": _one("sinpi", "3.141592653589793 * cospi(x)", "torch.sin(torch.pi * x)"),
    "sqrt": _one("sqrt", "0.5 / sqrt(x)"),
    "tan": _one("tan", "1 + tan(x) * tan(x)"),
    "tanh": _one("tanh", "1 - tanh(x) * tanh(x)"),
    "tgamma": _one("tgamma", None, "_gamma(x)"),
    "trunc": _one("trunc", ""),
    # OpenCL has none of these: on the device their statement runs through torch.
    "cyl_bessel_i0": _f("", "torch.special.i0(x)", "cyl_bessel_i1(x)"),
    "cyl_bessel_i1": _f("", "torch.special.i1(x)", None),
    "erfcinv": _f("", "torch.erfinv(1 - x)", None),
    "erfinv": _f("", "torch.erfinv(x)", f"exp(erfinv(x) * erfinv(x)) / {_ROOT_PI}"),
    "j0": _f("", "torch.special.bessel_j0(x)", "-j1(x)"),
    "j1": _f("", "torch.special.bessel_j1(x)", None),
    "normcdfinv": _f("", "torch.special.ndtri(x)", None),
    "y0": _f("", "torch.special.bessel_y0(x)", "-y1(x)"),
    "y1": _f("", "torch.special.bessel_y1(x)", None),
}  # fmt: skip


def call(function: str, args: Sequence[str], c: str, whole: bool = False) -> str:
    """OpenCL C of a call, of the C of its arguments; `c` is the type that is computed in, `whole` whether it has integers."""
    given, known = dict(zip("xyzw", args, strict=False)), (OPERATORS | FUNCTIONS)[function]
    written = ((whole and known.whole) or known.c).replace("T(", f"({c})(")
    return re.sub(r"\b[xyzw]\b", lambda found: given[found[0]], written)
