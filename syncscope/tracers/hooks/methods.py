"""Hears calls of functions that are written in C without anybody's seeing it: see methods.c, which is compiled.

Where there is no compiler, functions in Python take their places, which a program can see (in tracebacks, by identity, in
tables of torch's compilers), and operators are not heard.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from syncscope.native import module
from syncscope.tracers.hooks.patches import Patches, patches

Answer = tuple[Any, ...]
Before = Callable[[Any, tuple[Any, ...], dict[str, Any] | None], Answer | None]
"""Is given self (None where there is none), arguments and keywords (None where there are none) of a call; what it raises, the
call raises. Gives back None; or (answer,) instead of the call; or (args, kwargs, after), the first two None or other arguments,
`after` called with the result, or None where the call raised."""

SOURCE = Path(__file__).with_name("methods.c")
HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a type whose attributes can be set
ITEM, SET, MAKE = range(3)  # slots of a type: x[i], x[i] = y, the making of an object


def native(source: Path = SOURCE) -> Any:
    """A compiled part, or None where it cannot be compiled."""
    return module(source)


class Hooks:
    """Functions and slots that are heard together: looked up once, then put in place and taken back by one call in C, as often
    as somebody begins to listen."""

    def __init__(self) -> None:
        self._numbers: tuple[int, ...] = ()
        self._in_python: list[tuple[Any, str, Before]] = []

    def hear(self, owner: Any, name: str, before: Before) -> None:
        """Has `before` called before each call of this function or method, once it is in place."""
        in_c, function = native(), getattr(owner, name, None)
        if function is None:
            return
        number = in_c.hear(function, before) if in_c is not None else None
        if number is None:
            owner = _in_python(owner, name)
            # of others no function can be replaced: not heard
            if not isinstance(owner, type) or owner.__flags__ & HEAP:
                self._in_python.append((owner, name, before))
        else:
            self._numbers += (number,)

    def hear_slot(self, kind: type, slot: int, before: Before) -> None:
        """The same for a slot of a type and of all that inherit it."""
        in_c = native()
        if in_c is not None:
            wrapper = {ITEM: "__getitem__", SET: "__setitem__"}.get(slot, "")
            self._numbers += (in_c.hear_slot(kind, slot, getattr(kind, wrapper, None), before),)

    def put(self, once: bool = False, patches: Patches = patches) -> None:
        """In place until the patches are taken back; `once`: and never again."""
        in_c = native()
        if self._numbers:
            if once:
                patches.later(in_c.forget, self._numbers)
            in_c.put(self._numbers)
            patches.later(in_c.take, self._numbers)
        for owner, name, before in self._in_python:
            patches.replace(owner, name, _replacement(getattr(owner, name), isinstance(owner, type), before))


def _in_python(owner: Any, name: str) -> Any:
    """Where a function of torch in C is called from in Python, for its own home takes no other."""
    torch = sys.modules["torch"]
    if owner is torch._C.TensorBase:
        return torch.Tensor
    if owner is torch._C._VariableFunctions:
        return torch if hasattr(torch, name) else torch._VF  # `unique_dim` is called by torch's own Python alone
    return owner


def hear(owner: Any, name: str, before: Before) -> None:
    """Has `before` called before each call of this function or method, until the patches are taken back."""
    hooks = Hooks()
    hooks.hear(owner, name, before)
    hooks.put(once=True)


def following(mode: type) -> None:
    """Makes this subclass of torch's TorchFunctionMode one that calls first: `around(function, args, kwargs)` stands for a
    function in Python, and `followed(function, args, kwargs, result)` is given the result of any other."""

    def follow(self: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(function, FunctionType):
            return self.around(function, args, kwargs)
        return self.followed(function, args, kwargs, function(*args, **(kwargs or {})))

    in_c = native()
    mode.__torch_function__ = follow if in_c is None else in_c.follow  # type: ignore[attr-defined]


def look_away(torch: Any) -> None:
    """Keeps torch.compile, which is there now, from tracing what hears."""
    in_c = native()
    if in_c is not None:
        in_c.look_away(torch._C._dynamo.eval_frame.set_eval_frame)
        patches.later(in_c.look_away, None)


def _replacement(function: Callable[..., Any], method: bool, before: Before) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        own = args[:1] if method else ()
        answer = before(own[0] if own else None, args[len(own) :], kwargs or None)
        if answer is None:
            return function(*args, **kwargs)
        if len(answer) == 1:
            return answer[0]
        others, keywords, after = answer
        if others is not None:
            args, kwargs = (*own, *others), keywords or {}
        result = None
        try:
            result = function(*args, **kwargs)
            return result
        finally:
            if after is not None:
                after(result)

    return call
