"""Operators over lists of tensors, which optimizers and gradient clipping are made of: one line of C each.

The variables are the operator's own argument names; a line serves the overload that makes new tensors and the one in place.
What a line cannot do (several dtypes, strides of all kinds, integers in floating point) PyTorch does, tensor by tensor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.types import Number

from syncscope.kernels import lists, programs, storage
from syncscope.kernels.fold import fold
from syncscope.kernels.operators import NotNative, native, op, overload

Tensors = Sequence[Tensor]
_LINES = {
    "add.List": "self + alpha * other",
    "add.Scalar": "self + scalar",
    "add.ScalarList": "self + scalars",
    "add.Tensor": "self + alpha * other",
    "sub.List": "self - alpha * other",
    "sub.Scalar": "self - scalar",
    "sub.ScalarList": "self - scalars",
    "mul.List": "self * other",
    "mul.Scalar": "self * scalar",
    "mul.ScalarList": "self * scalars",
    "mul.Tensor": "self * other",
    "div.List": "self / other",
    "div.Scalar": "self / scalar",
    "div.ScalarList": "self / scalars",
    "div.Tensor": "self / other",
    "addcmul.Scalar": "self + value * tensor1 * tensor2",
    "addcmul.ScalarList": "self + scalars * tensor1 * tensor2",
    "addcdiv.Scalar": "self + value * (tensor1 / tensor2)",
    "addcdiv.ScalarList": "self + scalars * (tensor1 / tensor2)",
    "lerp.Scalar": "fabs(weight) < (T)0.5 ? self + weight * (tensors1 - self) : tensors1 - (tensors1 - self) * (1 - weight)",
    "maximum.List": "self != self ? self : other != other ? other : self > other ? self : other",
    "minimum.List": "self != self ? self : other != other ? other : self < other ? self : other",
    "clamp_min.Scalar": "self < scalar ? scalar : self",
    "clamp_max.Scalar": "self > scalar ? scalar : self",
    "sqrt": "sqrt(self)",
    "rsqrt": "1 / sqrt(self)",
    "reciprocal": "1 / self",
    "neg": "-self",
    "abs": "fabs(self)",
    "exp": "exp(self)",
    "sign": "(T)((self > 0) - (self < 0))",
    "zero": "0",
    "copy": "src",
}
_ANY_KEY = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse2)  # one for which nobody brings kernels


def one_by_one(name: str) -> Callable[..., list[Tensor]]:
    """PyTorch's own way through the lists, for every device."""
    kernel = torch.library.get_kernel(f"aten::{name}", "PrivateUse2")
    return lambda *args, **kwargs: kernel.call_boxed(_ANY_KEY, *args, **kwargs)


def _declare(line: str, expression: str, in_place: bool) -> None:
    base, _, variant = line.partition(".")
    name = f"_foreach_{base}{'_' if in_place else ''}{'.' * bool(variant)}{variant}"
    arguments = overload(name)._schema.arguments
    kinds = {a.name: str(a.type) for a in arguments}
    defaults = {a.name: a.default_value for a in arguments}
    names = list(kinds)
    of_type = {
        kind: [n for n in names if kinds[n] == kind] for kind in ("List[Tensor]", "List[number]", "Tensor", "number")
    }
    many, each, shared, numbers = of_type.values()
    written = "self" if in_place else "made"
    what = lists.Listwise(
        f"foreach_{base}",
        f"{''.join(f'const T {n}_ = LOAD({n}, i); ' for n in many)}{''.join(f'const T {n}_ = LOAD({n}, 0); ' for n in shared)}"
        f"STORE({_renamed(expression, (*many, *shared))}, {written}, i);",
        (*many, *([] if in_place else ["made"])),
        tuple(each),
        tuple(numbers),
        tuple(shared),
    )
    otherwise = one_by_one(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
        try:
            first = given["self"]
            if not all(x.dtype.is_floating_point for x in first):
                raise NotNative
            inputs = [given[n] for n in many]
            for other in inputs[1:]:
                if any(a.shape != b.shape for a, b in zip(first, other, strict=True)):
                    raise NotNative
            if any(x.device.type != storage.NAME or x.dim() for x in (given[n] for n in shared)):
                raise NotNative
            made = [] if in_place else [storage.empty(x.shape, x.dtype) for x in first]
            lists.run(
                what, inputs + ([] if in_place else [made]), [given[n] for n in each],
                [float(given[n]) for n in numbers], [given[n] for n in shared],
            )  # fmt: skip
        except (NotNative, TypeError, ValueError):  # complex numbers, lists of different lengths: PyTorch has the words
            return otherwise(*args, **kwargs)
        return None if in_place else made

    native[name] = call


def _renamed(expression: str, pointers: Sequence[str]) -> str:
    for name in pointers:
        expression = re.sub(rf"\b{name}\b", f"{name}_", expression)
    return expression


for _line, _expression in _LINES.items():
    for _in_place in (True, False):
        if _in_place or _line not in ("zero", "copy"):
            _declare(_line, _expression, _in_place)


_NORMS = {
    1: lists.Listwise(
        "foreach_norm_1", "sum += fabs(LOAD(self, i));", ("self",), common=("parts",), sizes=("row",), sums=True
    ),
    2: lists.Listwise(
        "foreach_norm_2",
        "const T x = LOAD(self, i); sum += x * x;",
        ("self",),
        common=("parts",),
        sizes=("row",),
        sums=True,
    ),
}
_norm_one_by_one = one_by_one("_foreach_norm.Scalar")


@op("_foreach_norm.Scalar")
def norm(self: Tensors, ord: Number = 2, dtype: torch.dtype | None = None) -> list[Tensor]:
    """The norm of each tensor; of order 1 and 2 in three launches for many of them."""
    try:
        if ord not in _NORMS or dtype is not None or not all(x.dtype.is_floating_point for x in self):
            raise NotNative
        parts = storage.empty([len(self), lists.PARTS], programs.computed(self[0].dtype)).zero_()
        lists.run(_NORMS[ord], (self,), common=(parts,), sizes=(range(len(self)),))
    except NotNative:
        return list(_norm_one_by_one(self, ord, dtype=dtype))
    made = storage.empty([len(self)], parts.dtype)
    fold("sum", parts, [1], made, parts.dtype)
    if ord == 2:
        made.sqrt_()
    made = made.to(self[0].dtype)
    return [storage.element(made, k) for k in range(len(self))]
