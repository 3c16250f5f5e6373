"""The dtype of an expression, by torch's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from syncscope.kernels.comprehensions.expressions import Apply, Name, Node, Number, Poly, Read
from syncscope.kernels.comprehensions.functions import FUNCTIONS, OPERATORS
from syncscope.kernels.comprehensions.notation import TYPES

DTYPES = {"half": torch.float16, "double": torch.float64} | {
    name: getattr(torch, name) for name in TYPES if name not in ("half", "double", "float", "int")
}
BOOL, INT, FLOAT = range(3)
Argument = torch.Tensor | float  # of a comprehension's call: a tensor, or a number
_LEAST = {"same": INT, "float": FLOAT}

# What an expression is: a dtype that it insists on, if any, and what it is at least.
Kind = tuple[torch.dtype | None, int]


def category(dtype: torch.dtype) -> int:
    """Whether it is of truth values, of integers or of floating point."""
    return FLOAT if dtype.is_floating_point else BOOL if dtype == torch.bool else INT


def settled(kind: Kind) -> torch.dtype:
    """The dtype of a tensor of that kind: a plain number decides no more than float, int or bool."""
    strong, least = kind
    if strong is not None and category(strong) >= least:
        return strong
    return (torch.bool, torch.int64, torch.get_default_dtype())[least]


def kind(node: Node, dtypes: Mapping[str, torch.dtype], numbers: frozenset[str] = frozenset()) -> Kind:
    """What an expression gives, of tensors of these dtypes; `numbers` were given as plain numbers."""
    match node:
        case Number(value):
            return None, BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
        case Name() | Poly():
            return None, INT
        case Read(tensor):
            return (None, FLOAT) if tensor in numbers else (dtypes[tensor], category(dtypes[tensor]))
        case Apply(function) if function.startswith("cast "):
            name = function.removeprefix("cast ")
            return (DTYPES[name], BOOL) if name in DTYPES else (None, FLOAT if name == "float" else INT)
        case Apply("?", (_, *args)):
            return _joined((kind(x, dtypes, numbers) for x in args), BOOL)
        case Apply(function, args):
            gives = (OPERATORS.get(function) or FUNCTIONS[function]).gives
            if gives == "truth":
                return torch.bool, BOOL
            return _joined((kind(x, dtypes, numbers) for x in args), _LEAST[gives])
    raise TypeError(node)


def _joined(kinds: Iterable[Kind], least: int) -> Kind:
    strong: torch.dtype | None = None
    for one, category_ in kinds:
        least = max(least, category_)
        if one is not None:
            strong = one if strong is None else torch.promote_types(strong, one)
    return None if strong is None else settled((strong, least)), least
