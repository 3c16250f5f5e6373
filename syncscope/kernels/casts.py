"""Parameters that a region of autocast casts: all that the last one cast, in a few launches, when the first is asked for.

A network casts the same parameters in every step, each as an operator asks for it, and each of their gradients back: two
launches a parameter, of which there are as many as other operators. What was cast ahead and changed since is cast anew.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from syncscope.kernels import lists, plans, storage
from syncscope.kernels.lists import Listwise

_NARROW = Listwise("narrow", "STORE(from[i], to, i);", ("to",), statistics=("from",))
_WIDEN = Listwise("widen", "to[i] = LOAD(from, i);", ("from",), statistics=("to",))
Key = tuple[int, torch.dtype, bool]


class Cast:
    """A parameter in another type; `version` is how often it had been changed when it was cast ahead, None once it was used."""

    __slots__ = ("made", "of", "version")

    def __init__(self, of: Tensor, made: Tensor, version: int | None = None) -> None:
        self.of, self.made, self.version = weakref.ref(of), made, version

    def holds(self, x: Tensor) -> bool:
        """Whether it is this parameter, as it is now where it is used for the first time."""
        return (self.version is None or self.version == x._version) and self.of() is x


# Parameters that were cast in the outermost region, while they live: a network that uses one twice casts it once. Whether
# gradients are on belongs to the key, since what was cast without them carries none back.
_there: dict[Key, Cast] = {}
_last: dict[Key, list[weakref.ref[Tensor]]] = {}  # what a region cast, in this order, by its first
_FEWEST = 4
_transforms = torch._C._functorch.peek_interpreter_stack  # torch.func's, which take no function such as the one below


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A parameter of float32 in `dtype`."""
    key = id(x), dtype, torch.is_grad_enabled()
    known = _there.get(key)
    if known is None and key in _last and _transforms() is None:
        _ahead(key, x)
        known = _there.get(key)
    if known is None or not known.holds(x):
        known = _there[key] = Cast(x, x.to(dtype))
    known.version = None
    return known.made


def forget() -> None:
    """At the end of the outermost region; which parameters it used is known to the next."""
    used = [(key, one) for key, one in _there.items() if one.version is None]
    _there.clear()
    for first in {key[1:]: key for key, _ in reversed(used)}.values():
        of = [one.of for key, one in used if key[1:] == first[1:]]
        _last.pop(first, None)
        if len(of) >= _FEWEST:
            _last[first] = of
    while len(_last) > 64:
        del _last[next(iter(_last))]


def _ahead(key: Key, x: Tensor) -> None:
    """Casts what the region that began with this parameter used, as far as it is there and as it was."""
    found = [p for p in (ref() for ref in _last[key]) if p is not None]
    if not found or found[0] is not x:  # another one with its number
        del _last[key]
        return
    alike = [p for p in found if _plain(p)]
    made: tuple[Tensor, ...] = _Together.apply(key[1], *alike)
    for p, one in zip(alike, made, strict=True):
        _there[id(p), *key[1:]] = Cast(p, one, p._version)


def _plain(x: Tensor) -> bool:
    usual = type(x) in (Tensor, torch.nn.Parameter) and x.device.type == storage.NAME and not x.is_inference()
    return usual and x.requires_grad and x.is_leaf and x.dtype is torch.float32 and x.is_contiguous() and x.numel() > 0


class _Together(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, dtype: torch.dtype, *given: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        made: tuple[Tensor, ...] = _narrowed(list(given), dtype)
        return made

    @staticmethod
    def backward(ctx: FunctionCtx, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:
        there = [x for x in slopes if x is not None]
        if torch.is_grad_enabled() or not all(x.is_contiguous() and x.numel() for x in there):
            return (None, *(None if x is None else x.to(torch.float32) for x in slopes))
        made = iter(_widened(there))
        return (None, *(None if x is None else next(made) for x in slopes))


def _narrow(given: Sequence[Tensor], dtype: torch.dtype) -> tuple[Tensor, ...]:
    made = tuple(storage.empty(x.shape, dtype) for x in given)
    lists.run(_NARROW, (made, given))
    return made


def _widen(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
    made = tuple(storage.empty(x.shape, torch.float32) for x in given)
    lists.run(_WIDEN, (given, made))
    return made


_narrowed, _widened = (plans.followed(None, plans.kept(x)) for x in (_narrow, _widen))
