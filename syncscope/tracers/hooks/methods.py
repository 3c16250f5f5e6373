"""Hears calls of functions that are written in C without anybody's seeing it: see methods.c, which is compiled.

Where there is no compiler, functions in Python take their places, which a program can see (in tracebacks, by identity, in
tables of torch's compilers), and operators are not heard.
"""

from __future__ import annotations

import functools
import importlib.util
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import FunctionType
from typing import Any

from syncscope.errors import UserError
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.opencl import compiled

Answer = tuple[Any, ...]
Before = Callable[[Any, tuple[Any, ...], dict[str, Any] | None], Answer | None]
"""Is given self (None where there is none), arguments and keywords (None where there are none) of a call; what it raises, the
call raises. Gives back None; or (answer,) instead of the call; or (args, kwargs, after), the first two None or other arguments,
`after` called with the result, or None where the call raised."""

SOURCE = Path(__file__).with_name("methods.c")
ITEM, SET, MAKE = range(3)  # slots of a type: x[i], x[i] = y, the making of an object


@functools.cache
def _native() -> Any:
    """The compiled part, or None."""
    try:
        path = compiled.built(SOURCE, f"-I{sysconfig.get_path('include')}")
    except (OSError, UserError, subprocess.CalledProcessError):
        return None
    spec = importlib.util.spec_from_file_location("_methods", path, loader=ExtensionFileLoader("_methods", str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hear(owner: Any, name: str, before: Before) -> None:
    """Has `before` called before each call of this function or method, until the patches are taken back."""
    native, function = _native(), getattr(owner, name, None)
    if function is None:
        return
    number = native.hear(function, before) if native is not None else None
    if number is None:
        torch = sys.modules["torch"]
        owner = {torch._C.TensorBase: torch.Tensor, torch._C._VariableFunctions: torch}.get(owner, owner)
        patches.replace(owner, name, _in_python(function, isinstance(owner, type), before))
    else:
        patches.stack.callback(native.forget, number)


def following(mode: type) -> None:
    """Makes this subclass of torch's TorchFunctionMode one that calls first: `around(function, args, kwargs)` stands for a
    function in Python, and `followed(function, args, kwargs, result)` is given the result of any other."""

    def follow(self: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(function, FunctionType):
            return self.around(function, args, kwargs)
        return self.followed(function, args, kwargs, function(*args, **(kwargs or {})))

    native = _native()
    mode.__torch_function__ = follow if native is None else native.follow  # type: ignore[attr-defined]


def hear_slot(kind: type, slot: int, before: Before) -> None:
    """The same for a slot of a type and of all that inherit it."""
    native = _native()
    if native is not None:
        wrapper = {ITEM: "__getitem__", SET: "__setitem__"}.get(slot, "")
        number = native.hear_slot(list(_family(kind)), slot, getattr(kind, wrapper, None), before)
        patches.stack.callback(lambda: native.forget(number, list(_family(kind)), slot))


def look_away(torch: Any) -> None:
    """Keeps torch.compile, which is there now, from tracing what hears."""
    native = _native()
    if native is not None:
        native.look_away(torch._C._dynamo.eval_frame.set_eval_frame)
        patches.stack.callback(native.look_away, None)


def _family(kind: type) -> Iterator[type]:
    yield kind
    child: type
    for child in type.__subclasses__(kind):
        yield from _family(child)


def _in_python(function: Callable[..., Any], method: bool, before: Before) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
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
