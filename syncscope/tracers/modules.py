"""Which nn.Module a read happens in: `model.backbone.layer3`, from the frames of the methods that are running."""

from __future__ import annotations

import sys
import weakref
from types import CodeType, FrameType
from typing import Any

DEEP = 60  # frames that are looked through
_paths: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def path_from(frame: FrameType | None) -> str:
    """The path of the innermost module whose method is running; "" where there is none."""
    torch = sys.modules.get("torch")
    kind = getattr(getattr(torch, "nn", None), "Module", None)
    if kind is None:
        return ""
    for _ in range(DEEP):
        if frame is None:
            return ""
        module = _self(frame, kind)
        if module is not None:
            path = _paths.get(module)
            if path is None:
                path = _paths[module] = _find(module, frame, kind)
            return path
        frame = frame.f_back
    return ""


# Code that takes `self`, by its address, which it keeps while it is here: to hash it, or to ask for its names, takes longer.
_methods: dict[int, tuple[CodeType, bool]] = {}


def _self(frame: FrameType, kind: type) -> Any:
    code = frame.f_code
    known = _methods.get(id(code))
    if known is None:
        known = _methods[id(code)] = code, bool(code.co_argcount) and code.co_varnames[0] == "self"
    if known[1]:
        value = frame.f_locals.get("self")
        if isinstance(value, kind):
            return value
    return None


def _find(module: Any, frame: FrameType, kind: type) -> str:
    """The names of the attributes from the outermost running module, by the caller's name for that."""
    root, caller, at = module, frame.f_back, frame.f_back
    for _ in range(DEEP):
        if at is None:
            break
        outer = _self(at, kind)
        if outer is not None:
            root, caller = outer, at.f_back
        at = at.f_back
    name = type(root).__name__
    while caller is not None:
        for variables in (caller.f_locals, caller.f_globals):
            found = next((n for n, v in list(variables.items()) if v is root and not n.startswith("_")), None)
            if found:
                name, caller = found, None
                break
        else:
            caller = caller.f_back
    inner = next((n for n, m in root.named_modules() if m is module), type(module).__name__)
    return f"{name}.{inner}" if inner else name
