"""Which nn.Module a read happens in: `model.backbone.layer3`, from the frames of the methods that are running."""

from __future__ import annotations

import weakref
from pathlib import Path
from types import FrameType
from typing import Any

from syncscope.tracers.hooks.methods import native

IN_C = Path(__file__).with_name("hooks") / "reads.c"
DEEP = 60  # frames that are looked through
paths: dict[int, tuple[weakref.ref[Any], str]] = {}  # by the module's address; another module may stand there later


def path_from(frame: FrameType | None, kind: type) -> str:
    """The path of the innermost module (of type `kind`) whose method is running; "" where there is none."""
    found = None if frame is None else running(frame, kind)
    if found is None:
        return ""
    frame, module = found
    known = paths.get(id(module))
    if known is None or known[0]() is not module:
        known = paths[id(module)] = weakref.ref(module), _find(module, frame, kind)
    return known[1]


def running(frame: FrameType, kind: type) -> tuple[FrameType, Any] | None:
    """The innermost frame whose `self` is of this type, and that `self`.

    `f_locals`, which is asked where there is no compiler, keeps a function's variables alive until it is asked again.
    """
    in_c = native(IN_C)
    if in_c is not None:
        return in_c.running(frame, kind)  # type: ignore[no-any-return]
    outer: FrameType | None = frame
    for _ in range(DEEP):
        if outer is None:
            break
        code = outer.f_code
        if code.co_argcount and code.co_varnames[0] == "self" and isinstance(outer.f_locals.get("self"), kind):
            return outer, outer.f_locals["self"]
        outer = outer.f_back
    return None


def _name_in(frame: FrameType, value: Any) -> str | None:
    in_c = native(IN_C)
    if in_c is not None:
        return in_c.name_in(frame, value)  # type: ignore[no-any-return]
    return next((name for name, one in frame.f_locals.items() if one is value and not name.startswith("_")), None)


def _find(module: Any, frame: FrameType, kind: type) -> str:
    """The names of the attributes from the outermost running module, by the caller's name for that."""
    root, caller = module, frame.f_back
    at = caller
    while at is not None and (outer := running(at, kind)) is not None:
        found, root = outer
        caller = at = found.f_back
    name = type(root).__name__
    while caller is not None:
        names = list(caller.f_globals.items())
        known = _name_in(caller, root) or next((n for n, v in names if v is root and not n.startswith("_")), None)
        if known:
            name = known
            break
        caller = caller.f_back
    inner = next((n for n, m in root.named_modules() if m is module), type(module).__name__)
    return f"{name}.{inner}" if inner else name
