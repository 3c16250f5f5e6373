"""Tensors filled with random numbers on the device, as CUDA's kernels number and make them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import pyopencl as cl
import torch
from torch import Generator, Tensor

from syncscope.kernels import generator as generators
from syncscope.kernels import programs, queue, storage
from syncscope.kernels.operators import into_out, native, overload
from syncscope.kernels.streams import TEAM, Streams, dense, items

_WIDE_RANGE = 1 << 28  # from so many integers on one takes 64 bits
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class Distribution(NamedTuple):
    """What is drawn, `uniform`, `normal` or whole `words`, and what becomes of it: C in x and the numbers a, b and c."""

    drawn: str
    put: str


Drawn = tuple[Distribution, tuple[float, ...], bool]  # and its numbers, and whether each takes 64 bits
Says = TypeVar("Says", bound=Callable[..., Drawn | None])


def _value(c: str) -> str:
    return f"STORE({c}, out, at + i);"


_UNIFORM = Distribution("uniform", f"{_value('FMA(x, b, a)')} if (JOIN(LOAD_, MADE)(out, at + i) == c) {_value('a')}")
_NORMAL = Distribution("normal", _value("FMA(x, b, a)"))
_LOG_NORMAL = Distribution("normal", _value("EXP(FMA(x, b, a))"))
_EXPONENTIAL = Distribution("uniform", _value("a * (x >= 1 - b ? -b : LOG(x))"))
_GEOMETRIC = Distribution("uniform", _value("ceil(LOG(x) / LOG(1 - a))"))
_CAUCHY = Distribution("uniform", _value("FMA(b, TAN((T)M_PI * (clamp(x, c, 1 - c) - (T)0.5)), a)"))
_BERNOULLI = Distribution("uniform", _value("x < a"))
_WHOLE = Distribution("words", _value("(T)(long)((a ? x % (DRAWN)a : x) + (DRAWN)b)"))


@functools.lru_cache(256)
def _kernel(name: str, of: Distribution, dtype: torch.dtype, wide: bool) -> cl.Kernel:
    """The kernel that fills tensors of a dtype; `wide` says that a number takes 64 bits, so that two are drawn at a time."""
    inside, words = "double" if dtype == torch.float64 else "float", of.drawn == "words"
    drawn = ("ulong" if wide else "uint") if words else inside
    make = f"{of.drawn}{2 if wide else 4}{'_double' if wide and not words else ''}"
    macros = programs.elements(dtype) | {
        "NAME": f"{name}_{programs.HALVES.get(dtype) or programs.C_TYPE[dtype]}",
        "GIVEN": "long" if words else inside, "DRAWN": drawn, "EACH": "2" if wide else "4", "MAKE": make, "PUT": of.put,
        **{f.upper(): f if inside == "double" else f"FAST({f})" for f in ("exp", "log", "tan")},
    }  # fmt: skip
    if not words:
        macros["T"] = inside  # of integers, too: a probability is no integer
    defines = "".join(f"#define {key} {value}\n" for key, value in macros.items())
    source = defines + programs.text("random").replace(" NAME(", f" {macros['NAME']}(")
    return programs.build(source, macros["NAME"], ("GIVEN", macros["GIVEN"]))


def fill(
    self: Tensor, ours: generators.Generator, name: str, of: Distribution, numbers: tuple[float, ...], wide: bool
) -> Tensor:
    """Fills a tensor of any strides."""
    total = self.numel()
    if not total:
        return self
    if not dense(self):
        return self.copy_(fill(torch.empty_like(self), ours, name, of, numbers, wide))
    streams = Streams.of(total, 2 if wide else 4)
    a, b, c = (*numbers, 0, 0)[:3]
    queue.launch(
        _kernel(name, of, self.dtype, wide), items(streams.across * streams.turns), TEAM,
        storage.buffer(self), self.storage_offset(), total, streams.across, a, b, c, ours.draw(streams.drawn),
    )  # fmt: skip
    return self


def _on_host(name: str) -> Callable[..., Tensor]:
    """What fills a tensor with the CPU's numbers, by its operator of this name."""
    target = overload(name)

    def draw(self: Tensor, *args: float, generator: Generator | None = None) -> Tensor:
        host = torch.empty_strided(self.shape, self.stride(), dtype=self.dtype, device="cpu")  # filled as it lies
        return self.copy_(target(host, *args, generator=generators.on_host(generator)))

    return draw


def in_place(name: str) -> Callable[[Says], Says]:
    """Declares a function of a tensor's dtype and the operator's arguments, that says what is drawn: a distribution, its
    numbers, and whether each takes 64 bits; None where only the CPU can."""

    def declare(says: Says) -> Says:
        hosted, shown = _on_host(name), name.partition(".")[0].strip("_")

        def draw(self: Tensor, *args: float, generator: Generator | None = None) -> Tensor:
            ours = generators.of(generator)
            known = programs.supported(self.dtype) or self.dtype in programs.HALVES
            said = says(self.dtype, *args) if ours is not None and known else None
            if ours is None or said is None:
                return hosted(self, *args, generator=generator)
            of, numbers, wide = said
            return fill(self, ours, shown, of, numbers, wide)

        native[name] = draw
        return says

    return declare


def _real(dtype: torch.dtype, what: str) -> bool:
    """Whether a dtype holds such numbers.

    Raises:
        RuntimeError: it holds integers.
    """
    if not dtype.is_floating_point:
        raise RuntimeError(f"{what}: expected a floating point tensor, but got {dtype}")
    return dtype is torch.float64


@in_place("uniform_")
def uniform(dtype: torch.dtype, low: float = 0.0, high: float = 1.0) -> Drawn:
    """Between two numbers, of which the second is left out."""
    wide = _real(dtype, "uniform_")
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    ends = torch.tensor([low, high], dtype=dtype, device="cpu")
    range_ = float(ends[1] - ends[0])
    if range_ == float("inf"):
        raise RuntimeError(f"uniform_ expects to-from <= {torch.finfo(dtype).max}, but found to={high} and from={low}")
    return _UNIFORM, (float(ends[0]), range_, float(ends[1])), wide


def _spread(name: str, std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"{name} expects std >= 0.0, but found std {std}")


@in_place("normal_")
def normal(dtype: torch.dtype, mean: float = 0.0, std: float = 1.0) -> Drawn:
    """Of a mean and a standard deviation."""
    wide = _real(dtype, "normal_")
    _spread("normal", std)
    return _NORMAL, (mean, std), wide


@in_place("log_normal_")
def log_normal(dtype: torch.dtype, mean: float = 1.0, std: float = 2.0) -> Drawn:
    """Whose logarithm is normal."""
    wide = _real(dtype, "log_normal_")
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return _LOG_NORMAL, (mean, std), wide


@in_place("exponential_")
def exponential(dtype: torch.dtype, lambd: float = 1.0) -> Drawn:
    """Of a rate; never zero."""
    wide = _real(dtype, "exponential_")
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    half_step = torch.finfo(torch.float64 if wide else torch.float32).eps / 2
    return _EXPONENTIAL, (-1 / lambd, half_step), wide


@in_place("cauchy_")
def cauchy(dtype: torch.dtype, median: float = 0.0, sigma: float = 1.0) -> Drawn:
    """Of a median and half the distance between the quartiles."""
    wide = _real(dtype, "cauchy_")
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return _CAUCHY, (median, sigma, torch.finfo(torch.float64 if wide else torch.float32).eps), wide


@in_place("geometric_")
def geometric(dtype: torch.dtype, p: float) -> Drawn:
    """How often something of probability p is tried until it happens."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return _GEOMETRIC, (p,), dtype == torch.float64


@in_place("bernoulli_.float")
def bernoulli(dtype: torch.dtype, p: float = 0.5) -> Drawn:
    """Ones with probability p, else zeros."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return _BERNOULLI, (p,), dtype == torch.float64


def _digits(dtype: torch.dtype) -> int:
    """Up to which power of two a floating-point dtype has all integers."""
    return 2 - math.frexp(torch.finfo(dtype).eps)[1]


@in_place("random_")
def random(dtype: torch.dtype) -> Drawn:
    """All whole numbers of a dtype that are not negative; of a floating-point one, up to where it leaves some out."""
    if dtype.is_floating_point:
        most = 1 << _digits(dtype)
    else:
        most = 1 if dtype == torch.bool else torch.iinfo(dtype).max
    return _WHOLE, (_signed(most + 1), 0), dtype in (torch.float64, torch.int64)


@in_place("random_.to")
def random_to(dtype: torch.dtype, to: int) -> Drawn | None:
    """Whole numbers from 0, below `to`."""
    return random_from(dtype, 0, to)


@in_place("random_.from")
def random_from(dtype: torch.dtype, low: int, to: int | None = None) -> Drawn | None:
    """Whole numbers from `low`, below `to`, or up to the largest."""
    floating = dtype.is_floating_point
    least, most = (
        (-(1 << _digits(dtype)), 1 << _digits(dtype)) if floating
        else (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    )  # fmt: skip
    if to is None and low == _LEAST:
        return _WHOLE, (0, 0), True
    end = most + 1 if to is None else to
    if not low < end:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={end}")
    if not least <= low <= most or not least <= end - 1 <= most:
        return None  # which says so, or of floating-point numbers leaves some out
    return _WHOLE, (_signed(end - low), low), end - low >= _WIDE_RANGE


def _signed(x: int) -> int:
    return x - (1 << 64) if x > _MOST else x


def _from_tensors(name: str) -> Callable[..., Tensor]:
    target = overload(name)

    def draw(mean: Tensor | float, std: Tensor | float, *, generator: Generator | None = None) -> Tensor:
        given = [x for x in (mean, std) if isinstance(x, Tensor)]
        if generators.of(generator) is None:
            mean, std = (x.cpu() if isinstance(x, Tensor) else x for x in (mean, std))
            return storage.upload(target(mean, std, generator=generators.on_host(generator)))
        shape = torch.broadcast_shapes(*(x.shape for x in given))
        made = storage.empty(shape, given[0].dtype)
        return made.normal_(generator=generator).mul_(std).add_(mean)

    return draw


for _name in ("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor"):
    native[_name] = _from_tensors(_name)
    native[_name + "_out"] = into_out(native[_name])
